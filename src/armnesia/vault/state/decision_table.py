"""The decisions of a vault with key columns: read and checked when needed, and stored with their tree."""

import re
import shlex
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armnesia.core.errors import Fault, InvalidInputError, RefusedArmError, VaultError
from armnesia.core.messages import counted, listed
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.logs.keys import KeyColumn
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decision_tree import DecisionTree, build_tree, changed_decisions, replace_tree
from armnesia.vault.state.decisions import DEFAULT, LEARNER, VaultDecision
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import DecisionRow

LONGEST_KEY = 1000
"""Bytes in the text of a key: databases index no longer texts."""
UNKNOWN = -1
"""The number of a decision that the vault does not have."""
_AT_ONCE = 1000


def read_decisions(transaction: Transaction, numbers: Iterable[int]) -> list[VaultDecision]:
    """The decisions with these numbers, in their order; refuse one that is not what was stored last."""
    wanted = sorted(numbers)
    rows = sorted(tables.read_decisions(transaction.session, wanted), key=lambda row: row.number)
    if [row.number for row in rows] != wanted:
        raise changed_decisions()
    tree_of(transaction.state, transaction.keyring).check(transaction.session, rows)
    return list(map(VaultDecision.of_row, rows))


def read_all_decisions(session: Session, state: State, keyring: Keyring) -> list[VaultDecision]:
    """All decisions by their numbers; refuse them if they are not what was stored last."""
    rows = list(tables.stream_decisions(session))
    for start in range(0, len(rows), _AT_ONCE):
        tree_of(state, keyring).check(session, rows[start : start + _AT_ONCE])
    if len(rows) != state.n_decisions:
        raise changed_decisions()
    return list(map(VaultDecision.of_row, rows))


def put_decisions(transaction: Transaction, state: State, decisions: Sequence[VaultDecision]) -> State:
    """Store decisions, in this transaction; the state with their tree, which the caller stores.

    Before new ones are added, all are checked: their keys are new only if no row was removed or renamed.
    """
    if not decisions:
        return state
    keyring = transaction.keyring
    size = max(state.n_decisions, *(decision.number for decision in decisions))
    rows = [decision.row(keyring) for decision in decisions]
    if size > state.n_decisions:
        _check_all(
            transaction.session, state, keyring, [row for row in rows if row.number > state.n_decisions]
        )
    tree, statements = tree_of(state, keyring).put(transaction.session, rows, size)
    transaction.session.execute_together(statements)
    return with_tree(state, tree)


def _check_all(session: Session, state: State, keyring: Keyring, new: Iterable[DecisionRow]) -> None:
    """Read all decisions; refuse them if they are not those that were stored last, or have a new one's key.

    The key was looked up in an index, which may be damaged.
    """
    keys = {row.key for row in new}
    tree, _ = build_tree(_without_keys(tables.stream_decisions(session), keys), keyring)
    if tree != tree_of(state, keyring):
        raise changed_decisions()


def _without_keys(rows: Iterable[DecisionRow], keys: set[str]) -> Iterator[DecisionRow]:
    for row in rows:
        if row.key in keys:
            raise changed_decisions()
        yield row


def put_all_decisions(
    session: Session, state: State, keyring: Keyring, decisions: Iterable[VaultDecision]
) -> State:
    """Put decisions in the place of those with the same numbers, and make the whole tree again."""
    session.execute_together([tables.put_decision(decision.row(keyring)) for decision in decisions])
    return with_new_tree(session, state, keyring)


def with_new_tree(session: Session, state: State, keyring: Keyring) -> State:
    """Make the whole tree again over the decisions as they are; the caller has checked them."""
    return with_tree(state, replace_tree(session, tables.stream_decisions(session), keyring))


def tree_of(state: State, keyring: Keyring) -> DecisionTree:
    """The tree over the decisions of a state."""
    return DecisionTree(keyring, state.n_decisions, state.digests.decision)


def empty_decisions(state: State, keys: Mapping[int, tuple[str, ...]]) -> list[VaultDecision]:
    """Decisions without records, by their numbers."""
    empty = ArmSums.empty(len(state.actions), state.configuration.penalty)
    return [VaultDecision(number, key, empty, None, DEFAULT) for number, key in keys.items()]


