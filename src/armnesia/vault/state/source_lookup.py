"""Looking people up at the sources of an external vault.

They are looked up in the column's own type, so that indexes, and statistics of files, can answer. That
nothing is held of somebody is a claim, which a second way confirms: every name of the source is read and
compared as text, whatever an index or a file says of itself. The same reading finds names that are spelled
nearly alike.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source
from armnesia.logs.counting import FoundRows, RowRules
from armnesia.logs.user_names import UserNames
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.counted_sources import CountedSource, checked_sources
from armnesia.vault.state.near_spellings import near_spellings, spellings_of_held
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


@dataclass(frozen=True)
class SourceLookup:
    """What the sources have of a request, without rows that are suppressed and so not counted."""

    depends_on: tuple[int, int, int]
    """The table digests of the sources and of who is forgotten, and the key that they are made with."""
    sums: Mapping[tuple[tuple[str, ...], int], tuple[int, int, bool]]
    """By key and arm: how many rows, their units, and whether all rewards are the lowest or the highest."""
    held: frozenset[bytes]
    """The row keys of the names that have rows."""
    others: frozenset[bytes]
    """The row keys of other names with rows that are spelled nearly as one of the request."""

    def still_true(self, transaction: Transaction) -> bool:
        """Whether the vault has not changed since in what the answer depends on."""
        return self.depends_on == _dependencies(transaction.state)


def _dependencies(state: State) -> tuple[int, int, int]:
    return state.digests.source, state.digests.suppressed, state.digest_key


def look_up_people(
    reading: Callable[[], AbstractContextManager[Transaction]], target: ErasureTarget, *, exactly: bool
) -> SourceLookup:
    """Look the people, or the ids, of a request up; transactions are open only before and after.

    With `exactly`, names that are spelled nearly alike are not looked for.
    """
    with reading() as transaction:
        state, session = transaction.state, transaction.session
        target = target.normalised(state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        named = zip(target.names, history.suppressed, strict=True)
        names = [name for name, suppressed in named if not suppressed]
        other_kind = "record" if target.users else "user"
        tells_apart = tables.suppresses_any(session, other_kind)
        sources = checked_sources(session, transaction.keyring, state.digests) if names else []
    asked = _Lookup(state, target, names, tells_apart, exactly)
    for each in sources:
        asked.ask(each)
    asked.confirm_absence()
    with reading() as transaction:
        return asked.answer(transaction, _dependencies(state))


class _Lookup:
    """The answers of all sources to one request."""

    def __init__(
        self, state: State, target: ErasureTarget, names: list[str], tells_apart: bool, exactly: bool
    ) -> None:
        self._state, self._target, self._names = state, target, names
        self._role = "user" if target.users else "id"
        self._type = state.configuration.user_type or UserType.TEXT
        self._tells_apart, self._exactly = tells_apart, exactly
        self._opened: list[Source] = []
        self._found: list[FoundRows] = []
        self._labels: set[str] = set()

    def ask(self, each: CountedSource) -> None:
        """Look the names up in the part of a source that was counted."""
        configuration = self._state.configuration
        source = each.to_look_up(configuration)
        if self._role not in source.columns.named():
            return  # no row of this source can be named by the request
        self._opened.append(source)
        assert each.counted is not None  # it would have been refused
        row_rules = RowRules(
            self._state.require_actions(), configuration.reward_range, UserNames.of(configuration.user_type)
        )
        self._found += source.found_rows(
            self._role,
            {*self._names, *self._spelled_alike()},
            row_rules,
            every_spelling=not each.counted.one_spelling,
            with_ids=self._role == "id" or (self._tells_apart and "id" in source.columns.named()),
        )

    def _spelled_alike(self) -> Iterable[str]:
        """Spellings that programs make of the names."""
        if self._exactly:
            return
        for name in self._names:
            for spelling in spellings_of_held(name, of_user=self._role == "user", user_type=self._type):
                yield self._normalised(spelling) or spelling

    def _normalised(self, label: str) -> str | None:
        return (self._type.normalised(label) or None) if self._role == "user" else label

    def confirm_absence(self) -> None:
        """Confirm by reading every name of the sources that names without rows are not there.

        Refused if some are: an index is damaged, or a file is not as it says.
        """
        seen = {self._label(found) for found in self._found}
        missing = [name for name in self._names if name not in seen]
        if not missing:
            return
        texts = set(missing)
        if not self._exactly and not (self._role == "user" and self._type is UserType.INTEGER):
            texts |= {spelling for name in missing for spelling in near_spellings(name)}
        for source in self._opened:
            labels = source.labels_like(self._role, texts, self._type)
            self._labels |= {name for name in map(self._normalised, labels) if name}
        hidden = self._labels & set(missing)
        if hidden:
            raise VaultError(
                f"{len(hidden)} of the {len(missing)} names that a look-up did not find are in the sources"
                " nevertheless: an index of a source is damaged, or a file is not what its statistics say;"
                " nothing was changed: write the source again, and run armnesia ingest"
            )

    def _label(self, found: FoundRows) -> str | None:
        return found.user if self._role == "user" else found.id

    def answer(self, transaction: Transaction, depends_on: tuple[int, int, int]) -> SourceLookup:
        """Leave out the rows that are not counted, and add up the others."""
        keyring, names = transaction.keyring, set(self._names)
        kept = self._counted(transaction)
        sums: dict[tuple[tuple[str, ...], int], tuple[int, int, bool]] = {}
        for found in kept:
            if self._label(found) in names:
                place = (found.key, found.arm)
                count, units, extremes = sums.get(place, (0, 0, True))
                sums[place] = (count + found.number, units + found.units, extremes and found.extremes)
        labels = {label for found in kept if (label := self._label(found)) is not None}
        others = (labels | self._labels) - names
        return SourceLookup(
            depends_on,
            sums,
            frozenset(self._row_keys(keyring, labels & names)),
            frozenset(self._not_suppressed(transaction, others)),
        )

    def _counted(self, transaction: Transaction) -> list[FoundRows]:
        """The rows that are not left out because of the other column: of a person, or by their id."""
        if not self._tells_apart:
            return self._found
        session, keyring = transaction.session, transaction.keyring
        if self._role == "user":
            ids = list({found.id for found in self._found if found.id is not None})
            digests = keyring.suppressed_record_digests(keyring.record_identities("id", ids))
            left_out = tables.suppressed_among(session, digests)
            gone = {id_ for id_, digest in zip(ids, digests, strict=True) if digest in left_out}
            return [found for found in self._found if found.id not in gone]
        users = list({found.user for found in self._found if found.user is not None})
        digests = keyring.digests_of_owners(keyring.owner_digests(users))
        left_out = tables.suppressed_among(session, digests)
        people = {user for user, digest in zip(users, digests, strict=True) if digest in left_out}
        return [found for found in self._found if found.user not in people]

    def _row_keys(self, keyring: Keyring, names: Collection[str]) -> list[bytes]:
        if self._role == "user":
            return keyring.owner_digests(names)
        return keyring.record_identities("id", list(names))

    def _not_suppressed(self, transaction: Transaction, names: Collection[str]) -> list[bytes]:
        keys = self._row_keys(transaction.keyring, names)
        digests = (
            transaction.keyring.digests_of_owners(keys)
            if self._role == "user"
            else transaction.keyring.suppressed_record_digests(keys)
        )
        forgotten = tables.suppressed_among(transaction.session, digests)
        return [key for key, digest in zip(keys, digests, strict=True) if digest not in forgotten]
