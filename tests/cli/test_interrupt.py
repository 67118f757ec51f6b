"""Ctrl-C: the command ends, and what was finished is kept."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from armnesia.paper.cells import CellStore

PATIENCE = 120  # seconds; a command that does not stop is killed and the test fails


@pytest.mark.skipif(os.name == "nt", reason="signals of process groups are POSIX")
def test_an_interrupted_reproduction_stops_and_keeps_its_points(tmp_path: Path) -> None:
    command = "import sys; from armnesia.cli.main import main; main(sys.argv[1:])"
    arguments = [
        "reproduce",
        "--figure",
        "2",
        "--datasets",
        "200000",
        "--n-jobs",
        "2",
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        kept = tmp_path / "cells.jsonl"
        deadline = time.monotonic() + PATIENCE
        while not kept.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "armnesia: interrupted" in said
    assert 0 < len(CellStore(kept).finished) < 172
