"""Commands for people's requests: forget, readmit."""

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.log.case import guarantee_facts
from armnesia.cli.output import table
from armnesia.cli.vault.options import Keys, Url, tell, unsigned_zero
from armnesia.cli.vault.people import Column, Records, RecordsFile, Users, UsersFile, named
from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.unlearners import UNLEARNERS
from armnesia.vault import DEFAULT_URL, Certificate, Forgotten, Preview, Vault
from armnesia.vault.keys import private_files

SCREEN_ONLY = (
    "For this screen only: with the arm that is served, these probabilities tell of what was deleted."
)
_NOTHING_HELD = "Nothing is held: the vault has no record of this request."


def forget(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    user: Users = None,
    file: UsersFile = None,
    column: Column = None,
    records: Records = None,
    records_file: RecordsFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate to this new file.")] = None,
    unlearner: Annotated[
        str | None, typer.Option("--unlearner", help=f"Instead of the vault's: {', '.join(UNLEARNERS)}.")
    ] = None,
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    variants: Any = None,
    as_json: opt.AsJson = False,
) -> None:
    """Forget people or records, for good: everyone named together is one request and one certificate."""
    wanted = named(user, file, column, records, records_file)
    asked: dict[str, Any] = {
        "unlearner": unlearner,
        "epsilon": unsigned_zero(epsilon),
        "delta": unsigned_zero(delta),
        "options": variants or None,
    }
    if certificate is not None:
        if dry_run:
            raise InvalidInputError("--dry-run forgets nobody, so there is no --certificate to write")
        check_can_be_written(certificate)
    with Vault.open(url, keys=keys) as vault:
        done = vault.preview(**wanted, **asked) if dry_run else vault.forget(**wanted, **asked)
        head, actions = vault.head, vault.configuration.actions or ()
    if "records" in wanted and not done.repeated and done.held < done.named:
        warnings.warn(
            f"{done.named - done.held} of {done.named} ids are those of no row; rows that came in without"
            " --id have none, and are forgotten by user only",
            stacklevel=2,
        )
    if isinstance(done, Preview):
        _show_preview(done, actions, as_json)
        return
    if certificate is not None:
        try:
            private_files.write(certificate, done.certificate.to_json())
        except VaultError as error:
            raise VaultError(
                f"{error}; the request itself is done, and armnesia certificate show has its certificate"
            ) from None
    result = {
        "dry_run": False,
        "repeated": done.repeated,
        "named": done.named,
        "held": done.held,
        "records": done.records,
        "counts": _counts(done.counts, actions),
        "served_before": done.served_before,
        "served": done.served,
        "head": head,
        **certificate_facts(done.certificate),
        "certificate": done.certificate.to_dict(),
        "certificate_file": certificate,
    }
    tell(result, as_json, *_words(done, certificate), *still_to_do(done, url, wanted))


