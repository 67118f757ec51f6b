"""Commands that show what happened, and check it: ledger, certificate, public-key, verify."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, table
from armnesia.cli.vault_options import Column, Keys, Records, Url, Users, UsersFile, named, tell
from armnesia.cli.vault_requests import certificate_facts, check_can_be_written
from armnesia.errors import InvalidInputError, VaultError
from armnesia.vault import DEFAULT_URL, Certificate, Entry, Head, Vault, owner_files
from armnesia.vault.certificate import INTEGRITY_ONLY
from armnesia.vault.opened import open_vault

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
        owner_files.write(export, "".join(f"{entry.text}\n" for entry in entries))
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
    sequence: Annotated[int | None, typer.Option(help="By its entry of the ledger: it names nobody.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to this new file.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """The certificate of a request, named as it was made; --json prints the file to hand out."""
    if out is not None:
        check_can_be_written(out)
    if sequence is not None and (user or file or records):
        raise InvalidInputError("--sequence names an entry; leave --user, --file and --records out")
    wanted: dict[str, Any] = (
        {"sequence": sequence} if sequence is not None else named(user, file, column, records)
    )
    with Vault.open(url, keys=keys) as vault:
        found = vault.certificate(**wanted)
    if out is not None:
        owner_files.write(out, found.to_json())
    if as_json:
        print(found.to_json(), end="")  # byte for byte what `certificate verify` reads
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
    rows = [
        [
            entry.sequence,
            entry.time[:19].replace("T", " "),
            entry.kind,
            entry.fields.get("unlearner", {}).get("name", ""),
            entry.fields.get("level", ""),
            entry.fields.get("released", ""),
        ]
        for entry in entries
    ]
    return table("The ledger", ["", "time (UTC)", "what", "unlearner", "level", "released"], rows)


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
        return [given]
    try:
        return Path(given).read_text(encoding="ascii").split()
    except UnicodeDecodeError:
        raise InvalidInputError(f"--public-key must be a key or a file of keys; {given} is neither") from None
