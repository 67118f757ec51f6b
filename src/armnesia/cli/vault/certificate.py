"""The commands `certificate show` and `certificate verify`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_as_utf8, tell
from armnesia.cli.vault.options import Keys, Url, check_can_be_written
from armnesia.cli.vault.request import Column, Records, RecordsFile, UsersFile, named_by
from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import (
    DEFAULT_URL,
    Certificate,
    CertificateCheck,
    Head,
    LedgerCopy,
    PublicKeys,
    Vault,
)
from armnesia.vault.keys.signatures import checked_public_key


def show(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
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
    with Vault.open(url, keys=keys) as vault:
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
        typer.Option(
            help="The list that armnesia public-key --json prints; or a public key, or a file of them, one"
            " per line (repeatable)."
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="EXPORT", help="The ledger, from armnesia export or armnesia ledger --export."),
    ] = None,
    head: Annotated[
        str | None, typer.Option(metavar="HEAD", help="A head of the ledger that was stored elsewhere.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Verify a certificate without the vault.

    With the list of public keys also whether its key was in use when it was signed; with --ledger also
    whether its entry is in the ledger. Exit code 1 if it is not valid.
    """
    if public_key is None and (ledger is not None or head is not None):
        raise InvalidInputError("--ledger and --head need a --public-key")
    trusted = None if public_key is None else _trusted_keys(public_key)
    known = None if head is None else Head.parse(head)
    found, checked = _read_and_check(file, trusted, ledger, known)
    result = {
        "valid": checked.valid,
        "problems": list(checked.problems),
        "notes": list(checked.notes),
        "signer_checked": trusted is not None,
        "ledger_checked": ledger is not None,
        "certificate": None if found is None else found.summary(),
    }
    verdict = "not valid" if not checked.valid else ("valid" if trusted is not None else "intact")
    tell(
        result,
        as_json,
        *([found.words()] if found is not None and checked.valid else []),
        *(f"Problem: {problem}" for problem in checked.problems),
        f"The certificate is {verdict}",
        *(f"Note: {note}" for note in checked.notes),
    )
    if not checked.valid:
        raise typer.Exit(1)


def _read_and_check(
    file: Path, trusted: Sequence[str] | None, ledger: Path | None, head: Head | None
) -> tuple[Certificate | None, CertificateCheck]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror}") from None
    try:
        found = Certificate.from_json(data)
        found.words()
    except VaultError as error:
        return None, CertificateCheck((str(error),), ())
    try:
        copy = None if ledger is None else LedgerCopy.read(ledger)
    except VaultError as error:
        return found, CertificateCheck((str(error),), ())
    return found, found.check(trusted, ledger=copy, head=head)


def _trusted_keys(given: list[str]) -> Sequence[str]:
    """The keys that --public-key names: those of a published list, or keys alone."""
    keys: list[str] = []
    for one in given:
        found = _public_keys(one)
        if isinstance(found, PublicKeys):
            if len(given) > 1:
                raise InvalidInputError(f"{one} is a list of public keys: give no other --public-key")
            return found
        keys += found
    if not keys:
        raise InvalidInputError("--public-key must name at least one key; got an empty file")
    return keys


def _public_keys(given: str) -> Sequence[str]:
    if not Path(given).is_file():
        return [_checked(given)]
    try:
        text = Path(given).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InvalidInputError(f"--public-key must be a key or a file of keys; {given} is neither") from None
    if text.lstrip().startswith("{"):
        try:
            return PublicKeys.from_json(text)
        except VaultError as error:
            raise InvalidInputError(f"--public-key {given}: {error}") from None
    return [_checked(key) for key in text.split()]


def _checked(key: str) -> str:
    try:
        return checked_public_key(key)
    except InvalidInputError as error:
        raise InvalidInputError(f"--public-key must be a key or a file that exists; {error}") from None
