"""Commands that an operator needs now and then: policy, keys, space, backups, versions."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows
from armnesia.cli.vault.options import (
    BeyondPolicy,
    Keys,
    Levels,
    MaxDelta,
    MaxEpsilon,
    Url,
    changed_policy,
    policy_words,
    tell,
)
from armnesia.core.errors import InvalidInputError
from armnesia.vault import DEFAULT_URL, Vault

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]


def policy(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    max_epsilon: MaxEpsilon = None,
    max_delta: MaxDelta = None,
    levels: Levels = None,
    beyond: BeyondPolicy = None,
    as_json: opt.AsJson = False,
) -> None:
    """The weakest promise that a request may be answered with; options change it from now on."""
    with Vault.open(url, keys=keys) as vault:
        before = vault.configuration.requests
        now = changed_policy(before, max_epsilon, max_delta, levels, beyond)
        if now != before:
            vault.change_policy(now)
        result = {**now.to_dict(), "changed": now != before, "head": vault.head}
    tell(
        result,
        as_json,
        f"A request may be answered with {policy_words(now)}",
        *(["The policy is changed; the ledger says so."] if now != before else []),
    )


def rotate_key(
    which: Annotated[str, typer.Argument(metavar="signing|digest", help="Which key.")],
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    as_json: opt.AsJson = False,
) -> None:
    """A new key, to sign with or to re-key the suppression list by. Back the keys' file up again after it."""
    if which not in ("signing", "digest"):
        raise InvalidInputError(f"the key must be signing or digest; got {which!r}")
    with Vault.open(url, keys=keys) as vault:
        version = vault.rotate_signing_key() if which == "signing" else vault.rotate_digest_key()
        result = {"key": which, "version": version, "head": vault.head}
    tell(
        result,
        as_json,
        f"The {which} key is version {version} now. Back the keys' file up: the copy you have lacks it.",
    )


def compact(url: Url = DEFAULT_URL, keys: Keys = None, as_json: opt.AsJson = False) -> None:
    """Make deleted bytes leave the database's files, however long it takes. Exit code 1 if they did not."""
    with Vault.open(url, keys=keys) as vault:
        complete = vault.compact()
    words = "complete" if complete else "pending: another process still reads the old pages; try again"
    tell({"erasure": "complete" if complete else "pending"}, as_json, f"Erasure: {words}")
    if not complete:
        raise typer.Exit(1)


def rebuild(
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A source, as status names it, that is gone for good: its rows no longer count."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compute the statistics anew from the rows or sources, forgotten people left out."""
    with Vault.open(url, keys=keys) as vault, counting_rows(quiet=as_json) as progress:
        changed = vault.rebuild(without=without or (), progress=progress)
        result = {"changed": changed, "head": vault.head}
    words = "The statistics were counted anew and are other ones now." if changed else "Nothing to change."
    tell(result, as_json, words)


def upgrade(url: Url = DEFAULT_URL, keys: Keys = None, as_json: opt.AsJson = False) -> None:
    """Bring a vault of an older version to this one; back it up before."""
    before, now = Vault.upgrade(url, keys=keys)
    words = f"Schema version {now}, as before." if before == now else f"Schema version {before} → {now}."
    tell({"from": before, "to": now}, as_json, words)


def export(
    file: NewFile,
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    for_restore: Annotated[
        bool, typer.Option("--for-restore", help="Also the suppression list, as keyed digests.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """What an auditor needs, without personal data; or what brings a backup up to date."""
    with Vault.open(url, keys=keys) as vault:
        document = vault.export(file, for_restore=for_restore)
    entries, certificates = len(document["ledger"]), len(document["certificates"])
    result = {
        "file": file,
        "head": document["head"],
        "entries": entries,
        "certificates": certificates,
        "for_restore": for_restore,
    }
    tell(result, as_json, f"{entries} entries and {certificates} certificates written to {file}")


def backup(file: NewFile, url: Url = DEFAULT_URL, keys: Keys = None, as_json: opt.AsJson = False) -> None:
    """Copy an SQLite vault, as of one moment, into a new file."""
    with Vault.open(url, keys=keys) as vault:
        head = vault.head
        vault.back_up(file)
    tell(
        {"file": file, "head": head},
        as_json,
        f"Written to {file}. It holds people who may be forgotten later: after putting it back, run"
        " armnesia restore with a later armnesia export --for-restore.",
    )


def restore(
    export_file: Annotated[Path, typer.Argument(metavar="EXPORT", help="Made by export --for-restore.")],
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    as_it_is: Annotated[
        bool, typer.Option("--as-it-is", help="Also a copy that something other than armnesia has changed.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Bring a vault put back from a backup up to date: who was forgotten since is forgotten again."""
    replayed = Vault.restore(url, export_file, keys=keys, as_it_is=as_it_is)
    with Vault.open(url, keys=keys) as vault:
        result = {"replayed": replayed, "head": vault.head}
    tell(
        result,
        as_json,
        f"{replayed} entries of the ledger replayed: who was forgotten since the backup is forgotten again",
        "Rows that were ingested after the backup was made are not in it: ingest them again.",
    )
