"""Counting rows at their sources, without those of forgotten people and records, and looking people up there.

The suppression list holds keyed digests, and the key never leaves this process. So a source is asked for its
distinct names, those that are suppressed are handed to it, and one statement adds up the other rows. The rows
of a request are found by a second statement, in the same reading: both see the same rows.

Nothing is held of single sources but the version that was counted. New files of a folder are counted alone,
and added. After any other change, all sources are counted again, whole.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType, is_plain_integer, looks_like_float
from armnesia.core.progress import RowCounter
from armnesia.logs import Source
from armnesia.logs.statements import Chosen, Reading, Tally
from armnesia.logs.values import arm_of_text
from armnesia.vault.db.database import Session
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_table import DecisionNumbers
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.sources import CountedSource, refuse_overlaps, version_of
from armnesia.vault.state.suppression import (
    Suppressed,
    any_suppressed,
    read_checked_suppressed,
    suppressed_among,
)

Sums: TypeAlias = Mapping[tuple[int, int], tuple[int, int, bool]]
"""By decision and arm: how many rows, their units, and whether all rewards are the lowest or the highest."""
KIND_OF = {"user": "user", "id": "record"}
"""What the suppression list calls the names in the column of a role."""
_NOBODY = Chosen()


class Counted(NamedTuple):
    """The rows of one source."""

    kept: list[Tally]
    """Those that count."""
    n_rows: int
    gone: Chosen
    """The names that have rows and are suppressed."""
    of_request: list[Tally]

    @property
    def n_left_out(self) -> int:
        """How many rows do not count."""
        return self.n_rows - sum(each.number for each in self.kept)


@dataclass(frozen=True)
class Findings:
    """What was found at the sources: rows that are to be counted, and the rows of a request."""

    before: Sequence[CountedSource]
    after: Sequence[CountedSource]
    numbers: DecisionNumbers
    """The decisions of all these rows, of which some may be new."""
    opened: Mapping[int, Source] = field(default_factory=dict)
    """By the number of a source."""
    counted: Mapping[int, Counted] = field(default_factory=dict)
    """By the number of a source, what was counted of it."""
    because: str | None = None
    """Why all sources were counted again; None if these rows are added to what was counted before."""
    sums: Sums = field(default_factory=dict)
    """What all that was counted adds up to."""
    of_request: Sums = field(default_factory=dict)
    """What the rows of a request add up to."""
    names: frozenset[str] = frozenset()
    """The names of a request, and likely spellings of them, that have rows."""

    @property
    def n_counted(self) -> int:
        """How many rows count."""
        return sum(count for count, _, _ in self.sums.values())


@dataclass(frozen=True)
class SourceCounter:
    """Counts the rows of sources in a vault, and finds the rows of a request there."""

    session: Session
    keyring: Keyring
    state: State

    @cached_property
    def suppressed(self) -> Suppressed:
        """The suppression list, which must be as armnesia stored it."""
        return read_checked_suppressed(self.session, self.keyring, self.state)

    def find(
        self,
        before: Sequence[CountedSource],
        request: Chosen = _NOBODY,
        *,
        new: CountedSource | None = None,
        opened: Mapping[int, Source] | None = None,
        because: str | None = None,
        counter: RowCounter | None = None,
        noting: Callable[[CountedSource], AbstractContextManager[None]] = CountedSource.being_read,
    ) -> Findings:
        """Count what has changed at the sources; of a `new` one, all; or all of all, `because` of something.

        The rows of a request are added up. Sources that are not `opened` yet are opened. Errors pass by
        `noting`: a source whose error it keeps is left out.
        """
        every, now = [*before, *([] if new is None else [new])], dict(opened or {})
        for each in every:
            if each.number not in now:
                with noting(each):
                    now[each.number] = each.opened(self.state.configuration)
        known = [each for each in every if each.number in now]
        after = {each.number: replace(each, version=version_of(now[each.number])) for each in known}
        parts, why = _parts(known, now, new)
        because = because or why
        if parts or because:
            refuse_overlaps([*after.values()])
        counted, rows = dict[int, Counted](), list[Tally]()
        for each in known:
            source = now[each.number]
            part = source if because else parts.get(each.number)
            with noting(each):
                if part is not None:
                    own = counted[each.number] = self._counted(part, request if part is source else _NOBODY)
                    rows += own.of_request
                    to_erase = each.to_erase or own.n_left_out > 0
                    after[each.number] = replace(after[each.number], to_erase=to_erase)
                    (counter or RowCounter()).add(own.n_rows)
                if part is not source:
                    rows += self._looked_up(source, request)
        then = [after.get(each.number, each) for each in every]
        numbers = DecisionNumbers(self.session, self.state)
        return replace(
            Findings(before, then, numbers, now, counted, because),
            sums=self._summed([tally for own in counted.values() for tally in own.kept], numbers),
            of_request=self._summed(rows, numbers),
            names=_names(rows, request),
        )

    def with_likely(self, found: Findings, request: Chosen) -> Findings:
        """Tell as well which of other names have rows, as the sources are now."""
        rows = list[Tally]()
        for each in found.before:
            with each.being_read():
                rows += self._looked_up(found.opened[each.number], request)
        return replace(found, names=found.names | _names(rows, request))

    def _counted(self, source: Source, request: Chosen) -> Counted:
        """Check the rows of a source and add them up, without those that are suppressed."""
        with source.reading() as reading:
            gone = self.forgotten_at(source, reading)
            chosen = gone if any(gone) else None
            found = reading.tallies(self._reward_range, chosen=chosen, others=any(gone))
            of_request = self._rows_of(source, reading, request)
        kept = [each for each in found if not (any(gone) and each.chosen)]
        self._check(source, kept)
        return Counted(kept, sum(each.number for each in found), gone, of_request)

    def _looked_up(self, source: Source, request: Chosen) -> list[Tally]:
        """The rows of a request at a source that was counted."""
        if not any(request):
            return []
        with source.reading() as reading:
            found = self._rows_of(source, reading, request)
        self._check(source, found)
        return found

    def _rows_of(self, source: Source, reading: Reading, request: Chosen) -> list[Tally]:
        """The rows of a request that are not suppressed, by its names."""
        asked, named = request.by_role().keys(), source.columns.named()
        if not asked or not asked <= named.keys():
            return []
        also = {role for role, kind in KIND_OF.items() if any_suppressed(self.session, kind)}
        by = [role for role in KIND_OF if role in named and role in asked | also]
        found = reading.tallies(self._reward_range, chosen=request, by=by)
        for role in by:
            names = {name for each in found if (name := getattr(each, role)) is not None}
            gone = self.forgotten(role, names, few=True)
            found = [each for each in found if getattr(each, role) not in gone]
        return found

    @property
    def _reward_range(self) -> tuple[float, float]:
        return self.state.configuration.reward_range

    def _check(self, source: Source, found: Sequence[Tally]) -> None:
        if found:
            source.check_tallies(found, self.state.require_actions(), self._reward_range)

    def _summed(self, tallies: Sequence[Tally], numbers: DecisionNumbers) -> Sums:
        """What rows that were checked add up to."""
        sums: dict[tuple[int, int], tuple[int, int, bool]] = {}
        arm_of = arm_of_text(self.state.actions)
        decisions = numbers.of_keys([tuple(map(str, each.key)) for each in tallies])
        for number, each in zip(decisions, tallies, strict=True):
            place = (number, arm_of[str(each.action)])
            count, units, binary = sums.get(place, (0, 0, True))
            sums[place] = (count + each.number, units + each.units, binary and each.is_binary)
        return sums

    def forgotten_at(self, source: Source, reading: Reading) -> Chosen:
        """Which users and ids of a source are suppressed."""
        found: dict[str, set[str]] = {"user": set(), "id": set()}
        for role in found.keys() & source.columns.named():
            for labels in reading.labels(role) if self.suppressed[KIND_OF[role]] else ():
                found[role] |= self.forgotten(role, labels)
                if role == "id":
                    self._refuse_spellings(labels)
        return Chosen(found["user"], found["id"])

    def forgotten(self, role: str, names: Collection[str], *, few: bool = False) -> set[str]:
        """Which of these names are suppressed; a `few` are looked up, without reading the whole list."""
        digests, kind = self._digests(role, names), KIND_OF[role]
        suppressed = suppressed_among(self.session, digests) if few else self.suppressed[kind]
        return {name for name, digest in zip(names, digests, strict=True) if digest in suppressed}

    def _digests(self, role: str, names: Collection[str]) -> list[bytes]:
        """The digests of names in the column of a role, as the suppression list has them."""
        if role == "user":
            return self.keyring.owner_digests(names)
        return self.keyring.record_identities("id", list(names))

    def _refuse_spellings(self, ids: Collection[str]) -> None:
        """Refuse ids of forgotten records after a program turned integers into floats, or the reverse."""
        other_of = {f"{id_}.0": id_ for id_ in ids if is_plain_integer(id_)}
        floats = [(UserType.INTEGER.normalised(id_), id_) for id_ in ids if looks_like_float(id_)]
        other_of |= {other: id_ for other, id_ in floats if other}
        for other in sorted(self.forgotten("id", other_of)):
            raise VaultError(
                "rows have an id that the vault has forgotten in another spelling:"
                f" {other_of[other]!r}, which may be {other!r}; write the ids as before; nothing was changed"
            )


def _names(rows: Iterable[Tally], request: Chosen) -> frozenset[str]:
    """Which names of a request have these rows."""
    return frozenset(str(getattr(each, role)) for role in request.by_role() for each in rows)


def _parts(
    sources: Iterable[CountedSource], now: Mapping[int, Source], new: CountedSource | None
) -> tuple[dict[int, Source], str | None]:
    """What is to be counted alone, by the number of its source; or why all has to be counted again."""
    parts = dict[int, Source]()
    for each in sources:
        source = now[each.number]
        if each.is_as_counted(source):
            continue
        part = source if each is new else each.new_rows(source)
        if part is None:
            return {}, each.why_again
        parts[each.number] = part
    return parts, None
