"""Fixtures of the command line's tests."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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
    with made_once(folder, "vault of two rows") as is_first:
        if is_first:
            (folder / "log.csv").write_text("action,reward,user\nłódź,1,ann\nB,0,bob\n", encoding="utf-8")
            assert run("init", "--actions", "łódź,B").code == 0
            assert run("ingest", "log.csv", "--user-column", "user").code == 0
    return folder


@contextmanager
def made_once(folder: Path, name: str) -> Iterator[bool]:
    """Yield whether the folder is to be filled: what the first test puts there is copied for the others.

    The commands that make a vault take ten times longer than a copy of its files.
    """
    kept = made_folders() / name
    if kept.exists():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        yield False
        return
    yield True
    shutil.copytree(folder, kept)


@cache
def made_folders() -> Path:
    """A folder of this process, which goes with it."""
    folder = tempfile.mkdtemp(prefix="armnesia-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
