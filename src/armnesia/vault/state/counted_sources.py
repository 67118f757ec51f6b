"""The sources of an external vault, and what was counted of each: all that it holds of their rows."""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import (
    ArmnesiaError,
    ChangedSourceError,
    InterruptedWriteError,
    InvalidLogError,
    LostSourceError,
    MissingExtraError,
    OutdatedSourceError,
    SourceError,
    UnfinishedErasureError,
    UnknownCatalogError,
    UnreadableSourceError,
    VaultError,
)
from armnesia.logs import (
    Source,
    file_in_both,
    has_new_files,
    manifest_of,
    reopen_counted,
    reopen_source,
    source_name,
)
from armnesia.logs.counting import CountedRows
from armnesia.logs.manifests import Manifest
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.state.kept_plans import KeptPlans
from armnesia.vault.state.source_commands import differences, ingest_command, move_command, rebuild_command
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement

READMITTED = "people were readmitted, whose rows were left out"
NO_ORDER = "nothing says which of its rows are new: add --ordered-by COLUMN"


def _packed(values: Mapping[str, Any]) -> str:
    """Values as compressed text: they may name thousands of files."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _unpacked(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return values


@dataclass(frozen=True)
class CountedPart:
    """What was counted of a source, without anything about single rows."""

    manifest: Manifest
    one_spelling: bool
    """Whether every user is written as a request spells the name."""
    some_without_user: bool
    left_out: bool = False
    """Whether rows of people or records that were forgotten before lie among them, and are not erased yet."""

    @classmethod
    def of(cls, manifest: Manifest, rows: CountedRows, before: "CountedPart | None" = None) -> "CountedPart":
        """What counting found, with what was counted before, if rows were added to it."""
        own = cls(manifest, rows.one_spelling, rows.some_without_user, rows.n_left_out > 0)
        if before is None:
            return own
        return replace(
            own,
            one_spelling=own.one_spelling and before.one_spelling,
            some_without_user=own.some_without_user or before.some_without_user,
            left_out=own.left_out or before.left_out,
        )

    def packed(self) -> str:
        """The part as compressed text."""
        values = {**vars(self), "manifest": self.manifest.to_dict()}
        if not self.left_out:  # as earlier versions wrote it
            del values["left_out"]
        return _packed(values)

    @classmethod
    def unpacked(cls, address: Mapping[str, Any], text: str) -> "CountedPart":
        """Read what `packed` has written."""
        values = _unpacked(text)
        return cls(**{**values, "manifest": manifest_of(address, values["manifest"])})


@dataclass(frozen=True)
class CountedSource:
    """A source, and what was counted of it; None if all of it has to be counted again, and why."""

    number: int
    address: Mapping[str, Any]
    """Its description: where it is, its columns and conditions, and what its rows are ordered by."""
    counted: CountedPart | None
    recount: str = ""
    plans: KeptPlans = field(default_factory=KeptPlans)
    """Plans of erasures at the source that have to be known again."""
    stored: str | None = field(default=None, compare=False)
    """The text of the row that it was read from: another version of zlib would not write the same."""

    @property
    def name(self) -> str:
        """The location and the table."""
        return source_name(self.address)

    @property
    def ingest_command(self) -> str:
        """The command that ingests it again."""
        return ingest_command(self.address)

    @property
    def row(self) -> Row:
        """The row of the table `source`."""
        own = {"recount": self.recount} if self.counted is None else {"counted": self.counted.packed()}
        if self.plans != KeptPlans():
            own["plans"] = _packed(self.plans.to_dict())
        return self.number, canonical({**self.address, **own})

    def to_recount(self, reason: str) -> "CountedSource":
        """The source, all of which has to be counted again."""
        return replace(self, counted=None, recount=reason)

    def is_at(self, source: Source) -> bool:
        """Whether this is the source, whatever its rows are ordered by."""
        return {**self.address, "ordered_by": None} == {**source.description, "ordered_by": None}

    def is_same_table(self, source: Source, manifest: Manifest) -> bool:
        """Whether this is the table of a source by another name, with the same columns and conditions."""
        mine, other = {**self.address, "location": None}, {**source.description, "location": None}
        return self.counted is not None and mine == other and manifest.is_table_of(self.counted.manifest)

    def reopened(self, configuration: Configuration) -> Source:
        """Open all of the source again; say what to do if it cannot be opened."""
        try:
            source = reopen_source(
                self.address, whole_rows=False, decimals_as_written=not configuration.plain_decimals
            )
        except ArmnesiaError as error:
            raise self._unavailable(error) from None
        except (LookupError, TypeError):  # a part of the description is missing, or has another type
            raise changed_values() from None
        return source.keyed_by(configuration.key_columns)

    def relocated(self, new: str, configuration: Configuration) -> "tuple[CountedSource, Source]":
        """The source at another place, where all of it has to be counted again, and opened there."""
        location, mark, table = new.rpartition("#")
        place = {"location": new}
        if self.address["table"] is not None and mark:  # as `status` names a table of a database
            place = {"location": location, "table": table}
        source = reopen_source(
            {**self.address, **place}, whole_rows=False, decimals_as_written=not configuration.plain_decimals
        )
        applied = {
            role: replace(plan, location=str(source.description["location"]))
            for role, plan in self.plans.applied.items()
        }
        now = replace(self, address=source.description, plans=KeptPlans(applied=applied))
        return now.to_recount("it was moved"), source

    def reopened_counted(self, configuration: Configuration) -> tuple[Source, bool]:
        """Open the part that was counted; also, whether there is more.

        Refused with `ChangedSourceError` if it is not as it was when it was counted.
        """
        if self.counted is None:
            raise ChangedSourceError(self.recount)
        try:
            part, has_more = reopen_counted(
                self.address, self.counted.manifest, decimals_as_written=not configuration.plain_decimals
            )
        except ChangedSourceError:
            raise
        except ArmnesiaError as error:
            raise self._unavailable(error) from None
        except (LookupError, TypeError):
            raise changed_values() from None
        return part.keyed_by(configuration.key_columns), has_more

    def to_look_up(self, configuration: Configuration) -> Source:
        """Open the part that was counted, to look people up; say what to do if it has changed."""
        try:
            return self.reopened_counted(configuration)[0]
        except ChangedSourceError as error:
            raise self.outdated(error) from None

    @contextmanager
    def being_read(self) -> Iterator[None]:
        """Say what to do if rows cannot be read that were counted before."""
        try:
            yield
        except ChangedSourceError as error:
            raise self.outdated(error) from None
        except InvalidLogError as error:
            raise self._unavailable(error) from None

    def outdated(self, reason: object) -> SourceError:
        """Refuse a source that has changed since it was counted."""
        if self.plans.under_way:
            return UnfinishedErasureError(
                f"source {self.name!r} has changed since it was counted ({reason}), and an erasure there is"
                " under way, or was interrupted: armnesia erase finishes it; nothing was changed",
                self.number,
            )
        return OutdatedSourceError(
            f"source {self.name!r} has changed since it was counted ({reason}); nothing was changed;"
            f" {self.remedy(reason)}",
            self.number,
        )

    def remedy(self, reason: object) -> str:
        """What to do about a source that has changed since it was counted."""
        lost = any(words in str(reason) for words in ("no longer there", "is gone", "are gone"))
        put_back = "put back what is gone, or " if lost else ""
        return f"{put_back}to count it again, run {self.ingest_command}"

    def has_new_files(self) -> bool:
        """Whether there are files that are not counted yet."""
        return self.counted is not None and has_new_files(self.address, self.counted.manifest)

    def _unavailable(self, error: ArmnesiaError) -> SourceError:
        if isinstance(error, UnknownCatalogError | InterruptedWriteError | MissingExtraError):
            return UnreadableSourceError(f"{error}; nothing was changed", self.number)
        return LostSourceError(
            f"{error}; the vault has counted rows of this source: make it readable again, or restore it; if"
            f" it was moved, run {move_command(self.address, 'NEW')} ; if it no longer exists, run"
            f" {rebuild_command(self.address)}",
            self.number,
        )


def read_sources(session: Session) -> list[CountedSource]:
    """All sources by their numbers."""
    found = []
    for number, text in tables.read_table(session, "source"):
        try:
            address = json.loads(text)
            packed, reason = address.pop("counted", None), address.pop("recount", "")
            kept = address.pop("plans", None)
            plans = KeptPlans() if kept is None else KeptPlans.from_dict(_unpacked(kept))
            source_name(address)
            part = None if packed is None else CountedPart.unpacked(address, packed)
        except ChangedSourceError as error:  # of a form that does not tell tables apart
            part, reason = None, str(error)
        except (ValueError, TypeError, LookupError, AttributeError, zlib.error):
            raise changed_values() from None
        found.append(CountedSource(number, address, part, reason, plans, text))
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


def refuse_overlaps(sources: Sequence[CountedSource]) -> None:
    """Refuse sources of which two share files, or are the same table: rows would count twice."""
    owner_of: dict[str, CountedSource] = {}
    for each in sources:
        for part in () if each.counted is None else sorted(each.counted.manifest.parts):
            other = owner_of.setdefault(part, each)
            if other is not each:
                raise _overlap(part, other, each)


def refuse_inner(known: Iterable[CountedSource], new: CountedSource) -> None:
    """Refuse a new source with files that a known one stands for and has not counted yet.

    Counted here, they could not be counted there, and the known source could not be ingested any more.
    """
    assert new.counted is not None  # it was read just now
    for each in known:
        part = file_in_both(each.address, new.counted.manifest)
        if part is not None:
            raise VaultError(
                f"{part!r} of source {new.name!r} lies within source {each.name!r}, which the vault has"
                " counted before, and its rows would count twice; nothing was changed; to count what is new"
                f" there, run {each.ingest_command}"
            )


def refuse_copies(known: Iterable[CountedSource], new: CountedSource) -> None:
    """Refuse a new source with files that are, by name, size and time of change, those of a known one."""
    assert new.counted is not None  # it was read just now
    for each in known:
        file = None if each.counted is None else new.counted.manifest.file_like_one_of(each.counted.manifest)
        if file is not None:
            raise VaultError(
                f"file {file!r} of source {new.name!r} has the name, size and time of change of one that the"
                f" vault has counted in source {each.name!r}: a copy, whose rows would count twice, or the"
                f" source itself, which was moved; nothing was changed; if it was moved, run"
                f" {move_command(each.address, new.name)} ; if the rows are others, add --other-rows"
            )


def _overlap(part: str, known: CountedSource, other: CountedSource) -> VaultError:
    """Refuse a part that two sources share."""
    drop = rebuild_command(known.address)
    assert known.counted is not None  # both have parts
    assert other.counted is not None
    if other.counted.manifest.is_copy_of(known.counted.manifest):
        return VaultError(
            f"source {other.name!r} is, by its id, the table that the vault has counted as source"
            f" {known.name!r}: a copy of it, whose rows would count twice, or the table itself, which was"
            f" moved; nothing was changed; if it was moved, run {move_command(known.address, other.name)} ;"
            f" if a copy is to be counted in its place, first run {drop}"
        )
    if known.name == other.name and (how := differences(known.address, other.address)):
        return VaultError(
            f"the vault has counted source {known.name!r} already, otherwise than now ({how}), and its rows"
            f" would count twice; nothing was changed; to ingest it as before, run {known.ingest_command} ;"
            f" to ingest it as now, first run {drop}"
        )
    return VaultError(
        f"{part!r} is part of source {known.name!r} and of source {other.name!r}, and its rows would count"
        f" twice; nothing was changed: ingest each file and table once, or first run {drop}"
    )
