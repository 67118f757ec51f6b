"""What a vault hands on to its successor: digest keys, suppression list, user type, and who it was.

The suppression list goes along without any name: its digests are wrapped in one more key, as a rotation of
the digest key does. So people and records that were forgotten stay out of the successor, in every spelling
that is theirs in the old vault. Names that were readmitted do not go along: they may come in again.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

from armnesia.core.errors import VaultError, refuse_first
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import check_chain
from armnesia.vault.ledger.public_keys import PublicKeys
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.pending_erasure import refuse_pending_erasure
from armnesia.vault.state.replay import ReplayedState
from armnesia.vault.state.signing_keys import read_predecessors, read_public_keys
from armnesia.vault.state.suppression import FIRST_ENTRY, PURPOSES, Suppressed, SuppressionList
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row


@dataclass(frozen=True)
class Inheritance:
    """What the successor of a vault is created with."""

    keyring: Keyring
    """The keys of the old vault that were in use."""
    user_type: UserType | None
    suppressed: Suppressed
    predecessors: tuple[PublicKeys, ...]
    """The public keys and the heads of the vaults before, the old vault last."""

    @classmethod
    def of(cls, connection: VaultConnection, transaction: Transaction) -> "Inheritance":
        """Read it from a vault that is intact; nothing is read from one whose erasures are pending."""
        state, ledger = transaction.state, tables.LedgerRows(transaction.session)
        pinned = connection.pinned_head.read()
        problems = check_chain(ledger, vault=state.vault, head=pinned, end=state.head)
        refuse_first(problems, _NOT_INTACT)
        refuse_first(ReplayedState.of(ledger).key_problems(connection.all_keys), _NOT_INTACT)
        refuse_pending_erasure(connection, transaction)
        return cls(
            replace(transaction.keyring, rotated_below=None),
            state.configuration.user_type,
            SuppressionList.read(transaction).digests,
            (*read_predecessors(transaction), read_public_keys(connection, transaction)),
        )

    def configuration(self, configuration: Configuration) -> Configuration:
        """The configuration with the old vault's user type; refuse another, whose spellings differ."""
        declared = configuration.user_type
        if self.user_type is None:
            return configuration  # names that were forgotten before are spelled as both types spell them
        if declared not in (None, self.user_type):
            raise VaultError(
                f"people are named as {self.user_type} in the old vault, and in another type forgotten people"
                f" could come in under another spelling; user_type must be {self.user_type}, or not be given;"
                f" got {declared}"
            )
        return configuration.with_user_type(self.user_type)

    def rows(self, keyring: Keyring) -> Iterator[Row]:
        """The suppression list of the successor, whose keys these are."""
        for kind, digests in self.suppressed.items():
            for digest in sorted(digests):
                yield keyring.wrapped(bytes(digest), PURPOSES[kind]), kind, FIRST_ENTRY, None


_NOT_INTACT = "{}; such a vault has no successor: run armnesia verify"


def warn_of_successors(configuration: Configuration, consequence: str) -> None:
    """Warn of a change of a vault whose successors will not know of it."""
    warnings.warn(
        f"this vault was succeeded by the vault {listed(configuration.successors)}: {consequence}",
        stacklevel=4,
    )


def warn_of_retired_arms(old: Configuration, new: Configuration) -> None:
    """Warn of actions that decisions of the old vault do not offer, and the new one does: as any new vault.

    >>> old = Configuration(actions=("A", "B")).with_retired_arm("B", {}, "count")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warn_of_retired_arms(old, Configuration(actions=("A", "C")))
    >>> caught
    []
    """
    offered = None if new.actions is None else set(map(str, new.actions))
    retired = dict.fromkeys(rule.arm for rule in old.arms if not rule.offered)
    again = [arm for arm in retired if offered is None or str(arm) in offered]
    if again:
        warnings.warn(
            f"not offered in the old vault, or in some of its decisions, but in the new one: {listed(again)};"
            " armnesia arms retire ACTION retires an arm there as well",
            stacklevel=4,
        )
