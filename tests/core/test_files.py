"""A file is written completely or not at all, with the mode of an ordinary or of a private file."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.files import atomic_write


def write(path: Path, text: str, **options: Any) -> None:
    with atomic_write(path, **options) as temporary:
        temporary.write_text(text)


def write_half(path: Path) -> None:
    with atomic_write(path, replace=True) as temporary:
        temporary.write_text("half")
        raise RuntimeError("the power fails")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)


def test_a_file_half_written_never_shows(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="power"):
        write_half(path)
    assert names(tmp_path) == ["file.txt"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_an_existing_file_is_kept_or_replaced_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        without_links(monkeypatch)
    path = tmp_path / "file.txt"
    write(path, "old")
    with pytest.raises(FileExistsError, match=r"File exists: .*file\.txt"):
        write(path, "new")
    assert path.read_text() == "old"
    write(path, "new", replace=True)
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file.txt"]


@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_a_file_created_during_the_block_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        without_links(monkeypatch)
    path = tmp_path / "file.txt"
    with pytest.raises(FileExistsError), atomic_write(path):
        path.write_text("of another process")
    assert path.read_text() == "of another process"
    assert names(tmp_path) == ["file.txt"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_the_mode_is_that_of_an_ordinary_file_or_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        without_links(monkeypatch)
    before = os.umask(0o027)
    try:
        write(tmp_path / "ordinary", "text")
        write(tmp_path / "private", "text", mode=0o600)
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names(tmp_path)}
    assert modes == {"ordinary": 0o640, "private": 0o600}


def test_a_missing_folder_and_a_name_of_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "missing" / "file", "text")
    with pytest.raises(IsADirectoryError):
        write(Path("/"), "text", replace=True)
    assert names(tmp_path) == []
