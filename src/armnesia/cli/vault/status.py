"""The command `status`."""

from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, table
from armnesia.cli.vault.options import VaultOptions, policy_text, with_vault_options
from armnesia.cli.vault.served import equations, key_in, served_text
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted
from armnesia.learners.penalty_warning import warn_of_a_dominating_penalty
from armnesia.vault import EXTERNAL, OPERATOR_ONLY, HeldSource

_PERMISSION = {True: "permitted", False: "not permitted when the vault was created"}


@with_vault_options
def status(
    options: VaultOptions,
    scores: Annotated[
        bool,
        typer.Option("--scores", help="Also the count, mean and score of every arm; not to be published."),
    ] = False,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="KEY=VALUE,…", help="With --scores: of which decision."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the state of the vault, for the operator only.

    Counts published before and after a deletion reveal what was deleted.
    """
    if where and not scores:
        raise InvalidInputError("--where names the decision of --scores, which was not given")
    with options.open() as vault:
        found = vault.status(scores=scores, where=key_in(vault, where))
    configuration, waiting = found.configuration, counted(found.uncompacted, "entry", "entries")
    rows: list[list[Any]] = [
        ["vault", found.vault],
        ["location", found.location],
        *([["organisation", configuration.organisation]] if configuration.organisation else []),
        ["rows", f"{found.records}, {configuration.mode}"],
        (
            ["served", served_text(found.served)]
            if found.decisions is None
            else ["decisions", f"{found.decisions}, by {', '.join(configuration.by)}"]
        ),
        ["learner", f"{configuration.learner}, τ = {configuration.confidence:g}"],
        ["unlearner", configuration.make_unlearner().described],
        ["budget", f"ε = {configuration.epsilon:g}, δ = {configuration.delta:g}"],
        ["penalty", configuration.penalty],
        ["user type", configuration.user_type],
        ["policy", policy_text(configuration.policy)],
        ["on the suppression list", found.suppressed],
        *([["rows replaced by corrections", found.replaced]] if found.replaced else []),
        *([["to compact", f"{waiting}: armnesia compact"]] if found.uncompacted else []),
        *(
            [["erasure at the sources", _PERMISSION[configuration.may_erase_at_source]]]
            if configuration.mode == EXTERNAL
            else []
        ),
        ["signing key", f"version {found.signing_key}"],
        *([["witness", f"{found.witness}, has {found.witnessed} entries"]] if found.witness else []),
    ]
    shown: list[Any] = [table("The vault", ["", ""], rows)]
    if found.sources:
        shown += ["Sources:", *map(_described, found.sources)]  # no table: it would break long names
    if found.scores is not None:
        warn_of_a_dominating_penalty(
            [arm.score for arm in found.scores],
            all(arm.count == 0 for arm in found.scores),
            configuration.reward_range,
        )
        arms = [[arm.action, arm.count, arm.mean, arm.score] for arm in found.scores]
        of = "" if found.scores_of is None else f" of {equations(found.scores_of)}"
        shown.append(table(f"Arms{of}", ["action", "count", "mean", "score"], arms))
    print_result(found.to_dict, as_json, *shown, f"Head of the ledger: {found.head}", OPERATOR_ONLY)


def _described(source: HeldSource) -> str:
    """The name of a source in a line of its own, to be copied, and how it is read."""
    columns = [f"{role} {name}" for role, name in source.columns.items() if name is not None]
    lines = [", ".join(columns), *(f"where {condition}" for condition in source.where)]
    if source.recount:
        lines.append("to be counted again by the next ingest: people were readmitted")
    if source.to_erase:
        lines.append("rows of forgotten people may be there")
    if source.to_purge:
        lines.append("old files or versions may hold erased rows: armnesia erase --purge")
    return "\n    ".join([f"  {source.name}", *lines])
