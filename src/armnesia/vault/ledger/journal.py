"""The journal: an append-only copy of the ledger beside the keys, a line of JSON for each commit.

Its last line is the last known head of the vault: a database that has less, or something else, is an older
copy or another one. Its lines are what `restore` needs: the entries, and the digests of those who were
forgotten or admitted again with them. An auditor gets the same lines without digests.

Nobody is answered before the line is on the disk. Whoever comes after a crash, or after another process,
first appends what the database has beyond the journal. A last line without an end was answered to nobody,
and is dropped.

>>> import tempfile
>>> from armnesia.vault.ledger.merkle import EMPTY_ROOT
>>> with tempfile.TemporaryDirectory() as folder:
...     journal = Journal(Path(folder) / "keys.json.journal")
...     journal.create(Line("v-1", 1, 0, EMPTY_ROOT))
...     journal.last().commit, len(list(journal.lines()))
(1, 1)
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO

from armnesia.core.errors import InvalidInputError, VaultError, refused_by_system
from armnesia.core.files import Stamp, stamp_of
from armnesia.vault.db.schema import PeopleRow, SuppressedRow
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import read_object
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.merkle import Frontier
from armnesia.vault.ledger.people import RECORD, USER

with suppress(ImportError):  # absent on Windows
    import fcntl

_BLOCK = 1 << 13
_LISTS = ("suppressed", "people")
_END = re.compile(rb'"vault":("[^"\n]*"),"commit":([0-9]+),"size":([0-9]+),"root":"([0-9a-f]{64})"\}\n\Z')
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Line:
    """What one commit added, and where the vault was after it.

    >>> Line.from_dict(Line("v-1", 1, 0, bytes(32)).to_dict())
    Line(vault='v-1', commit=1, size=0, root=..., entries=(), suppressed=(), people=())
    """

    vault: str
    commit: int
    """How many commits the vault had: it may leave out some that added nothing."""
    size: int
    """How many entries the ledger had."""
    root: bytes
    entries: tuple[Envelope, ...] = ()
    suppressed: tuple[SuppressedRow, ...] = ()
    """The rows of the suppression list that are new or have changed."""
    people: tuple[PeopleRow, ...] = ()
    """The commitments of the new requests."""

    def for_auditors(self) -> "Line":
        """The line without digests."""
        return replace(self, suppressed=(), people=())

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON has it; digests are left out where there are none."""
        lists = {name: getattr(self, name) for name in _LISTS}
        return {
            "entries": [each.to_dict() for each in self.entries],
            **{name: [list(map(_text, row)) for row in rows] for name, rows in lists.items() if rows},
            # Last, so that a long line is not read for them: see `Journal.last`.
            **{"vault": self.vault, "commit": self.commit, "size": self.size, "root": self.root.hex()},
        }

    def to_bytes(self) -> bytes:
        """The line as the file has it, with its end."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> "Line":
        """Read a line.

        >>> Line.from_dict({"vault": "v-1"})
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a line of a journal must have vault, commit, size, root and
        entries
        """
        try:
            suppressed, people = document.get("suppressed", ()), document.get("people", ())
            line = cls(
                *(document["vault"], document["commit"], document["size"], bytes.fromhex(document["root"])),
                tuple(map(Envelope.from_dict, document["entries"])),
                tuple(SuppressedRow(bytes.fromhex(digest), *others) for digest, *others in suppressed),
                tuple(_people(*row) for row in people),
            )
            kinds = {row.kind for row in line.suppressed}
            numbers = [line.commit, line.size, *(row.since for row in line.suppressed)]
            numbers += [row.readmitted for row in line.suppressed if row.readmitted is not None]
            is_typed = {*map(type, numbers)} == {int} and kinds <= {USER, RECORD}
            if is_typed and line.to_dict() == document:
                return line
        except (KeyError, TypeError, ValueError):
            pass
        raise InvalidInputError("a line of a journal must have vault, commit, size, root and entries")

    def follows(self, before: "Line | None") -> bool:
        """Whether it can be the line after another one, or the first."""
        if before is None:
            return self.size == len(self.entries)
        grown = self.commit > before.commit and self.size == before.size + len(self.entries)
        return grown and self.vault == before.vault and (bool(self.entries) or self.root == before.root)


def _text(value: bytes | Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _people(number: int, leaves: str, *others: str | None) -> PeopleRow:
    said, case = (None if each is None else bytes.fromhex(each) for each in others)
    return PeopleRow(number, bytes.fromhex(leaves), said, case)


@dataclass(frozen=True)
class Journal:
    """The journal in this file."""

    path: Path
    _seen: dict[Stamp, Line] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The last line, by size and time of change of the file: every transaction asks for it."""

    @classmethod
    def beside(cls, keys: Path) -> "Journal":
        """The journal of the vault with this file of keys."""
        return cls(keys.with_name(keys.name + ".journal"))

    def create(self, first: Line) -> None:
        """Write the first line to a new file, for its owner only."""
        private_files.write(self.path, first.to_bytes().decode())

    def last(self) -> Line:
        """The last line without its lists, read from the end of the file, however long the line is."""
        with suppress(OSError):  # which opening it says in words
            if (known := self._seen.get(stamp_of(self.path))) is not None:
                return known
        with self._opened() as file:
            status, line = os.fstat(file.fileno()), self._last(file)[0]
        self._seen.clear()
        self._seen[Stamp(status.st_size, status.st_mtime_ns)] = line
        return line

    def catch_up(self, commit: int, line_after: Callable[[Line], Line]) -> None:
        """Append what the database has beyond the journal up to a commit, and return when it is on the disk.

        `line_after` returns all that the database has beyond a line; it refuses a line that is not its own.
        """
        with self._opened(update=True) as file:
            if "fcntl" in globals():  # until the file is closed
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            last, end = self._last(file)
            if last.commit < commit:
                line = line_after(last)
                if not line.follows(last):
                    raise VaultError(f"commit {line.commit} does not follow the journal {self.path}")
                file.seek(end)
                file.truncate()
                file.write(line.to_bytes())
                file.flush()
            # Also where nothing was to append: another process may have been killed before this.
            os.fsync(file.fileno())

    def lines(self) -> Iterator[Line]:
        """All lines from the first, each checked to follow from those before it."""
        before, frontier = None, Frontier()
        with self._opened() as file:
            self._last(file)  # refuses what is no journal
            file.seek(0)
            for number, data in enumerate(file, start=1):
                if not data.endswith(b"\n"):
                    return
                line = self._read(data)
                frontier = reduce(Frontier.append, (each.leaf for each in line.entries), frontier)
                if not line.follows(before) or frontier.root != line.root:
                    raise VaultError(f"line {number} of {self.path} does not follow from those before it")
                yield line
                before = line

    @contextmanager
    def _opened(self, *, update: bool = False) -> Iterator[BinaryIO]:
        """Open the file; refuse what is no plain file of its owner alone."""
        if not self.path.exists():
            raise VaultError(
                f"the journal {self.path} is missing: whether the database is an older copy cannot be known;"
                " if it is lost, armnesia restore --without-journal begins a new one"
            )
        try:
            with private_files.opened(self.path, update=update) as file:
                yield file
        except OSError as error:
            raise refused_by_system(
                error, f"the journal {self.path} cannot be used: {error.strerror}"
            ) from None

    def _last(self, file: BinaryIO) -> tuple[Line, int]:
        """The last complete line, and where it ends."""
        if file.read(len(_SQLITE)) == _SQLITE:
            raise VaultError(
                f"{self.path} is an SQLite database: give the journal, which lies beside the keys"
            )
        whole, block, data, start = file.seek(0, os.SEEK_END), _BLOCK, b"", -1
        while start and len(data) < _BLOCK // 2:  # a torn line is passed over, however long it is
            start = max(0, whole - block)
            file.seek(start)
            data = file.read(whole - start)
            data, block = data[: data.rfind(b"\n") + 1], 2 * block
        if not data:
            raise VaultError(f"the journal {self.path} has no complete line")
        match = _END.search(data[-_BLOCK:])
        if match is None:
            raise VaultError(f"{self.path} is no journal, or has been changed: its last line has no end")
        vault, commit, size, root = match.groups()
        line = Line(json.loads(vault), int(commit), int(size), bytes.fromhex(root.decode()))
        return line, start + len(data)

    def _read(self, data: bytes) -> Line:
        try:
            return Line.from_dict(read_object(data, "a line"))
        except InvalidInputError as error:
            raise VaultError(f"{self.path} is no journal, or has been changed: {error}") from None
