"""The state of a vault: one row under a seal, and the decisions under a digest in it.

So a change by anything else is noticed, also if an old row is put back.
"""

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from armnesia.core.arrays import IntArray
from armnesia.core.errors import VaultError
from armnesia.core.statistics import ArmStatistics
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decisions import DEFAULT, FIRST, LEARNER, VaultDecision, digest_of_decision
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement
from armnesia.vault.storage.schema import (
    VERSION,
    WITH_TALLIES,
    ArmRow,
    DecisionRow,
    OldVaultRow,
    VaultRow,
)

ROTATED_BELOW = "."
"""Separates the table digests from how far they are rotated, in the column that holds both."""


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that a decision and a deletion need, read in one transaction.

    `decision` is the one decision of a vault without key columns, None until the actions are known. The
    decisions of a vault with key columns are read when they are needed; see `state/decision_table.py`.
    """

    vault: str
    version: int
    configuration: Configuration
    decision: VaultDecision | None
    head: Head
    erased_through: int
    digest_key: int
    signing_key: int
    digests: TableDigests
    rotated_below: bytes | None = None
    """While the digest key is rotated: how far the digests of records are; see `Keyring.rotated_below`."""
    n_decisions: int = 0
    """How many decisions there are."""

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
        """The state of a vault without records; with key columns it has no decisions yet."""
        state = cls(
            vault=vault,
            version=VERSION,
            configuration=configuration,
            decision=None,
            head=head,
            erased_through=0,
            digest_key=digest_key,
            signing_key=signing_key,
            digests=digests or TableDigests(),
        )
        stream = empty_stream(configuration, deleted_counts)
        return state if stream is None else state.with_stream(stream)

    @property
    def stream(self) -> Stream | None:
        """The records of the decision, as a stream that goes on; None while the vault has no actions."""
        return None if self.decision is None else self.decision.statistics.stream(self.configuration)

    def require_stream(self) -> Stream:
        """The stream of the one decision; refused while the vault has no actions."""
        if self.decision is None:
            raise no_actions()
        return self.decision.statistics.stream(self.configuration)

    def require_actions(self) -> tuple[Hashable, ...]:
        """The actions; refused while the vault has none."""
        if self.configuration.actions is None:
            raise no_actions()
        return self.configuration.actions

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """The actions, none while they are not known."""
        return self.configuration.actions or ()

    @property
    def served_action(self) -> Any:
        """The label of the served arm; None while there is none."""
        arm = None if self.decision is None else self.decision.served
        return None if arm is None else self.actions[arm]

    @property
    def served_by(self) -> str:
        """What chose the served arm."""
        return DEFAULT if self.decision is None else self.decision.served_by

    def keyring_in_use(self, all_keys: Keyring) -> Keyring:
        """The keys that this state uses, of those in the keys' file."""
        return all_keys.at(
            digest_version=self.digest_key,
            signing_version=self.signing_key,
            rotated_below=self.rotated_below,
        )

    def changed(self, **changes: Any) -> "State":
        """The state with other values; as `dataclasses.replace`, in a fifth of the time."""
        later = object.__new__(State)
        later.__dict__.update(self.__dict__, **changes)
        return later

    def with_stream(self, stream: Stream) -> "State":
        """The state with other records: the learner decides again."""
        decision = stream.decision()
        by = DEFAULT if decision.no_data.all() else LEARNER
        return replace(self, decision=VaultDecision(FIRST, (), ArmSums.of(stream), int(decision.index), by))


def empty_stream(configuration: Configuration, deleted_counts: IntArray | None = None) -> Stream | None:
    """The stream of a vault without records; None while its actions are not known, and with key columns.

    With a frozen penalty it keeps the counts of records deleted so far.
    """
    if configuration.actions is None or configuration.by:
        return None
    nothing = ArmStatistics.empty(configuration.actions, configuration.reward_range)
    offered = configuration.offered([()])[0] if configuration.arms else None
    stream = Stream(configuration.make_learner(), nothing, configuration.penalty, offered=offered)
    if deleted_counts is None or stream.deleted_counts is None:
        return stream
    return replace(stream, deleted_counts=stream.deleted_counts + deleted_counts)


