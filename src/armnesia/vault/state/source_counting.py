"""Counting rows at their sources, without those of forgotten people and records.

The suppression list holds keyed digests, and the key never leaves this process. So a source is asked for its
distinct names; those that are suppressed are handed to it, to be left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from armnesia.core.errors import ArmnesiaError, ChangedSourceError, VaultError
from armnesia.core.identifiers import UserType, are_plain, is_plain_integer, looks_like_float
from armnesia.core.progress import RowCounter
from armnesia.logs import Source
from armnesia.logs.counting import CountedRows, LeftOut, RowRules, Sums
from armnesia.logs.user_names import UserNames
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.counted_sources import NO_ORDER, CountedPart, CountedSource, refuse_overlaps
from armnesia.vault.state.suppression import Suppressed


@dataclass(frozen=True)
class SourceCounter:
    """Counts the rows of sources that are to be counted in a vault."""

    configuration: Configuration
    keyring: Keyring
    suppressed: Suppressed
    names: UserNames = field(default_factory=UserNames)

    @classmethod
    def of(cls, configuration: Configuration, keyring: Keyring, suppressed: Suppressed) -> "SourceCounter":
        """Of a vault."""
        return cls(configuration, keyring, suppressed, UserNames.of(configuration.user_type))

    def count(
        self, source: Source, *, refuses_spellings: bool = False, checked_before: bool = False
    ) -> CountedRows:
        """Check the rows of a source and add them up, without those that are suppressed.

        With `refuses_spellings`, an id that was forgotten in another spelling, such as 17 for 17.0, is
        refused. Of rows that were `checked_before`, only the sums are wanted.
        """
        actions = self.configuration.actions
        assert actions is not None  # they are fixed before anything is counted
        row_rules = RowRules(actions, self.configuration.reward_range, self.names)
        left_out = self._left_out(source, refuses_spellings)
        return source.count_rows(row_rules, left_out, checked_before=checked_before)

    def _left_out(self, source: Source, refuses_spellings: bool) -> LeftOut:
        users, ids = set[str](), set[str]()
        columns = source.columns.named()
        if self.suppressed["user"] and "user" in columns:
            for labels in source.distinct_labels("user"):
                users |= self.forgotten_users(labels)
        if self.suppressed["record"] and "id" in columns:
            for labels in source.distinct_labels("id"):
                ids |= self.forgotten_ids(labels)
                if refuses_spellings:
                    self._refuse_spellings(labels)
        return LeftOut(frozenset(users), frozenset(ids))

    def forgotten_users(self, labels: Iterable[str]) -> set[str]:
        """Which of these users, as a source spells them, are suppressed."""
        spelled = names = list(labels)
        if not are_plain(names, self.names.type):
            named = [(label, self.names.type.normalised(label)) for label in labels]
            spelled, names = [label for label, name in named if name], [name for _, name in named if name]
        digests = self.keyring.digests_of_owners(self.keyring.owner_digests(names))
        forgotten = self.suppressed["user"].intersection(digests)
        if not forgotten:  # mostly
            return set()
        return {label for label, digest in zip(spelled, digests, strict=True) if digest in forgotten}

    def forgotten_ids(self, labels: Iterable[str]) -> set[str]:
        """Which of these ids of records are suppressed."""
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
        forgotten = sorted(self.forgotten_ids(other_of))
        if forgotten:
            other = forgotten[0]
            raise VaultError(
                "rows have an id that the vault has forgotten in another spelling:"
                f" {other_of[other]!r}, which may be {other!r}; write the ids as before; nothing was ingested"
            )

    def count_all(
        self, sources: Sequence[CountedSource], *, anew: bool = True, counter: RowCounter | None = None
    ) -> "Recount":
        """Count all sources again as they are now, each whole.

        Without `anew`, only those are counted whole that are not as they were, and of others the part that
        was counted before.
        """
        counted, found = [], []
        for each in sources:
            rows, after = self._count_again(each, anew=anew)
            counted.append(rows)
            found.append(after)
            if counter is not None:
                counter.add(rows.n_rows)
        refuse_overlaps(found)
        return Recount(tuple(counted), tuple(found))

    def _count_again(self, each: CountedSource, *, anew: bool) -> tuple[CountedRows, CountedSource]:
        if not anew:
            try:
                part, _ = each.reopened_counted(self.configuration)
                return self._count_named(each, part), each
            except ChangedSourceError:
                pass
        source = each.reopened(self.configuration)
        if source.needs_order:
            return self._count_named(each, source), each.to_recount(NO_ORDER)
        manifest = source.manifest()
        rows = self._count_named(each, source.as_counted(manifest))
        return rows, replace(each, counted=CountedPart.of(manifest, rows), recount="")

    def _count_named(self, each: CountedSource, source: Source) -> CountedRows:
        """Count a source; a refusal names it."""
        try:
            return self.count(source)
        except ArmnesiaError as error:
            if each.name in str(error):
                raise
            raise VaultError(f"source {each.name!r}: {error}") from None


@dataclass(frozen=True)
class Recount:
    """What all sources add up to, and what was counted of each."""

    rows: tuple[CountedRows, ...]
    sources: tuple[CountedSource, ...]

    @property
    def sums(self) -> dict[tuple[tuple[str, ...], int], tuple[int, int]]:
        """By key and arm: how many rows, and their units."""
        return added_up(each.sums for each in self.rows)

    @property
    def n_rows(self) -> int:
        """How many rows were read."""
        return sum(each.n_rows for each in self.rows)

    @property
    def n_left_out(self) -> int:
        """How many of them are of forgotten people, or were forgotten themselves."""
        return sum(each.n_left_out for each in self.rows)


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
