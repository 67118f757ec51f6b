"""Counting rows at their sources, without those of forgotten people and records.

The suppression list holds keyed digests, and the key never leaves this process. So a source is asked for its
distinct names, those that are suppressed are handed to it, and one statement adds up the other rows.

Nothing is held of single sources but the version that was counted. Of a source that only has more than then,
this is counted and added. After any other change, all sources are counted again, whole.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType, is_plain_integer, looks_like_float
from armnesia.core.progress import RowCounter
from armnesia.logs import Source
from armnesia.logs.counting import check_tallies
from armnesia.logs.statements import Chosen, Reading, Tally
from armnesia.logs.values import arm_of_text
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.counted_sources import CountedSource, refuse_overlaps, version_of
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import Suppressed

Sums: TypeAlias = Mapping[tuple[tuple[str, ...], int], tuple[int, int]]
"""What rows add up to, by their key and arm: how many there are, and their units."""
_NOBODY = Chosen()


class CountedRows(NamedTuple):
    """The rows of one source that count, and those of a request among them."""

    sums: Sums
    n_rows: int
    n_left_out: int
    of_request: list[Tally]


@dataclass(frozen=True)
class Update:
    """What counting found, ready to be stored: what came since, or all rows of all sources."""

    before: Sequence[CountedSource]
    after: Sequence[CountedSource]
    sums: Sums
    rows: int
    left_out: int
    because: str | None
    """Why the sums are those of all sources; None if they are added to what was counted before."""
    of_request: Sequence[Tally] = ()

    @classmethod
    def of(
        cls,
        before: Sequence[CountedSource],
        after: Sequence[CountedSource],
        counted: Sequence[CountedRows],
        because: str | None,
    ) -> "Update":
        """What these sources add up to together."""
        return cls(
            before,
            after,
            added_up(each.sums for each in counted),
            sum(each.n_rows for each in counted),
            sum(each.n_left_out for each in counted),
            because,
            [tally for each in counted for tally in each.of_request],
        )

    @property
    def n_counted(self) -> int:
        """How many rows count."""
        return sum(count for count, _ in self.sums.values())


@dataclass(frozen=True)
class SourceCounter:
    """Counts the rows of sources that are to be counted in a vault."""

    configuration: Configuration
    keyring: Keyring
    suppressed: Suppressed

    def count(self, source: Source, request: Chosen = _NOBODY, *, checks_ids: bool = False) -> CountedRows:
        """Check the rows of a source and add them up, without those that are suppressed; in one reading.

        The rows of a request are counted, and told apart as well. With `checks_ids`, an id is refused that
        was forgotten in another spelling, such as 17 for 17.0.
        """
        assert self.configuration.actions is not None  # they are fixed before anything is counted
        columns, reward_range = source.columns.named(), self.configuration.reward_range
        asked = Chosen(*(names if role in columns else () for role, names in by_role(request)))
        with source.reading() as reading:
            gone = self.forgotten_in(source, reading, checks_ids=checks_ids)
            chosen = Chosen({*gone.users, *asked.users}, {*gone.ids, *asked.ids})
            by = [role for role, names in by_role(chosen) if names] if any(asked) else []
            found = reading.tallies(
                reward_range, chosen=chosen if any(chosen) else None, others=any(chosen), by=by
            )
        kept = [each for each in found if not (any(chosen) and each.chosen and _is_gone(each, gone, by))]
        if kept:
            check_tallies(source, kept, self.configuration.actions, reward_range)
        n_rows = sum(each.number for each in found)
        of_request = [each for each in kept if each.user in asked.users or each.id in asked.ids]
        return CountedRows(self.summed(kept), n_rows, n_rows - sum(each.number for each in kept), of_request)

    def summed(self, tallies: Iterable[Tally]) -> Sums:
        """Add tallies up by key and arm."""
        assert self.configuration.actions is not None
        arm_of = arm_of_text(self.configuration.actions)
        sums: dict[tuple[tuple[str, ...], int], tuple[int, int]] = {}
        for each in tallies:
            place = (tuple(map(str, each.key)), arm_of[str(each.action)])
            count, units = sums.get(place, (0, 0))
            sums[place] = (count + each.number, units + each.units)
        return sums

    def forgotten_in(self, source: Source, reading: Reading, *, checks_ids: bool = False) -> Chosen:
        """Which users and ids of a source are suppressed."""
        columns, users, ids = source.columns.named(), set[str](), set[str]()
        if self.suppressed["user"] and "user" in columns:
            for labels in reading.labels("user"):
                users |= self._forgotten_users(labels)
        if self.suppressed["record"] and "id" in columns:
            for labels in reading.labels("id"):
                ids |= self._forgotten_ids(labels)
                if checks_ids:
                    self._refuse_spellings(labels)
        return Chosen(users, ids)

    def _forgotten_users(self, labels: list[str]) -> set[str]:
        digests = self.keyring.digests_of_owners(self.keyring.owner_digests(labels))
        pairs = zip(labels, digests, strict=True)
        return {label for label, digest in pairs if digest in self.suppressed["user"]}

    def _forgotten_ids(self, labels: Iterable[str]) -> set[str]:
        ids = list(labels)
        digests = self.keyring.suppressed_record_digests(self.keyring.record_identities("id", ids))
        return {id_ for id_, digest in zip(ids, digests, strict=True) if digest in self.suppressed["record"]}

    def _refuse_spellings(self, labels: Iterable[str]) -> None:
        other_of: dict[str, str] = {}
        for id_ in labels:
            other = UserType.INTEGER.normalised(id_) if looks_like_float(id_) else None
            if other is None and is_plain_integer(id_):
                other = f"{id_}.0"
            if other:
                other_of[other] = id_
        forgotten = sorted(self._forgotten_ids(other_of))
        if forgotten:
            other = forgotten[0]
            raise VaultError(
                "rows have an id that the vault has forgotten in another spelling:"
                f" {other_of[other]!r}, which may be {other!r}; write the ids as before; nothing was ingested"
            )

    def update(
        self,
        sources: Sequence[CountedSource],
        opened: Mapping[int, Source],
        request: Chosen = _NOBODY,
        *,
        new: CountedSource | None = None,
    ) -> Update:
        """Count what has changed at those sources that are opened; of a new one, all.

        The rows of a request are told apart where everything is counted again.
        """
        every = [*sources, *([] if new is None else [new])]
        because = next((_because(each, each.recount) for each in sources if each.recount), None)
        parts: dict[int, Source] = {} if new is None else {new.number: opened[new.number]}
        for each in sources:
            source = opened.get(each.number)
            if source is None or because or each.is_as_counted(source):
                continue
            version = None if each.version is None else version_of(source)
            part = None if version is None or each.version is None else source.new_since(each.version)
            if part is None:
                because = _because(each, _changed(each))
            else:
                parts[each.number] = part
        if because:
            return self.count_all(sources, because, opened, request, new=new)
        counted, after = list[CountedRows](), list[CountedSource]()
        for each in every:
            part = parts.get(each.number)
            if part is None:
                after.append(each)
                continue
            rows, now = self.count_again(each, part)
            counted.append(rows)
            after.append(
                replace(now, version=version_of(opened[each.number]), left_out=each.left_out or now.left_out)
            )
        refuse_overlaps(after)
        return Update.of(sources, after, counted, None)

    def count_all(
        self,
        sources: Sequence[CountedSource],
        because: str,
        opened: Mapping[int, Source] | None = None,
        request: Chosen = _NOBODY,
        *,
        new: CountedSource | None = None,
        counter: RowCounter | None = None,
    ) -> Update:
        """Count all sources as they are now, each whole."""
        found, after = list[CountedRows](), list[CountedSource]()
        for each in [*sources, *([] if new is None else [new])]:
            rows, now = self.count_again(each, (opened or {}).get(each.number), request)
            found.append(rows)
            after.append(now)
            if counter is not None:
                counter.add(rows.n_rows)
        refuse_overlaps(after)
        return Update.of(sources, after, found, because)

    def count_again(
        self, each: CountedSource, source: Source | None = None, request: Chosen = _NOBODY
    ) -> tuple[CountedRows, CountedSource]:
        """Count all rows of a source, and what is then held of it; an error names it."""
        source = source or each.opened(self.configuration)
        with each.being_read():
            rows = self.count(source, request, checks_ids=True)
        held = replace(each, version=version_of(source), recount="", left_out=rows.n_left_out > 0)
        return rows, held


def dependencies(state: State) -> tuple[object, ...]:
    """What a count depends on: the sources, who is forgotten, and what actions and names are."""
    configuration = state.configuration
    digests = (state.digests.source, state.digests.suppressed, state.digest_key)
    return *digests, configuration.actions, configuration.user_type


def by_role(chosen: Chosen) -> Iterable[tuple[str, Collection[str]]]:
    """The names that are chosen, with the role of the column that has them."""
    return zip(("user", "id"), chosen, strict=True)


def added_up(sums: Iterable[Sums]) -> dict[tuple[tuple[str, ...], int], tuple[int, int]]:
    """Add sums of several sources.

    >>> added_up([{((), 0): (1, 5)}, {((), 0): (2, 7), ((), 1): (1, 0)}])
    {((), 0): (3, 12), ((), 1): (1, 0)}
    """
    total: dict[tuple[tuple[str, ...], int], tuple[int, int]] = {}
    for own in sums:
        for place, (count, units) in own.items():
            before = total.get(place, (0, 0))
            total[place] = (before[0] + count, before[1] + units)
    return total


def _is_gone(tally: Tally, gone: Chosen, by: Sequence[str]) -> bool:
    """Whether chosen rows are suppressed; without a request, all of them are."""
    return not by or tally.user in gone.users or tally.id in gone.ids


def _because(each: CountedSource, reason: str) -> str:
    return f"source {each.name!r}: {reason}"


def _changed(each: CountedSource) -> str:
    if each.version is None:
        return "nothing tells what is new in it"
    return "rows that were counted have changed, or are gone"
