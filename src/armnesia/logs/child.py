"""DuckDB in a child process, for SQLite files.

A second SQLite library in this process would drop the locks that Python's has on a file, because locks of
POSIX belong to processes. A child answers one reading after another, and ends with this process.
"""

import atexit
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, Any

from armnesia.core.errors import InvalidLogError
from armnesia.logs.engine import Row, connected

_Process = subprocess.Popen[bytes]
_START = (
    "import json, sys; sys.path = json.loads(sys.argv[1])\nfrom armnesia.logs.child import serve; serve()"
)


_PATIENCE = 5.0
"""How many seconds a child has to remove its files: SQLite may be in the middle of a long step."""


class ChildConnection:
    """A connection to the database of a child process; see `connected_in_child`."""

    def __init__(self, process: _Process, source: str) -> None:
        self._process, self._source, self.server = process, source, ""
        self.is_answering = False

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run a statement and give all rows."""
        return [row for piece in self.stream(sql, parameters) for row in piece]

    def stream(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[list[Row]]:
        """Run a statement and give its rows in pieces."""
        self._ask("stream", sql, parameters)
        while piece := self._answer():
            yield piece

    def load(self, extension: str) -> None:
        """Load an extension."""
        self._ask("load", extension)
        self._answer()

    def end(self, sql: str) -> None:
        """End a transaction, and run a last statement; a child that still works on another is ended."""
        if not self.is_answering:
            self._ask("end", sql)
            self._answer()

    def _ask(self, method: str, *arguments: Any) -> None:
        assert self._process.stdin is not None
        while self.is_answering:  # what an earlier statement was not asked for
            self._answer()
        self.is_answering = True
        with self._in_words():
            pickle.dump((self._source, method, *arguments), self._process.stdin)
            self._process.stdin.flush()

    def _answer(self) -> list[Row]:
        """The next piece of an answer; its end is an empty one, or an error."""
        assert self._process.stdout is not None
        with self._in_words():
            answer = pickle.load(self._process.stdout)
        self.is_answering = bool(answer) and isinstance(answer, list)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            raise InvalidLogError(
                f"source {self._source!r} cannot be read: the process that reads it has ended; there may be"
                " not enough memory"
            ) from None


@contextmanager
def connected_in_child(source: str) -> Iterator[ChildConnection]:
    """Lend a connection, as `engine.connected` does.

    >>> with connected_in_child("nothing") as connection:
    ...     connection.rows("SELECT sum(n) FROM (SELECT unnest($n) AS n)", {"n": [1, 2]})
    [(3,)]
    """
    process = _taken()
    connection = ChildConnection(process, source)
    try:
        yield connection
    finally:
        if connection.is_answering:
            _end(process)
        else:
            _idle_of(os.getpid()).append(process)


def _taken() -> _Process:
    """A child that waits, or a new one."""
    idle = _idle_of(os.getpid())
    while idle:
        process = idle.pop()
        if process.poll() is None:
            return process
        process.communicate()  # it has ended
    # A session of its own: Ctrl-C is for the parent, which then ends the child.
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _end(process: _Process) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@cache
def _idle_of(parent: int) -> list[_Process]:
    """The children that wait; a forked process has its own."""
    idle: list[_Process] = []

    def end() -> None:
        if parent == os.getpid():
            for each in idle:
                _end(each)

    atexit.register(end)
    return idle


def serve() -> None:
    """Answer the requests of a parent process until it ends: what runs in the child."""
    requests: IO[bytes] = sys.stdin.buffer
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that files of the reading are removed
    # Raised when the parent has ended, is gone, or does not listen any more.
    with suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            with connected("") as connection:
                method = ""
                while method != "end":
                    connection.source, method, *arguments = pickle.load(requests)
                    last: list[Row] | Exception = []
                    try:
                        for piece in getattr(connection, method)(*arguments) or ():
                            pickle.dump(piece, answers)
                    except Exception as error:
                        last = error
                    pickle.dump(last, answers)
                    answers.flush()
    with suppress(BrokenPipeError):
        answers.close()