@dataclass(frozen=True)
class StoredState:
    """The state as the tables hold it: its one row, with the seal, and the decision.

    Before version 5 the arms stood in the place of the decision, and the seal was on them, too.
    """

    row: VaultRow | OldVaultRow
    decision: DecisionRow | None
    arms: list[ArmRow] | None = None

    @cached_property
    def head(self) -> Head:
        """The head of the ledger that the row names."""
        return Head(self.row.ledger_length, self.row.ledger_head)

    @classmethod
    def read(cls, session: Session) -> "StoredState":
        """Read the rows of the state."""
        try:
            (row,) = tables.read_vault(session)
        except (ValueError, TypeError):  # no row, several, or one with other columns
            raise changed_outside() from None
        if isinstance(row, OldVaultRow):
            arms = tables.read_arms(session)
            return cls(row, _decision_of_arms(row, arms), arms)
        if row.decisions not in (0, 1):  # they are checked when they are read
            return cls(row, None)
        decisions = tables.read_first_decisions(session, 2)
        if len(decisions) != row.decisions:
            raise changed_outside()
        return cls(row, decisions[0] if decisions else None)

    def check_seal(self, all_keys: Keyring) -> Keyring:
        """Refuse another version, other keys, and rows that do not match the seal; return the keys in use."""
        check_identity(self.row.id, self.row.schema_version, all_keys)
        try:
            keyring = self.keyring_in_use(all_keys)
            # Of the columns as they are: two texts may mean the same configuration, but only one is sealed.
            if seal_on(self.row[:-1], self.arms, keyring) == bytes(self.row.seal) and (
                self.arms is not None
                or self.row.decisions > 1  # type: ignore[union-attr]
                or self._digests(keyring).decision == digest_of_decision(self.decision, keyring)
            ):
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

    def _digests(self, keyring: Keyring) -> TableDigests:
        masked, _, _ = self.row.tallies.partition(ROTATED_BELOW)
        digests = TableDigests.unmasked(masked, keyring, self.head)
        if self.arms and self.decision is not None:  # as version 5 will have it
            row = VaultDecision.of_row(self.decision).row(keyring)
            return digests._replace(decision=digest_of_decision(row, keyring))
        return digests

    def state(self, keyring: Keyring) -> State:
        """The state that the rows mean."""
        row, configuration = self.row, Configuration.from_text(self.row.configuration)
        _, rotating, below = row.tallies.partition(ROTATED_BELOW)
        only = None if configuration.by else self.decision
        number = int(self.decision is not None) if isinstance(row, OldVaultRow) else row.decisions
        return State(
            vault=row.id,
            version=row.schema_version,
            configuration=configuration,
            decision=None if only is None else VaultDecision.of_row(only),
            n_decisions=number,
            head=self.head,
            erased_through=row.erased_through,
            digest_key=row.digest_key,
            signing_key=row.signing_key,
            digests=self._digests(keyring),
            rotated_below=bytes.fromhex(below) if rotating else None,
        )


_VERSION = VaultRow._fields.index("schema_version")


def seal_on(columns: Sequence[Any], arms: Sequence[ArmRow] | None, keyring: Keyring) -> bytes:
    """The seal on every column of the state but the seal itself, and on every key in use.

    Before version 5 it was also on the arms. Before version 4 it did not cover the keys: one that had been
    replaced was not noticed.
    """
    sealed = [columns, *([] if arms is None else [arms])]
    sealed += [keyring.checks] if columns[_VERSION] >= WITH_TALLIES else []
    return keyring.seal(text_of_plain(sealed))  # as the database holds them: plain values


def check_identity(vault: str, version: int, keyring: Keyring) -> None:
    """Refuse a vault of another schema version, and the keys of another vault."""
    if type(version) is not int:
        raise changed_outside()
    if version != VERSION:
        raise VaultError(
            f"the vault has schema version {version}, this armnesia has {VERSION}: use the armnesia that made"
            " it, or make a new vault and ingest the logs there"
        )
    if vault != keyring.vault:
        raise VaultError("the keys belong to another vault: give the file made by its armnesia init")


def no_actions() -> VaultError:
    """The vault does not know its actions before its first ingest."""
    return VaultError("the vault has no actions yet: ingest a log, or name them at armnesia init")


CHANGED_OUTSIDE = (
    "the vault's statistics or configuration were changed by something other than armnesia, or a key in its"
    " keys' file was"
)


def changed_outside() -> VaultError:
    """The seal does not match: nothing may be decided from such statistics."""
    return VaultError(f"{CHANGED_OUTSIDE}; run armnesia verify")


def _decision_of_arms(row: OldVaultRow, arms: Sequence[ArmRow]) -> DecisionRow | None:
    """The decision that the rows of an older version mean; None if they mean none.

    Rows that were changed may mean anything: their seal is checked next.
    """
    if not arms:
        return None
    numbers = [(arm.records, arm.units, arm.deleted) for arm in arms]
    counts, units, deleted = (tuple(column) for column in zip(*numbers, strict=True))
    try:
        frozen = json.loads(row.configuration)["penalty"] == "frozen"
    except (ValueError, TypeError, KeyError):
        frozen = False
    sums = ArmSums(counts, units, deleted if frozen else None)
    return DecisionRow(FIRST, "[]", sums.text, row.served, row.served_by, b"")


def store_statements(
    before: State | None, state: State, digests: TableDigests, head: Head, keyring: Keyring
) -> tuple[list[Statement], StoredState, State]:
    """The statements that store a new state with these table digests at this head.

    They are for the decision, if it changed, and for the sealed row. Also returns the rows, and the state as
    they have it. The decisions of a vault with key columns are stored before, and their digest is among the
    others.
    """
    decision = None if state.decision is None else state.decision.row(keyring)
    unchanged = before is not None and before.decision == state.decision
    statements = [] if decision is None or unchanged else [tables.put_decision(decision)]
    rotation = "" if state.rotated_below is None else ROTATED_BELOW + state.rotated_below.hex()
    number = state.n_decisions
    if not state.configuration.by:
        digests = digests._replace(decision=digest_of_decision(decision, keyring))
        number = int(decision is not None)
    state = state.changed(version=VERSION, head=head, digests=digests, n_decisions=number)
    columns = VaultRow(
        id=state.vault,
        schema_version=VERSION,
        configuration=state.configuration.text,
        ledger_length=head.sequence,
        ledger_head=head.hash,
        erased_through=state.erased_through,
        digest_key=state.digest_key,
        signing_key=state.signing_key,
        decisions=number,
        tallies=digests.masked(keyring, head) + rotation,
        seal=b"",
    )[:-1]
    row = VaultRow(*columns, seal=seal_on(columns, None, keyring))
    statements.append(tables.insert_vault(row) if before is None else tables.update_vault(row))
    return statements, StoredState(row, decision), state
