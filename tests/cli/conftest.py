"""Fixtures of the command line's tests."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without a vault named by the environment; the screen has 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def vault(folder: Path, run: Any) -> Path:
    """The working folder with a log and a vault that has it; an action has letters that latin-1 lacks."""
    (folder / "log.csv").write_text("action,reward,user\nłódź,1,ann\nB,0,bob\n", encoding="utf-8")
    assert run("init", "--actions", "łódź,B").code == 0
    assert run("ingest", "log.csv", "--user-column", "user").code == 0
    return folder
