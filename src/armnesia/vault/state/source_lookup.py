"""Looking people up at the sources of an external vault.

They are looked up in the column's own type, so that indexes, and statistics of files, can answer. That
nothing is held of somebody is a claim, which a second way confirms: every name of the source is read and
compared as text, whatever an index or a file says of itself. The same reading finds names that are spelled
nearly alike.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import ArmnesiaError, InvalidLogError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import counted
from armnesia.logs import Source, open_source
from armnesia.logs.conditions import conditions
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
    sources: tuple[int, ...]
    """The numbers of the vault's sources."""
    others: frozenset[bytes]
    """The row keys of other names with rows that are spelled nearly as one of the request."""
    given: Any = None
    """The log of rows that were given in the place of looking them up at the sources, if they were."""

    def still_true(self, transaction: Transaction) -> bool:
        """Whether the vault has not changed since in what the answer depends on."""
        return self.depends_on == _dependencies(transaction.state)


def _dependencies(state: State) -> tuple[int, int, int]:
    return state.digests.source, state.digests.suppressed, state.digest_key


def look_up_people(
    reading: Callable[[], AbstractContextManager[Transaction]],
    target: ErasureTarget,
    *,
    exactly: bool,
    given: Any = None,
) -> SourceLookup:
    """Look the people, or the ids, of a request up; transactions are open only before and after.

    With `exactly`, names that are spelled nearly alike are not looked for. With `given`, a log of the rows of
    the request as somebody else has found them, the sources are not read.
    """
    with reading() as transaction:
        state, session = transaction.state, transaction.session
        target = target.normalised(state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        named = zip(target.names, history.suppressed, strict=True)
        names = [name for name, suppressed in named if not suppressed]
        sources = checked_sources(session, transaction.keyring, state.digests)
        other_role, other_kind = ("id", "record") if target.users else ("user", "user")
        # Asked of the whole list, so only where it matters: a forget must not cost more after many others.
        tells_apart = _names_rows_by(other_role, sources) and tables.suppresses_any(session, other_kind)
    if names and not sources:
        raise VaultError(
            "the vault has counted no source yet, and so no rows: that nothing is held of somebody cannot be"
            " told before armnesia ingest; nothing was changed"
        )
    asked = _Lookup(state, target, names, tells_apart, exactly, tuple(each.number for each in sources))
    if given is not None and names:
        asked.take(given, sources)
    elif given is None:
        for each in sources if names else ():
            asked.ask(each)
        asked.confirm_absence()
        asked.check_unchanged()
    with reading() as transaction:
        return asked.answer(transaction, _dependencies(state), given)


class _Lookup:
    """The answers of all sources to one request."""

    def __init__(
        self,
        state: State,
        target: ErasureTarget,
        names: list[str],
        tells_apart: bool,
        exactly: bool,
        sources: tuple[int, ...],
    ) -> None:
        self._state, self._target, self._names = state, target, names
        self._role = "user" if target.users else "id"
        self._type = state.configuration.user_type or UserType.TEXT
        self._tells_apart, self._exactly, self._sources = tells_apart, exactly, sources
        self._opened: list[tuple[CountedSource, Source]] = []
        self._found: list[FoundRows] = []
        self._labels: set[str] = set()

    def take(self, given: Any, sources: Sequence[CountedSource]) -> None:
        """Take rows as they are given; refuse rows of others, and names without rows.

        Until a source is counted again, the statistics may lack rows that are given.
        """
        for each in sources:
            if each.counted is None:
                raise each.outdated(each.recount)
        source = self._opened_given(given, sources)
        if self._role not in source.columns.named():
            raise VaultError(
                f"the given rows must name the {self._role} of each in a column, as the source does that they"
                " are from"
            )
        rules, names = self._row_rules(), set(self._target.names)
        has_ids = "id" in source.columns.named()
        self._found = source.found_rows(self._role, names, rules, every_spelling=True, with_ids=has_ids)
        self._refuse_repeated_ids()
        n_found, n_rows = sum(found.number for found in self._found), source.count_rows(rules).n_rows
        if n_found < n_rows:
            raise VaultError(
                f"{n_rows - n_found} of the {counted(n_rows, 'given row')} belong to nobody in the request:"
                " give the rows of the request and no others; nothing was changed"
            )
        missing = len(set(self._names) - {self._label(found) for found in self._found})
        if missing:
            raise VaultError(
                f"no counted row is given of {missing} of the {counted(len(self._names), 'name')} in the"
                " request: that nothing is held of somebody cannot be told from given rows; nothing was"
                " changed"
            )

    def _refuse_repeated_ids(self) -> None:
        """Refuse rows that are given twice, as far as they have ids: they would be taken away twice."""
        rows_of: dict[str, int] = {}
        for found in self._found:
            if found.id is not None:
                rows_of[found.id] = rows_of.get(found.id, 0) + found.number
        repeated = sum(1 for number in rows_of.values() if number > 1)
        if repeated:
            raise VaultError(
                f"{repeated} of the {counted(len(rows_of), 'id')} of the given rows are there more than once,"
                " and their rows would be taken away as often: give each row once; nothing was changed"
            )

    def _opened_given(self, given: Any, sources: Sequence[CountedSource]) -> Source:
        """The given rows, with the columns and conditions of the first source that has the same."""
        if isinstance(given, str) and "://" in given:
            raise VaultError(
                "the given rows must be in a file, or in Python in a dataframe; got the address of a database"
            )
        configuration = self._state.configuration
        refusals: list[ArmnesiaError] = []
        alike: list[tuple[CountedSource, Source]] = []
        for each in sources:
            try:
                alike.append((each, open_source(given, **each.address["columns"], whole_rows=False)))
            except InvalidLogError as error:
                refusals.append(error)
        if not alike:
            raise refusals[0]
        _refuse_several_meanings([each for each, _ in alike])
        first, source = self._telling_forgotten_apart(alike)
        source = source if configuration.plain_decimals else source.with_decimals_as_written()
        return _filtered_as(first, source).keyed_by(configuration.key_columns)

    def _telling_forgotten_apart(
        self, alike: Sequence[tuple[CountedSource, Source]]
    ) -> tuple[CountedSource, Source]:
        """Choose the columns by which rows can be left out that were forgotten before; refuse if none do."""
        other = "id" if self._role == "user" else "user"
        if not self._tells_apart:
            return alike[0]
        for each, source in alike:
            if other in source.columns.named():
                return each, source
        before = "single records were" if other == "id" else "people were"
        raise VaultError(
            f"the given rows must name the {other} of each in a column, as a source does: {before} forgotten"
            " before, whose rows could be subtracted twice; nothing was changed: give the rows with this"
            " column, or leave them to be looked up"
        )

    def _row_rules(self) -> RowRules:
        configuration = self._state.configuration
        names = UserNames.of(configuration.user_type)
        return RowRules(self._state.require_actions(), configuration.reward_range, names)

    def _with_ids(self, source: Source) -> bool:
        """Whether rows have to be told apart by their ids."""
        return self._role == "id" or (self._tells_apart and "id" in source.columns.named())

    def ask(self, each: CountedSource) -> None:
        """Look the names up in the part of a source that was counted."""
        configuration = self._state.configuration
        source = each.to_look_up(configuration)
        if self._role not in source.columns.named():
            return  # no row of this source can be named by the request
        self._opened.append((each, source))
        assert each.counted is not None  # it would have been refused
        with each.being_read():
            self._found += source.found_rows(
                self._role,
                {*self._names, *self._spelled_alike()},
                self._row_rules(),
                every_spelling=not each.counted.one_spelling,
                with_ids=self._with_ids(source),
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
        for each, source in self._opened:
            with each.being_read():
                labels = source.labels_like(self._role, texts, self._type)
            self._labels |= {name for name in map(self._normalised, labels) if name}
        self._find_spelled_otherwise(self._labels & set(missing))
        hidden = (self._labels & set(missing)) - {self._label(found) for found in self._found}
        if hidden:
            raise VaultError(
                f"{len(hidden)} of the {len(missing)} names that a look-up did not find are in the sources"
                " nevertheless: an index of a source is damaged, or a file is not what its statistics say;"
                " nothing was changed: write the source again, and run armnesia ingest"
            )

    def check_unchanged(self) -> None:
        """Refuse sources that have changed since they were opened: what was read may be less than counted."""
        for each, source in self._opened:
            assert each.counted is not None  # it was opened
            with each.being_read():
                source.check_still_counted(each.counted.manifest)

    def _find_spelled_otherwise(self, names: Collection[str]) -> None:
        """Look names up in every spelling: those of rows that were left out are not noted."""
        for each, source in self._opened if names else ():
            rules, ids = self._row_rules(), self._with_ids(source)
            with each.being_read():
                self._found += source.found_rows(self._role, names, rules, every_spelling=True, with_ids=ids)

    def _label(self, found: FoundRows) -> str | None:
        return found.user if self._role == "user" else found.id

    def answer(self, transaction: Transaction, depends_on: tuple[int, int, int], given: Any) -> SourceLookup:
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
            self._sources,
            frozenset(self._not_suppressed(transaction, others)),
            given,
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


def _names_rows_by(role: str, sources: Sequence[CountedSource]) -> bool:
    """Whether any source has a column of this role."""
    return any(each.address["columns"].get(role) for each in sources)


def _refuse_several_meanings(sources: Sequence[CountedSource]) -> None:
    """Refuse given rows of which it cannot be told which of several sources they were counted in."""
    first = sources[0]
    for each in sources[1:]:
        differing = [
            f"{name} columns ({first.address['columns'][name]!r} and {each.address['columns'][name]!r})"
            for name in ("action", "reward")
            if each.address["columns"][name] != first.address["columns"][name]
        ]
        if each.address.get("where") != first.address.get("where"):
            differing.append("conditions (--where)")
        if differing:
            raise VaultError(
                f"given rows may be of source {first.name!r} or of source {each.name!r}, which are counted"
                f" with different {' and '.join(differing)}; nothing was changed: leave the rows to be looked"
                " up"
            )


def _filtered_as(counted_source: CountedSource, given: Source) -> Source:
    """The given rows that satisfy the conditions of a source; refuse those of which that is not known."""
    where = conditions(counted_source.address.get("where"))
    if not where:
        return given
    try:
        return given.filtered(where)
    except InvalidLogError as error:
        raise VaultError(
            f"the given rows cannot be compared with the conditions of source {counted_source.name!r}:"
            f" {error}; nothing was changed"
        ) from None
