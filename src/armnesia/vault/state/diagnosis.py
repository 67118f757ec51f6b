"""After a failure: whether the values in the tables explain it."""

from armnesia.core.errors import VaultError
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import check_chain
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.state.decision_tree import build_tree
from armnesia.vault.state.owner_tallies import TallyObserver
from armnesia.vault.state.sealed_state import StoredState
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import WITH_DECISIONS, WITH_TALLIES, RecordLayout


def has_changed_values(session: Session, all_keys: Keyring, layout: RecordLayout) -> bool:
    """Whether anything but armnesia has changed a row of the vault: all of them are read.

    This is asked only after a failure that has no sentence of its own, so that a mistake in a program is not
    taken for a damaged vault.
    """
    try:
        return not _is_intact(session, all_keys, layout)
    except Exception:  # whatever such values cause
        return True


def _is_intact(session: Session, all_keys: Keyring, layout: RecordLayout) -> bool:
    stored = StoredState.read(session)
    keyring = stored.check_seal(all_keys)
    state, observer = stored.state(keyring), TallyObserver(keyring)
    if any(check_chain(tables.LedgerRows(session), vault=all_keys.vault, end=state.head)):
        return False
    computed = compute_digests(session, keyring, layout, observers=[observer])
    root = state.digests.decision
    if state.version >= WITH_DECISIONS:
        root = build_tree(tables.stream_decisions(session), keyring)[0].root
    if computed._replace(decision=root) != state.digests:
        return False
    has_tallies = state.version >= WITH_TALLIES and layout.holds_rows
    if has_tallies and observer.problems(session):
        return False
    for sequence, body, signature, entry in tables.stream_certificates_and_entries(session):
        StoredCertificate.read(sequence, body, signature, entry or "", keyring)  # refuses a changed one
    return True


def changed_values() -> VaultError:
    """Values that armnesia does not write: nothing can be made of them."""
    return VaultError(
        "values in the vault's tables were changed by something other than armnesia: run armnesia verify, and"
        " if armnesia rebuild refuses them, restore a backup"
    )
