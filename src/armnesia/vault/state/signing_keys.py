"""The public keys of a vault with their ranges, from its ledger."""

import json

from armnesia.core.errors import VaultError, refuse_first
from armnesia.vault.ledger.certificate_check import Issue
from armnesia.vault.ledger.public_keys import PublicKeys, key_history, predecessors_in, rotation_problems
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session


def read_public_keys(connection: VaultConnection, transaction: Transaction) -> PublicKeys:
    """The keys that signed so far, as of the state of the transaction."""
    state = transaction.state
    if len(connection.signing_keys) != state.signing_key:
        try:
            first = tables.read_entry(transaction.session, 1) or ("{}", "")
            later = tables.read_rotations(transaction.session) if state.signing_key > 1 else []
            entries = [json.loads(text) for text in [first[0], *later]]
            refuse_first(rotation_problems(entries), "ledger: {}; run armnesia verify")
            found = key_history(entries)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise VaultError("ledger: its signing keys cannot be read; run armnesia verify") from None
        own = [transaction.keyring.public_key(version + 1) for version in range(state.signing_key)]
        if [key.public for key in found] != own:
            raise VaultError(
                "the signing keys in the ledger are not those in the keys' file; run armnesia verify"
            )
        connection.signing_keys = found
    return PublicKeys(state.vault, state.head, connection.signing_keys)


def read_predecessors(transaction: Transaction) -> tuple[PublicKeys, ...]:
    """The lists of public keys of the vaults that this one succeeds, the latest last."""
    try:
        text, _ = tables.read_entry(transaction.session, 1) or ("{}", "")
        return predecessors_in(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        raise VaultError("ledger: its first entry cannot be read; run armnesia verify") from None


def certificates_to_reissue(session: Session, keys: PublicKeys) -> list[int]:
    """The entries whose certificate, as it was last handed out, is refused because its key was compromised.

    A draft was handed out when it was made, at its own entry; a signed certificate says when it was signed.
    """
    found: set[int] = set()
    for key in keys.keys:
        if key.compromised_since is None or key.last_entry is None:
            continue
        found.update(tables.drafts_between(session, key.first_entry, key.last_entry, key.compromised_since))
        for sequence, body in tables.stream_signed_with(session, key.public):
            try:
                issue = Issue.of(json.loads(body))
            except (ValueError, KeyError, TypeError):
                raise VaultError(f"certificate {sequence} was changed: run armnesia verify") from None
            if any(issue.reissue_problems(key, with_ledger=True)):
                found.add(sequence)
    return sorted(found)
