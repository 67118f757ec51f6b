"""The commands `certificate show` and `certificate verify`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_as_utf8, tell
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, Timeout, Url, check_can_be_written
from armnesia.cli.vault.request import Column, Records, RecordsFile, UsersFile, named_by
from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import DEFAULT_URL, INTEGRITY_ONLY, Certificate, Vault


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
    as_json: opt.AsJson = False,
) -> None:
    """Print the certificate of a request.

    The request is named as it was made; --json prints the file to hand out.
    """
    if out is not None:
        check_can_be_written(out)
    wanted: dict[str, Any] = {"sequence": sequence}
    if sequence is None:
        wanted = named_by(user, file, column, records, records_file)
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
        tell({}, False, found.words())


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
    tell(
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
