"""Readmitting: records of forgotten people may come in again."""

from collections.abc import Iterable
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.people import READMITTED, Mention, People
from armnesia.vault.results import Readmitted
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.sources import mark_outdated
from armnesia.vault.state.suppression import History


def readmit(
    connection: VaultConnection,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
) -> Readmitted:
    """Let records of these people in again from now on; old ones come back only if a source brings them."""
    target = ErasureTarget.of(users, records)
    with connection.writing() as transaction:
        before, keyring = transaction.state, transaction.keyring
        target = target.normalised(before.configuration.user_type)
        history = History.read(transaction, target)
        missing = len(target.names) - len(history.suppressed)
        if missing:
            verb = "is" if missing == 1 else "are"
            raise VaultError(f"{missing} of the {len(target.names)} named {verb} not on the suppression list")
        number = before.frontier.size + 1
        people = People.of(keyring, number, [Mention(target.kind, READMITTED, name) for name in target.names])
        ends = sorted(set(history.suppressed.values()))
        entry = transaction.append("readmit", people=people.root, ends=ends)
        transaction.put(history.after_readmitting(number), history.rows.values())
        mark_outdated(transaction)
    return Readmitted(len(target.names), entry.number, transaction.state.head)