def with_tree(state: State, tree: DecisionTree) -> State:
    """The state with this tree over its decisions."""
    return replace(state, n_decisions=tree.size, digests=state.digests._replace(decision=tree.root))


def read_sealed_keys(session: Session, keyring: Keyring) -> list[VaultDecision]:
    """All decisions, of which only the numbers and the keys are believed: their own seals confirm these.

    For a rebuild: the statistics are counted again from the records.
    """
    found = []
    for number, row in enumerate(tables.stream_decisions(session), 1):
        if row.number != number or row.seal != keyring.decision_seal(number, str(row.key)):
            raise VaultError(
                "keys of decisions were changed by something other than armnesia, so that nobody knows which"
                " records belong to which decision: restore a backup"
            )
        found.append(VaultDecision.of_row(row._replace(statistics=_NOTHING)))
    return found


_NOTHING = ArmSums((), ()).text


def stacked(decisions: Sequence[VaultDecision], configuration: Configuration) -> Stream:
    """The records of several decisions as one stream, with the decisions on its first axis."""
    actions = configuration.actions
    assert actions is not None  # a decision has records, and they have actions
    shape = (len(decisions), len(actions))
    sums = [decision.statistics for decision in decisions]
    statistics = ArmStatistics(
        actions,
        np.array([each.counts for each in sums], dtype=np.int64).reshape(shape),
        np.array([each.units for each in sums]).reshape(shape),
        configuration.reward_range,
    )
    deleted = None
    if configuration.penalty == "frozen":
        deleted = np.array([each.deleted for each in sums], dtype=np.int64).reshape(shape)
    offered = configuration.offered(each.key for each in decisions) if configuration.arms else None
    return Stream(configuration.make_learner(), statistics, configuration.penalty, deleted, offered)


def decided(decisions: Sequence[VaultDecision], configuration: Configuration) -> list[VaultDecision]:
    """The same decisions, in which the learner decides again."""
    if not decisions:
        return []
    found = stacked(decisions, configuration).decision()
    served = zip(decisions, found.index.tolist(), found.no_data.tolist(), strict=True)
    return [
        replace(decision, served=arm, served_by=DEFAULT if no_data else LEARNER)
        for decision, arm, no_data in served
    ]


def unstacked(
    decisions: Sequence[VaultDecision], stream: Stream, served: Sequence[int], by: Sequence[str]
) -> list[VaultDecision]:
    """The decisions with the records of a stream, which serve these arms."""
    counts, units = stream.statistics.counts.tolist(), stream.statistics.sums.tolist()
    deleted = stream.deleted_counts
    lost = [None] * len(decisions) if deleted is None else [tuple(row) for row in deleted.tolist()]
    return [
        replace(decision, statistics=ArmSums(tuple(own), tuple(sums), gone), served=arm, served_by=why)
        for decision, own, sums, gone, arm, why in zip(
            decisions, counts, units, lost, served, by, strict=True
        )
    ]


def joint_request(
    numbers: Sequence[int],
    sums: Mapping[int, Iterable[tuple[int, int, int, bool]]],
    configuration: Configuration,
) -> DeletionRequest:
    """A request in several decisions, from sums of its records as `DeletionRequest.from_sums` takes them.

    Decisions without sums lose nothing.
    """
    actions = configuration.actions
    assert actions is not None  # there are records
    counts = np.zeros((len(numbers), len(actions)), dtype=np.int64)
    units, binary = [[0] * len(actions) for _ in numbers], True
    for place, number in enumerate(numbers):
        for arm, count, total, only_extremes in sums.get(number, ()):
            counts[place, arm] += count
            units[place][arm] += total
            binary &= only_extremes
    return DeletionRequest(
        ArmStatistics(actions, counts, np.array(units), configuration.reward_range), binary
    )


def key_dict(columns: Sequence[KeyColumn], key: Sequence[str]) -> dict[str, str]:
    """The key of a decision, as JSON holds it: each column's name with its value."""
    return dict(zip((column.name for column in columns), key, strict=True))


