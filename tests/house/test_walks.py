"""What a trace counts of `read_log` and of the vault's commands."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scripts.trace_walk import Walk, trace
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


@pytest.mark.slow
def test_every_command_is_traced(walks: dict[str, Walk]) -> None:
    assert list(walks) == ["read_log", "init", "ingest", "forget", "decide", "unlearn", "erase"]
    assert all(walk.functions > walk.files > 0 for walk in walks.values())
    assert {command: walk.writes > 0 for command, walk in walks.items()} == {
        "read_log": False,
        "init": True,
        "ingest": True,
        "forget": True,
        "decide": False,
        "unlearn": False,
        "erase": True,
    }
    assert walks["forget"].signatures > 0
