"""The state of a vault: one row and the arms, under a seal, so that outside changes are noticed."""

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
from armnesia.vault.keys.canonical_json import canonical, text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.results import Served
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.schema import OLDEST_READABLE, VERSION, WITH_TALLIES

ROTATED_BELOW = "."
"""Separates the table digests from how far they are rotated, in the column that holds both."""

LARGEST = 2**63 - 1
"""Counts and sums are stored as 64-bit integers: 9.2·10⁹ rows per arm."""


@dataclass(frozen=True)
class State:
    """Everything that a decision and a deletion need, read in one transaction.

    `stream` is None until the actions are known; `served` is the position of the served arm, and `served_by`
    says what chose it: "default", "learner" or "release".
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
    digests: TableDigests
    rotated_below: bytes | None = None
    """While the digest key is rotated: how far the digests of records are; see `Keyring.rotated_below`."""

    @classmethod
    def initial(
        cls,
        vault: str,
        configuration: Configuration,
        head: Head,
        *,
        digest_key: int = 1,
        signing_key: int = 1,
        digests: TableDigests | None = None,
        deleted_counts: IntArray | None = None,
    ) -> "State":
        """The state of a vault without records."""
        state = cls(
            vault=vault,
            version=VERSION,
            configuration=configuration,
            stream=None,
            served=None,
            served_by="default",
            head=head,
            erased_through=0,
            digest_key=digest_key,
            signing_key=signing_key,
            digests=digests or TableDigests(),
        )
        stream = empty_stream(configuration, deleted_counts)
        return state if stream is None else state.with_stream(stream)

    @property
    def known_stream(self) -> Stream:
        """The stream; refused while the vault has no actions."""
        if self.stream is None:
            raise VaultError("the vault has no actions yet: ingest a log, or name them at armnesia init")
        return self.stream

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """The actions, none while they are not known."""
        return self.configuration.actions or ()

    @property
    def served_action(self) -> Any:
        """The label of the served arm; None while there is none."""
        return None if self.served is None else self.known_stream.statistics.actions[self.served]

    def keyring_in_use(self, all_keys: Keyring) -> Keyring:
        """The keys that this state uses, of those in the keys' file."""
        return all_keys.at(
            digest_version=self.digest_key,
            signing_version=self.signing_key,
            rotated_below=self.rotated_below,
        )

    def with_stream(self, stream: Stream) -> "State":
        """The state with other records: the learner decides again."""
        decision = stream.decision()
        by = "default" if decision.no_data.all() else "learner"
        return replace(self, stream=stream, served=int(decision.index), served_by=by)


def empty_stream(configuration: Configuration, deleted_counts: IntArray | None = None) -> Stream | None:
    """The stream of a vault without records; None while its actions are not known.

    With a frozen penalty it keeps the counts of records deleted so far.
    """
    if configuration.actions is None:
        return None
    nothing = ArmStatistics.empty(configuration.actions, configuration.reward_range)
    stream = Stream(configuration.make_learner(), nothing, configuration.penalty)
    if deleted_counts is None or stream.deleted_counts is None:
        return stream
    return replace(stream, deleted_counts=stream.deleted_counts + deleted_counts)


@dataclass(frozen=True)
class StoredState:
    """The state as the tables hold it: its one row, with the seal, and the arms."""

    row: Row
    arms: list[Row]

    @property
    def head(self) -> Head:
        """The head of the ledger that the row names."""
        return Head(self.row[_LENGTH], self.row[_LENGTH + 1])

    @property
    def version(self) -> int:
        """The version of the tables."""
        return int(self.row[_VERSION])

    @classmethod
    def read(cls, session: Session) -> "StoredState":
        """Read the rows of the state."""
        rows = tables.read_vault(session)
        if len(rows) != 1:
            raise changed_outside()
        return cls(rows[0], tables.read_arms(session))

    def check_seal(self, all_keys: Keyring) -> Keyring:
        """Refuse another version, other keys, and rows that do not match the seal; return the keys in use."""
        check_identity(self.row[_ID], self.row[_VERSION], all_keys)
        try:
            keyring = self._keyring_in_use(all_keys)
            # Of the columns as they are: two texts may mean the same configuration, but only one is sealed.
            if seal_on(self.row[:-1], self.arms, keyring) == bytes(self.row[-1]):
                return keyring
        except (ValueError, TypeError, AttributeError):
            pass
        raise changed_outside()

    def _keyring_in_use(self, all_keys: Keyring) -> Keyring:
        _, rotating, below = self.row[_DIGESTS].partition(ROTATED_BELOW)
        return all_keys.at(
            digest_version=self.row[_DIGEST_KEY],
            signing_version=self.row[_SIGNING_KEY],
            rotated_below=bytes.fromhex(below) if rotating else None,
        )

    def served(self) -> Served:
        """The served arm, which is known without the statistics."""
        position = self.row[_SERVED]
        action = None if position is None else json.loads(self.arms[position][1])
        return Served(action, self.row[_SERVED + 1], self.head)

    def state(self, keyring: Keyring) -> State:
        """The state that the rows mean."""
        vault, version, text, served, by, length, hash_, erased, digest_key, signing_key, digests, _ = (
            self.row
        )
        configuration, head = Configuration.from_text(text), Head(length, hash_)
        masked, rotating, below = digests.partition(ROTATED_BELOW)
        return State(
            vault,
            version,
            configuration,
            _stream(configuration, self.arms) if self.arms else None,
            served,
            by,
            head,
            erased,
            digest_key,
            signing_key,
            TableDigests.unmasked(masked, keyring, head),
            bytes.fromhex(below) if rotating else None,
        )


