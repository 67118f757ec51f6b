"""What a trace of the vault's commands counts, and that the tables of the walks in the docs are true."""

import importlib.util
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scripts.trace_walk import PACKAGE, ROOT, Walk, trace
from scripts.trace_walk import walks as traced_walks

PROGRAM = """
import sqlite3

class Table:
    def name(self):
        def inner():
            return (lambda: "table")()
        return inner()

def read(connection):
    connection.execute("BEGIN")
    names = [name for name in (Table().name() for _ in range(2))]
    connection.execute("COMMIT")
    return sorted(names, key=lambda name: name)

def write(connection):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")

def work(key):
    class Local:
        number = 1
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for _ in range(3):
        read(connection)
    write(connection)
    connection.close()
    key.sign(b"message")
    return Local.number

def unused():
    return 0
"""


@pytest.fixture
def program(tmp_path: Path) -> ModuleType:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    specification = importlib.util.spec_from_file_location("program", tmp_path / "program.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_what_a_trace_counts(program: ModuleType, tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    found = trace("work", lambda: program.work(key), tmp_path)
    # work, read, write, Table.name and inner; not the class bodies, lambdas and comprehensions.
    assert found == Walk("work", functions=5, files=1, reads=3, writes=1, signatures=1)
    assert found.called[:2] == ("program.py: Table.name", "program.py: Table.name.<locals>.inner")
    assert trace("nothing", lambda: None, tmp_path) == Walk("nothing", 0, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def walks() -> dict[str, Walk]:
    return {walk.command: walk for walk in traced_walks()}


def test_every_command_is_traced(walks: dict[str, Walk]) -> None:
    assert list(walks) == ["init", "ingest", "forget", "decide", "unlearn", "erase"]
    assert all(walk.functions > walk.files > 0 for walk in walks.values())
    assert {command: walk.writes > 0 for command, walk in walks.items()} == {
        "init": True,
        "ingest": True,
        "forget": True,
        "decide": False,
        "unlearn": False,
        "erase": True,
    }
    assert walks["forget"].signatures > 0


# The tables of docs/architecture.md.


def documented_files(command: str, text: str) -> set[str]:
    """The files that the table of a walk names, relative to the package; without a room, the vault's."""
    (section,) = re.findall(rf"(?ms)^## The walk of `armnesia {command}\b.*?(?=^## )", text)
    rows = [line for line in section.splitlines() if line.startswith("|")]
    names = re.findall(r"`([\w/]+\.py)`", "\n".join(rows))
    return {name if (PACKAGE / name).exists() else f"vault/{name}" for name in names}


def untrue_of_walk(named: set[str], walk: Walk) -> list[str]:
    """A sentence per file that a table names wrongly or lacks."""
    calls = Counter(function.partition(":")[0] for function in walk.called)
    lacking = {file for file, n in calls.items() if n >= 3 and file.startswith(("cli/", "vault/"))} - named
    return [f"{file} is not called" for file in sorted(named - calls.keys())] + [
        f"{file} is not named: {calls[file]} functions of it are called" for file in sorted(lacking)
    ]


@pytest.mark.parametrize("command", ["unlearn", "forget"])
def test_the_table_of_a_walk_is_true(walks: dict[str, Walk], command: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = documented_files(command, text)
    assert len(named) > 15
    assert untrue_of_walk(named, walks[command]) == []


OTHER_KINDS = {f"logs/erasing/{name}.py" for name in ("delta", "iceberg", "sqlite", "postgres")} | {
    f"logs/erasing/{name}.py" for name in ("delta_files", "iceberg_files", "lake_eraser", "lake_contents")
}


def test_the_table_of_erasing_is_true_of_parquet_files(walks: dict[str, Walk]) -> None:
    """What is called differs with the kind of source: files of other kinds only have to be there."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = documented_files("erase", text)
    assert len(named) > 15
    assert [name for name in sorted(OTHER_KINDS) if not (PACKAGE / name).exists()] == []
    assert named >= OTHER_KINDS
    assert untrue_of_walk(named - OTHER_KINDS, walks["erase"]) == []


def test_what_is_untrue_of_a_walk_is_found(walks: dict[str, Walk]) -> None:
    text = "## The walk of `armnesia forget U`\n| a | `vault.py`, `cli/demo.py` |\n`core/units.py`\n\n## B"
    assert documented_files("forget", text) == {"vault/vault.py", "cli/demo.py"}
    found = untrue_of_walk({"vault/vault.py", "cli/demo.py"}, walks["forget"])
    assert found[0] == "cli/demo.py is not called"
    assert "vault/state/managed_records.py is not named: 4 functions of it are called" in found
    assert not any("core/" in sentence or "vault/vault.py" in sentence for sentence in found)
