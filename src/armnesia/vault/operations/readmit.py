"""The suppression list: digests of who was forgotten, so that an old file does not bring them back.

It is apart from the ledger, which is for ever, because this list is erasable: `readmit` lets a person's new
records in again. Until it is erased as well, an entry still says since when the person was forgotten, for
the restoring of older backups.
"""

from dataclasses import replace

from armnesia.core.errors import VaultError
from armnesia.vault.state.connection import Opened, appended
from armnesia.vault.state.records import Wanted
from armnesia.vault.state.suppression import Lines, exchanged, read_lines
from armnesia.vault.storage.database import Session, rows_in

LISTED = ("user", "record")
"""Who or what is on the list."""


def suppressed_among(session: Session, digests: list[bytes]) -> set[bytes]:
    """Which of these digests are on the list."""
    sql = "SELECT digest FROM suppressed WHERE readmitted IS NULL AND digest IN ({})"
    return {bytes(digest) for (digest,) in rows_in(session, sql, digests)}


def readmit(opened: Opened, wanted: Wanted, *, erase: bool = False) -> int:
    """Let records of these people in again, from now on; what was deleted stays deleted.

    With `erase` the digests leave the list altogether, and with them those by which the certificate of just
    these names is found again: then a backup from before their deletion, if it is ever restored, brings their
    old records back.
    """
    with opened.writing() as session:
        before = opened.load(session)
        ring = opened.ring(before)
        digests = [digest for digest, _ in wanted.digests(ring)]
        asked = {ring.request_digest(one.request) for one in (wanted, *wanted.singly())}
        lines = read_lines(session, [*digests, *asked])
        missing = sum(not lines.keeps_out(digest) for digest in digests)
        if missing:
            raise VaultError(f"{missing} of the {len(digests)} named are not on the suppression list")
        entry, state, to_ledger = appended(before, "readmit", number=len(digests), erased=erase)
        let_in = {digest: (*line[:-1], entry.sequence) for digest, line in lines.suppressed.items()}
        after = Lines() if erase else Lines(let_in, lines.request)
        tallies, to_lists = exchanged(ring, before.tallies, lines, after)
        state = replace(state, tallies=tallies)
        opened.store(session, before, state, to_ledger, *to_lists)
    opened.pin.write(state.head)
    if erase:
        opened.database.erase()
    return len(digests)
