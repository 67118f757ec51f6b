"""Commands that show what happened, and check it: ledger, certificate, public-key, verify."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_as_utf8, table
from armnesia.cli.vault.forget import certificate_facts, check_can_be_written
from armnesia.cli.vault.options import Keys, Url, tell
from armnesia.cli.vault.people import Column, Records, RecordsFile, Users, UsersFile, named
from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import DEFAULT_URL, Certificate, Entry, Head, Vault
from armnesia.vault.keys import private_files
from armnesia.vault.keys.signatures import checked_public_key
from armnesia.vault.ledger.certificate import INTEGRITY_ONLY
from armnesia.vault.state.connection import open_vault

certificate = typer.Typer(help="Show a certificate, or check one without any vault.", no_args_is_help=True)


def verify(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    head: Annotated[str | None, typer.Option(help="A head of the ledger that was kept elsewhere.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Recompute the statistics, check seal, ledger and certificates. Exit code 1 if anything is wrong."""
    kept = None if head is None else Head.parse(head)
    with _opened_as_it_is(url, keys) as vault, counting_rows(quiet=as_json) as progress:
        found = vault.verify(kept, progress=progress)
    result = {
        "holds": found.holds,
        "problems": found.problems,
        "notes": found.notes,
        "records": found.records,
        "entries": found.entries,
        "certificates": found.certificates,
    }
    looked_at = f"{found.records} records, {found.entries} entries and {found.certificates} certificates"
    tell(
        result,
        as_json,
        *(f"Note: {note}" for note in found.notes),
        *(f"WRONG: {problem}" for problem in found.problems),
        f"{looked_at}: {'everything is as it should be' if found.holds else 'SOMETHING IS WRONG'}",
    )
    if not found.holds:
        raise typer.Exit(1)


def ledger(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    head: Annotated[bool, typer.Option("--head", help="Only the head, to be kept elsewhere.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write the entries to this new file, one a line, as they are hashed.")
    ] = None,
    check: Annotated[str | None, typer.Option(help="Check the ledger against a head kept elsewhere.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """The ledger: no identifier, no reward. Exit code 1 if --check finds anything wrong."""
    if sum((head, export is not None, check is not None)) > 1:
        raise InvalidInputError("--head, --export and --check are three ways to ask; give one")
    if check is not None:
        _check_ledger(url, keys, Head.parse(check), as_json)
        return
    if export is not None:
        check_can_be_written(export)
    with Vault.open(url, keys=keys) as vault:
        last, entries = vault.head, [] if head else list(vault.ledger())
    if head:
        tell({"head": last}, as_json, str(last))
    elif export is not None:
        private_files.write(export, "".join(f"{entry.text}\n" for entry in entries))
        result = {"head": last, "entries": len(entries), "file": export}
        tell(result, as_json, f"{len(entries)} entries written to {export}; head {last}")
    else:
        result = {"head": last, "entries": [dict(entry.fields) for entry in entries]}
        tell(result, as_json, _ledger_table(entries), f"Head: {last}")


@certificate.command()
def show(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    user: Users = None,
    file: UsersFile = None,
    column: Column = None,
    records: Records = None,
    records_file: RecordsFile = None,
    sequence: Annotated[int | None, typer.Option(help="By its entry of the ledger: it names nobody.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to this new file.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """The certificate of a request, named as it was made; --json prints the file to hand out."""
    if out is not None:
        check_can_be_written(out)
    wanted: dict[str, Any] = {"sequence": sequence}
    if sequence is None:
        wanted = named(user, file, column, records, records_file)
    elif user or file or column or records or records_file:
        raise InvalidInputError("--sequence names an entry; leave --user, --file, --records and the like out")
    with Vault.open(url, keys=keys) as vault:
        found = vault.certificate(**wanted)
    if out is not None:
        private_files.write(out, found.to_json())
    if as_json:
        print_as_utf8(found.to_json())
    else:
        tell({}, False, found.words())


@certificate.command("verify")
def verify_certificate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    public_key: Annotated[
        list[str] | None,
        typer.Option(help="The vault's public key, or a file of them, one a line (repeatable)."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check a certificate by its file and the public key alone. Exit code 1 if it is not valid."""
    trusted = None if public_key is None else [key for given in public_key for key in _public_keys(given)]
    found, problems = _read_and_check(file, trusted)
    result = {
        "valid": not problems,
        "problems": problems,
        "signer_checked": trusted is not None,
        "note": None if trusted is not None else INTEGRITY_ONLY,
        "certificate": None if found is None else certificate_facts(found),
    }
    verdict = "NOT VALID" if problems else ("valid" if trusted is not None else f"whole. {INTEGRITY_ONLY}")
    tell(
        result,
        as_json,
        *([found.words()] if found is not None and not problems else []),
        *(f"WRONG: {problem}" for problem in problems),
        f"The certificate is {verdict}",
    )
    if problems:
        raise typer.Exit(1)


def public_key(url: Url = DEFAULT_URL, keys: Keys = None, as_json: opt.AsJson = False) -> None:
    """The public keys that the vault has signed with, one a line, the one in use last."""
    with Vault.open(url, keys=keys) as vault:
        found = vault.public_keys()
    result = {"version": len(found), "public_key": found[-1], "public_keys": found}
    tell(result, as_json, *found)


def _opened_as_it_is(url: str, keys: Path | None) -> Vault:
    """A vault to look at, even one that is older than its pinned head: the checks tell what is wrong."""
    return Vault(open_vault(url, keys, check_pin=False))


def _check_ledger(url: str, keys: Path | None, kept: Head, as_json: bool) -> None:
    with _opened_as_it_is(url, keys) as vault:
        problems = vault.check_ledger(kept)
    result = {"holds": not problems, "problems": problems, "checked": kept}
    words = "SOMETHING IS WRONG" if problems else "whole, and it goes on from this head"
    tell(result, as_json, *(f"WRONG: {problem}" for problem in problems), f"The ledger: {words}")
    if problems:
        raise typer.Exit(1)


def _ledger_table(entries: Sequence[Entry]) -> Any:
    """A line an entry, in 80 columns: where it must wrap, it does between the unlearner and its level."""
    rows = [
        [
            entry.sequence,
            entry.time[:19].replace("T", " "),
            entry.kind,
            _how_answered(entry),
            entry.fields.get("released", ""),
        ]
        for entry in entries
    ]
    columns = ["", "time (UTC)", "what", "unlearner, level", "released"]
    return table("The ledger", columns, rows, whole=columns[:3])


def _how_answered(entry: Entry) -> str:
    if "unlearner" not in entry.fields:
        return ""
    return f"{entry.fields['unlearner']['name']}, {entry.fields.get('level', '')}"


def _read_and_check(file: Path, trusted: list[str] | None) -> tuple[Certificate | None, list[str]]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror}") from None
    try:
        found = Certificate.from_json(data)
        found.words()
    except VaultError as error:
        return None, [str(error)]
    return found, found.verify(trusted)


def _public_keys(given: str) -> list[str]:
    if not Path(given).is_file():
        try:
            return [checked_public_key(given)]
        except InvalidInputError:
            raise InvalidInputError(
                "--public-key must be 64 hexadecimal digits in small letters, or a file that exists;"
                f" got {given!r}"
            ) from None
    try:
        return Path(given).read_text(encoding="ascii").split()
    except UnicodeDecodeError:
        raise InvalidInputError(f"--public-key must be a key or a file of keys; {given} is neither") from None
