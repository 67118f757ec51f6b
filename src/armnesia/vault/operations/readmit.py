"""Readmitting: new records of forgotten people may come in again."""

from dataclasses import replace

from armnesia.core.errors import VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.operations.forget import RequestDigests
from armnesia.vault.operations.similar_names import similar_forgotten
from armnesia.vault.results import Readmitted
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.suppression import SuppressionRows
from armnesia.vault.state.transaction import append_entry


def readmit(connection: VaultConnection, target: ErasureTarget, *, erase: bool = False) -> Readmitted:
    """Let records of these people in again from now on; what was deleted stays deleted.

    With `erase` their digests leave the list, and with them those that find the certificate of exactly this
    request: a backup from before their deletion, if it is ever restored, then brings their old records back.
    """
    with connection.writing() as transaction:
        before, ring = transaction.state, transaction.ring
        target = target.normalised(before.configuration.user_type)
        digests = RequestDigests.of(ring, target)
        listed = digests.read(transaction.session)
        named = zip(target.names, digests.each, strict=True)
        missing = [name for name, (digest, *_) in named if not listed.suppresses(digest)]
        if missing:
            hint = similar_forgotten(transaction, target, missing)
            raise VaultError(
                f"{len(missing)} of the {len(digests.each)} named are not on the suppression list{hint}"
            )
        entry, state, to_ledger = append_entry(before, "readmit", number=len(digests.each), erased=erase)
        readmitted = {digest: (*row[:-1], entry.sequence) for digest, row in listed.suppressed.items()}
        after = SuppressionRows() if erase else SuppressionRows(readmitted, listed.request)
        table_digests, to_lists = listed.apply_changes(after, ring, before.digests)
        transaction.store(replace(state, digests=table_digests), to_ledger, *to_lists)
    if erase:
        connection.database.erase()
    return Readmitted(len(digests.each), erase, entry.head)
