"""The journal: complete after any crash, in one order for all processes, and ahead of no other ledger."""

import fcntl
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.db.schema import SuppressedRow
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.journal import Journal, Line
from armnesia.vault.ledger.merkle import Tree
from tests.vault.ledger.ledgers import SEED, entry_of

DIGESTS = (SuppressedRow(b"\xab" * 16, "user", 2, None),)


LINE = Line("v-1", 1, 0, bytes(32))


def envelope(number: int, text: str = "") -> Envelope:
    kind = "init" if number == 1 else "policy"
    return entry_of(number, kind, time="2026-11-18T10:42:07.123456Z", facts={"text": text}).signed(SEED)


@dataclass
class MemoryDatabase:
    """A database as far as the journal asks: commits, some of them with entries."""

    commits: list[tuple[Envelope, ...]] = field(default_factory=lambda: [(envelope(1),)])

    def entries(self, commits: int) -> list[Envelope]:
        return [each for some in self.commits[:commits] for each in some]

    def line(self, commit: int, before: int) -> Line:
        entries = self.entries(commit)
        root = Tree([each.leaf for each in entries]).root
        return Line("v-1", commit, len(entries), root, tuple(entries[before:]), DIGESTS[: commit - 1])

    def line_after(self, last: Line) -> Line:
        return self.line(len(self.commits), last.size)

    def add(self, *texts: str) -> None:
        size = len(self.entries(len(self.commits)))
        self.commits.append(tuple(envelope(size + n, text) for n, text in enumerate(texts, start=1)))

    def reach(self, journal: Journal) -> Line:
        """Let the journal catch up with all commits."""
        journal.catch_up(len(self.commits), self.line_after)
        return list(journal.lines())[-1]


def short(line: Line) -> Line:
    """A line as `last` reads it."""
    return replace(line, entries=(), suppressed=(), people=())


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
def journal(tmp_path: Path, database: MemoryDatabase) -> Journal:
    journal = Journal(tmp_path / "keys.journal")
    journal.create(database.line(1, 0))
    return journal


def test_a_line_for_each_commit_with_or_without_an_entry(journal: Journal, database: MemoryDatabase) -> None:
    for texts in ((), ("a",), ("b", "c"), ()):
        database.add(*texts)
        line = database.reach(journal)
        assert (short(line), line) == (journal.last(), database.reach(journal))
    lines = list(journal.lines())
    assert [line.commit for line in lines] == [1, 2, 3, 4, 5]
    assert [line.size for line in lines] == [1, 1, 2, 4, 4]
    assert [each for line in lines for each in line.entries] == database.entries(5)
    assert oct(journal.path.stat().st_mode & 0o777) == "0o600"


def test_a_line_is_json_as_it_was_decided(journal: Journal, database: MemoryDatabase) -> None:
    database.add("a")
    database.reach(journal)
    document = json.loads(journal.path.read_bytes().splitlines()[-1])
    root = Tree([each.leaf for each in database.entries(2)]).root.hex()
    assert document == {
        "vault": "v-1",
        "commit": 2,
        "size": 2,
        "root": root,
        "entries": [database.entries(2)[1].to_dict()],
        "suppressed": [["ab" * 16, "user", 2, None]],
    }
    auditors = list(journal.lines())[-1].for_auditors()
    assert "ab" * 16 not in auditors.to_bytes().decode()
    assert Line.from_dict(json.loads(auditors.to_bytes())) == auditors


def test_commits_that_were_not_appended_come_with_the_next(
    journal: Journal, database: MemoryDatabase
) -> None:
    for text in "abc":
        database.add(text)
    assert database.reach(journal).entries == tuple(database.entries(4)[1:])
    assert [line.commit for line in journal.lines()] == [1, 4]


@pytest.mark.parametrize("text", ["é", "long " * 50_000])
def test_a_kill_at_any_byte_of_the_last_line_loses_nothing(
    text: str, journal: Journal, database: MemoryDatabase
) -> None:
    database.add("before")
    before = database.reach(journal)
    start = journal.path.stat().st_size
    database.add(text)
    database.reach(journal)
    whole = journal.path.read_bytes()
    step = 1 if len(whole) < 5_000 else len(whole) // 20
    for length in range(start, len(whole), step):
        journal.path.write_bytes(whole[:length])
        assert journal.last() == short(before)
        assert list(journal.lines())[-1] == before
        assert database.reach(journal) != before
        assert journal.path.read_bytes() == whole


def test_a_torn_line_that_is_longer_than_the_next_is_dropped(
    journal: Journal, database: MemoryDatabase
) -> None:
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + b"x" * 50_000)
    database.add("a")
    line = database.reach(journal)
    assert journal.path.read_bytes() == whole + line.to_bytes()


