"""Reading the ledger, and checking it against a checkpoint that was kept."""

from armnesia.vault.db import statements
from armnesia.vault.db.schema import EntryRow
from armnesia.vault.ledger.checkpoint import Checkpoint, Note, origin_of
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.merkle import Tree
from armnesia.vault.results import LedgerCheck, LedgerEntries
from armnesia.vault.state.connection import VaultConnection, envelope_of, signed_checkpoint


def read_ledger(connection: VaultConnection, *, after: int = 0, most: int | None = None) -> LedgerEntries:
    """The entries of the ledger after one of them, in one transaction."""
    with connection.reading() as transaction:
        rows = statements.stream(transaction.session, EntryRow, after=after, most=most)
        entries = tuple(Entry.of(envelope_of(text)) for _, _, text, _ in rows)
        return LedgerEntries(entries, transaction.state.head)


def checkpoint(connection: VaultConnection) -> str:
    """The head of the ledger under the signing key, as a signed note."""
    with connection.reading() as transaction:
        return str(signed_checkpoint(transaction))


def check_ledger(connection: VaultConnection, checkpoint: str) -> LedgerCheck:
    """Compare the ledger alone with a checkpoint that was kept elsewhere."""
    note = Note.read(checkpoint)
    known = Checkpoint.of(note)
    with connection.database.reading() as session:
        leaves = statements.read_leaves(session, known.size)
    problems = []
    origin, keys = origin_of(connection.all_keys.vault), connection.all_keys
    own = [keys.public_key(version + 1) for version in range(keys.signing_version)]
    if known.origin != origin:
        problems.append(f"the checkpoint is of {known.origin}, and this ledger is {origin}")
    elif not any(note.is_signed_by(origin, public) for public in own):
        problems.append("the checkpoint is not signed by a key of this vault")
    elif len(leaves) < known.size:
        problems.append(
            f"the ledger has {len(leaves)} entries, and the checkpoint {known.size}: an older copy was put"
            " back, or entries were deleted; run armnesia restore"
        )
    elif Tree(leaves).root != known.root:
        problems.append("the ledger was rewritten since the checkpoint was kept, or the other way round")
    return LedgerCheck(tuple(problems), known.size)
