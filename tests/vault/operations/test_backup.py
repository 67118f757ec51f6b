"""A backup is there when it is whole: not half of one on a full disk, nor when its process is killed."""

import errno
import os
import resource
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armnesia.core import files
from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.keys import private_files
from tests.vault.forked_children import Nursery, nursery

ROWS = 20_000
LARGEST_FILE = 300_000
"""Bytes: the vault of these tests is several times as large."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a vault in it that takes more than one page to copy."""
    folder = tmp_path_factory.mktemp("filled")
    log: dict[str, list[Any]] = {
        "action": ["A", "B"] * (ROWS // 2),
        "reward": [1, 0] * (ROWS // 2),
        "number": list(range(ROWS)),
    }
    with Vault.create(_url(folder), Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, id="number", no_user=True)
    assert (folder / "vault.db").stat().st_size > 3 * LARGEST_FILE
    return folder


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery(__name__) as started:
        yield started


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/vault.db"


# What the children do.


def back_up_with_little_room(url: str, target: str, said: str) -> None:
    """Writing beyond the limit fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    with Vault.open(url) as vault:
        try:
            vault.back_up(target)
        except VaultError as error:
            Path(said).write_text(str(error), encoding="utf-8")


def back_up_until_killed(url: str, target: str) -> None:
    """The system kills the process when it writes beyond the limit: in the middle of the copy."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    with Vault.open(url) as vault:
        vault.back_up(target)


def back_up_and_die_before_the_end(url: str, target: str) -> None:
    """The copy is written, but not known to be on the disk."""
    os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
    with Vault.open(url) as vault:
        vault.back_up(target)


# What is left.


def test_a_backup_is_the_vault_and_for_its_owner_only(filled: Path, tmp_path: Path) -> None:
    with Vault.open(_url(filled)) as vault:
        vault.back_up(tmp_path / "monday.db")
        expected = vault.head, vault.status().records
    assert _names(tmp_path) == ["monday.db"]
    assert _mode(tmp_path / "monday.db") == 0o600
    assert _restored(tmp_path / "monday.db", filled) == (*expected, True)


def test_a_full_disk_leaves_no_backup_and_says_so(filled: Path, tmp_path: Path, children: Nursery) -> None:
    said = tmp_path / "said"
    target = tmp_path / "folder" / "monday.db"
    target.parent.mkdir()
    child = children.start(
        __name__,
        "back_up_with_little_room",
        url=_url(filled),
        target=str(target),
        said=str(said),
    )
    assert children.wait(child) == 0
    message = said.read_text(encoding="utf-8")
    assert message.startswith(f"{target} cannot be written: ")
    assert message.endswith("(is there room?); the vault is as it was")
    assert _names(target.parent) == []


@pytest.mark.parametrize(
    ("how", "by"),
    [("back_up_until_killed", signal.SIGXFSZ), ("back_up_and_die_before_the_end", signal.SIGKILL)],
)
def test_a_killed_backup_leaves_none_under_its_name(
    filled: Path, tmp_path: Path, children: Nursery, how: str, by: signal.Signals
) -> None:
    target = tmp_path / "monday.db"
    child = children.start(__name__, how, url=_url(filled), target=str(target))
    assert children.wait(child) == -by
    (left,) = tmp_path.iterdir()  # it can hold people: nobody else may read it, and its name tells what it is
    assert left.name.startswith("monday.db.")
    assert left.suffix == ".new"
    assert _mode(left) == 0o600
    with Vault.open(_url(filled)) as vault:
        assert vault.verify().holds
        vault.back_up(target)
    assert _restored(target, filled)[-1]


def test_a_file_that_is_there_is_refused_before_anything_is_copied(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "monday.db").write_text("mine")
    (tmp_path / "leads-nowhere").symlink_to(tmp_path / "nothing")
    monkeypatch.setattr(files, "secret_bytes", None)  # the temporary file's name needs it
    with Vault.open(_url(filled)) as vault:
        for name in ("monday.db", "leads-nowhere"):
            with pytest.raises(VaultError, match=f"{name} exists already; nothing was written"):
                vault.back_up(tmp_path / name)
    assert (tmp_path / "monday.db").read_text() == "mine"
    assert _names(tmp_path) == ["leads-nowhere", "monday.db"]


def test_a_name_that_was_taken_in_vain_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_links(monkeypatch)
    monkeypatch.setattr(Path, "replace", _failing(errno.EIO))
    with pytest.raises(VaultError, match="cannot be written: Input/output error"):
        private_files.write(tmp_path / "file", "text")
    assert _names(tmp_path) == []


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _restored(backup: Path, vault: Path) -> tuple[Any, int, bool]:
    """Head, rows and soundness of a backup that is opened with the vault's keys."""
    folder = backup.with_name("restored")
    folder.mkdir()
    shutil.copy(backup, folder / "vault.db")
    for name in ("vault.db.keys", "vault.db.keys.journal"):
        shutil.copy(vault / name, folder / name)
    with Vault.open(_url(folder)) as opened:
        return opened.head, opened.status().records, opened.verify().holds


def _without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))


def _failing(code: int) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    return fail
