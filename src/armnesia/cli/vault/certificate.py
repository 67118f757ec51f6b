"""The commands `certificate show` and `certificate verify`."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_as_utf8, print_result
from armnesia.cli.vault.options import (
    DEFAULT_TIMEOUT,
    Keys,
    Timeout,
    Url,
    check_can_be_written,
    check_new_folder,
    make_folder,
)
from armnesia.cli.vault.request import Column, Records, RecordsFile, UsersFile, read_names
from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import DEFAULT_URL, INTEGRITY_ONLY, Certificate, Vault
from armnesia.vault.keys import private_files

_DIGITS = 6  # so that a list of the files is in order


def show(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    user: opt.Users = None,
    file: UsersFile = None,
    column: Column = None,
    records: Records = None,
    records_file: RecordsFile = None,
    sequence: Annotated[
        int | None, typer.Option(help="By the sequence number of its ledger entry; it then names nobody.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to this new file.")] = None,
    out_folder: Annotated[
        Path | None,
        typer.Option(help="Write one file per name, opened for that name alone, to this new folder."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the certificate of a request.

    The request is named as it was made; --json prints the file to hand out. With --out-folder the names may
    be of one request or of several; exit code 1 if some have no certificate.
    """
    if out_folder is not None:
        if out is not None or sequence is not None:
            raise InvalidInputError("--out-folder writes a file per name; leave --out and --sequence out")
        named = read_names(user, file, column, records, records_file)
        check_new_folder(out_folder)
        with Vault.open(url, keys=keys, timeout=timeout) as vault:
            _write_each(vault, named, out_folder, as_json)
        return
    if out is not None:
        check_can_be_written(out)
    wanted: dict[str, Any] = {"sequence": sequence}
    if sequence is None:
        wanted = read_names(user, file, column, records, records_file)
    elif user or file or column or records or records_file:
        raise InvalidInputError(
            "--sequence names an entry; leave --user, --file, --column, --records and --records-file out"
        )
    with Vault.open(url, keys=keys, timeout=timeout) as vault:
        found = vault.certificate(**wanted)
    if out is not None:
        found.save(out)
    if as_json:
        print_as_utf8(found.to_json())
    else:
        print_result({}, False, found.words())


def _write_each(vault: Vault, named: dict[str, Any], folder: Path, as_json: bool) -> None:
    """Write numbered files, whose names tell nobody whose they are, and an index for the owner only."""
    rows: list[list[Any]] = [["file", "name", "entry", "erasure"]]
    written = pending = 0
    make_folder(folder)
    for name, certificate in vault.certificates(**named):
        if certificate is None:
            rows.append(["", name, "", ""])
            continue
        written += 1
        pending += certificate.erasure == "pending"
        file = f"certificate-{written:0{_DIGITS}}.json"
        certificate.save(folder / file)
        rows.append([file, name, certificate.body["sequence"], certificate.erasure])
    index = folder / "index.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    private_files.write(index, text.getvalue())
    missing = len(rows) - 1 - written
    result = {"folder": folder, "index": index, "written": written, "pending": pending, "missing": missing}
    lines = [f"{written} certificates written to {folder}; {index} says whose they are: do not hand it out"]
    if pending:
        lines.append(f"{pending} of them have erasure pending: armnesia finish completes it")
    if missing:
        lines.append(f"{missing} of the named have no certificate: they have no file in the index")
    print_result(result, as_json, *lines)
    if missing:
        raise typer.Exit(1)


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    public_key: Annotated[
        list[str] | None,
        typer.Option(help="A public key of the vault, or a file of them, one per line (repeatable)."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Verify a certificate by its file and the public key alone.

    Exit code 1 if it is not valid.
    """
    trusted = None if public_key is None else [key for given in public_key for key in _public_keys(given)]
    found, problems = _read_and_verify(file, trusted)
    result = {
        "valid": not problems,
        "problems": problems,
        "signer_checked": trusted is not None,
        "note": None if trusted is not None else INTEGRITY_ONLY,
        "certificate": None if found is None else found.summary(),
    }
    verdict = "not valid" if problems else ("valid" if trusted is not None else f"intact. {INTEGRITY_ONLY}")
    print_result(
        result,
        as_json,
        *([found.words()] if found is not None and not problems else []),
        *(f"Problem: {problem}" for problem in problems),
        f"The certificate is {verdict}",
    )
    if problems:
        raise typer.Exit(1)


def _read_and_verify(file: Path, trusted: list[str] | None) -> tuple[Certificate | None, list[str]]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror}") from None
    try:
        found = Certificate.from_json(data)
        found.words()
    except VaultError as error:
        return None, [str(error)]
    try:
        return found, found.verify(trusted)
    except InvalidInputError as error:
        raise InvalidInputError(f"--public-key must be a key or a file that exists; {error}") from None


def _public_keys(given: str) -> list[str]:
    if not Path(given).is_file():
        return [given]
    try:
        return Path(given).read_text(encoding="ascii").split()
    except UnicodeDecodeError:
        raise InvalidInputError(f"--public-key must be a key or a file of keys; {given} is neither") from None
