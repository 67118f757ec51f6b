"""The vault's state: one row and the arms, sealed, so that a change by anyone else is noticed."""

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import VaultError
from armnesia.core.statistics import ArmStatistics
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.table_digests import Tallies
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import check_version

LARGEST = 2**63 - 1
"""Counts and sums are held as 64-bit integers: 9.2·10⁹ rows of one arm."""

_COLUMNS = (
    "id, schema_version, configuration, served, served_by, ledger_length, ledger_head, erased_through,"
    " digest_key, signing_key, tallies, seal"
)


@dataclass(frozen=True)
class State:
    """Everything that a decision and a deletion need, read in one transaction.

    `stream` is None until the actions are known; `served` is the position of the arm that is served, and
    `served_by` says why it is that one: "default", "learner" or "release".
    """

    vault: str
    version: int
    configuration: Configuration
    stream: Stream | None
    served: int | None
    served_by: str
    head: Head
    erased_through: int
    digest_key: int
    signing_key: int
    tallies: Tallies

    @property
    def known_stream(self) -> Stream:
        """The stream; refused where nothing has come in yet."""
        if self.stream is None:
            raise VaultError("the vault has no actions yet: ingest a log, or name them at armnesia init")
        return self.stream

    @property
    def served_action(self) -> Any:
        """The label of the arm that is served; None where there is none yet."""
        return None if self.served is None else self.known_stream.statistics.actions[self.served]

    def with_stream(self, stream: Stream) -> "State":
        """New records are in: the learner decides anew."""
        decision = stream.decision()
        by = "default" if decision.no_data.all() else "learner"
        return replace(self, stream=stream, served=int(decision.index), served_by=by)

    def columns(self, ring: Keyring) -> list[Any]:
        """The state as its table holds it, all but the seal."""
        return [
            *(self.vault, self.version, self.configuration.text, self.served, self.served_by),
            *(self.head.sequence, self.head.hash, self.erased_through, self.digest_key, self.signing_key),
            self.tallies.masked(ring, self.head),
        ]


def arm_rows(stream: Stream) -> list[tuple[int, str, int, int, int]]:
    """The arms as the table holds them."""
    statistics = stream.statistics
    gone = [0] * statistics.n_actions if stream.deleted_counts is None else stream.deleted_counts.tolist()
    numbers = zip(statistics.actions, statistics.counts.tolist(), statistics.sums.tolist(), gone, strict=True)
    return [
        (arm, _label_text(label), count, total, g) for arm, (label, count, total, g) in enumerate(numbers)
    ]


@lru_cache(maxsize=4096, typed=True)
def _label_text(label: Hashable) -> str:
    return canonical(label)


def new_stream(configuration: Configuration, gone: IntArray | None = None) -> Stream | None:
    """The stream of a vault that holds nothing yet, or, with a frozen penalty, nothing any more."""
    if configuration.actions is None:
        return None
    nothing = ArmStatistics.empty(configuration.actions, configuration.reward_range)
    stream = Stream(configuration.learning(), nothing, configuration.penalty)
    if gone is None or stream.deleted_counts is None:
        return stream
    return replace(stream, deleted_counts=stream.deleted_counts + gone)


@dataclass(frozen=True)
class StoredState:
    """The state as the tables hold it: its one row, with the seal, and the arms."""

    row: Row
    arms: list[Row]


def read_state(session: Session) -> StoredState:
    """Read the rows of the state."""
    rows = session.query(f"SELECT {_COLUMNS} FROM vault")
    if len(rows) != 1:
        raise changed_outside()
    arms = session.query("SELECT position, label, count, total, gone FROM arm ORDER BY position")
    return StoredState(rows[0], arms)


def head_columns(stored: StoredState) -> tuple[Any, Any]:
    """The length and the hash of the ledger, as the row says."""
    names = _COLUMNS.split(", ")
    return stored.row[names.index("ledger_length")], stored.row[names.index("ledger_head")]


