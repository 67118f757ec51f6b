"""The commands `arms list`, `arms add` and `arms retire`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, table
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.cli.vault.served import equations, key_in
from armnesia.core.messages import counted
from armnesia.vault import ArmChange, ArmRule

ArmName = Annotated[str, typer.Argument(metavar="ARM", help="The arm: an action, as rows name it.")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE,…", help="Only decisions with these values of keys."),
]
NewRowsOption = Annotated[
    str,
    typer.Option(
        "--new-rows", metavar="count|refuse", help="What happens to rows of the arm that are still to come."
    ),
]


@with_vault_options
def arms_list(options: VaultOptions, where: Where = None, as_json: opt.AsJson = False) -> None:
    """Print every arm, and where it is offered."""
    with options.open() as vault:
        found = vault.arms(key_in(vault, where))
    if found.by:
        rows = [[arm.action, f"{arm.decisions} of {found.decisions}"] for arm in found.arms]
        shown = table("Arms", ["arm", "offered in decisions"], rows)
    else:
        rows = [[arm.action, "yes" if arm.decisions else "no"] for arm in found.arms]
        shown = table("Arms", ["arm", "offered"], rows)
    rules = [[_rule_text(rule), equations(dict(rule.where)) or "all decisions"] for rule in found.rules]
    of_rules = [table("Rules, of which the last holds", ["rule", "where"], rules)] if rules else []
    print_result(found.to_dict, as_json, shown, *of_rules)


@with_vault_options
def arms_add(arm: ArmName, options: VaultOptions, where: Where = None, as_json: opt.AsJson = False) -> None:
    """Offer an arm from now on; a new one starts without rows.

    With --where only in decisions with these values of keys, also in those that appear later.
    """
    with options.open() as vault:
        done = vault.add_arm(arm, key_in(vault, where))
    print_result(done.to_dict, as_json, f"{done.action} is offered {_scope(done)}", _served(done))


@with_vault_options
def arms_retire(
    arm: ArmName,
    options: VaultOptions,
    where: Where = None,
    new_rows: NewRowsOption = "count",
    as_json: opt.AsJson = False,
) -> None:
    """Never serve an arm again; its rows stay, and can be forgotten.

    With --where only in decisions with these values of keys, also in those that appear later.
    """
    with options.open() as vault:
        done = vault.retire_arm(arm, key_in(vault, where), new_rows=new_rows)  # type: ignore[arg-type]
    rows = "are counted" if done.new_rows == "count" else "are refused"
    text = f"{done.action} is retired {_scope(done)} New rows of it {rows}."
    print_result(done.to_dict, as_json, text, _served(done))


def _scope(done: ArmChange) -> str:
    if done.decisions is None:
        return "now."
    where = equations(done.where)
    return (
        f"{f'where {where}' if where else 'in all decisions'}: {counted(done.decisions, 'decision')} changed."
    )


def _served(done: ArmChange) -> str:
    return f"Head of the ledger: {done.head}" if done.decisions is not None else f"Served: {done.served}"


def _rule_text(rule: ArmRule) -> str:
    if rule.offered:
        return f"{rule.arm} is offered"
    return f"{rule.arm} is not offered; new rows: {rule.new_rows}"
