"""Exporting: a file for an auditor, or one that brings a backup up to date; in constant memory."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import plain, text_of_plain
from armnesia.vault.keys.json_sections import JsonSections
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Erasure
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.ledger_copy import EXPORT_SCHEMA as SCHEMA
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.operations.certificates import covered_files
from armnesia.vault.operations.public_keys import read_public_keys
from armnesia.vault.results import Exported
from armnesia.vault.state.connection import VaultConnection
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
    if Path(path).exists() and not _is_export(path, connection.keyring.vault):
        raise VaultError(f"{path} exists already and is no export of this vault; nothing was written")
    with (
        private_files.atomic_write(path, replace=True) as temporary,
        connection.reading() as transaction,
        temporary.open("wb") as file,
    ):
        writer = _Writer(file, transaction.ring if for_restore else None)
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
    """The certificates of all entries; those that were never handed out are signed for the export."""
    erased_through, ring = transaction.state.erased_through, transaction.ring
    keys = read_public_keys(connection, transaction)
    for sequence, body, signature, entry in tables.stream_certificates_and_entries(transaction.session):
        stored = StoredCertificate.read(sequence, body, signature, entry or "", ring)
        certificate = stored.valid(keys)
        if certificate is None:
            erasure: Erasure = "complete" if erased_through >= sequence else "pending"
            certificate = stored.issue(ring, keys, erasure=erasure, covers=covered_files(connection, stored))
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

    def __init__(self, file: BinaryIO, ring: Keyring | None) -> None:
        self._file = file
        self._sealing = None if ring is None else ring.sealing()
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


def _is_export(path: str | Path, vault: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            found = JsonSections(file, str(path))
            return _values(found, "schema", "vault") == [SCHEMA, vault]
    except (OSError, ArmnesiaError):
        return False


class ExportFile:
    """An export for restoring, read from its file as often as needed, in constant memory."""

    def __init__(self, sections: JsonSections, head: Head) -> None:
        self._sections, self.head = sections, head

    @classmethod
    @contextmanager
    def opened(cls, path: str | Path, keyring: Keyring) -> Iterator[Self]:
        """Open an export; refuse one of another vault, or one that was changed since."""
        with private_files.opened(path) as file:
            sections = JsonSections(file, str(path))
            schema, vault, version = _values(sections, "schema", "vault", "digest_key")
            if schema != SCHEMA:
                raise VaultError(f"{path} is not an export of a vault")
            if "suppressed" not in sections:
                raise VaultError(
                    f"{path} is an auditor's export, without the suppression list; restoring needs it"
                )
            if vault != keyring.vault:
                raise VaultError(f"{path} is the export of another vault")
            ring = keyring.at(digest_version=version if isinstance(version, int) else 0, signing_version=1)
            if _values(sections, "seal") != [_seal_on(sections, ring)]:
                raise VaultError(f"{path} was changed after it was exported")
            yield cls(sections, Head.parse(sections.value("head")))

    def ledger(self) -> Iterator[tuple[int, str, str]]:
        """The rows (sequence, entry, hash) of the ledger."""
        return ((row["sequence"], row["entry"], row["hash"]) for row in self._sections.items("ledger"))

    def certificates(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The numbers of the certificates' entries, and their bodies."""
        return ((row["sequence"], row["body"]) for row in self._sections.items("certificates"))

    def suppressed(self) -> Iterator[Row]:
        """The rows of the suppression list."""
        return self._rows("suppressed", 0)

    def requests(self) -> Iterator[Row]:
        """The rows of the answered requests."""
        return self._rows("requests", 0)

    def trees(self) -> Iterator[Row]:
        """The rows of the hash trees; vaults of schema version 1 had none."""
        return self._rows("trees", 1) if "trees" in self._sections else iter(())

    def _rows(self, name: str, column: int) -> Iterator[Row]:
        for row in self._sections.items(name):
            row[column] = bytes.fromhex(row[column])
            yield tuple(row)


def _values(sections: JsonSections, *names: str) -> list[Any]:
    """The values of these keys, None for those that are not there or are lists."""
    return [
        sections.value(name) if name in sections and not sections.is_list(name) else None for name in names
    ]


def _seal_on(sections: JsonSections, ring: Keyring) -> str | None:
    """The seal on everything but the seal itself; None if that has no canonical text."""
    sealing = ring.sealing()
    between = "{"
    try:
        for name in sorted(name for name in sections if name != "seal"):
            sealing.update(f"{between}{text_of_plain(name)}:".encode())
            between = ","
            if sections.is_list(name):
                sealing.update(b"[")
                for number, item in enumerate(sections.items(name)):
                    sealing.update(b"," if number else b"")
                    sealing.update(text_of_plain(item).encode())
                sealing.update(b"]")
            else:
                sealing.update(text_of_plain(sections.value(name)).encode())
    except (ValueError, RecursionError):  # NaN, an unpaired surrogate, or too deep
        return None
    sealing.update(b"}")
    return sealing.hexdigest()
