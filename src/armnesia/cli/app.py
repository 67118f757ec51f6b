"""The commands, gathered."""

from typing import Annotated

import typer

from armnesia import __version__
from armnesia.cli.demo import demo
from armnesia.cli.log.case import on_a_case, with_variants
from armnesia.cli.log.compare import OF_ONE_UNLEARNER, compare
from armnesia.cli.log.decide import audit, decide, unlearn
from armnesia.cli.research.evaluate import bounds, evaluate
from armnesia.cli.research.levels import levels
from armnesia.cli.research.privacy import calibrate, curve
from armnesia.cli.research.reproduce import reproduce
from armnesia.cli.vault.forget import forget, readmit
from armnesia.cli.vault.ingest import ingest
from armnesia.cli.vault.init import init, status
from armnesia.cli.vault.upkeep import backup, compact, export, policy, rebuild, restore, rotate_key, upgrade
from armnesia.cli.vault.verify import certificate, ledger, public_key, verify

VAULT = "The vault"

app = typer.Typer(
    name="armnesia",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def armnesia(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Offline bandit decisions that can forget."""
    if version:
        print(f"armnesia {__version__}")
        raise typer.Exit


app.command()(decide)
app.command()(on_a_case(unlearn))
app.command()(on_a_case(audit))
app.command()(on_a_case(compare, without=OF_ONE_UNLEARNER))
app.command()(levels)
app.command()(calibrate)
app.command()(curve)
app.command()(evaluate)
app.command()(bounds)
app.command()(reproduce)
app.command()(demo)

for of_the_vault in (
    with_variants(init),
    ingest,
    with_variants(forget),
    readmit,
    verify,
    ledger,
    status,
    policy,
    public_key,
    rotate_key,
):
    app.command(rich_help_panel=VAULT)(of_the_vault)
app.add_typer(certificate, name="certificate", rich_help_panel=VAULT)
for of_its_upkeep in (compact, rebuild, export, backup, restore, upgrade):
    app.command(rich_help_panel=VAULT)(of_its_upkeep)
