"""Searching all of a vault for digests of forgotten people, where no table or index has to lead to them.

A request deletes rows where the indexes lead to, and compares them with the tally. Damage of a disk, or
another program, may have left a second copy of a page elsewhere: only reading everything finds it.
"""

from collections.abc import Sequence

from armnesia.core.errors import UnfinishedError, VaultError
from armnesia.core.messages import system_failure
from armnesia.vault.configuration import MANAGED
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.sealed_state import State

_FOUND = (
    "the request is done, but digests of these people or records are still in the vault, where no index leads"
    " to: the database is damaged, or was changed by something other than armnesia, so that no certificate is"
    " handed out; run armnesia verify, repair what it finds (armnesia rebuild, armnesia compact, or restore a"
    " backup), then run the same command again"
)


def search_all(connection: VaultConnection, state: State, keys: Sequence[bytes], *, erased: bool) -> bool:
    """Whether all was searched for the row keys of a request that is done; refuse to go on if one is found.

    Files are searched only after erasure is complete: before that, deleted bytes are still in them. An
    external vault has no rows to be searched.
    """
    if state.configuration.mode != MANAGED or (connection.database.erases_at_once and not erased):
        return False
    try:
        found = connection.database.holds_copies(keys)
    except (OSError, VaultError) as error:
        what = system_failure(error) if isinstance(error, OSError) else str(error)
        raise UnfinishedError(
            f"the request is done, but the vault could not be searched for what may be left of it: {what};"
            " run the same command again"
        ) from None
    if found:
        raise UnfinishedError(_FOUND)
    return found is not None
