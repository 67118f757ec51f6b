"""Counting rows at their sources, without those of forgotten people and records.

The suppression list holds keyed digests, and the key never leaves this process. So a source is asked for its
distinct names, those that are suppressed are handed to it, and one statement adds up the other rows.

Nothing is held of single sources but the version that was counted. New files of a folder are counted alone,
and added. After any other change, all sources are counted again, whole.
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
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.sources import CountedSource, refuse_overlaps, version_of
from armnesia.vault.state.suppression import Suppressed, read_checked_suppressed
from armnesia.vault.state.transaction import Transaction

Sums: TypeAlias = Mapping[tuple[tuple[str, ...], int], tuple[int, int]]
"""What rows add up to, by their key and arm: how many there are, and their units."""
KIND_OF = {"user": "user", "id": "record"}
"""What the suppression list calls the names in the column of a role."""
_NOBODY = Chosen()


class Counted(NamedTuple):
    """The rows of a source that count, and those of a request among them."""

    sums: Sums
    n_rows: int
    n_left_out: int
    gone: Chosen
    """The names that have rows and are suppressed."""
    of_request: list[Tally]


@dataclass(frozen=True)
class Update:
    """What counting found, ready to be stored: what came since, or all rows of all sources."""

    before: Sequence[CountedSource]
    after: Sequence[CountedSource]
    counted: Mapping[int, Counted]
    """By the number of a source, what was counted of it."""
    because: str | None
    """Why all sources were counted again; None if these rows are added to what was counted before."""

    @property
    def sums(self) -> Sums:
        """What was counted, together."""
        total: dict[tuple[tuple[str, ...], int], tuple[int, int]] = {}
        for own in self.counted.values():
            for place, (count, units) in own.sums.items():
                before = total.get(place, (0, 0))
                total[place] = (before[0] + count, before[1] + units)
        return total

    @property
    def n_counted(self) -> int:
        """How many rows count."""
        return sum(count for each in self.counted.values() for count, _ in each.sums.values())


@dataclass(frozen=True)
class SourceCounter:
    """Counts the rows of sources that are to be counted in a vault."""

    configuration: Configuration
    keyring: Keyring
    suppressed: Suppressed

    @classmethod
    def of(cls, transaction: Transaction, state: State) -> "SourceCounter":
        """By the suppression list as it is now, which must be as armnesia stored it."""
        return cls(state.configuration, transaction.keyring, read_checked_suppressed(transaction))

    def update(
        self,
        before: Sequence[CountedSource],
        opened: Mapping[int, Source],
        request: Chosen = _NOBODY,
        *,
        new: CountedSource | None = None,
        because: str | None = None,
        counter: RowCounter | None = None,
    ) -> Update:
        """Count what has changed at the sources; of a new one, all; or all of all, `because` of something.

        The rows of a request are told apart where everything is counted.
        """
        every = [*before, *([] if new is None else [new])]
        parts = {} if new is None else {new.number: opened[new.number]}
        for each in before:
            source = opened[each.number]
            if each.is_as_counted(source):
                continue
            part = None if each.recount or each.version is None else source.new_since(each.version)
            if part is None:
                because = because or _because(each)
            else:
                parts[each.number] = part
        if because:
            parts = {each.number: opened[each.number] for each in every}
        after = [replace(each, version=version_of(opened[each.number]), recount=False) for each in every]
        refuse_overlaps(after)
        counted = dict[int, Counted]()
        for each in every:
            if each.number in parts:
                with each.being_read():
                    own = self.count(parts[each.number], request)
                counted[each.number] = own
                if counter is not None:
                    counter.add(own.n_rows)
        left_out = {number for number, own in counted.items() if own.n_left_out}
        after = [replace(each, to_erase=each.to_erase or each.number in left_out) for each in after]
        return Update(before, after, counted, because)

    def count(self, source: Source, request: Chosen = _NOBODY) -> Counted:
        """Check the rows of a source and add them up, without those that are suppressed; in one reading.

        The rows of a request are counted, and told apart as well.
        """
        assert self.configuration.actions is not None  # they are fixed before anything is counted
        columns, reward_range = source.columns.named(), self.configuration.reward_range
        asked = Chosen(*(names if role in columns else () for role, names in by_role(request)))
        with source.reading() as reading:
            gone = self.forgotten_in(source, reading)
            chosen = Chosen({*gone.users, *asked.users}, {*gone.ids, *asked.ids})
            by = [role for role, names in by_role(chosen) if names] if any(asked) else []
            found = reading.tallies(
                reward_range, chosen=chosen if any(chosen) else None, others=any(chosen), by=by
            )
        kept = [  # without a request, all that are chosen are gone
            each
            for each in found
            if not (any(chosen) and each.chosen)
            or (by and each.user not in gone.users and each.id not in gone.ids)
        ]
        if kept:
            check_tallies(source, kept, self.configuration.actions, reward_range)
        n_rows = sum(each.number for each in found)
        n_left_out = n_rows - sum(each.number for each in kept)
        of_request = [each for each in kept if each.user in asked.users or each.id in asked.ids]
        return Counted(self._summed(kept), n_rows, n_left_out, gone, of_request)

    def _summed(self, tallies: Iterable[Tally]) -> Sums:
        assert self.configuration.actions is not None
        arm_of = arm_of_text(self.configuration.actions)
        sums: dict[tuple[tuple[str, ...], int], tuple[int, int]] = {}
        for each in tallies:
            place = (tuple(map(str, each.key)), arm_of[str(each.action)])
            count, units = sums.get(place, (0, 0))
            sums[place] = (count + each.number, units + each.units)
        return sums

    def forgotten_in(self, source: Source, reading: Reading) -> Chosen:
        """Which users and ids of a source are suppressed."""
        found: dict[str, set[str]] = {"user": set(), "id": set()}
        for role in found.keys() & source.columns.named():
            for labels in reading.labels(role) if self.suppressed[KIND_OF[role]] else ():
                found[role] |= self.forgotten(role, labels)
                if role == "id":
                    self._refuse_spellings(labels)
        return Chosen(found["user"], found["id"])

    def forgotten(self, role: str, names: Collection[str]) -> set[str]:
        """Which of these names are suppressed."""
        suppressed = self.suppressed[KIND_OF[role]]
        pairs = zip(names, digests_of(self.keyring, role, names), strict=True)
        return {name for name, digest in pairs if digest in suppressed}

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


def digests_of(keyring: Keyring, role: str, names: Collection[str]) -> list[bytes]:
    """The digests of names in the column of a role, as the suppression list has them."""
    return keyring.owner_digests(names) if role == "user" else keyring.record_identities("id", list(names))


def by_role(chosen: Chosen) -> Iterable[tuple[str, Collection[str]]]:
    """The names that are chosen, with the role of the column that has them."""
    return zip(("user", "id"), chosen, strict=True)


def _because(each: CountedSource) -> str:
    if each.recount:
        return f"source {each.name!r} has rows of people who were readmitted"
    return f"source {each.name!r} has {'no versions' if each.version is None else 'changed'}"
