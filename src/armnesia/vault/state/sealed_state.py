"""The state of a vault: one row under a seal, with a digest of every other table."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.statistics import ArmStatistics
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.head import Head
from armnesia.vault.ledger.merkle import Frontier, split
from armnesia.vault.state.check_sums import CheckSums
from armnesia.vault.state.decisions import DEFAULT, FIRST, LEARNER, ArmSums, VaultDecision
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement
from armnesia.vault.storage.schema import VERSION, VaultRow


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that a decision and a deletion need, read in one transaction.

    `decision` is the one decision of a vault without key columns, None until the actions are known. The
    decisions of a vault with key columns are read when they are needed; see `state/decision_table.py`.
    """

    vault: str
    configuration: Configuration
    decision: VaultDecision | None = None
    frontier: Frontier = field(default_factory=Frontier)
    """Of the ledger."""
    commits: int = 0
    """How many times a state was stored."""
    signing_key: int = 1
    check_sums: CheckSums = field(default_factory=CheckSums)
    n_decisions: int = 0
    """How many decisions there are."""

    @cached_property
    def head(self) -> Head:
        """The head of the ledger."""
        return Head(self.frontier.size, self.frontier.root)

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
        return all_keys.at(self.signing_key)

    def changed(self, **changes: Any) -> "State":
        """The state with other values; as `dataclasses.replace`, in a fifth of the time."""
        later = object.__new__(State)
        later.__dict__.update(self.__dict__, **changes)
        later.__dict__.pop("head", None)
        return later

    def with_stream(self, stream: Stream) -> "State":
        """The state with other records: the learner decides again."""
        decision = stream.decision()
        by = DEFAULT if decision.no_data.all() else LEARNER
        return replace(self, decision=VaultDecision(FIRST, (), ArmSums.of(stream), int(decision.index), by))


def empty_stream(configuration: Configuration) -> Stream | None:
    """The stream of a vault without records; None while its actions are not known, and with key columns."""
    if configuration.actions is None or configuration.by:
        return None
    nothing = ArmStatistics.empty(configuration.actions, configuration.reward_range)
    offered = configuration.offered([()])[0] if configuration.arms else None
    return Stream(configuration.make_learner(), nothing, configuration.penalty, offered=offered)


def read_row(session: Session) -> VaultRow:
    """Read the row of the state, which is not checked yet."""
    rows = tables.read_vault(session)
    if len(rows) != 1:
        raise changed_outside()
    return rows[0]


def check_seal(row: VaultRow, all_keys: Keyring) -> Keyring:
    """Refuse another version, other keys, and a row that does not match its seal; return the keys in use."""
    check_identity(row.id, row.schema_version, all_keys)
    try:
        keyring = all_keys.at(row.signing_key)
        # Of the columns as they are: two texts may mean the same configuration, but only one is sealed.
        if seal_on(row[:-1], keyring) == bytes(row.seal):
            return keyring
    except (ValueError, TypeError):
        pass
    raise changed_outside()


def state_of(session: Session, row: VaultRow, keyring: Keyring) -> State:
    """The state that a row means, with the one decision of a vault without key columns."""
    try:
        configuration, decision = Configuration.from_text(row.configuration), None
        if row.decisions and not configuration.by:
            (only,) = tables.stream_decisions(session)
            decision = VaultDecision.of_row(only)
        check_sums = CheckSums.unmasked(row.check_sums, keyring, row.commits)
        frontier = Frontier(row.ledger_size, split(bytes.fromhex(row.frontier)))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise changed_outside() from None
    return State(
        vault=row.id,
        configuration=configuration,
        decision=decision,
        frontier=frontier,
        commits=row.commits,
        signing_key=row.signing_key,
        check_sums=check_sums,
        n_decisions=row.decisions,
    )


def seal_on(columns: Sequence[Any], keyring: Keyring) -> bytes:
    """The seal on every column of the state but the seal itself, and on every key in use."""
    return keyring.seal(text_of_plain([columns, keyring.checks]))  # as the database holds them: plain values


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


def changed_values() -> VaultError:
    """Values that armnesia does not write: nothing can be made of them."""
    return VaultError(
        "values in the vault's tables were changed by something other than armnesia: run armnesia verify,"
        " then armnesia restore --as-it-is, or restore a backup"
    )


def store_statements(before: State | None, state: State, keyring: Keyring) -> tuple[list[Statement], State]:
    """The statements that store a new state, and the state as it is stored.

    They are for the decision, if it changed, and for the sealed row. The decisions of a vault with key
    columns are stored before, and their check-sum is among the others.
    """
    old = None if before is None or before.decision is None else before.decision.row
    decision = None if state.decision is None else state.decision.row
    statements, check_sums = [], state.check_sums
    if decision is not None and decision != old:
        statements.append(tables.put_decision(decision))
        check_sums = check_sums.update(keyring, "decision", [decision] if old is None else [old, decision])
    number = state.n_decisions if state.configuration.by else int(decision is not None)
    commits = state.commits + 1
    state = state.changed(commits=commits, check_sums=check_sums, n_decisions=number)
    columns = VaultRow(
        id=state.vault,
        schema_version=VERSION,
        configuration=state.configuration.text,
        commits=commits,
        ledger_size=state.frontier.size,
        frontier=b"".join(state.frontier.hashes).hex(),
        signing_key=state.signing_key,
        decisions=number,
        check_sums=check_sums.masked(keyring, commits),
        seal=b"",
    )[:-1]
    row = VaultRow(*columns, seal=seal_on(columns, keyring))
    statements.append(tables.insert_vault(row) if before is None else tables.update_vault(row))
    return statements, state
