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
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement
from armnesia.vault.storage.schema import OLDEST_READABLE, VERSION, WITH_TALLIES, ArmRow, VaultRow

ROTATED_BELOW = "."
"""Separates the table digests from how far they are rotated, in the column that holds both."""

LARGEST = 2**63 - 1
"""Counts and sums are stored as 64-bit integers: 9.2·10⁹ rows per arm."""


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that a decision and a deletion need, read in one transaction.

    `stream` is None until the actions are known; `served_arm` is the position of the served arm, and
    `served_by` says what chose it: "default", "learner" or "release".
    """

    vault: str
    version: int
    configuration: Configuration
    stream: Stream | None
    served_arm: int | None
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
            served_arm=None,
            served_by="default",
            head=head,
            erased_through=0,
            digest_key=digest_key,
            signing_key=signing_key,
            digests=digests or TableDigests(),
        )
        stream = empty_stream(configuration, deleted_counts)
        return state if stream is None else state.with_stream(stream)

    def require_stream(self) -> Stream:
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
        return None if self.served_arm is None else self.require_stream().statistics.actions[self.served_arm]

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
        return replace(self, stream=stream, served_arm=int(decision.index), served_by=by)


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

    row: VaultRow
    arms: list[ArmRow]

    @property
    def head(self) -> Head:
        """The head of the ledger that the row names."""
        return Head(self.row.ledger_length, self.row.ledger_head)

    @classmethod
    def read(cls, session: Session) -> "StoredState":
        """Read the rows of the state."""
        rows = tables.read_vault(session)
        if len(rows) != 1:
            raise changed_outside()
        return cls(rows[0], tables.read_arms(session))

    def check_seal(self, all_keys: Keyring) -> Keyring:
        """Refuse another version, other keys, and rows that do not match the seal; return the keys in use."""
        check_identity(self.row.id, self.row.schema_version, all_keys)
        try:
            keyring = self.keyring_in_use(all_keys)
            # Of the columns as they are: two texts may mean the same configuration, but only one is sealed.
            if seal_on(self.row[:-1], self.arms, keyring) == bytes(self.row.seal):
                return keyring
        except (ValueError, TypeError, AttributeError):
            pass
        raise changed_outside()

    def keyring_in_use(self, all_keys: Keyring) -> Keyring:
        """The keys that the state uses, of those in the keys' file."""
        _, rotating, below = self.row.tallies.partition(ROTATED_BELOW)
        return all_keys.at(
            digest_version=self.row.digest_key,
            signing_version=self.row.signing_key,
            rotated_below=bytes.fromhex(below) if rotating else None,
        )

    def state(self, keyring: Keyring) -> State:
        """The state that the rows mean."""
        row, head = self.row, self.head
        configuration = Configuration.from_text(row.configuration)
        masked, rotating, below = row.tallies.partition(ROTATED_BELOW)
        return State(
            vault=row.id,
            version=row.schema_version,
            configuration=configuration,
            stream=_stream(configuration, self.arms) if self.arms else None,
            served_arm=row.served,
            served_by=row.served_by,
            head=head,
            erased_through=row.erased_through,
            digest_key=row.digest_key,
            signing_key=row.signing_key,
            digests=TableDigests.unmasked(masked, keyring, head),
            rotated_below=bytes.fromhex(below) if rotating else None,
        )


_VERSION = VaultRow._fields.index("schema_version")


def seal_on(columns: Sequence[Any], arms: Sequence[ArmRow], keyring: Keyring) -> bytes:
    """The seal on every column of the state but the seal itself, on the arms, and on every key in use.

    Before version 4 it did not cover the keys: one that had been replaced was not noticed.
    """
    sealed = [columns, arms, *([keyring.checks()] if columns[_VERSION] >= WITH_TALLIES else [])]
    return keyring.seal(text_of_plain(sealed))  # as the database holds them: plain values


def check_identity(vault: str, version: int, keyring: Keyring) -> None:
    """Refuse an unknown schema version, one that must be upgraded first, and the keys of another vault."""
    if type(version) is not int:
        raise changed_outside()
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


def arm_rows(stream: Stream) -> list[ArmRow]:
    """The arms as the table holds them."""
    statistics = stream.statistics
    deleted = [0] * statistics.n_actions if stream.deleted_counts is None else stream.deleted_counts.tolist()
    columns = (
        map(_label_text, statistics.actions),
        statistics.counts.tolist(),
        statistics.sums.tolist(),
        deleted,
    )
    return [ArmRow(position, *row) for position, row in enumerate(zip(*columns, strict=True))]


@lru_cache(maxsize=4096, typed=True)
def _label_text(label: Hashable) -> str:
    return canonical(label)


def _stream(configuration: Configuration, arms: list[ArmRow]) -> Stream:
    statistics = ArmStatistics(
        tuple(json.loads(arm.label) for arm in arms),
        np.array([arm.records for arm in arms], dtype=np.int64),
        np.array([arm.units for arm in arms], dtype=np.int64),
        configuration.reward_range,
    )
    deleted = np.array([arm.deleted for arm in arms], dtype=np.int64)
    frozen = deleted if configuration.penalty == "frozen" else None
    return Stream(configuration.make_learner(), statistics, configuration.penalty, frozen)


def store_statements(
    before: State | None, state: State, all_keys: Keyring
) -> tuple[list[Statement], StoredState]:
    """The statements that store a new state (the arms that changed, and the sealed row), and its rows."""
    keyring = state.keyring_in_use(all_keys)
    old = set() if before is None or before.stream is None else set(arm_rows(before.stream))
    arms = [] if state.stream is None else arm_rows(state.stream)
    new = [arm for arm in arms if arm not in old]
    if any(max(arm.records, arm.units, arm.deleted) > LARGEST for arm in new):
        raise VaultError("a vault holds up to 9.2 billion rows per arm; this would be more")
    statements = [tables.update_arm(arm) if old else tables.insert_arm(arm) for arm in new]
    rotation = "" if state.rotated_below is None else ROTATED_BELOW + state.rotated_below.hex()
    row = VaultRow(
        id=state.vault,
        schema_version=VERSION,
        configuration=state.configuration.text,
        served=state.served_arm,
        served_by=state.served_by,
        ledger_length=state.head.sequence,
        ledger_head=state.head.hash,
        erased_through=state.erased_through,
        digest_key=state.digest_key,
        signing_key=state.signing_key,
        tallies=state.digests.masked(keyring, state.head) + rotation,
        seal=b"",
    )
    row = row._replace(seal=seal_on(row[:-1], arms, keyring))
    statements.append(tables.insert_vault(row) if before is None else tables.update_vault(row))
    return statements, StoredState(row, arms)