def readmit(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    user: Users = None,
    file: UsersFile = None,
    column: Column = None,
    records: Records = None,
    records_file: RecordsFile = None,
    erase: Annotated[
        bool, typer.Option("--erase", help="Take them off the list altogether: see docs/vault.md.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Let new records of forgotten people in again. Nothing that was deleted comes back."""
    wanted = named(user, file, column, records, records_file)
    with Vault.open(url, keys=keys) as vault:
        number = vault.readmit(**wanted, erase=erase)
        result = {"readmitted": number, "erased": erase, "head": vault.head}
    words = [f"{number} readmitted: their new records are taken in from now on"]
    if erase:
        words.append(
            "Their digests are erased: nobody can look them up in the suppression list any more, certificate"
            " show no longer finds their certificate, and a backup from before their deletion, if it is"
            " restored, brings their old records back"
        )
    tell(result, as_json, *words)


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """What a certificate says, as JSON names it; level and budget are null where nothing was held."""
    body = certificate.body
    entry: Mapping[str, Any] = body["entry"]
    return {
        "sequence": body["sequence"],
        "kind": entry["kind"],
        "unlearner": entry.get("unlearner", {}).get("name"),
        "level": entry.get("level"),
        "budget": entry.get("budget"),
        "erasure": body["erasure"]["state"],
    }


def check_can_be_written(file: Path) -> None:
    """Refuse a file that is there, or whose folder takes none: before anything else is done."""
    if file.exists():
        raise InvalidInputError(f"the file must be a new one; {file} exists already")
    if not file.parent.is_dir():
        raise InvalidInputError(f"the file must be in a folder that exists; {file.parent} is none")
    if not os.access(file.parent, os.W_OK):
        raise InvalidInputError(f"the file must be in a folder that may be written; {file.parent} may not")


def _words(done: Forgotten, file: Path | None) -> list[str]:
    body = done.certificate.body
    if done.repeated:
        first = f"This request was answered before, by entry {body['sequence']}: nothing was changed."
    elif body["entry"]["kind"] == "nothing_held":
        first = f"{_NOTHING_HELD} The ledger says so, and so does the certificate."
    else:
        first = f"Forgotten: {done.records} records. Served before: {done.served_before}; now: {done.served}."
    return [
        first,
        *_named_words(done),
        f"Guarantee: {body['claims']['guarantee']}",
        f"Erasure: {body['erasure']['state']}: {body['erasure']['covers']}",
        f"Ledger: entry {body['sequence']}",
        f"Certificate: {file or 'kept in the vault; see armnesia certificate show'}",
        *(
            []
            if done.certificate.opening
            else ["It names nobody; certificate show opens it for one at a time."]
        ),
    ]


def still_to_do(done: Forgotten, url: str, wanted: Mapping[str, Any]) -> list[str]:
    """What the operator can do about bytes that are not gone yet."""
    if done.certificate.body["erasure"]["state"] == "complete":
        return []
    name = "--user U" if "users" in wanted else "--records ID"
    handed_out = (
        f"armnesia certificate show {name} --out FILE hands out the certificate with erasure complete"
    )
    if url.startswith("sqlite:"):
        return [
            "To do: another process was reading, so the bytes are not gone yet; armnesia status tries again,"
            f" and then {handed_out}."
        ]
    return [f"To do: armnesia compact makes the bytes leave the tables' files, and then {handed_out}."]


def _named_words(found: Forgotten | Preview) -> list[str]:
    """Of how many there was something, where several are named and the vault still knows."""
    if found.named == 1 or found.repeated:
        return []
    return [f"{found.named} named, of {found.held} there were records"]


def _counts(found: Mapping[Hashable, int], actions: Iterable[Hashable]) -> dict[Hashable, int]:
    """The records of every action, also where there are none."""
    return {action: found.get(action, 0) for action in actions}


def _show_preview(found: Preview, actions: Iterable[Hashable], as_json: bool) -> None:
    release = found.release
    probabilities = {}
    if release is not None:
        probabilities = dict(zip(release.actions, release.probabilities.tolist(), strict=True))
    result = {
        "dry_run": True,
        "repeated": found.repeated,
        "named": found.named,
        "held": found.held,
        "records": sum(found.counts.values()),
        "counts": _counts(found.counts, actions),
        "served_before": found.served,
        "unlearner": found.unlearner,
        "probabilities": None if release is None else probabilities,
        "branch": None if release is None else release.branch,
        "guarantee": None if release is None else guarantee_facts(release.guarantee),
        "note": SCREEN_ONLY,
    }
    if release is None:
        tell(result, as_json, "This request was answered before." if found.repeated else _NOTHING_HELD)
        return
    rows = [[action, count, probabilities[action]] for action, count in found.counts.items()]
    tell(
        result,
        as_json,
        table(
            f"Would be forgotten: {result['records']} records. Served now: {found.served}",
            ["action", "records", "P(served then)"],
            rows,
        ),
        *_named_words(found),
        f"Would be answered by: {found.unlearner}",
        f"Guarantee: {release.guarantee}",
        f"Nothing was changed. {SCREEN_ONLY}",
    )
