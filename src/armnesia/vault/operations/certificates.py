"""The certificates of people, and files of many of them."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.files import check_new_folder
from armnesia.core.messages import counted
from armnesia.core.spreadsheets import as_text
from armnesia.vault.db import statements
from armnesia.vault.db.schema import PeopleRow
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.results import SavedCertificates
from armnesia.vault.state.certificates import Certificates
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.suppression import History


def certificate(
    connection: VaultConnection,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
    *,
    entry: int | None = None,
) -> Certificate:
    """The certificate of one name: of its last request, or of that of an entry; it names nobody else.

    Without a name it is that of the entry, and names nobody.
    """
    if users is None and records is None and entry is not None:
        with connection.reading() as transaction:
            return Certificates(transaction).of(entry)
    target = ErasureTarget.of(users, records)
    if len(target.names) != 1:
        raise InvalidInputError(
            "a certificate is of one person or record; those of many are written to a folder (--out-folder)"
        )
    with connection.reading() as transaction:
        target = target.normalised(transaction.state.configuration.user_type)
        number = History.read(transaction, target).entry(target.names[0]) if entry is None else entry
        if number is None:
            raise VaultError("there is no certificate: nobody was forgotten here by this name")
        return Certificates(transaction).of(number, target)


def certificates_of_each(
    connection: VaultConnection,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
) -> Iterator[tuple[str, Certificate | None]]:
    """Each name with the certificate of its last request; None if it was never in one."""
    target = ErasureTarget.of(users, records)
    with connection.reading() as transaction:
        target = target.normalised(transaction.state.configuration.user_type)
        history, certificates = History.read(transaction, target), Certificates(transaction)
        for name in target.names:
            number, one = history.entry(name), replace(target, names=(name,))
            yield name, None if number is None else certificates.of(number, one)


def entries_of_case(connection: VaultConnection, case: str) -> list[int]:
    """The entries of the requests with this case."""
    with connection.reading() as transaction:
        digest = transaction.keyring.digest(b"case", case)
        return [row.number for row in statements.read(transaction.session, PeopleRow, case_digest=digest)]


def save_certificates(
    connection: VaultConnection,
    folder: str | Path,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
) -> SavedCertificates:
    """Write the certificate of each name to a new folder that its owner can read.

    The files are numbered; `index.csv` in the folder says whose they are, and must not be handed out.
    """
    folder = Path(folder)
    check_new_folder(folder)
    rows: list[list[Any]] = [["file", "name", "entry", "outcome"]]
    written, index = 0, folder / "index.csv"
    try:
        for name, certificate in certificates_of_each(connection, users, records):
            if len(rows) == 1:  # the names were looked up: none of them is refused
                private_files.make_folder(folder)
            if certificate is None or certificate.person is None:
                rows.append(["", as_text(str(name)), "", ""])
                continue
            written += 1
            file = f"certificate-{written:06}.json"  # so that a list of the files is in order
            private_files.write(folder / file, certificate.to_json())
            outcome = certificate.person.outcome
            rows.append([file, as_text(str(name)), certificate.entry.number, outcome])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
        private_files.write(index, text.getvalue())
    except VaultError as error:
        if written == 0:
            raise
        raise VaultError(
            f"{error}; {counted(written, 'certificate is', 'certificates are')} written to {folder}, without"
            " the index that says whose they are: remove the folder, and run the same command again"
        ) from None
    return SavedCertificates(folder, index, written, len(rows) - 1 - written)
