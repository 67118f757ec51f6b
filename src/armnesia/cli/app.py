"""The commands by name and help panel. A command's module is imported when the command is called.

So `armnesia --version` and `armnesia --help` need no numpy. The lines of `--help` are the docstrings of the
commands' functions, read from their source.
"""

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from armnesia import __version__
from armnesia.cli.interrupts import Interrupted, exiting_on_interrupt

_LOG, _VAULT, _UPKEEP, _RESEARCH = "A log", "The vault", "Vault upkeep", "Research"
COMMANDS = {
    _LOG: {
        "decide": "log.decide",
        "unlearn": "log.unlearn",
        "audit": "log.audit",
        "compare": "log.compare",
        "join": "log.join",
        "demo": "demo",
    },
    _VAULT: {
        "init": "vault.init",
        "ingest": "vault.ingest",
        "forget": "vault.forget",
        "erase": "vault.erase",
        "readmit": "vault.readmit",
        "verify": "vault.verify",
        "ledger": "vault.ledger",
        "status": "vault.status",
        "serve": "vault.serve",
    },
    _UPKEEP: {
        "policy": "vault.policy",
        "public-key": "vault.keys",
        "rotate-key": "vault.keys",
        "compact": "vault.compact",
        "export": "vault.export",
        "backup": "vault.backup",
        "restore": "vault.restore",
    },
}
"""The module of each command, below `armnesia.cli`; its function has the command's name."""


@dataclass(frozen=True)
class GroupOfCommands:
    """A group: its panel, its line in the help, and the module of each of its commands."""

    panel: str
    help: str
    commands: Mapping[str, str]
    function: str = "{}"
    """What the functions are called; `{}` is the command's name."""


GROUPS = {
    "certificate": GroupOfCommands(
        _VAULT,
        "Show a certificate, or verify one without a vault.",
        {"show": "vault.certificate", "verify": "vault.certificate"},
    ),
    "arms": GroupOfCommands(
        _VAULT,
        "Print which arms are offered, add one, or retire one.",
        {"list": "vault.arms", "add": "vault.arms", "retire": "vault.arms"},
        function="arms_{}",
    ),
    "token": GroupOfCommands(
        _VAULT,
        "Make, list or revoke tokens of the service.",
        {"create": "vault.tokens", "list": "vault.tokens", "revoke": "vault.tokens"},
        function="token_{}",
    ),
    "research": GroupOfCommands(
        _RESEARCH,
        "Simulate, bound and calibrate unlearners; reproduce the paper.",
        {
            "evaluate": "research.evaluate",
            "sweep": "research.sweep",
            "bounds": "research.bounds",
            "levels": "research.levels",
            "calibrate": "research.privacy",
            "curve": "research.privacy",
            "reproduce": "research.reproduce",
        },
    ),
}
READING = {
    *("decide", "unlearn", "audit", "compare", "verify", "ledger", "status", "list", "public-key"),
    *("evaluate", "bounds", "levels", "calibrate", "curve"),
}
"""The commands, and those of groups, that change no vault and no log."""


def hide_types_of_flags(params: list[Any]) -> None:
    """Keep the help of flags, which take no value, from saying <bool>."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""


class Command(TyperCommand):
    """A command; after Ctrl-C one that only reads says that nothing was changed."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if self.name not in READING:
                raise
            raise Interrupted("interrupted; nothing was changed") from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        hide_types_of_flags(self.get_params(ctx))
        super().format_help(ctx, formatter)


class UnloadedCommand(TyperCommand):
    """A command by its name and panel, before its module is imported."""

    def __init__(
        self, name: str, module: str, panel: str | None = None, *, function: str | None = None
    ) -> None:
        super().__init__(name, rich_help_panel=panel)
        self.module, self.function = module, function or name.replace("-", "_")

    def load(self) -> Any:
        """Import the module and make the command of its function."""
        with exiting_on_interrupt():
            function = getattr(importlib.import_module(f"armnesia.cli.{self.module}"), self.function)
        single = typer.Typer(add_completion=False)
        single.command(self.name, cls=Command)(function)
        return get_command(single)

    def docstring(self) -> str:
        """Read the docstring of its function from the source."""
        source = Path(__file__).parent / f"{self.module.replace('.', '/')}.py"
        body = ast.parse(source.read_text(encoding="utf-8")).body
        (function,) = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == self.function]
        return ast.get_docstring(function) or ""


class Group(TyperGroup):
    """A group of commands that are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of the table; older versions of typer sort them."""
        return list(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, UnloadedCommand) else command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with a line for each command."""
        hide_types_of_flags(self.get_params(ctx))
        for command in self.commands.values():
            if isinstance(command, UnloadedCommand):
                command.help = command.docstring()
        super().format_help(ctx, formatter)


class App(Group):
    """All commands. `--version` is answered before typer parses options, for which it imports pydantic."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Print the version, or parse the options."""
        if args[:1] == ["--version"]:
            print(f"armnesia {__version__}")
            raise typer.Exit
        return super().parse_args(ctx, args)


def make_app() -> Any:
    """Make the command line, without importing any command."""
    outer = typer.Typer(name="armnesia", cls=App, no_args_is_help=True, add_completion=False)
    outer.callback()(armnesia)
    app: Any = get_command(outer)
    for panel, commands in COMMANDS.items():
        for name, module in commands.items():
            app.add_command(UnloadedCommand(name, module, panel))
    for name, of in GROUPS.items():
        group = Group(name=name, help=of.help, no_args_is_help=True, rich_help_panel=of.panel)
        for inner, module in of.commands.items():
            group.add_command(UnloadedCommand(inner, module, function=of.function.format(inner)))
        app.add_command(group)
    return app


def armnesia(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Offline bandit decisions that can forget."""
    # App prints the version; the option is here for the help.
