"""The sources of an external vault: where each is, and the version that was counted; nothing of its rows."""

import json
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import (
    ArmnesiaError,
    InvalidInputError,
    InvalidLogError,
    LostSourceError,
    MissingExtraError,
    UndeclaredActionError,
    UnknownCatalogError,
    UnreadableSourceError,
    UnsupportedError,
    VaultError,
)
from armnesia.core.identifiers import UserType
from armnesia.core.randomness import secret_bytes
from armnesia.core.urls import is_remote, redacted
from armnesia.logs import Source
from armnesia.logs.source import Version, reopen
from armnesia.vault.configuration import COLUMNS, Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import SourceRow
from armnesia.vault.results import HeldSource
from armnesia.vault.state.sealed_state import changed_values
from armnesia.vault.state.transaction import Transaction

OUTDATED: Version = {}
"""No source has this version."""


@dataclass(frozen=True)
class CountedSource:
    """A source, and what was counted of it."""

    number: int
    """The key of its row; after a source was dropped, another may get its number."""
    address: Mapping[str, Any]
    """Where it is, its columns and its conditions: `Source.address`."""
    version: Version | None
    """The version that was counted; None of a source that has no versions, which is counted each time.

    It is `OUTDATED` after people were readmitted, whose rows were left out: then it is counted again.
    """
    id: str = field(default_factory=lambda: secret_bytes(4).hex())
    """By which the ledger and certificates name it: they do not say where it is."""
    to_erase: bool = False
    """Whether rows of people or records may be there that were forgotten since it was last erased."""
    to_purge: bool = False
    """Whether old files or versions may hold rows that were erased."""

    @property
    def name(self) -> str:
        """The location and the table.

        >>> CountedSource(1, {"source": "sqlite:///logs.db", "table": "clicks"}, None).name
        'sqlite:///logs.db#clicks'
        """
        place, table = str(self.address["source"]), self.address["table"]
        return place if table is None else f"{place}#{table}"

    @property
    def columns(self) -> dict[str, str | None]:
        """The column of each role."""
        return {role: self.address[role] for role in COLUMNS}

    @property
    def row(self) -> SourceRow:
        """The row of the table `source`."""
        own = {name: value for name, value in vars(self).items() if name != "number"}
        return SourceRow(self.number, json.dumps(own, sort_keys=True, separators=(",", ":")))

    @property
    def parts(self) -> list[str]:
        """What no other source may have, too: the files, the id of the table, or the name."""
        version = self.version or {}
        files = [path if is_remote(path) else os.path.realpath(path) for path, *_ in version.get("files", ())]
        return files or [version.get("table", self.name)]

    @property
    def short_version(self) -> int | str | None:
        """The version as the ledger names it; files have none."""
        version = self.version or {}
        number: int | str | None = version.get("version", version.get("snapshot"))
        return number

    @property
    def ingest_command(self) -> str:
        """The command that ingests it as before, as a shell reads it; the vault knows the columns.

        >>> address = {"source": "my log.csv", "table": None, "user": None, "where": ["country = 'DE'"],
        ...     "delimiter": None}
        >>> print(CountedSource(1, address, None).ingest_command)
        armnesia ingest 'my log.csv' --where 'country = '"'"'DE'"'"'' --no-user
        """
        options = [("--table", self.address["table"])]
        options += [("--where", condition) for condition in self.address["where"]]
        options += [("--delimiter", self.address["delimiter"])]
        words = [word for option in options if option[1] is not None for word in option]
        nobody = [] if self.address["user"] else ["--no-user"]
        return shlex.join(["armnesia", "ingest", self.address["source"], *words, *nobody])

    @property
    def held(self) -> HeldSource:
        """What its operator is told of it."""
        return HeldSource(
            id=self.id,
            name=self.name,
            columns=self.columns,
            where=tuple(self.address["where"]),
            ingest_command=self.ingest_command,
            recount=self.version == OUTDATED,
            to_erase=self.to_erase,
            to_purge=self.to_purge,
        )

    @property
    def remedies(self) -> str:
        """What to do about a source that is gone or moved, or in the way of another."""
        named = shlex.quote(self.name)
        return (
            f"if it was moved, run armnesia restore --moved {named} NEW ; if its rows are not to count any"
            f" more, run armnesia restore --without {named}"
        )

    def opened(self, configuration: Configuration) -> Source:
        """Open the source as it is now; say what to do if that cannot be done."""
        try:
            return _as_counted(reopen(self.address), configuration)
        except (UnknownCatalogError, MissingExtraError) as error:
            raise UnreadableSourceError(f"{error}; nothing was changed", self.id) from None
        except ArmnesiaError as error:
            raise LostSourceError(
                f"{error}; source {self.name!r} is gone or was moved, and the vault has counted its rows;"
                f" nothing was changed: put it back; {self.remedies}",
                self.id,
            ) from None

    def relocated(self, new: str, configuration: Configuration) -> "CountedSource":
        """The source at another place, as it is there."""
        place: dict[str, str | None] = {"source": new}
        location, mark, table = new.rpartition("#")
        if self.address["table"] is not None and mark:  # as `status` names a table of a database
            place = {"source": location, "table": table}
        source = _as_counted(reopen({**self.address, **place}), configuration)
        return replace(self, address=source.address(), version=version_of(source))

    def is_as_counted(self, source: Source) -> bool:
        """Whether nothing of the source has changed since it was counted."""
        version = version_of(source)
        return version is not None and version == self.version

    def new_rows(self, source: Source) -> Source | None:
        """The rows that came since it was counted; None if it has to be counted again."""
        return source.new_since(self.version) if self.version else None

    @property
    def why_again(self) -> str:
        """Why all sources are counted again if this one is not as it was counted."""
        if self.version == OUTDATED:
            return f"source {self.name!r} has rows of people who were readmitted"
        return f"source {self.name!r} has {'no versions' if self.version is None else 'changed'}"

    @contextmanager
    def being_read(self) -> Iterator[None]:
        """Name the source in an error about its rows, or about deleting them."""
        try:
            yield
        except UndeclaredActionError:
            raise  # an ingest says how an action comes in
        except (InvalidLogError, UnsupportedError) as error:
            told = str(error) if self.name in str(error) else f"source {self.name!r}: {error}"
            if isinstance(error, UnsupportedError):
                raise UnsupportedError(told) from None
            raise UnreadableSourceError(told, self.id) from None


