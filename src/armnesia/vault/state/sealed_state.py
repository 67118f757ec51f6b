"""The state of a vault: one row under a seal, with a digest of every other table."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.vault.configuration import Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import VERSION, VaultRow
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.checkpoint import Checkpoint, origin_of
from armnesia.vault.ledger.merkle import Frontier, split
from armnesia.vault.state.check_sums import CheckSums


@dataclass(frozen=True, kw_only=True)
class State:
    """What the sealed row says; the decisions are read when they are needed (`state/decision_table.py`)."""

    vault: str
    configuration: Configuration
    frontier: Frontier = field(default_factory=Frontier)
    """Of the ledger."""
    commits: int = 0
    """How many times a state was stored."""
    signing_key: int = 1
    check_sums: CheckSums = field(default_factory=CheckSums)
    n_decisions: int = 0
    """How many decisions there are; of a vault without key columns one, once it has actions."""

    @cached_property
    def head(self) -> Checkpoint:
        """The head of the ledger."""
        return Checkpoint(origin_of(self.vault), self.frontier.size, self.frontier.root)

    def require_actions(self) -> tuple[Hashable, ...]:
        """The actions; refused while the vault has none."""
        if self.configuration.actions is None:
            raise VaultError("the vault has no actions yet: ingest a log, or name them at armnesia init")
        return self.configuration.actions

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """The actions, none while they are not known."""
        return self.configuration.actions or ()

    def keyring_in_use(self, all_keys: Keyring) -> Keyring:
        """The keys that this state uses, of those in the keys' file."""
        return all_keys.at(self.signing_key)

    def changed(self, **changes: Any) -> "State":
        """The state with other values; as `dataclasses.replace`, in a fifth of the time."""
        later = object.__new__(State)
        later.__dict__.update(self.__dict__, **changes)
        later.__dict__.pop("head", None)
        return later


def read_state(session: Session, all_keys: Keyring) -> State:
    """Read the state; refuse another version, other keys, and a row that does not match its seal."""
    rows = statements.read(session, VaultRow)
    if len(rows) != 1:
        raise changed_outside()
    (row,) = rows
    check_identity(row.id, row.schema_version, all_keys)
    try:
        keyring = all_keys.at(row.signing_key)
        # Of the columns as they are: two texts may mean the same configuration, but only one is sealed.
        if seal_on(row[:-1], keyring) == row.seal:
            return State(
                vault=row.id,
                configuration=Configuration.from_text(row.configuration),
                frontier=Frontier(row.ledger_size, split(bytes.fromhex(row.frontier))),
                commits=row.commits,
                signing_key=row.signing_key,
                check_sums=CheckSums.unmasked(row.check_sums, keyring, row.commits),
                n_decisions=row.decisions,
            )
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    raise changed_outside()


def seal_on(columns: Sequence[Any], keyring: Keyring) -> bytes:
    """The seal on every column of the state but the seal itself, and on every key in use."""
    return keyring.seal(canonical(columns))


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


CHANGED_OUTSIDE = (
    "values of the vault's state were changed by something other than armnesia, or a key in its file of keys"
)


def changed_outside() -> VaultError:
    """The seal does not match: nothing may be made of such a state."""
    return VaultError(f"{CHANGED_OUTSIDE}; run armnesia verify")


def changed_values() -> VaultError:
    """Values that armnesia does not write: nothing can be made of them."""
    return VaultError(
        "values in the vault's tables were changed by something other than armnesia: run armnesia verify,"
        " then armnesia restore --as-it-is, or restore a backup"
    )


def next_row(state: State, keyring: Keyring) -> tuple[VaultRow, State]:
    """The row that stores a new state, and the state as it is stored."""
    state = state.changed(commits=state.commits + 1)
    columns = VaultRow(
        id=state.vault,
        schema_version=VERSION,
        configuration=state.configuration.text,
        commits=state.commits,
        ledger_size=state.frontier.size,
        frontier=b"".join(state.frontier.hashes).hex(),
        signing_key=state.signing_key,
        decisions=state.n_decisions,
        check_sums=state.check_sums.masked(keyring, state.commits),
        seal=b"",
    )[:-1]
    return VaultRow(*columns, seal=seal_on(columns, keyring)), state
