"""Looking people up at the sources of an external vault.

Sources that have changed since they were counted are counted again first, and the same statement tells the
rows of the people apart. Names without rows are compared with those that the sources have.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source
from armnesia.logs.counting import check_tallies
from armnesia.logs.statements import Chosen, Tally, Wrong
from armnesia.logs.values import arm_of_text
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.counted_sources import CountedSource, checked_sources
from armnesia.vault.state.near_spellings import near_spellings, spellings_of_held
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_counting import SourceCounter, Update, dependencies
from armnesia.vault.state.suppression import RequestHistory, SuppressionList
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables

Reading = Callable[[], AbstractContextManager[Transaction]]


@dataclass(frozen=True)
class SourceLookup:
    """What the sources have of a request, without rows that are suppressed and so not counted."""

    depends_on: tuple[object, ...]
    """What of the vault the answer depends on."""
    sums: Mapping[tuple[tuple[str, ...], int], tuple[int, int, bool]]
    """By key and arm: how many rows, their units, and whether all rewards are the lowest or the highest."""
    held: frozenset[bytes]
    """The row keys of the names that have rows."""
    sources: tuple[int, ...]
    """The numbers of the vault's sources."""
    others: frozenset[bytes]
    """The row keys of other names with rows that are spelled nearly as one of the request."""
    some_without_user: bool = False
    """Whether there are rows without a user; looked for if somebody has no rows."""
    update: Update | None = None
    """What changed at the sources since they were counted, and is stored before anybody is forgotten."""

    def still_true(self, transaction: Transaction) -> bool:
        """Whether the vault has not changed since in what the answer depends on."""
        return self.depends_on == dependencies(transaction.state)


