"""Another signing key from now on.

The new key is saved in the keys' file before the database uses it. A crash in between leaves a key that is
not in use yet; the database says which keys are.
"""

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results import Rotated
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction


def rotate_signing_key(connection: VaultConnection, *, compromised_since: int | None = None) -> Rotated:
    """Sign with a new key from now on; what was signed before stays valid.

    With `compromised_since`, the first entry after the theft, no checkpoint of an earlier key is believed any
    more: certificates with such a one have to be asked for again.
    """
    with connection.writing() as transaction:
        size, before = transaction.state.head.size, transaction.keyring
        if compromised_since is not None and (
            type(compromised_since) is not int or not 1 <= compromised_since <= size
        ):
            raise InvalidInputError(
                f"compromised_since must be the number of a ledger entry, 1 to {size}; got"
                f" {compromised_since!r}"
            )
        transaction.all_keys = _save_new_key(connection, transaction)
        new = transaction.all_keys.at(before.signing_version + 1)
        transaction.append(
            "signing_key",
            signer=new,
            version=new.signing_version,
            public=new.public_key(),
            signed_by_previous=before.sign(new.public_key().encode()).hex(),
            compromised_since=compromised_since,
        )
    return Rotated(new.signing_version, transaction.state.head)


def _save_new_key(connection: VaultConnection, transaction: Transaction) -> Keyring:
    """Save a new key before it is used: nothing can be signed with a key that is lost."""
    keys = Keyring.read(connection.keys_path)  # a crash may have left a key that is not in use
    if not keys.extends(transaction.all_keys):
        raise VaultError(f"{connection.keys_path} does not have the keys of this vault any more: restore it")
    if keys.signing_version == transaction.keyring.signing_version:
        keys = keys.with_new_signing_key()
        keys.save(connection.keys_path, replace=True)
    return keys
