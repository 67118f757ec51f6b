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


class ChildConnection:
    """A connection to the database of a child process, which is taken with the first statement."""

    def __init__(self, source: str, extension: str, file: str, server: str) -> None:
        self._source, self._extension, self._file, self.server = source, extension, file, server
        self._process: _Process | None = None
        self._is_answering = False

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run a statement and give all rows."""
        return [row for piece in self.stream(sql, parameters) for row in piece]

    def stream(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[list[Row]]:
        """Run a statement and give its rows in pieces."""
        if self._process is None:
            idle = _idle_of(os.getpid())
            self._process = idle.pop() if idle else _started()
            yield from self._answers("load", self._extension)
            yield from self._answers("rows", f"ATTACH {self._file} AS {self.server} (READ_ONLY)")
        yield from self._answers("stream", sql, parameters)

    def _answers(self, method: str, *arguments: Any) -> Iterator[list[Row]]:
        assert self._process is not None
        assert self._process.stdin is not None
        while self._is_answering:  # what an earlier statement was not asked for
            self._answer(self._process)
        with self._in_words():
            pickle.dump((self._source, method, *arguments), self._process.stdin)
            self._process.stdin.flush()
        self._is_answering = True
        while piece := self._answer(self._process):
            yield piece

    def _answer(self, process: _Process) -> list[Row] | None:
        assert process.stdout is not None
        with self._in_words():
            answer = pickle.load(process.stdout)
        self._is_answering = isinstance(answer, list)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, list) else None

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            raise InvalidLogError(
                f"source {self._source!r} cannot be read: the process that reads it has ended; there may be"
                " not enough memory"
            ) from None

    def close(self) -> None:
        """Let others have the child, or end it if it is still at work."""
        if self._process is None:
            return
        with suppress(InvalidLogError):
            if not self._is_answering:
                self.rows(f"DETACH {self.server}")
                _idle_of(os.getpid()).append(self._process)
                return
        process = self._process
        process.terminate()
        assert process.stdout is not None
        process.stdout.read()  # a full pipe would keep it; an end of its requests would meet the signal
        process.communicate()


def _started() -> _Process:
    # A session of its own: Ctrl-C is for the parent, which then ends the child.
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


@cache
def _idle_of(parent: int) -> list[_Process]:
    """The children that wait; a forked process has its own."""
    idle: list[_Process] = []

    def end() -> None:
        if parent == os.getpid():
            for each in idle:
                each.communicate()

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
            source, method, *arguments = pickle.load(requests)
            last: Exception | None = None
            try:
                with connected(source) as connection:
                    for piece in getattr(connection, method)(*arguments) or ():
                        pickle.dump(piece, answers)
            except Exception as error:
                last = error
            pickle.dump(last, answers)
            answers.flush()
    with suppress(BrokenPipeError):
        answers.close()
