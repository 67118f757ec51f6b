"""Tests write to memory only where there is room, and nobody chose another folder."""

import tempfile
from pathlib import Path

import pytest

from tests.scratch import write_to_memory


@pytest.fixture(autouse=True)
def _the_folder_of_these_tests_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())


def test_temporary_files_are_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, str] = {}
    assert write_to_memory(environment, memory=str(tmp_path), room=1)
    assert environment == {"TMPDIR": str(tmp_path)}
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert tempfile.gettempdir() == str(tmp_path)


@pytest.mark.parametrize(
    ("chosen", "folder", "room"),
    [({"TMPDIR": "/elsewhere"}, ".", 1), ({}, "missing", 1), ({}, ".", 1 << 62)],
    ids=["another folder was chosen", "there is no such folder", "there is no room"],
)
def test_otherwise_the_folder_stays_what_it_was(
    tmp_path: Path, chosen: dict[str, str], folder: str, room: int
) -> None:
    before = tempfile.gettempdir()
    environment = dict(chosen)
    assert not write_to_memory(environment, memory=str(tmp_path / folder), room=room)
    assert (environment, tempfile.gettempdir()) == (chosen, before)
