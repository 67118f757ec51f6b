"""The command `finish`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, check_new_folder, make_folder, with_vault_options
from armnesia.core.errors import VaultError
from armnesia.vault import Vault


@with_vault_options
def finish(
    options: VaultOptions,
    since: Annotated[
        int, typer.Option(metavar="ENTRY", help="Only certificates of this ledger entry and later ones.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the certificates that were signed again to this new folder."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Complete pending erasures and sign their certificates again.

    The written certificates name nobody; certificate show opens them. Exit code 1 if some stay pending.
    """
    if out is not None:
        check_new_folder(out)
    with (
        options.open() as vault,
        counting_rows(quiet=as_json, name="signed") as progress,
    ):
        done = vault.finish(since=since, progress=progress)
        if out is not None and done.reissued:
            _write(vault, done.reissued, out)
    lines = [f"Erasure: {done.erasure}. Certificates signed again: {len(done.reissued)}"]
    if out is not None and done.reissued:
        lines.append(f"Written to {out}, named by their ledger entries; they name nobody")
    if not done.complete:
        lines.append(f"{done.pending} certificates stay pending: {done.pending_because}")
    print_result({**done.to_dict(), "folder": out}, as_json, *lines)
    if not done.complete:
        raise typer.Exit(1)


def _write(vault: Vault, entries: tuple[int, ...], folder: Path) -> None:
    make_folder(folder)
    for number, entry in enumerate(entries):
        try:
            vault.certificate_of_entry(entry).save(folder / f"certificate-{entry:06}.json")
        except VaultError as error:
            raise VaultError(
                f"{error}; the certificates are signed, {number} of {len(entries)} are written, and armnesia"
                " certificate show --sequence ENTRY --out FILE writes each of the others"
            ) from None
