"""The certificates of many people at once."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.files import check_new_folder
from armnesia.core.messages import counted
from armnesia.core.spreadsheets import as_text
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.results.upkeep import SavedCertificates
from armnesia.vault.state.certificates import answer_to, certificate_of_entry, open_certificate, read_tree
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.suppression import RequestHistory


def answering_entry(connection: VaultConnection, target: ErasureTarget) -> int | None:
    """The ledger entry by which a request was answered; None if it was not, or somebody was readmitted."""
    with connection.reading() as transaction:
        target = target.normalised(transaction.state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
    return int(history.rows.request[history.request][1]) if history.answered_before else None


def certificates_of_each(
    connection: VaultConnection, target: ErasureTarget
) -> Iterator[tuple[str, Certificate | None]]:
    """Each name of a request with its own certificate, opened for it alone; None if there is none."""
    with connection.reading() as transaction:
        normalised = target.normalised(transaction.state.configuration.user_type)
        answers = [(one, answer_to(transaction, one)) for one in normalised.one_by_one()]
    entry: int | None = None
    for one, answer in answers:
        sequence, opening = answer or (0, None)
        if opening is None:
            yield one.names[0], None
            continue
        if sequence != entry:  # most names were in the same request
            entry, certificate = sequence, certificate_of_entry(connection, sequence)
            with connection.reading() as transaction:
                tree = read_tree(transaction, sequence, opening)
        yield one.names[0], open_certificate(certificate, connection, one, opening, tree)


def save_certificates(
    connection: VaultConnection, target: ErasureTarget, folder: str | Path
) -> SavedCertificates:
    """Write numbered files, whose names tell nobody whose they are, and an index for the owner only."""
    folder = Path(folder)
    check_new_folder(folder)
    certificates = certificates_of_each(connection, target)
    rows: list[list[Any]] = [["file", "name", "entry", "erasure", "held"]]
    written = pending = 0
    index = folder / "index.csv"
    try:
        for name, certificate in certificates:
            if len(rows) == 1:  # the names were looked up: none of them is refused
                private_files.make_folder(folder)
            if certificate is None:
                rows.append(["", as_text(str(name)), "", "", ""])
                continue
            file = f"certificate-{written + 1:06}.json"  # so that a list of the files is in order
            certificate.save(folder / file)
            written += 1
            pending += certificate.erasure == "pending"
            held = "yes" if certificate.held else "no"
            rows.append([file, as_text(str(name)), certificate.body["sequence"], certificate.erasure, held])
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
    return SavedCertificates(folder, index, written, pending, len(rows) - 1 - written)