def look_up_people(reading: Reading, target: ErasureTarget, *, exactly: bool) -> SourceLookup:
    """Look the people, or the ids, of a request up; transactions are open only before and after.

    With `exactly`, names that are spelled nearly alike are not looked for.
    """
    with reading() as transaction:
        state = transaction.state
        target = target.normalised(state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        named = zip(target.names, history.suppressed, strict=True)
        names = [name for name, suppressed in named if not suppressed]
        sources = checked_sources(transaction.session, transaction.keyring, state.digests)
        other = ("id", "record") if target.users else ("user", "user")
        tells_apart = tables.suppresses_any(transaction.session, other[1])
    numbers = tuple(each.number for each in sources)
    if not names:
        return SourceLookup(dependencies(state), {}, frozenset(), numbers, frozenset())
    if not sources:
        raise VaultError(
            "the vault has counted no source yet, and so no rows: that nothing is held of somebody cannot be"
            " told before armnesia ingest; nothing was changed"
        )
    asked = _Request(state, target, names, exactly, [other[0]] if tells_apart else [])
    opened = {each.number: each.opened(state.configuration) for each in sources}
    update = _update(reading, state, sources, opened, asked.chosen)
    if update is not None and update.because:
        found = list(update.of_request)
    else:
        found = [tally for each in sources for tally in asked.rows(each, opened[each.number])]
    near, without_user = asked.about_missing(found, sources, opened)
    with reading() as transaction:
        return asked.answer(transaction, found, near, without_user, numbers, update)


def _update(
    reading: Reading,
    state: State,
    sources: Sequence[CountedSource],
    opened: Mapping[int, Source],
    chosen: Chosen,
) -> Update | None:
    """Count what has changed at the sources since they were counted; None if nothing has."""
    if all(each.is_as_counted(opened[each.number]) for each in sources):
        return None
    with reading() as transaction:
        suppressed = SuppressionList.read(transaction).digests
        counter = SourceCounter(state.configuration, transaction.keyring, suppressed)
    return counter.update(sources, opened, chosen)


class _Request:
    """The names of a request that are looked up."""

    def __init__(
        self, state: State, target: ErasureTarget, names: list[str], exactly: bool, others: list[str]
    ) -> None:
        self._state, self._names, self._exactly, self._others = state, names, exactly, others
        self._role = "user" if target.users else "id"
        self._type = state.configuration.user_type or UserType.TEXT
        wanted = {*names, *self._spelled_alike()}
        self.chosen = Chosen(users=wanted) if self._role == "user" else Chosen(ids=wanted)

    def _spelled_alike(self) -> Iterable[str]:
        """Spellings that programs make of the names."""
        for name in () if self._exactly else self._names:
            for spelling in spellings_of_held(name, of_user=self._role == "user", user_type=self._type):
                yield self._normalised(spelling) or spelling

    def _normalised(self, label: str) -> str | None:
        return (self._type.normalised(label) or None) if self._role == "user" else label

    def rows(self, each: CountedSource, source: Source) -> list[Tally]:
        """Look the names up at a source."""
        if self._role not in source.columns.named():
            return []  # no row of this source can be named by the request
        by = [self._role, *(role for role in self._others if role in source.columns.named())]
        configuration = self._state.configuration
        with each.being_read():
            found = source.tallies(configuration.reward_range, chosen=self.chosen, by=by)
            if found:
                check_tallies(source, found, self._state.require_actions(), configuration.reward_range)
        return found

    def about_missing(
        self, found: Iterable[Tally], sources: Iterable[CountedSource], opened: Mapping[int, Source]
    ) -> tuple[set[str], bool]:
        """Of names without rows: which similar names have some, and whether rows have no user at all."""
        missing = set(self._names) - {self._label(each) for each in found}
        if not missing:
            return set(), False
        texts: set[str] = set()
        if not self._exactly and not (self._role == "user" and self._type is UserType.INTEGER):
            spelled = (spelling for name in missing for spelling in near_spellings(name))
            texts = {name for name in map(self._normalised, spelled) if name}
        near, without_user = set[str](), False
        for each in sources:
            source = opened[each.number]
            columns = source.columns.named()
            with each.being_read():
                if texts and self._role in columns:
                    near |= _labels_among(source, self._role, texts)
                if self._role == "user" and not without_user:
                    without_user = "user" not in columns or bool(source.first_wrong("user", Wrong.MISSING))
        return near, without_user

    def _label(self, tally: Tally) -> str | None:
        return tally.user if self._role == "user" else tally.id

    def answer(
        self,
        transaction: Transaction,
        found: Sequence[Tally],
        near: Collection[str],
        without_user: bool,
        numbers: tuple[int, ...],
        update: Update | None,
    ) -> SourceLookup:
        """Leave out the rows that are not counted, and add up the others."""
        keyring, names = transaction.keyring, set(self._names)
        kept = _counted(transaction, found)
        arm_of = arm_of_text(self._state.require_actions())
        sums: dict[tuple[tuple[str, ...], int], tuple[int, int, bool]] = {}
        for each in kept:
            if self._label(each) in names:
                place = (tuple(map(str, each.key)), arm_of[str(each.action)])
                count, units, binary = sums.get(place, (0, 0, True))
                sums[place] = (count + each.number, units + each.units, binary and each.is_binary)
        labels = {label for each in kept if (label := self._label(each)) is not None}
        others = list((labels | set(near)) - names)
        forgotten = _suppressed(transaction, self._role, others)
        return SourceLookup(
            dependencies(self._state),
            sums,
            frozenset(_row_keys(keyring, self._role, labels & names)),
            numbers,
            frozenset(_row_keys(keyring, self._role, [each for each in others if each not in forgotten])),
            without_user,
            update,
        )


def _labels_among(source: Source, role: str, texts: Iterable[str]) -> set[str]:
    """Which of these texts a column has."""
    with source.reading() as reading:
        found = reading.labels(role, set(texts))
        return {label for piece in found for label in piece}


def _counted(transaction: Transaction, found: Sequence[Tally]) -> list[Tally]:
    """Without rows of forgotten people or records."""
    users = _suppressed(transaction, "user", {each.user for each in found if each.user is not None})
    ids = _suppressed(transaction, "id", {each.id for each in found if each.id is not None})
    return [each for each in found if each.user not in users and each.id not in ids]


def _suppressed(transaction: Transaction, role: str, names: Collection[str]) -> set[str]:
    """Which of these names are forgotten."""
    if not names or not tables.suppresses_any(transaction.session, "user" if role == "user" else "record"):
        return set()
    keyring, listed = transaction.keyring, list(names)
    keys = _row_keys(keyring, role, listed)
    of_role = keyring.digests_of_owners if role == "user" else keyring.suppressed_record_digests
    digests = of_role(keys)
    forgotten = tables.suppressed_among(transaction.session, digests)
    return {name for name, digest in zip(listed, digests, strict=True) if digest in forgotten}


def _row_keys(keyring: Keyring, role: str, names: Iterable[str]) -> list[bytes]:
    if role == "user":
        return keyring.owner_digests(names)
    return keyring.record_identities("id", list(names))
