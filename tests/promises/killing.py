"""Commands that are killed at a step: an SQL statement, a commit, a change of a file, a call of an eraser.

Steps are seen by Python's profiler, so nothing of armnesia has to know. A process that has imported the
command line forks a child for each command.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Self

ROOT = Path(__file__).parents[2]
OF_SQLITE = ("execute", "executemany", "commit")
OF_FILES = ("fsync", "fdatasync", "rename", "replace", "unlink", "ftruncate")
OF_ERASERS = os.path.join("armnesia", "logs", "erase", "")
OF_PSYCOPG = ("execute", "executemany", "commit", "rollback", "copy", "close")


class Killer:
    """Runs commands in children, and kills those that it is told to kill."""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, arguments: list[str], die_at: int | None = None) -> int:
        """How many steps a command takes that ends well; 0 of one that was killed at the step `die_at`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"arguments": arguments, "die_at": die_at}) + "\n")
        self.process.stdin.flush()
        ended, steps = json.loads(self.process.stdout.readline())
        assert ended == (0 if die_at is None else -signal.SIGKILL), (arguments, ended)
        return int(steps)


def _is_step(event: str, frame: FrameType, called: Any) -> bool:
    if event == "c_call":
        name, owner = called.__name__, type(called.__self__).__module__
        in_sqlite = owner == "sqlite3" and name in OF_SQLITE
        return in_sqlite or (name in OF_FILES and called.__module__ == "posix")
    code = frame.f_code
    of_psycopg = code.co_name in OF_PSYCOPG and f"{os.sep}psycopg{os.sep}" in code.co_filename
    return event == "call" and (of_psycopg or OF_ERASERS in code.co_filename)


def _be_child(arguments: list[str], die_at: int | None, answer: int) -> None:
    from armnesia.cli.main import main

    steps = 0

    def count(frame: FrameType, event: str, called: Any) -> None:
        nonlocal steps
        if _is_step(event, frame, called):
            steps += 1
            if steps == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    sys.setprofile(count)
    try:
        main(arguments)
    except SystemExit as stopped:
        sys.setprofile(None)
        os.write(answer, str(steps).encode())
        sys.stderr.flush()
        os._exit(int(stopped.code or 0))
    os._exit(99)


def _serve() -> None:
    import armnesia.cli.vault.forget  # noqa: F401 (what children need is imported once)

    for line in sys.stdin:
        asked = json.loads(line)
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            _be_child(asked["arguments"], asked["die_at"], there)
        os.close(there)
        _, status = os.waitpid(child, 0)
        with os.fdopen(here, "rb") as answer:
            print(json.dumps([os.waitstatus_to_exitcode(status), int(answer.read() or 0)]), flush=True)


if __name__ == "__main__":
    _serve()
