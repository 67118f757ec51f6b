"""What init, ingest, forget, decide and unlearn call: functions, files, transactions and signatures.

Runs the commands in this process on a small log, and on an SQLite vault in a temporary folder.
`python -m scripts.trace_walk` prints a table, `python -m scripts.trace_walk forget` the functions that forget
calls.
"""

import contextlib
import importlib
import inspect
import io
import json
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
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "armnesia"
URL = "sqlite:///vault.db"
COMMANDS = (
    ("init", "--url", URL, "--actions", "A,B"),
    ("ingest", "log.csv", "--url", URL, "--user-column", "user"),
    ("forget", "--url", URL, "--user", "user-3"),
    ("decide", "--url", URL),
    ("unlearn", "log.csv", "--actions", "A,B", "--user-column", "user", "--user", "user-3", "--draw"),
)
_SEED = 1
"""Of keys and nonces: which pages SQLite fills depends on digests under them."""
LIMITS = {
    # The second write marks the SQLite file as clean, after all copies in unused space are overwritten.
    "forget": {"functions": 278, "files": 59, "reads": 1, "writes": 2, "signatures": 1},
    "decide": {"functions": 96},
}


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


def excesses(walk: Walk) -> list[str]:
    """A sentence per limit that a walk exceeds."""
    return [
        f"{walk.command}: {getattr(walk, name)} {name}, at most {limit} are allowed"
        for name, limit in LIMITS.get(walk.command, {}).items()
        if getattr(walk, name) > limit
    ]


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


@contextlib.contextmanager
def _fixed_keys() -> Iterator[None]:
    """Make the same keys in every run, so that SQLite fills its pages, and cleans them, alike."""
    token_bytes = secrets.token_bytes
    secrets.token_bytes = random.Random(_SEED).randbytes  # type: ignore[assignment]
    try:
        yield
    finally:
        secrets.token_bytes = token_bytes


def walks() -> list[Walk]:
    """The walks of all commands, in this process."""
    import armnesia  # noqa: PLC0415 (the tests import this module without the package)
    from armnesia.cli.main import main  # noqa: PLC0415

    # What a module does when it is imported is no part of a walk.
    for module in pkgutil.walk_packages(armnesia.__path__, "armnesia."):
        importlib.import_module(module.name)

    def run(command: Sequence[str]) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                main(list(command))
            except SystemExit as stopped:
                if stopped.code != 0:
                    raise RuntimeError(f"{' '.join(command)} ended with code {stopped.code}") from None

    with _fixed_keys(), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        rows = [f"{'AB'[row % 2]},{row % 3 % 2},user-{row % 20}" for row in range(200)]
        Path("log.csv").write_text("\n".join(["action,reward,user", *rows]) + "\n", encoding="utf-8")
        return [trace(command[0], partial(run, command)) for command in COMMANDS]


def traced_apart() -> list[Walk]:
    """The walks of all commands in a new process, in which nothing is cached."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARMNESIA_")}
    finished = subprocess.run(
        [sys.executable, "-m", "scripts.trace_walk", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Walk(**walk) for walk in json.loads(finished.stdout)]


def table(found: Sequence[Walk]) -> list[str]:
    """The walks as lines of text."""
    columns = ("command", "functions", "files", "reads", "writes", "signatures")
    return [
        " ".join(f"{column:>10}" for column in columns),
        *(" ".join(f"{getattr(walk, column):>10}" for column in columns) for walk in found),
        *(sentence for walk in found for sentence in excesses(walk)),
    ]


if __name__ == "__main__":
    found = walks()
    if sys.argv[1:] == ["--json"]:
        print(json.dumps([asdict(walk) for walk in found]))
    else:
        listed = [function for walk in found if walk.command in sys.argv[1:] for function in walk.called]
        print("\n".join(listed or table(found)))
