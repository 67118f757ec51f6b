"""Searching all of a vault for digests of forgotten people, which no table or index has to lead to.

A request deletes rows where the indexes lead to, and compares them with the tally. Damage of a disk, or
another program, may have left a second copy of a page elsewhere: only reading everything finds it.
"""

from armnesia.core.errors import UnfinishedError, VaultBusyError, VaultError
from armnesia.core.messages import system_failure, without_unchanged
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import SearchOutcome

_NO_ROWS = "the vault holds no rows of its own: they are at its sources"
_PENDING = "deleted bytes are still in the files"
_LOCKED = "another process kept the vault locked"
_CHANGED = "others have readmitted people, rotated a key, rebuilt or restored the vault meanwhile"
_CHANGES = ("readmit", "rotate_digest", "rebuild", "restore")


def search_vault(
    connection: VaultConnection, target: ErasureTarget, keyring: Keyring, head: Head, *, erased: bool
) -> SearchOutcome:
    """Search for what may be left of a request that is done; `erased`: its bytes have left the files.

    `head` is that of the ledger when the request was read, and `keyring` has the keys in use then.
    """
    if not connection.records.layout.holds_rows:
        return SearchOutcome(False, _NO_ROWS)
    if connection.database.erases_at_once and not erased:
        return SearchOutcome(False, _PENDING)
    digests, suppressed = target.row_keys(keyring), dict(target.suppression_digests(keyring))
    # With one digest key only, the list has people by the same digest as their rows.
    listed = {digest: suppressed[digest] for digest in digests if digest in suppressed}
    try:
        outcome = connection.database.search_for(digests, listed)
        if outcome.found and _may_be_by_right(connection, head):
            return SearchOutcome(False, _CHANGED)
    except VaultBusyError:
        return SearchOutcome(False, _LOCKED)
    except (OSError, VaultError) as error:
        what = system_failure(error) if isinstance(error, OSError) else str(error)
        raise UnfinishedError(
            "the request is done, but the vault could not be searched for what may be left of it:"
            f" {without_unchanged(what)};"
            " run the same command again"
        ) from None
    return outcome


def _may_be_by_right(connection: VaultConnection, head: Head) -> bool:
    """Whether others have done something since by which rows may be there again, or digests are others."""
    with connection.reading() as transaction:
        return tables.has_entry_since(transaction.session, head.sequence, *_CHANGES)
