"""Exporting: a file for an auditor, or one that brings a backup up to date; in constant memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from armnesia.core.errors import VaultError
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import plain, text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Erasure
from armnesia.vault.ledger.export_file import is_export_of
from armnesia.vault.ledger.ledger_copy import EXPORT_SCHEMA as SCHEMA
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.results.upkeep import Exported
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.signing_keys import read_public_keys
from armnesia.vault.state.source_erasures import read_erasures
from armnesia.vault.state.transaction import CODE, Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row

_SEAL_DIGITS = 64


def write_export(connection: VaultConnection, path: str | Path, *, for_restore: bool = False) -> Exported:
    """Write the ledger, the certificates without openings, public keys and parameters: no personal data.

    With `for_restore` also the suppression list and the answered requests, as keyed digests: whoever has the
    keys can test with them whether a person was forgotten. Protect such an export as you protect the vault.
    Only its owner can read the file; an existing file must be an older export.
    """
    if Path(path).exists() and not is_export_of(path, connection.all_keys.vault):
        raise VaultError(f"{path} exists already and is no export of this vault; nothing was written")
    with (
        private_files.atomic_write(path, replace=True) as temporary,
        connection.reading() as transaction,
        temporary.open("wb") as file,
    ):
        writer = _Writer(file, transaction.keyring if for_restore else None)
        entries, certificates = _write_sections(writer, connection, transaction, for_restore=for_restore)
        writer.end()
    return Exported(Path(path), transaction.state.head, entries, certificates, for_restore)


def _write_sections(
    writer: "_Writer", connection: VaultConnection, transaction: Transaction, *, for_restore: bool
) -> tuple[int, int]:
    """Write every key in the order of canonical JSON; return how many entries and certificates there are."""
    state, session, keyring = transaction.state, transaction.session, transaction.keyring
    certificates = writer.rows("certificates", _certificates(connection, transaction))
    writer.value("code", CODE)
    writer.value("configuration", plain(state.configuration.to_dict()))
    if for_restore:
        writer.value("digest_key", state.digest_key)
    writer.value("head", str(state.head))
    ledger = tables.stream_ledger(session)
    entries = writer.rows("ledger", ({"sequence": n, "entry": text, "hash": h} for n, text, h in ledger))
    writer.rows("public_keys", (keyring.public_key(v + 1) for v in range(state.signing_key)))
    if for_restore:
        writer.rows("requests", _with_hexadecimal(tables.stream_in_order(session, "request"), 0))
    writer.value("schema", SCHEMA)
    if for_restore:
        writer.reserve_seal()
        writer.rows("suppressed", _with_hexadecimal(tables.stream_in_order(session, "suppressed"), 0))
        writer.rows("trees", _with_hexadecimal(tables.stream_in_order(session, "tree"), 1))
    writer.value("vault", state.vault)
    return entries, certificates


def _certificates(connection: VaultConnection, transaction: Transaction) -> Iterator[dict[str, Any]]:
    """The certificates of all entries; those that were never handed out are signed for the export.

    Of those that are withheld, the draft is written, without a signature.
    """
    erased_through, keyring = transaction.state.erased_through, transaction.keyring
    keys = read_public_keys(connection, transaction)
    erasures = read_erasures(transaction.session, transaction.state.configuration)
    for sequence, body, signature, entry in tables.stream_certificates_and_entries(transaction.session):
        stored = StoredCertificate.read(sequence, body, signature, entry or "", keyring)
        certificate = stored.valid(keys)
        if stored.is_withheld:  # its words are needed to draft it again
            draft = stored.reissue_draft(connection.erasure_covers(stored.kind))
            yield {"sequence": sequence, "body": dict(draft.body), "signature": ""}
            continue
        if certificate is None:
            erasure: Erasure = "complete" if erased_through >= sequence else "pending"
            covers = connection.erasure_covers(stored.kind)
            certificate = stored.issue(keyring, keys, erasure=erasure, covers=covers, erasures=erasures)
        yield {
            "sequence": sequence,
            "body": dict(certificate.body),
            "signature": certificate.signature.hex(),
        }


def _with_hexadecimal(rows: Iterable[Row], column: int) -> Iterator[list[Any]]:
    for row in rows:
        yield [bytes(value).hex() if place == column else value for place, value in enumerate(row)]


class _Writer:
    """Writes a JSON object, one row of a list per line, and seals its canonical text meanwhile.

    The seal is itself a key of the object, in the middle of what it covers: its place is left open, and
    filled at the end.
    """

    def __init__(self, file: BinaryIO, keyring: Keyring | None) -> None:
        self._file = file
        self._sealing = None if keyring is None else keyring.sealing()
        self._last, self._seal_offset = "", 0

    def value(self, name: str, value: Any) -> None:
        """Write a key with its value."""
        self._write_key(name)
        self._write(text_of_plain(value))

    def rows(self, name: str, rows: Iterable[Any]) -> int:
        """Write a key with a list; return how many rows it has."""
        self._write_key(name)
        self._write("[")
        number = 0
        for number, row in enumerate(rows, 1):
            self._write("," if number > 1 else "")
            self._file.write(b"\n")  # a space in the JSON: it is not part of the canonical text
            self._write(text_of_plain(row))
        self._write("]")
        return number

    def reserve_seal(self) -> None:
        """Leave the place of the seal open."""
        self._check_order("seal")
        self._file.write(b',\n"seal":"')
        self._seal_offset = self._file.tell()
        self._file.write(b" " * _SEAL_DIGITS + b'"')

    def end(self) -> None:
        """End the object, and write the seal in its place."""
        self._write("}")
        self._file.write(b"\n")
        if self._sealing is not None:
            self._file.seek(self._seal_offset)
            self._file.write(self._sealing.hexdigest().encode("ascii"))

    def _write_key(self, name: str) -> None:
        self._write("," if self._last else "{")
        self._check_order(name)
        self._file.write(b"\n")
        self._write(f"{text_of_plain(name)}:")

    def _check_order(self, name: str) -> None:
        assert name > self._last, "the keys of canonical JSON are sorted"
        self._last = name

    def _write(self, text: str) -> None:
        data = text.encode("utf-8")
        self._file.write(data)
        if self._sealing is not None:
            self._sealing.update(data)
