"""The commands `certificate show` and `certificate verify`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.names import Column, Records, RecordsFile, UsersFile, read_names
from armnesia.cli.output import print_as_utf8, print_result
from armnesia.cli.vault.options import (
    VaultOptions,
    check_can_be_written,
    with_vault_options,
)
from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.files import read_plain
from armnesia.core.messages import counted
from armnesia.vault import (
    Certificate,
    CertificateCheck,
    Head,
    LedgerCopy,
    PublicKeys,
    SavedCertificates,
    SignedDecisions,
)
from armnesia.vault.keys.canonical_json import read_json
from armnesia.vault.keys.signatures import checked_public_key

_LARGEST_TABLE = 1 << 28
"""Bytes: the served arms of a million decisions are smaller."""


@with_vault_options
def show(
    options: VaultOptions,
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
        with options.open() as vault:
            done = vault.save_certificates(out_folder, **named)
        _print_saved(done, as_json)
        return
    if out is not None:
        check_can_be_written(out)
    named = {}
    if sequence is None:
        named = read_names(user, file, column, records, records_file)
    elif user or file or column or records or records_file:
        raise InvalidInputError(
            "--sequence names an entry; leave --user, --file, --column, --records and --records-file out"
        )
    with options.open() as vault:
        found = vault.certificate(**named) if sequence is None else vault.certificate_of_entry(sequence)
    if out is not None:
        found.save(out)
    if as_json:
        print_as_utf8(found.to_json())
    else:
        print_result({}, False, *([] if out is None else [f"Certificate written to {out}"]), found.words())


def _print_saved(done: SavedCertificates, as_json: bool) -> None:
    lines = [
        f"{done.written} certificates written to {done.folder}; {done.index} says whose they are: do not hand"
        " it out"
    ]
    if done.pending:
        lines.append(f"{done.pending} of them have erasure pending: armnesia finish completes it")
    if done.missing:
        lines.append(f"{done.missing} of the named have no certificate: they have no file in the index")
    print_result(done.to_dict(), as_json, *lines)
    if done.missing:
        raise typer.Exit(1)


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

    FILE may also be the served arms that decide --signed printed.
    With the list of public keys also whether its key was in use when it was signed; with --ledger also
    whether its entry is in the ledger. Exit code 1 if it is not valid, or if the export is too old to tell.
    """
    if public_key is None and (ledger is not None or head is not None):
        raise InvalidInputError("--ledger and --head need a --public-key")
    trusted = None if public_key is None else _trusted_keys(public_key)
    known = None if head is None else Head.parse(head)
    served = _signed_decisions(file)
    if served is not None:
        _verify_served(served, trusted, ledger, known, as_json)
        return
    found, checked = _read_and_check(file, trusted, ledger, known)
    result = {
        "valid": checked.valid,
        "decided": checked.decided,
        "problems": list(checked.problems),
        "notes": list(checked.notes),
        "signer_checked": trusted is not None,
        "ledger_checked": ledger is not None,
        "certificate": None if found is None else found.summary(),
    }
    print_result(
        result,
        as_json,
        _verdict(checked, with_keys=trusted is not None),
        *(f"Problem: {problem}" for problem in checked.problems),
        *(f"Note: {note}" for note in checked.notes),
        *([found.words()] if found is not None and checked.valid else []),
    )
    if not checked.valid:
        raise typer.Exit(1)


def _signed_decisions(file: Path) -> SignedDecisions | None:
    """The served arms of a vault, if the file has these."""
    try:
        document = read_json(read_plain(file, _LARGEST_TABLE).decode("utf-8"), "it")
    except (UnicodeDecodeError, InvalidInputError):
        return None  # which is said when it is read as a certificate
    return SignedDecisions.from_dict(document) if SignedDecisions.is_one(document) else None


def _verify_served(
    served: SignedDecisions,
    trusted: Sequence[str] | None,
    ledger: Path | None,
    head: Head | None,
    as_json: bool,
) -> None:
    """Print whether served arms are signed with one of the keys; exit code 1 if not."""
    if trusted is None:
        raise InvalidInputError("served arms are checked with a --public-key")
    copy = None if ledger is None else LedgerCopy.read(ledger)
    problems = served.verify(trusted, ledger=copy, head=head)
    result = {
        "valid": not problems,
        "problems": problems,
        "ledger_checked": ledger is not None,
        "head": served.body.get("head"),
        "decisions": len(served.body.get("decisions") or ()),
    }
    number = counted(len(served.body.get("decisions") or ()), "decision")
    print_result(
        result,
        as_json,
        f"The served arms of {number} are {'not valid' if problems else 'valid'}",
        *(f"Problem: {problem}" for problem in problems),
        *([] if problems else [f"Served at head {served.body['head']}, signed {served.body['issued']}"]),
    )
    if problems:
        raise typer.Exit(1)


def _verdict(checked: CertificateCheck, *, with_keys: bool) -> str:
    if not checked.decided:
        return "Whether the certificate is valid cannot be decided with this export: get a newer one"
    return f"The certificate is {'not valid' if not checked.valid else 'valid' if with_keys else 'intact'}"


def _read_and_check(
    file: Path, trusted: Sequence[str] | None, ledger: Path | None, head: Head | None
) -> tuple[Certificate | None, CertificateCheck]:
    try:
        found = Certificate.read(file)
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
        file = read_plain(given)
        if file.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return PublicKeys.from_json(file)
    except InvalidInputError as error:
        raise InvalidInputError(f"--public-key {error}") from None
    except VaultError as error:
        raise InvalidInputError(f"--public-key {given}: {error}") from None
    try:
        return [_checked(key) for key in file.decode("utf-8-sig").split()]
    except UnicodeDecodeError:
        raise InvalidInputError(f"--public-key must be a key or a file of keys; {given} is neither") from None


def _checked(key: str) -> str:
    try:
        return checked_public_key(key)
    except InvalidInputError as error:
        raise InvalidInputError(f"--public-key must be a key or a file that exists; {error}") from None