def in_decision(configuration: Configuration, key: Sequence[str]) -> str:
    """Words that name a decision, to follow others.

    >>> in_decision(Configuration(actions=("A", "B"), by=("country",)), ("DE",))
    " in the decision {'country': 'DE'}"
    """
    return f" in the decision {key_dict(configuration.key_columns, key)!r}" if configuration.by else ""


def refused_arm(
    configuration: Configuration, key: Sequence[str], arm: Hashable, row: int | None
) -> VaultError:
    """Refuse a new row of an arm that its decision does not offer; say what would let it in, there alone.

    `row` is the first such row, if that is known.
    """
    first = "" if row is None else f": the first is row {row}"
    where = where_option(key_dict(configuration.key_columns, key))
    named = shlex.quote(str(arm))
    faults = () if row is None else (Fault("action", row, "is an arm that its decision does not offer"),)
    return RefusedArmError(
        f"arm {arm!r} is not offered{in_decision(configuration, key)}, and new rows of it are"
        f" refused{first}; leave them out, offer it with armnesia arms add {named}{where}, or count them"
        f" without serving it: armnesia arms retire {named}{where} --new-rows count; nothing was ingested"
    ).at(*faults)


def where_option(values: Mapping[str, str]) -> str:
    """The option of the command line that names decisions, to follow others; nothing if all are meant.

    >>> print(where_option({"country": "DE", "page": "a, b"}).strip())
    --where 'country=DE,page="a, b"'
    """
    parts = [
        f"{name}={value if _PLAIN_VALUE.fullmatch(value) else _quoted(value)}"
        for name, value in values.items()
    ]
    return f" --where {shlex.quote(','.join(parts))}" if parts else ""


_PLAIN_VALUE = re.compile(r"[^\s'\",=]+")


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def checked_key(columns: Sequence[KeyColumn], where: Mapping[str, Any]) -> tuple[str, ...]:
    """The key that names exactly one decision; a number stands for the interval in which it lies."""
    if not columns:
        raise _no_key_columns(where)
    names = [column.name for column in columns]
    values = checked_values(columns, where)
    missing = [name for name in names if name not in where]
    if missing:
        raise InvalidInputError(
            f"a decision of this vault is named by {listed(names)}; {listed(missing)}"
            f" {'is' if len(missing) == 1 else 'are'} missing"
        )
    return tuple(values[name] for name in names)


def checked_values(columns: Sequence[KeyColumn], where: Mapping[str, Any]) -> dict[str, str]:
    """The values of some keys, as decisions have them; refuse keys that the vault does not have."""
    if where and not columns:
        raise _no_key_columns(where)
    by_name = {column.name: column for column in columns}
    values = {}
    for name, value in where.items():
        if name not in by_name:
            raise InvalidInputError(
                f"the decisions of this vault have the keys {listed(list(by_name))}; got {name!r}"
            )
        column, text = by_name[name], str(value)
        interval = column.interval_of(text) if column.edges else text
        if interval is None:
            raise InvalidInputError(
                f"key {name!r} must be a number or one of {listed(column.intervals)}; got {text!r}"
            )
        values[name] = interval
    return values


def _no_key_columns(where: Mapping[str, Any]) -> InvalidInputError:
    return InvalidInputError(f"the vault has one decision, without key columns; got the key {dict(where)!r}")


def declared_keys(
    configuration: Configuration, decisions: Iterable[Mapping[str, Any]]
) -> list[tuple[str, ...]]:
    """The keys of decisions that are declared; refuse one that is declared twice.

    >>> configuration = Configuration(actions=("A", "B"), by=("country", "age:18,30"))
    >>> declared_keys(configuration, [{"country": "DE", "age": 25}, {"country": "FR", "age": "<18"}])
    [('DE', '18..30'), ('FR', '<18')]
    """
    columns, found = configuration.key_columns, dict[tuple[str, ...], None]()
    if not columns:
        raise InvalidInputError("a vault without key columns (--by) has one decision; got declared decisions")
    for each in decisions:
        key = checked_key(columns, each)
        _check_length(text_of_plain(key))
        if "" in key:
            raise InvalidInputError(f"a key must not be empty; got {key_dict(columns, key)!r}")
        if key in found:
            raise InvalidInputError(f"a decision is declared once; got {key_dict(columns, key)!r} twice")
        found[key] = None
    return list(found)


