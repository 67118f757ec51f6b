"""Where a vault is, what it is called, and which keys it has."""

from armnesia.vault.results.status import VaultIdentity
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.signing_keys import read_predecessors


def identify(connection: VaultConnection) -> VaultIdentity:
    """Read the identity, in one transaction."""
    with connection.reading() as transaction:
        state, keyring = transaction.state, transaction.keyring
        predecessors = read_predecessors(transaction)
    return VaultIdentity(
        vault=state.vault,
        location=connection.database.location,
        keys_path=connection.keys_path,
        public_key=keyring.public_key(),
        head=state.head,
        configuration=state.configuration,
        successor_of=predecessors[-1] if predecessors else None,
    )
