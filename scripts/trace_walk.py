"""What read_log, init, ingest, forget, decide, unlearn and erase call: functions, files, transactions.

Runs the commands, each in a process of its own as users do, on a small log and an SQLite vault in a temporary
folder; `read_log` reads the log as Parquet. `python -m scripts.trace_walk` prints a table,
`python -m scripts.trace_walk forget` the functions that forget calls.
"""

import contextlib
import importlib
import inspect
import io
import json
import multiprocessing
import os
import pkgutil
import random
import secrets
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import duckdb

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "armnesia"
URL, EXTERNAL = "sqlite:///vault.db", "sqlite:///external.db"
READ_LOG = ("read_log", "log.parquet")
COMMANDS = (
    READ_LOG,
    ("init", "--url", URL, "--actions", "A,B"),
    ("ingest", "log.csv", "--url", URL, "--user-column", "user"),
    ("forget", "--url", URL, "--user", "user-3"),
    ("decide", "--url", URL),
    ("unlearn", "log.csv", "--actions", "A,B", "--user-column", "user", "--user", "user-3", "--draw"),
    ("erase", "--url", EXTERNAL, "--purge"),
)
PREPARING = {
    "erase": (
        ("init", "--url", EXTERNAL, "--actions", "A,B", "--external", "--may-erase-at-source"),
        ("ingest", "log.parquet", "--url", EXTERNAL, "--user-column", "user"),
        ("forget", "--url", EXTERNAL, "--user", "user-3"),
    )
}
"""What runs before a command, and is not counted."""
_HERE = "--here"
"""Runs all commands and prints a line of JSON for each."""


@dataclass(frozen=True)
class Walk:
    """What one command calls."""

    command: str
    functions: int
    """Distinct functions and methods of armnesia; a lambda or comprehension belongs to its function."""
    files: int
    reads: int
    """Transactions that begin as readers."""
    writes: int
    """Transactions that begin as writers."""
    signatures: int
    """Ed25519 signatures made."""
    called: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The functions by file and name."""


def trace(command: str, run: Callable[[], object], package: Path = PACKAGE) -> Walk:
    """Call `run` and count what it calls in the files of a package."""
    functions: set[tuple[str, str]] = set()
    begins: list[str] = []
    signatures = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal signatures
        if event == "call" and frame.f_code.co_filename.startswith(f"{package}{os.sep}"):
            name = _function(frame.f_code)
            if name:
                functions.add((frame.f_code.co_filename, name))
        elif event == "c_call" and argument.__name__ == "sign":
            signatures += "Ed25519" in type(argument.__self__).__name__

    with _statements(begins):
        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)
    return Walk(
        command,
        functions=len(functions),
        files=len({file for file, _ in functions}),
        reads=sum(statement != "BEGIN IMMEDIATE" for statement in begins),
        writes=sum(statement == "BEGIN IMMEDIATE" for statement in begins),
        signatures=signatures,
        called=tuple(sorted(f"{Path(file).relative_to(package)}: {name}" for file, name in functions)),
    )


def _function(code: CodeType) -> str | None:
    """The qualified name of the function that code belongs to; bodies of modules and classes have none."""
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    name = code.co_qualname
    while name.endswith(">") and ".<locals>.<" in name:
        name = name.rpartition(".<locals>.<")[0]
    return name if not name.endswith(">") else f"{name} in line {code.co_firstlineno}"


@contextlib.contextmanager
def _statements(begins: list[str]) -> Iterator[None]:
    """Note every statement that begins a transaction on SQLite."""
    connect = sqlite3.connect

    def note(statement: str) -> None:
        if statement.startswith("BEGIN"):
            begins.append(statement)

    def connect_noting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(note)
        return connection

    sqlite3.connect = connect_noting  # type: ignore[assignment]
    try:
        yield
    finally:
        sqlite3.connect = connect


def walks() -> list[Walk]:
    """The walks of all commands, each in a process of its own, in which nothing is cached."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARMNESIA_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        rows = [f"{'AB'[row % 2]},{row % 3 % 2},user-{row % 20}" for row in range(200)]
        Path(folder, "log.csv").write_text("\n".join(["action,reward,user", *rows]) + "\n", encoding="utf-8")
        duckdb.execute(f"COPY (FROM '{folder}/log.csv') TO '{folder}/log.parquet'")
        done = subprocess.run(
            [sys.executable, "-m", "scripts.trace_walk", _HERE],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [Walk(**json.loads(line)) for line in done.stdout.splitlines()]


def _print_walks() -> None:
    """Trace the commands in the working folder, each in a fork of this process: importing takes longest."""
    import armnesia  # noqa: PLC0415 (the tests import this module without the package)

    if Path(armnesia.__file__).resolve().parent != PACKAGE.resolve():
        raise RuntimeError(f"armnesia must be imported from {PACKAGE}; it is from {armnesia.__file__}")
    # What a module does when it is imported is no part of a walk.
    for module in pkgutil.walk_packages(armnesia.__path__, "armnesia."):
        importlib.import_module(module.name)
    forking = multiprocessing.get_context("fork")
    for place in range(len(COMMANDS)):
        process = forking.Process(target=_print_walk, args=(place,))
        process.start()
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"{' '.join(COMMANDS[place])} ended with code {process.exitcode}")


def _print_walk(place: int) -> None:
    print(json.dumps(asdict(_walk_here(place))), flush=True)


def _walk_here(place: int) -> Walk:
    """The walk of one of the commands, in this process and the working folder."""
    from armnesia import read_log  # noqa: PLC0415
    from armnesia.cli.main import main  # noqa: PLC0415

    # The same keys in every run: SQLite fills its pages, and cleans them, alike.
    secrets.token_bytes = random.Random(place).randbytes  # type: ignore[assignment]
    command = COMMANDS[place]

    def run(command: Sequence[str] = command) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                main(list(command))
            except SystemExit as stopped:
                if stopped.code != 0:
                    raise RuntimeError(f"{' '.join(command)} ended with code {stopped.code}") from None

    if command == READ_LOG:
        return trace("read_log", lambda: read_log("log.parquet", user="user", actions=["A", "B"]))
    for before in PREPARING.get(command[0], ()):
        run(before)
    return trace(command[0], run)


def table(found: Sequence[Walk]) -> list[str]:
    """The walks as lines of text."""
    columns = ("command", "functions", "files", "reads", "writes", "signatures")
    return [
        " ".join(f"{column:>10}" for column in columns),
        *(" ".join(f"{getattr(walk, column):>10}" for column in columns) for walk in found),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == [_HERE]:
        _print_walks()
    else:
        found = walks()
        listed = [function for walk in found if walk.command in sys.argv[1:] for function in walk.called]
        print("\n".join(listed or table(found)))