_ID, _VERSION, _SERVED, _LENGTH, _DIGEST_KEY, _SIGNING_KEY, _DIGESTS = (
    tables.VAULT_COLUMNS.split(", ").index(name)
    for name in ("id", "schema_version", "served", "ledger_length", "digest_key", "signing_key", "tallies")
)


def seal_on(columns: Sequence[Any], arms: Sequence[Row], keyring: Keyring) -> bytes:
    """The seal on every column of the state but the seal itself, on the arms, and on every key in use.

    Before version 4 it did not cover the keys: one that had been replaced was not noticed.
    """
    sealed = [columns, arms, *([keyring.checks()] if columns[_VERSION] >= WITH_TALLIES else [])]
    return keyring.seal(text_of_plain(sealed))  # as the database holds them: plain values


def check_identity(vault: str, version: int, keyring: Keyring) -> None:
    """Refuse an unknown schema version, one that must be upgraded first, and the keys of another vault."""
    if version > VERSION:
        raise VaultError(
            f"the vault has schema version {version}, this armnesia knows {VERSION}; use a newer armnesia"
        )
    if version < OLDEST_READABLE:
        raise VaultError(
            f"the vault has schema version {version}, this armnesia needs {VERSION}: back it up and run"
            " armnesia upgrade"
        )
    if vault != keyring.vault:
        raise VaultError("the keys belong to another vault: give the file made by its armnesia init")


def changed_outside() -> VaultError:
    """The seal does not match: nothing may be decided from such statistics."""
    return VaultError(
        "the vault's statistics or configuration were changed by something other than armnesia, or a key in"
        " its keys' file was; run armnesia verify"
    )


def arm_rows(stream: Stream) -> list[Row]:
    """The arms as the table holds them: (position, label, count, total, deleted)."""
    statistics = stream.statistics
    deleted = [0] * statistics.n_actions if stream.deleted_counts is None else stream.deleted_counts.tolist()
    columns = (
        map(_label_text, statistics.actions),
        statistics.counts.tolist(),
        statistics.sums.tolist(),
        deleted,
    )
    return [(position, *row) for position, row in enumerate(zip(*columns, strict=True))]


@lru_cache(maxsize=4096, typed=True)
def _label_text(label: Hashable) -> str:
    return canonical(label)


def _stream(configuration: Configuration, arms: list[Row]) -> Stream:
    _, labels, counts, totals, deleted = zip(*arms, strict=True)
    statistics = ArmStatistics(
        tuple(json.loads(label) for label in labels),
        np.array(counts, dtype=np.int64),
        np.array(totals, dtype=np.int64),
        configuration.reward_range,
    )
    frozen = np.array(deleted, dtype=np.int64) if configuration.penalty == "frozen" else None
    return Stream(configuration.make_learner(), statistics, configuration.penalty, frozen)


def store_statements(
    before: State | None, state: State, all_keys: Keyring
) -> tuple[list[Statement], StoredState]:
    """The statements that store a new state (the arms that changed, and the sealed row), and its rows."""
    keyring = state.keyring_in_use(all_keys)
    old = set() if before is None or before.stream is None else set(arm_rows(before.stream))
    arms = [] if state.stream is None else arm_rows(state.stream)
    new = [row for row in arms if row not in old]
    if any(number > LARGEST for _, _, *numbers in new for number in numbers):
        raise VaultError("a vault holds up to 9.2 billion rows per arm; this would be more")
    statements = [tables.update_arm(row) if old else tables.insert_arm(row) for row in new]
    columns = [
        *(state.vault, VERSION, state.configuration.text, state.served, state.served_by),
        *(state.head.sequence, state.head.hash, state.erased_through, state.digest_key, state.signing_key),
        state.digests.masked(keyring, state.head)
        + ("" if state.rotated_below is None else ROTATED_BELOW + state.rotated_below.hex()),
    ]
    values = (*columns, seal_on(columns, arms, keyring))
    statements.append(tables.insert_vault(values) if before is None else tables.update_vault(values))
    return statements, StoredState(values, arms)
