"""The sources of an external vault, and the version of each that was counted: all that it holds of rows."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import (
    ArmnesiaError,
    InvalidLogError,
    LostSourceError,
    MissingExtraError,
    SourceError,
    UndeclaredActionError,
    UnknownCatalogError,
    UnreadableSourceError,
    UnsupportedError,
    VaultError,
)
from armnesia.core.identifiers import UserType
from armnesia.logs import Source
from armnesia.logs.files import FORMATS, find_files
from armnesia.logs.source import Version, reopen
from armnesia.logs.stores import is_remote
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.state.source_commands import (
    differences,
    ingest_command,
    move_command,
    rebuild_command,
    source_name,
)
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement

READMITTED = "people were readmitted, whose rows were left out"
_ROLES = ("action", "reward", "user", "id")


@dataclass(frozen=True)
class CountedSource:
    """A source, and what was counted of it."""

    number: int
    address: Mapping[str, Any]
    """Where it is, its columns and its conditions: `Source.address`."""
    version: Version | None = None
    """The version that was counted; None of a source that has no versions, which is counted each time."""
    recount: str = ""
    """Why it has to be counted again, whatever its version is."""
    left_out: bool = False
    """Whether rows of people or records that were forgotten before are there, and are not erased yet."""
    stored: str | None = field(default=None, compare=False)
    """The text of the row that it was read from."""

    @property
    def name(self) -> str:
        """The location and the table."""
        return source_name(self.address)

    @property
    def columns(self) -> dict[str, str | None]:
        """The column of each role."""
        return {role: self.address[role] for role in _ROLES}

    @property
    def ingest_command(self) -> str:
        """The command that ingests it again."""
        return ingest_command(self.address)

    @property
    def row(self) -> Row:
        """The row of the table `source`."""
        own = {
            "address": self.address,
            "columns": self.columns,
            "version": self.version,
            "recount": self.recount,
            "left_out": self.left_out,
        }
        return self.number, json.dumps(own, sort_keys=True, separators=(",", ":"))

    @property
    def files(self) -> frozenset[str]:
        """The files that were counted, if it is made of files."""
        return frozenset(path for path, *_ in (self.version or {}).get("files", ()))

    @property
    def parts(self) -> list[str]:
        """What no other source may have, too: the files, the id of the table, or the name."""
        return sorted(map(_real, self.files)) or [(self.version or {}).get("table", self.name)]

    @property
    def short_version(self) -> int | str | None:
        """The version as the ledger names it; files have none."""
        version = self.version or {}
        number: int | str | None = version.get("version", version.get("snapshot"))
        return number

    def opened(
        self,
        configuration: Configuration,
        address: Mapping[str, Any] | None = None,
        *,
        may_be_at: str = "NEW",
    ) -> Source:
        """Open the source as it is now, or at another address; say what to do if that cannot be done.

        `may_be_at` is the place where a source that is gone may be.
        """
        try:
            source = reopen(address or self.address)
        except ArmnesiaError as error:
            raise error if address else self._unavailable(error, may_be_at) from None
        return source.keyed_by(configuration.key_columns).named_by(configuration.user_type or UserType.TEXT)

    def relocated(self, new: str, configuration: Configuration) -> "CountedSource":
        """The source at another place."""
        place: dict[str, str | None] = {"source": new}
        location, mark, table = new.rpartition("#")
        if self.address["table"] is not None and mark:  # as `status` names a table of a database
            place = {"source": location, "table": table}
        source = self.opened(configuration, {**self.address, **place})
        return replace(self, address=source.address(), version=version_of(source))

    def is_as_counted(self, source: Source) -> bool:
        """Whether nothing of the source has changed since it was counted."""
        version = version_of(source)
        return not self.recount and version is not None and version == self.version

    @contextmanager
    def being_read(self) -> Iterator[None]:
        """Name the source in an error about its rows, or about deleting them."""
        try:
            yield
        except UndeclaredActionError:
            raise  # an ingest says how an action comes in
        except InvalidLogError as error:
            raise UnreadableSourceError(self._told(error), self.number) from None
        except UnsupportedError as error:
            raise UnsupportedError(self._told(error)) from None

    def _told(self, error: ArmnesiaError) -> str:
        return str(error) if self.name in str(error) else f"source {self.name!r}: {error}"

    def _unavailable(self, error: ArmnesiaError, place: str) -> SourceError:
        if isinstance(error, UnknownCatalogError | MissingExtraError):
            return UnreadableSourceError(f"{error}; nothing was changed", self.number)
        return LostSourceError(
            f"{error}; the vault has counted rows of this source: make it readable again, or restore it; if"
            f" it was moved, run {move_command(self.address, place)} ; if it no longer exists, run"
            f" {rebuild_command(self.address)}",
            self.number,
        )


def version_of(source: Source) -> Version | None:
    """The version of a source, as it is read back from JSON."""
    version = source.version()
    return None if version is None else dict(json.loads(json.dumps(version)))


def read_sources(session: Session) -> list[CountedSource]:
    """All sources by their numbers."""
    found = []
    for number, text in tables.read_table(session, "source"):
        try:
            values = json.loads(text)
            del values["columns"]  # of all sources they are read by `source_columns`
            each = CountedSource(number, **values, stored=text)
            assert each.name
        except (ValueError, TypeError, LookupError, AttributeError):
            raise changed_values() from None
        found.append(each)
    return found


def checked_sources(session: Session, keyring: Keyring, digests: TableDigests) -> list[CountedSource]:
    """All sources; refuse them if they are not those under the seal, of which one may hide people."""
    found = read_sources(session)
    rows = [(each.number, each.stored) for each in found]
    if TableDigests().update(keyring, "source", rows).source != digests.source:
        raise VaultError(
            "the list of sources was changed by something other than armnesia, so that people could be"
            " overlooked; nothing was changed: run armnesia verify, then armnesia rebuild"
        )
    return found


def put_sources(
    before: Sequence[CountedSource], after: Iterable[CountedSource], keyring: Keyring, digests: TableDigests
) -> tuple[TableDigests, list[Statement]]:
    """Store sources that are new or have changed: the new table digests, and the statements."""
    old = {each.number: each for each in before}
    new = [each for each in after if old.get(each.number) != each]
    removed = [(each.number, old[each.number].stored) for each in new if each.number in old]
    changed = [each.row for each in new]
    digests = digests.update(keyring, "source", [*removed, *changed])
    return digests, [tables.put_source(*row) for row in changed]


def _real(path: str) -> str:
    """A path without links."""
    return path if is_remote(path) else os.path.realpath(path)


def refuse_overlaps(sources: Sequence[CountedSource]) -> None:
    """Refuse sources of which two share a file, or are the same table: rows would count twice."""
    owner_of: dict[str, CountedSource] = {}
    for each in sources:
        for part in each.parts:
            other = owner_of.setdefault(part, each)
            if other is not each:
                raise _overlap(part, other, each)


def refuse_inner(known: Iterable[CountedSource], new: CountedSource) -> None:
    """Refuse a new source with files that a known one stands for, and that are not counted yet."""
    for each in known:
        found: list[str] = []
        with suppress(InvalidLogError):  # it is gone
            found = find_files(each.address["source"], FORMATS) if each.files else []
        inner = sorted({*new.parts}.intersection(map(_real, found)))
        if inner:
            raise VaultError(
                f"{inner[0]!r} of source {new.name!r} lies within source {each.name!r}, which the vault has"
                " counted before, and its rows would count twice; nothing was changed; to count what is new"
                f" there, run {each.ingest_command}"
            )


def _overlap(part: str, known: CountedSource, other: CountedSource) -> VaultError:
    """Refuse a part that two sources share."""
    drop = rebuild_command(known.address)
    if known.name == other.name and (how := differences(known.address, other.address)):
        return VaultError(
            f"the vault has counted source {known.name!r} already, otherwise than now ({how}), and its rows"
            f" would count twice; nothing was changed; to ingest it as before, run {known.ingest_command} ;"
            f" to ingest it as now, first run {drop}"
        )
    if known.name != other.name and not known.files:
        return VaultError(
            f"source {other.name!r} is, by its id, the table that the vault has counted as source"
            f" {known.name!r}: a copy of it, whose rows would count twice, or the table itself, which was"
            f" moved; nothing was changed; if it was moved, run {move_command(known.address, other.name)} ;"
            f" if a copy is to be counted in its place, first run {drop}"
        )
    return VaultError(
        f"{part!r} is part of source {known.name!r} and of source {other.name!r}, and its rows would count"
        f" twice; nothing was changed: ingest each file and table once, or first run {drop}"
    )