def _as_counted(source: Source, configuration: Configuration) -> Source:
    return source.keyed_by(configuration.key_columns).named_by(configuration.user_type or UserType.TEXT)


def version_of(source: Source) -> Version | None:
    """The version of a source, as it is read back from JSON."""
    version = source.version()
    return None if version is None else dict(json.loads(json.dumps(version)))


def read_sources(session: Session) -> list[CountedSource]:
    """All sources by their numbers."""
    try:
        found = [CountedSource(number, **json.loads(text)) for number, text in _rows(session)]
        assert all(each.name and each.columns for each in found)
    except (ValueError, TypeError, LookupError):
        raise changed_values() from None
    return found


def held_sources(session: Session) -> tuple[HeldSource, ...]:
    """Each source, and what is due there; a managed vault has none."""
    return tuple(each.held for each in read_sources(session))


def mark_outdated(transaction: Transaction) -> None:
    """Have all sources counted again next time: they may have rows of people who are readmitted."""
    before = checked_sources(transaction)
    put_sources(transaction, before, [replace(each, version=OUTDATED) for each in before])


def checked_sources(transaction: Transaction) -> list[CountedSource]:
    """All sources; refuse them if they are not those under the seal, of which one may hide people."""
    if not transaction.state.check_sums.has(transaction.keyring, "source", _rows(transaction.session)):
        raise VaultError(
            "the list of sources was changed by something other than armnesia, so that people could be"
            " overlooked; nothing was changed: run armnesia verify, then armnesia restore --as-it-is"
        )
    return read_sources(transaction.session)


def _rows(session: Session) -> list[SourceRow]:
    return statements.read(session, SourceRow)


def put_sources(
    transaction: Transaction, before: Iterable[CountedSource], after: Iterable[CountedSource]
) -> None:
    """Store sources that are new or have changed."""
    old = {each.number: each for each in before}
    new = [each for each in after if old.get(each.number) != each]
    removed = [old[each.number].row for each in new if each.number in old]
    transaction.put([each.row for each in new], removed)


def move_sources(
    session: Session,
    configuration: Configuration,
    moved: Sequence[tuple[str, str]],
    without: Collection[str],
    dropped: Collection[str],
) -> dict[str, Any]:
    """Change the places of sources, and drop others; what the ledger says of it.

    `dropped` are the ids of those that were dropped after the backup of a vault was made.
    """
    sources = read_sources(session)
    known = {each.name: each for each in sources if each.id not in dropped}
    left = {name: each for name, each in known.items() if name not in without}
    for name, there in [*((name, known) for name in without), *((old, left) for old, _ in moved)]:
        if name not in there:
            raise InvalidInputError(
                f"the vault has no source {redacted(name)!r}; its sources are: {', '.join(there) or 'none'}"
            )
    for each in sources:
        if each.id in dropped or each.name in without:
            statements.delete(session, SourceRow, number=each.number)
    now = [left[old].relocated(new, configuration) for old, new in moved]
    session.execute_together([statements.put(each.row) for each in now])
    ids = {
        "moved": [each.id for each in now],
        "dropped": [each.id for each in known.values() if each.name in without],
    }
    return {what: own for what, own in ids.items() if own}


def refuse_overlaps(sources: Sequence[CountedSource]) -> None:
    """Refuse sources of which two share a file, or are the same table: rows would count twice."""
    owner_of: dict[str, CountedSource] = {}
    for each in sources:
        for part in each.parts:
            other = owner_of.setdefault(part, each)
            if other is not each:
                raise VaultError(
                    f"source {each.name!r} overlaps with source {other.name!r} ({part}), and its rows would"
                    f" count twice; nothing was changed: of the latter, {other.remedies}"
                )