def _check_length(text: str) -> None:
    if len(text.encode()) > LONGEST_KEY:
        raise InvalidInputError(
            f"the key of a decision must have at most {LONGEST_KEY:,} bytes; got {text[:40]!r}…"
        )


def check_number(configuration: Configuration, number: int) -> None:
    """Refuse more decisions than the vault's limit."""
    most = configuration.most_decisions
    if number > most:
        names = listed([column.name for column in configuration.key_columns])
        raise InvalidInputError(
            f"the keys {names} make more than {counted(most, 'decision')}, the vault's limit"
            " (--most-decisions of armnesia init): is one of them the wrong column? Nothing was ingested"
        )


def find_decision(transaction: Transaction, where: Mapping[str, Any]) -> VaultDecision:
    """The one decision with a key; refuse a key that no row has brought."""
    columns = transaction.state.configuration.key_columns
    key = checked_key(columns, where)
    text = text_of_plain(key)
    number = tables.numbers_of_keys(transaction.session, [text]).get(text)
    if number is None:
        raise InvalidInputError(f"the vault has no decision with the key {key_dict(columns, key)!r}")
    (decision,) = read_decisions(transaction, [number])
    return decision


class DecisionNumbers:
    """Numbers the decisions that rows belong to; new keys get the next numbers, up to the vault's limit.

    With `only_known`, for rows that do not come in, every new key has the number `UNKNOWN`.
    """

    def __init__(self, session: Session, state: State, *, only_known: bool = False) -> None:
        self._only_known = only_known
        self._session, self._size, self._configuration = session, state.n_decisions, state.configuration
        self._numbers: dict[tuple[str, ...], int] = {}
        self.new: dict[int, tuple[str, ...]] = {}
        """By number, the keys that the vault does not have yet."""
        self.keys: dict[int, tuple[str, ...]] = {}
        """By number, the keys of all rows that were numbered."""

    def of_rows(self, rows: Rows, places: Sequence[int]) -> list[int]:
        """The number of each row at these places."""
        keys = list(zip(*rows.keys, strict=True))
        return self.of_keys([keys[place] for place in places])

    def of_keys(self, keys: Sequence[tuple[str, ...]]) -> list[int]:
        """The numbers of the decisions with these keys."""
        self._look_up([key for key in dict.fromkeys(keys) if key not in self._numbers])
        return [self._numbers[key] for key in keys]

    def _look_up(self, keys: list[tuple[str, ...]]) -> None:
        texts = {key: text_of_plain(key) for key in keys}
        if not self._only_known:
            for text in texts.values():
                _check_length(text)
        known = tables.numbers_of_keys(self._session, list(texts.values()))
        for key, text in texts.items():
            number = known.get(text, UNKNOWN)
            if number == UNKNOWN and not self._only_known:
                number = self._size + len(self.new) + 1
                self._refuse_new(key, number)
                self.new[number] = key
            self._numbers[key] = number
            self.keys[number] = key

    def _refuse_new(self, key: tuple[str, ...], number: int) -> None:
        """Refuse a new key beyond the limit, or where the decisions are declared or no arm is offered."""
        configuration = self._configuration
        if configuration.declared_decisions:
            raise InvalidInputError(
                f"the key {key_dict(configuration.key_columns, key)!r} is not one of the vault's"
                f" {configuration.declared_decisions:,} declared decisions: leave its rows out, or make a"
                " successor that declares it (armnesia init --successor-of); nothing was ingested"
            )
        check_number(configuration, number)
        if configuration.arms and not any(configuration.arm_rules.offered(key)):
            raise VaultError(
                f"no arm is offered{in_decision(configuration, key)}: offer one with armnesia arms add;"
                " nothing was ingested"
            )
