"""All commands, loaded: what they are called and which options they have."""

from functools import cache
from typing import Any

from armnesia.cli.app import UnloadedCommand, make_app


@cache
def commands() -> dict[str, Any]:
    """Every command by its name, such as "decide" and "certificate show"."""
    found = {}
    for name, command in make_app().commands.items():
        if isinstance(command, UnloadedCommand):
            found[name] = command.load()
        else:
            found |= {f"{name} {inner}": each.load() for inner, each in command.commands.items()}
    return found


def options(command: str) -> dict[str, Any]:
    """The options of a command by their names, such as "--user-column"; also "--no-…"."""
    params = commands()[command].params
    return {
        name: param
        for param in params
        if param.param_type_name == "option"
        for name in [*param.opts, *param.secondary_opts]
    }
