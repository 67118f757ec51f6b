"""Certificates in the vault: stored without the request, handed out with it, reissued when bytes are gone."""

from collections.abc import Sequence

from armnesia.core.errors import VaultError
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.ledger import Entry
from armnesia.vault.ledger.openings import Opening
from armnesia.vault.state.connection import Opened, Statement
from armnesia.vault.state.records import Wanted
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EXTERNAL

_AT_SOURCE = "; not the source of the records, where they stay until they are deleted there"


def certify(opened: Opened, ring: Keyring, entry: Entry) -> Certificate:
    """Sign what the ledger's entry says; the bytes are still there.

    Also where nothing was held: those of an earlier request may not have gone yet, nor those of rows on
    their way in that were refused.
    """
    at_source = _AT_SOURCE if opened.mode == EXTERNAL and entry.kind == "forget" else ""
    return Certificate.issue(
        entry,
        ring,
        erasure="pending",
        covers=opened.database.erasure_covers + at_source,
        issued=utc_now(),
    )


def storing(certificate: Certificate) -> Statement:
    """The statement that stores a certificate, or its reissue, without the opening."""
    return (
        "INSERT INTO certificate (sequence, body, signature) VALUES (?, ?, ?)"
        " ON CONFLICT (sequence) DO UPDATE SET body = excluded.body, signature = excluded.signature",
        (certificate.body["sequence"], certificate.text, certificate.signature),
    )


def stored_certificate(opened: Opened, sequence: int) -> Certificate:
    """The certificate of an entry, without its opening; reissued if its bytes have gone since.

    Or if they have come back: a backup that was restored had them.
    """
    with opened.reading() as session:
        certificate = _read(opened, session, sequence)
        erased_through = opened.load(session).erased_through
    complete = certificate.body["erasure"]["state"] == "complete"
    if complete and erased_through >= sequence:
        return certificate
    opened.retry_erasure()
    with opened.writing() as session:
        state = opened.load(session)
        gone = state.erased_through >= sequence
        if gone == complete:
            return certificate
        reissued = certificate.reissue(
            opened.ring(state), erasure="complete" if gone else "pending", issued=utc_now()
        )
        opened.store(session, state, state, storing(reissued))
    return reissued


def certificate_of(opened: Opened, wanted: Wanted) -> Certificate:
    """The certificate of a request, or of one person in a request, opened for them alone."""
    with opened.reading() as session:
        state = opened.load(session)
        digest = opened.ring(state).request_digest(wanted.request)
        found = session.query("SELECT sequence, opening FROM request WHERE digest = ?", digest)
    if not found:
        raise VaultError("there is no certificate for just this request: it was not made, or in another form")
    sequence, opening = found[0]
    certificate = stored_certificate(opened, int(sequence))
    return with_opening(opened, certificate, wanted, Opening.read(opening)) if opening else certificate


def with_opening(opened: Opened, certificate: Certificate, wanted: Wanted, opening: Opening) -> Certificate:
    """The certificate with what opens its commitment: the salt is made again, from the keys and the nonce.

    That of a request of many names nobody: each of them can have it opened for them alone.
    """
    if len(wanted.names) > 1:
        return certificate
    entry = certificate.body["entry"]
    salt = opened.keyring.salt(entry["sequence"], entry["salt_key"], wanted.name, opening.nonce)
    path: Sequence[str] = opening.path
    if opening.place is not None:
        with opened.reading() as session:
            path = opening.path_in(session, entry["sequence"])
    return certificate.with_opening(salt, opening.request(wanted.request), path)


def _read(opened: Opened, session: Session, sequence: int) -> Certificate:
    """A certificate as it was signed: one that was changed since is not handed out, nor signed anew."""
    found = session.query(
        "SELECT body, signature, entry FROM certificate JOIN ledger USING (sequence) WHERE sequence = ?",
        sequence,
    )
    if not found:
        raise VaultError(f"entry {sequence} of the ledger has no certificate; see armnesia ledger")
    body, signature, entry = found[0]
    certificate = Certificate.from_stored(body, bytes(signature))
    ring = opened.ring(opened.load(session))
    problems = certificate.verify([ring.public_key(v + 1) for v in range(ring.signing_version)])
    if problems or Entry(certificate.body["entry"]).text != entry:
        raise VaultError(f"certificate {sequence} was changed by something other than armnesia: run verify")
    return certificate
