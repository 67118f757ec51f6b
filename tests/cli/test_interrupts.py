"""Ctrl-C while modules are imported, and while workers run."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.main import main
from tests.cli.examples import contents

INTERRUPTED_WHILE_LOADING = """
import importlib.abc, os, signal, sys
from armnesia.cli.main import main

class CtrlC(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                print("swallowed", file=sys.stderr)  # as compiled modules do

if sys.argv[2] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, CtrlC())
main(sys.argv[3:])
"""


def interrupted_while_loading(
    module: str, listening: str, folder: Path, *command: str
) -> subprocess.CompletedProcess[str]:
    """Run a command and press Ctrl-C when it begins to load a module."""
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING, module, listening, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("typer", ("decide",)),
        ("armnesia.cli.app", ("decide",)),
        ("armnesia.cli.log.decide", ("decide",)),
        ("numpy", ("decide",)),
        ("duckdb", ("ingest", "log.csv", "--user-column", "user")),
        ("duckdb", ("decide", "log.csv")),
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_one_sentence(
    vault: Path, module: str, command: tuple[str, ...]
) -> None:
    before = contents(vault)
    stopped = interrupted_while_loading(module, "listening", vault, *command)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr == "armnesia: interrupted; nothing was done\n"
    assert contents(vault) == before


@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
def test_where_ctrl_c_is_ignored_it_stays_so(vault: Path) -> None:
    done = interrupted_while_loading("armnesia.cli.app", "ignored", vault, "arms", "list")
    assert (done.returncode, done.stderr) == (0, "")


WAITS_FOR_EVER = """
import os, threading
import armnesia as am

class Waits(am.Rollback):
    def release(self, *arguments):
        os.write(1, b"running")
        threading.Event().wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
def test_ctrl_c_ends_a_sweep_whose_workers_would_never_end(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITS_FOR_EVER, encoding="utf-8")
    command = [sys.executable, "-c", "from armnesia.cli.main import main; main()", "research", "sweep"]
    command += ["--unlearner", "waiting:Waits", "--protocol", "sampled", "--n", "50,60", "--deletions", "2"]
    command += ["--n-jobs", "2", "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as process:
        try:
            running = process.stdout and process.stdout.read(7)
            process.send_signal(signal.SIGINT)  # once, and not to the workers
            _, stderr = process.communicate(timeout=60)  # until no worker holds the pipes
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert (running, process.returncode) == (b"running", 130)
    assert stderr == b"armnesia: interrupted; finished work is kept\n"


def test_a_command_may_be_run_by_any_thread(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor() as pool, pytest.raises(SystemExit) as stopped:
        pool.submit(main, ["decide"]).result()
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("Served: ")
