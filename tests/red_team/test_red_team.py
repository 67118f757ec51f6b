"""A few trials of every attack; and the red team sees a vault that is not on its guard."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault.ledger import certificate_check
from armnesia.vault.state import managed_records, similar_names
from armnesia.vault.storage import sqlite
from armnesia.vault.storage.database import SearchOutcome
from armnesia.vault.storage.sqlite import SqliteDatabase
from tests.red_team import flips
from tests.red_team.__main__ import ATTACKS, run
from tests.red_team.attacks import Trial, Verdict, table
from tests.red_team.pages import pages_of
from tests.red_team.target import Target

PLACES = "pages in the place of others"
SHORT = {
    "bit flips in pages": 60,
    "bit flips in indexes, then an ingest": 8,
    PLACES: 30,
    "bit flips in keys": 20,
    "bit flips in the pin": 20,
    "bit flips in a certificate": 60,
    "certificates of a retired key": 100,
    "changes of rows": 24,
    "values of other types": 36,
    "changes of the schema": 1,
    "changes under an open vault": 6,
    "rows of yesterday": 6,
    "decisions of yesterday": 12,
    "other spellings": 23,
    "kills at a system call": 6,
    "errors of the disk": 4,
}


_SLOW = ("kills at a system call", "errors of the disk", "bit flips in pages")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in _SLOW else name for name in ATTACKS]
)
def test_nothing_is_missed(name: str) -> None:
    score = run(name, SHORT[name], seed=2)
    assert score.trials >= SHORT[name] or name == "errors of the disk"  # which needs strace
    assert not score.missed, table([score])


def test_an_entry_that_would_be_written_over_the_schema_is_refused(tmp_path: Path) -> None:
    """A damaged pointer of the ledger names page 1, which has the schema: nothing is committed."""
    target = Target.create(tmp_path, seed=2)
    copy = target.copy(tmp_path / "attacked")
    data, root = bytearray(copy.path.read_bytes()), pages_of(copy.path)["ledger"][0]
    last_child = (root - 1) * 4096 + 8
    data[last_child : last_child + 4] = (1).to_bytes(4)
    copy.path.write_bytes(data)
    with closing(sqlite3.connect(copy.path)) as connection:
        before = connection.execute("SELECT count(*) FROM record").fetchone()
    with copy.open() as vault, pytest.raises(VaultError, match=r"schema: there is a .* did not create"):
        vault.forget(users=["user-10"])
    with closing(sqlite3.connect(copy.path)) as connection:
        assert connection.execute("SELECT count(*) FROM record").fetchone() == before


def test_without_tallies_a_damaged_index_gives_a_false_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what the index of owners finds is believed.

    SQLite itself stumbles over some damaged entries, and nothing is signed; not so for all of 55 people.
    """
    target = Target.create(tmp_path, seed=2)
    pages = pages_of(target.folder / "vault.db")["record_owner"]

    def forgotten_with_a_damaged_index() -> Iterator[Trial]:
        for person in target.rows:
            copy = target.copy(tmp_path / "attacked")
            place = flips.offset_of(copy.path, pages, target.keyring.owner_digest(person))
            flips.flip(copy.path, place, bit=0)
            yield copy.verdict("the owner in the index", person)

    assert all(trial.verdict is Verdict.CAUGHT for trial in islice(forgotten_with_a_damaged_index(), 5))
    monkeypatch.setattr(managed_records, "remove_from_tallies", lambda *_: [])
    assert any("rows are left" in trial.detail for trial in forgotten_with_a_damaged_index())


def test_without_a_search_copies_of_rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: only what the indexes lead to is looked at."""
    monkeypatch.setattr(SqliteDatabase, "search_for", lambda *_: SearchOutcome(False))
    assert any("rows are left" in trial.detail for trial in run(PLACES, 60, seed=2).missed)


def test_if_any_entry_of_the_list_were_taken_for_its_own_copies_would_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: a page in the place of one of the list is read as entries of it."""
    monkeypatch.setattr(sqlite, "are_only_listed", lambda *_: True)
    assert any("after a search" in trial.detail for trial in run(PLACES, 60, seed=2).missed)


def test_without_near_spellings_misspelt_people_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: only the spelling of the request is looked up."""
    monkeypatch.setattr(similar_names, "near_spellings", lambda *_, **__: [])
    score = run("other spellings", 23, seed=2)
    assert len(score.missed) > 15


def test_without_the_ledger_invented_entries_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a certificate is believed by the list of public keys alone."""
    monkeypatch.setattr(certificate_check, "_ledger_problems", lambda *_: [])
    score = run("certificates of a retired key", 200, seed=2)
    assert {trial.what for trial in score.missed} == {"an invented entry"}