@pytest.mark.parametrize("block", [8192, 16_384, 32_768])
def test_a_torn_line_of_about_the_size_of_what_is_read_is_dropped(
    block: int, journal: Journal, database: MemoryDatabase
) -> None:
    """What is read may begin within the last good line, or at its end."""
    database.add("a")
    line, whole = database.reach(journal), journal.path.read_bytes()
    for length in range(block - 400, block + 40, 3):
        journal.path.write_bytes(whole + b"x" * length)
        assert journal.last() == short(line)


@pytest.mark.parametrize("change", [{"since": "2"}, {"readmitted": "3"}, {"since": None}])
def test_a_row_with_a_value_of_another_type_is_refused(change: dict[str, Any]) -> None:
    row = DIGESTS[0]._replace(**change)
    document = json.loads(replace(LINE, suppressed=(row,)).to_bytes())
    with pytest.raises(InvalidInputError, match="a line of a journal must have"):
        Line.from_dict(document)


@pytest.mark.parametrize(
    "changes", [{"size": 9}, {"commit": 1}, {"vault": "v-2"}, {"entries": ()}, {"entries": (), "size": 1}]
)
def test_a_line_that_does_not_follow_is_not_appended(
    changes: dict[str, Any], journal: Journal, database: MemoryDatabase
) -> None:
    database.add("a")
    data = journal.path.read_bytes()
    wrong = replace(database.line(2, 1), **changes)
    database.line_after = lambda last: wrong  # type: ignore[method-assign]
    with pytest.raises(VaultError, match="does not follow the journal"):
        database.reach(journal)
    assert journal.path.read_bytes() == data


def test_the_file_is_locked_while_the_database_is_read(journal: Journal, database: MemoryDatabase) -> None:
    refused = []

    def line_after(last: Line) -> Line:
        with journal.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refused.append(True)
        return database.line_after(last)

    database.add("a")
    journal.catch_up(2, line_after)
    assert refused == [True]


def test_a_line_is_on_the_disk_before_it_is_returned(
    journal: Journal, database: MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def fsync(descriptor: int) -> None:
        synced.append(os.pread(descriptor, 1 << 20, 0))

    monkeypatch.setattr(os, "fsync", fsync)
    database.add("a")
    database.reach(journal)
    assert synced == [journal.path.read_bytes()]
    # Another process may have written the line, and been killed before it waited for the disk.
    database.reach(journal)
    assert synced == 2 * [journal.path.read_bytes()]


def test_lines_that_do_not_follow_are_found(journal: Journal, database: MemoryDatabase) -> None:
    for texts in (("a",), (), ("b",)):
        database.add(*texts)
        database.reach(journal)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    assert len(list(journal.lines())) == 4
    for number, wrong in (
        (2, [lines[0], *lines[2:]]),
        (3, [*lines[:2], lines[1], *lines[2:]]),
        (3, [*lines[:2], lines[2].replace(b'"commit":3', b'"commit":2'), lines[3]]),
        (1, lines[1:]),
        (4, [*lines[:3], lines[3].replace(b'"size":3', b'"size":4')]),
    ):
        journal.path.write_bytes(b"".join(wrong))
        with pytest.raises(VaultError, match=rf"line {number} of .* does not follow from those before it"):
            list(journal.lines())


def test_another_entry_is_found_by_the_root(journal: Journal, database: MemoryDatabase) -> None:
    database.add("a")
    line = database.reach(journal)
    first = journal.path.read_bytes().splitlines(keepends=True)[0]
    journal.path.write_bytes(first + replace(line, entries=(envelope(2, "b"),)).to_bytes())
    with pytest.raises(VaultError, match=r"line 2 of .* does not follow"):
        list(journal.lines())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has no complete line"),
        (b'{"vault":', "has no complete line"),
        (b"{}\n", "is no journal, or has been changed"),
        *(
            (replace(LINE, **wrong).to_bytes(), "is no journal, or has been changed")
            for wrong in ({"commit": "1"}, {"size": 0.0}, {"commit": True})
        ),
        (b"[]\n", "is no journal, or has been changed"),
        (b"\n", "is no journal, or has been changed"),
        (b"\xff\n", "is no journal, or has been changed"),
    ],
)
def test_what_is_no_journal_is_refused(data: bytes, message: str, journal: Journal) -> None:
    journal.path.write_bytes(data)
    for read in (journal.last, lambda: list(journal.lines()), lambda: MemoryDatabase().reach(journal)):
        with pytest.raises(VaultError, match=message):
            read()


def test_a_journal_is_not_made_twice(journal: Journal, database: MemoryDatabase) -> None:
    with pytest.raises(VaultError, match="exists already"):
        journal.create(database.line(1, 0))


@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_a_journal_that_others_can_use_is_refused(mode: int, journal: Journal) -> None:
    journal.path.chmod(mode)
    with pytest.raises(VaultError, match=r"is accessible to other users .*: chmod 600"):
        journal.last()


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(VaultError, match="cannot be read"):
        Journal(tmp_path / "pipe").last()
