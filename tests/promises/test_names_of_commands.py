"""Every command, option and endpoint stands in `names.csv`, with its fate in the small house."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from typer.core import TyperGroup

from armnesia.cli.app import UnloadedCommand, make_app
from armnesia.service.api import ROUTERS
from armnesia.service.opendsr.endpoints import router as opendsr

TABLE = Path(__file__).with_name("names.csv")


class Name(NamedTuple):
    """A row: the option `--x` is that of every command, `command --x` that of one."""

    name: str
    kind: str
    fate: str

    @property
    def now(self) -> tuple[str, ...]:
        """Under which names it may be in the program."""
        if self.fate.startswith("renamed to "):
            name = self.fate.removeprefix("renamed to ").split(";")[0]
            is_of_same_command = self.kind == "option" and name.startswith("--")
            command = self.name.rpartition(" ")[0] if is_of_same_command else ""
            return self.name, f"{command} {name}".strip()
        return (self.name,)


def rows() -> list[Name]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Name(**row) for row in csv.DictReader(file)]


def commands(group: Any, before: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every command, with its options."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{before}{name} ")
            continue
        loaded = command.load() if isinstance(command, UnloadedCommand) else command
        words = [option for param in loaded.params for option in (*param.opts, *param.secondary_opts)]
        yield f"{before}{name}", [word for word in words if word.startswith("-")]


def names_of_program() -> dict[str, tuple[str, ...]]:
    """Every name, and the rows of which one has to be there."""
    found: dict[str, tuple[str, ...]] = {}
    for command, options in commands(make_app()):
        found[command] = (command,)
        found.update({f"{command} {option}": (f"{command} {option}", option) for option in options})
    for route in [route for router in (*ROUTERS, opendsr) for route in router.routes]:
        for method in getattr(route, "methods", ()):
            endpoint = f"{method} {getattr(route, 'path', '')}"
            found[endpoint] = (endpoint,)
    return found


def test_every_name_of_the_program_has_a_row() -> None:
    told = {name for row in rows() for name in row.now}
    assert [name for name, any_of in names_of_program().items() if not told & set(any_of)] == []


def test_what_is_kept_or_renamed_is_there() -> None:
    there = {name for name, any_of in names_of_program().items() for name in (name, *any_of)}
    kept = [row for row in rows() if not row.fate.startswith("gone")]
    assert [row.name for row in kept if not there & set(row.now)] == []


def test_the_table_is_in_order_and_says_why() -> None:
    listed = rows()
    assert len({row.name for row in listed}) == len(listed)
    assert {row.kind for row in listed} == {"command", "option", "endpoint"}
    for row in listed:
        assert row.fate.startswith(("kept", "renamed to ", "gone: ", "new: ")), row


def test_what_is_gone_is_gone() -> None:
    there = names_of_program()
    assert [row for row in rows() if row.fate.startswith("gone") and row.name in there] == []
    assert [row for row in rows() if row.fate.startswith("renamed") and row.name in there] == []
