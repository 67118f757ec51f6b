"""The commands `certificate show` and `certificate verify`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.names import Column, Records, RecordsFile, UsersFile, read_names
from armnesia.cli.output import print_as_utf8, print_result
from armnesia.cli.vault.options import (
    StoredHead,
    VaultOptions,
    with_vault_options,
)
from armnesia.core.errors import InvalidInputError
from armnesia.core.files import check_new_file
from armnesia.core.messages import counted
from armnesia.vault import (
    Certificate,
    CertificateCheck,
    Head,
    SavedCertificates,
    ServedCheck,
    SignedDecisions,
    trusted_keys,
)
from armnesia.vault.ledger.certificate_check import Undecided


@with_vault_options
def show(
    options: VaultOptions,
    user: opt.Users = None,
    file: UsersFile = None,
    column: Column = None,
    records: Records = None,
    records_file: RecordsFile = None,
    sequence: Annotated[
        int | None,
        typer.Option(metavar="ENTRY", help="By the number of its ledger entry; it then names nobody."),
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
        check_new_file(out)
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
        f"{counted(done.written, 'certificate')} written to {done.folder}; {done.index} says whose they are:"
        " do not hand it out"
    ]
    if done.pending:
        have = counted(done.pending, "of them has", "of them have")
        lines.append(f"{have} erasure pending: armnesia finish completes it")
    if done.missing:
        have = counted(done.missing, "of the named has", "of the named have")
        lines.append(f"{have} no certificate, and no file in the index")
    print_result(done.to_dict, as_json, *lines)
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
    head: StoredHead = None,
    as_json: opt.AsJson = False,
) -> None:
    """Verify a certificate without the vault.

    FILE may also be the served arms that decide --signed printed.
    With the list of public keys also whether its key was in use when it was signed; with --ledger also
    whether its entry is in the ledger. Exit code 1 if it is not valid, or if the export cannot tell.
    """
    if public_key is None and (ledger is not None or head is not None):
        raise InvalidInputError("--ledger and --head need a --public-key")
    trusted = None if public_key is None else trusted_keys(public_key, what="--public-key")
    known = None if head is None else Head.parse(head)
    served = SignedDecisions.read(file)
    if served is not None:
        _print_served_check(served.check(trusted, ledger=ledger, head=known), as_json)
        return
    found, checked = Certificate.check_file(file, trusted, ledger=ledger, head=known)
    print_result(
        checked.to_dict(),
        as_json,
        _verdict(checked),
        *(f"Problem: {problem}" for problem in checked.problems),
        *(f"Note: {note}" for note in checked.notes),
        *([found.words()] if found is not None and checked.valid else []),
    )
    if not checked.valid:
        raise typer.Exit(1)


def _print_served_check(checked: ServedCheck, as_json: bool) -> None:
    """Print whether served arms are valid; exit code 1 if not."""
    number = counted(checked.decisions, "decision")
    good = "valid" if checked.signer_checked else "intact"
    lines = [f"The served arms of {number} are {good if checked.valid else 'not valid'}"]
    lines += [f"Problem: {problem}" for problem in checked.problems]
    lines += [f"Note: {note}" for note in checked.notes]
    if checked.valid:
        lines.append(f"Served at head {checked.head}, signed {checked.issued}")
    print_result(checked.to_dict, as_json, *lines)
    if not checked.valid:
        raise typer.Exit(1)


def _verdict(checked: CertificateCheck) -> str:
    if not checked.decided:
        remedies = {problem.remedy: None for problem in checked.problems if isinstance(problem, Undecided)}
        return f"Whether the certificate is valid cannot be decided {'; or '.join(remedies)}"
    if not checked.valid:
        return "The certificate is not valid"
    return f"The certificate is {'valid' if checked.signer_checked else 'intact'}"
