"""The commands `certificate show` and `certificate verify`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.names import Column, Records, RecordsFile, UsersFile, read_names
from armnesia.cli.output import print_as_utf8, print_result
from armnesia.cli.vault.options import (
    Kept,
    KeptCheckpoint,
    VaultOptions,
    read_public_keys,
    with_vault_options,
)
from armnesia.core.errors import InvalidInputError
from armnesia.core.files import check_new_file, read_plain
from armnesia.core.messages import counted
from armnesia.vault import Certificate, SavedCertificates, SignedDecisions
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import read_object
from armnesia.vault.ledger.signed_decisions import MAY_HAVE_CHANGED

_LARGEST = 1 << 28


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
        typer.Option(metavar="ENTRY", help="Of this entry; without a name it is opened for nobody."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to this new file.")] = None,
    out_folder: Annotated[
        Path | None, typer.Option(help="Write one file per name to this new folder.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="A page to print, in the place of text.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Print the certificate of a person, or of a record.

    --json prints the file to hand out, as --out writes it; to a file named .html it writes the page to
    print. Exit code 1 if some of several names have no certificate.
    """
    given = user or file or records or records_file
    named = read_names(user, file, column, records, records_file) if given or sequence is None else {}
    if out_folder is not None:
        if out is not None or sequence is not None:
            raise InvalidInputError("--out-folder writes a file per name; leave --out and --sequence out")
        with options.open() as vault:
            _print_saved(vault.save_certificates(out_folder, **named), as_json)
        return
    if out is not None:
        check_new_file(out)
    with options.open() as vault:
        found = vault.certificate(**named, entry=sequence)
    if out is not None:
        private_files.write(out, found.words().html() if out.suffix == ".html" else found.to_json())
    if as_json:
        print_as_utf8(found.to_json())
    elif html:
        print_as_utf8(found.words().html())
    else:
        print_result(
            {}, False, *([] if out is None else [f"Written to {out}"]), found.words().text().rstrip()
        )


def _print_saved(done: SavedCertificates, as_json: bool) -> None:
    lines = [
        f"{counted(done.written, 'certificate')} written to {done.folder}; {done.index} says whose they are:"
        " do not hand it out"
    ]
    if done.missing:
        have = counted(done.missing, "of the named has", "of the named have")
        lines.append(f"{have} no certificate, and no file in the index")
    print_result(done.to_dict, as_json, *lines)
    if done.missing:
        raise typer.Exit(1)


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    public_key: Annotated[
        list[str],
        typer.Option(
            help="A public key of the vault; or the file that armnesia public-key --json writes (repeatable)."
        ),
    ],
    checkpoint: KeptCheckpoint = None,
    as_json: opt.AsJson = False,
) -> None:
    """Verify a certificate without the vault.

    FILE may also be the served arms that decide --signed printed. With a checkpoint that you kept, also
    whether the ledger is still the one of that time. Exit code 1 if it is not valid.
    """
    keys = read_public_keys(public_key)
    known = None if checkpoint is None else Kept.read(checkpoint)
    text = read_plain(file, _LARGEST)
    found: Any = {}
    words: list[str] = []
    try:
        document = read_object(text, "the certificate")
        signed = SignedDecisions.from_dict(document) if "payload" in document else None
        certificate = None if signed is not None else Certificate.read(text)
    except InvalidInputError as error:
        problems = [str(error)]
    else:
        if signed is not None:
            found = {**signed.body, "note": MAY_HAVE_CHANGED}
            problems, words = signed.verify(keys), [f"Served at head {signed.body['head']}", MAY_HAVE_CHANGED]
        elif certificate is not None:
            kept = None if known is None else known.of(certificate.checkpoint.size)
            problems = certificate.verify(keys, kept)
            found, words = certificate.summary(), [certificate.words().text().rstrip()]
    print_result(
        {"valid": not problems, "problems": problems, **found},
        as_json,
        *([] if problems else words),
        *(f"Problem: {problem}" for problem in problems),
        "It is not valid." if problems else "It is valid: signed by the key given.",
    )
    if problems:
        raise typer.Exit(1)