def state_of(stored: StoredState, keyring: Keyring, *, check_seal: bool = True) -> State:
    """What the rows mean, if the seal on them is whole."""
    *columns, seal = stored.row
    arms = stored.arms
    vault, version, text, served, by, length, head, erased, digest_key, signing_key, tallies = columns
    check_version(version)
    check_keys(vault, keyring)
    try:
        ring = keyring.at(digest_version=digest_key, signing_version=signing_key)
        configuration = Configuration.from_text(text)
        stream = _stream(configuration, arms) if arms else None
        state = State(
            vault,
            version,
            configuration,
            stream,
            served,
            by,
            Head(length, head),
            erased,
            digest_key,
            signing_key,
            Tallies.unmasked(tallies, ring, Head(length, head)),
        )
        # Of the columns as they are: two texts may mean the same configuration, but only one was sealed.
        sealed = seal_on(columns, arms, ring)
    except (ValueError, KeyError, TypeError):
        if check_seal:
            raise changed_outside() from None
        raise
    if check_seal and sealed != bytes(seal):
        raise changed_outside()
    return state


def seal_on(columns: Sequence[Any], arms: Sequence[Row], ring: Keyring) -> bytes:
    """The seal on every column of the state but the seal itself, and on the arms."""
    return ring.seal(canonical([columns, arms]))


def check_keys(vault: str, keyring: Keyring) -> None:
    """Refuse the keys of another vault."""
    if vault != keyring.vault:
        raise VaultError("the keys belong to another vault: give the file made by its armnesia init")


def changed_outside() -> VaultError:
    """The seal is broken: nothing may be decided from such statistics."""
    return VaultError(
        "the vault's statistics or configuration were changed by something other than armnesia, or its keys"
        " are wrong; run armnesia verify"
    )


def _stream(configuration: Configuration, arms: list[tuple[Any, ...]]) -> Stream:
    _, labels, counts, totals, gone = zip(*arms, strict=True)
    statistics = ArmStatistics(
        tuple(json.loads(label) for label in labels),
        np.array(counts, dtype=np.int64),
        np.array(totals, dtype=np.int64),
        configuration.reward_range,
    )
    frozen = np.array(gone, dtype=np.int64) if configuration.penalty == "frozen" else None
    return Stream(configuration.learning(), statistics, configuration.penalty, frozen)


def store_statements(
    before: State | None, state: State, keyring: Keyring
) -> tuple[list[tuple[str, tuple[Any, ...]]], StoredState]:
    """The statements that store a new state, only the arms that changed and the sealed row; and its rows."""
    ring = keyring.at(digest_version=state.digest_key, signing_version=state.signing_key)
    old = set() if before is None or before.stream is None else set(arm_rows(before.stream))
    arms: list[Row] = [] if state.stream is None else [*arm_rows(state.stream)]
    new = [row for row in arms if row not in old]
    if any(number > LARGEST for _, _, *numbers in new for number in numbers):
        raise VaultError("a vault holds up to 9.2 thousand million rows of an arm; this would be more")
    statements: list[tuple[str, tuple[Any, ...]]] = [
        (
            "UPDATE arm SET count = ?, total = ?, gone = ? WHERE position = ?",
            (count, total, gone, position),
        )
        if old
        else ("INSERT INTO arm (position, label, count, total, gone) VALUES (?, ?, ?, ?, ?)", row)
        for row in new
        for position, _, count, total, gone in [row]
    ]
    columns = state.columns(ring)
    values = (*columns, seal_on(columns, arms, ring))
    if before is None:
        marks = ", ".join("?" * (len(values) + 1))
        statements.append((f"INSERT INTO vault (one, {_COLUMNS}) VALUES ({marks})", (1, *values)))
    else:
        setting = ", ".join(f"{column.strip()} = ?" for column in _COLUMNS.split(","))
        statements.append((f"UPDATE vault SET {setting}", values))
    return statements, StoredState(values, arms)
