"""The command `reproduce`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from armnesia.simulation import CellStore


def test_reproduce_writes_what_it_names_and_goes_on_where_it_stopped(run: Any, tmp_path: Path) -> None:
    arguments = (
        "research",
        "reproduce",
        "--quick",
        "--part",
        "table2",
        "--datasets",
        2000,
        "--out",
        tmp_path,
        "--n-jobs",
        1,
    )
    result = run(*arguments, "--json").json
    for file in result["files"]:
        assert Path(file).stat().st_size > 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Table 2" in page
    assert "would need another k" in page
    finished = (tmp_path / "cells.jsonl").read_text(encoding="utf-8")
    run(*arguments)
    assert (tmp_path / "cells.jsonl").read_text(encoding="utf-8") == finished  # nothing was computed twice


PATIENCE = 120  # seconds; a command that does not stop is killed and the test fails


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of process groups are POSIX")
def test_an_interrupted_reproduction_stops_and_keeps_its_points(tmp_path: Path) -> None:
    command = "import sys; from armnesia.cli.main import main; main(sys.argv[1:])"
    arguments = [
        "research",
        "reproduce",
        "--part",
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
        _, printed = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "armnesia: interrupted" in printed
    assert 0 < len(CellStore(kept).finished) < 172
