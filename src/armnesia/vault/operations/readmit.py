"""Readmitting: records of forgotten people may come in again."""

from dataclasses import replace

from armnesia.core.errors import VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.results.forgotten import Readmitted
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.similar_names import similar_forgotten
from armnesia.vault.state.suppression import RequestHistory


def readmit(connection: VaultConnection, target: ErasureTarget, *, erase: bool = False) -> Readmitted:
    """Let records of these people in again from now on; old ones come back only if a source brings them.

    With `erase` their digests leave the list, and with them those that find the certificate of exactly this
    request: a backup from before their deletion, if it is ever restored, then brings their old records back.
    """
    with connection.writing() as transaction:
        before = transaction.state
        target = target.normalised(before.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        named = zip(target.names, history.suppressed, strict=True)
        missing = [name for name, suppressed in named if not suppressed]
        if missing:
            hint = similar_forgotten(transaction, target, missing)
            verb = "is" if len(missing) == 1 else "are"
            raise VaultError(
                f"{len(missing)} of the {len(target.names)} named {verb} not on the suppression list{hint}"
            )
        entry = transaction.append("readmit", number=len(target.names), erased=erase)
        after = history.after_readmitting(entry.sequence, erase=erase)
        digests, statements = history.rows.apply_changes(after, transaction.keyring, before.digests)
        transaction.add(*statements)
        transaction.store(connection.records.readmit(transaction, replace(before, digests=digests)))
    if erase:
        connection.database.erase()
    return Readmitted(len(target.names), erase, entry.head)
