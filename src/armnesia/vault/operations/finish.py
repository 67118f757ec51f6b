"""Finishing: pending erasures are completed, and their certificates signed again in bulk."""

from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.files import check_new_folder
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.results.upkeep import Finished
from armnesia.vault.state.certificates import certificate_of_entry, check_still_erased, read_stored
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.signing_keys import certificates_to_reissue, read_public_keys
from armnesia.vault.state.source_erasures import read_erasures
from armnesia.vault.storage import tables

_AT_ONCE = 500
"""Certificates per transaction: other writers wait for a fraction of a second."""


def finish(
    connection: VaultConnection,
    *,
    since: int = 1,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    wait: bool = True,
) -> Finished:
    """Make deleted bytes leave the files, and sign again every certificate that does not say so yet.

    These are the certificates that were signed with erasure pending, and those stored as drafts: `forget` may
    have handed them out with erasure pending. Also those that a compromised key signed are signed again.
    Those that are withheld, because a search has found something, stay so.
    `since` leaves out those of earlier ledger entries. Those that were signed again are written to `folder`.
    Unless `wait`, a reader that holds erasure back is not waited for.
    """
    if isinstance(since, bool) or not isinstance(since, int) or since < 1:
        raise InvalidInputError(f"since must be the number of a ledger entry, 1 or more; got {since!r}")
    if folder is not None:
        folder = Path(folder)
        check_new_folder(folder)
    with connection.reading() as transaction:
        state = transaction.state
    erased = connection.erase(state.head, wait=wait)
    through = state.head.sequence if erased else state.erased_through
    with connection.reading() as transaction:
        bodies = tables.stream_certificate_bodies(transaction.session, since)
        keys = read_public_keys(connection, transaction)
        refused = set(certificates_to_reissue(transaction.session, keys))
        erasures = read_erasures(transaction.session, state.configuration)
        waiting, withheld = list[int](), list[int]()
        for sequence, body in bodies:
            if StoredCertificate.says_withheld(body):
                withheld.append(int(sequence))
            elif (
                sequence in refused
                or not StoredCertificate.says_complete(body)
                or (erasures and not StoredCertificate.says_of_source(body, erasures))
            ):
                waiting.append(int(sequence))
        complete = not tables.count_erasures_after(transaction.session, through)
    reissued = tuple(sequence for sequence in waiting if sequence <= through)
    counter = RowCounter(progress)
    parts = [reissued[start : start + _AT_ONCE] for start in range(0, len(reissued), _AT_ONCE)]
    for part in parts or ([()] if through > state.erased_through else []):
        _reissue(connection, part)
        counter.add(len(part))
    if folder is not None and reissued:
        _save(connection, reissued, folder)
    return Finished(
        "complete" if complete else "pending",
        reissued,
        len(waiting) - len(reissued),
        None if complete else connection.database.erasure_obstacle,
        state.head,
        folder if reissued else None,
        tuple(withheld),
    )


def _reissue(connection: VaultConnection, sequences: tuple[int, ...]) -> None:
    """Sign these certificates again, and note how far deleted bytes are erased, in one transaction."""
    with connection.writing() as transaction:
        keys = read_public_keys(connection, transaction)
        erasures = read_erasures(transaction.session, transaction.state.configuration)
        for sequence in sequences:
            check_still_erased(transaction, sequence)
            stored = read_stored(transaction, sequence)
            if stored.is_withheld:  # meanwhile
                continue
            covers = connection.erasure_covers(stored.kind)
            certificate = stored.issue(
                transaction.keyring, keys, erasure="complete", covers=covers, erasures=erasures
            )
            transaction.add(tables.put_certificate(sequence, certificate.text, certificate.signature))
        transaction.store(transaction.state)


def _save(connection: VaultConnection, entries: tuple[int, ...], folder: Path) -> None:
    """Write the certificates of these ledger entries, named by them."""
    private_files.make_folder(folder)
    for number, entry in enumerate(entries):
        try:
            certificate_of_entry(connection, entry).save(folder / f"entry-{entry:06}.json")
        except VaultError as error:
            raise VaultError(
                f"{error}; the certificates are signed, {number} of {len(entries)} are written, and armnesia"
                " certificate show --sequence ENTRY --out FILE writes each of the others"
            ) from None
