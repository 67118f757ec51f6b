"""Runs commands as an unprivileged user: file permissions do not bind root, as whom tests often run.

A child process runs every kind of command once, so that all modules are imported, because the code may lie
where only root can read. Then it gives up root for good, if it has it, and waits for commands.
"""

import importlib
import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

import armnesia

NOBODY = 65534
TRACEBACK = 70
"""The exit code of a command that ended with an unexpected exception."""

_ALL_KINDS = (
    "init --actions A,B",
    "ingest log.csv --user-column user",
    "decide",
    "decide log.csv --actions A,B",
    "forget --user ann --certificate certificate.json",
    "certificate show --user ann",
    "public-key",
    "status --scores",
    "export export.json",
    "backup backup.db",
    "verify",
    "ledger",
)
_REFUSED = "init"  # there is a vault already


class Outcome(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


class Unprivileged:
    """An unprivileged user with a folder of their own, in which they run commands."""

    def __init__(self, folder: Path, lines_in: IO[str], lines_out: IO[str]) -> None:
        self.folder, self._in, self._out = folder, lines_in, lines_out

    def run(self, *arguments: object, within: Path) -> Outcome:
        """Run a command in a folder that this user owns."""
        question = {"folder": str(within), "arguments": [str(argument) for argument in arguments]}
        self._in.write(json.dumps(question) + "\n")
        self._in.flush()
        return Outcome(**json.loads(self._out.readline()))

    @staticmethod
    def give(folder: Path) -> Path:
        """Make this user the owner of a folder and everything in it."""
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        return folder


@contextmanager
def unprivileged() -> Iterator[Unprivileged]:
    """An unprivileged user; where there can be none, the test is skipped with the reason."""
    if os.name != "posix":
        pytest.skip("files have no owner and mode here")
    # Not in one of pytest's folders, which other users cannot enter.
    folder = Path(tempfile.mkdtemp(prefix="armnesia-unprivileged-"))
    command = [sys.executable, __file__]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                ready = process.stdout.readline()
                assert ready, "a command failed; its traceback is on stderr"
                refusal = json.loads(ready)
                if refusal:
                    pytest.skip(f"root cannot become another user here: {refusal}")
                yield Unprivileged(Unprivileged.give(folder), process.stdin, process.stdout)
            finally:
                process.stdin.close()
    finally:
        shutil.rmtree(folder)


def _serve() -> None:
    answers = sys.stdout
    for module in pkgutil.walk_packages(armnesia.__path__, "armnesia."):
        importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
        for command in (*_ALL_KINDS, _REFUSED):
            done = _run(folder, command.split())
            assert done.code == (2 if command == _REFUSED else 0), done.err
        os.chdir("/")
    print(json.dumps(_drop_privileges()), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        done = _run(question["folder"], question["arguments"])
        print(json.dumps(done._asdict()), file=answers, flush=True)


def _drop_privileges() -> str | None:
    """Become the user nobody, also as the real user, which `os.access` checks; the reason if that fails."""
    if os.geteuid() != 0:
        return None
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:  # a container may have only one user
        return str(error)
    return None


def _run(folder: str, arguments: list[str]) -> Outcome:
    from armnesia.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = TRACEBACK
    with redirect_stdout(out), redirect_stderr(err):
        try:
            os.chdir(folder)
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code
        except BaseException:
            traceback.print_exc()
    return Outcome(code, out.getvalue(), err.getvalue())


if __name__ == "__main__":
    for variable in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        os.environ.pop(variable, None)
    _serve()
