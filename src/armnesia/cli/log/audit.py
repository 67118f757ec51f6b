"""The command `audit`."""

import numpy as np
import typer

from armnesia.auditing import audit as run_audit
from armnesia.auditing.audit import SHOWN_ORDERS
from armnesia.cli import options as opt
from armnesia.cli.log.jointly import print_joint_audit
from armnesia.cli.log.request import UnlearningCase, read_request
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import with_options_of


@with_options_of(read_request, "case")
def audit(case: UnlearningCase, as_json: opt.AsJson = False) -> None:
    """Compare release and reference of an unlearner exactly.

    Exit code 1 unless the claim holds on this log and request. With --by, all decisions together.
    """
    budget = case.budget
    if case.decisions is not None:
        print_joint_audit(case, case.decisions, as_json)
        return
    found = run_audit(case.unlearner, case.learner, case.statistics, case.request, budget)
    orders = {f"{order:g}".replace("inf", "∞"): float(found.renyi(order)) for order in SHOWN_ORDERS}
    divergences = ", ".join(f"{value:.6g} (order {order})" for order, value in orders.items())
    one_sided = "; inf because only one side can release some arm" if np.inf in orders.values() else ""
    claim, claimed = found.guarantee, f"; δ = {float(found.delta_at_claim):.6g} at the claimed ε"
    shown = table(
        f"Audit of {case.unlearner.name}",
        ["action", "P(released)", "P(reference)"],
        zip(
            case.statistics.actions,
            found.release.probabilities.tolist(),
            found.reference.tolist(),
            strict=True,
        ),
    )
    print_result(
        {**case.to_dict(), **found.to_dict()},
        as_json,
        shown,
        *case.method_lines(),
        f"Claimed: {claim}",
        f"Measured here: δ = {float(found.delta):.6g} at ε = {budget.epsilon:.6g}"
        f" (release → reference {float(found.delta_forward):.6g}, back {float(found.delta_backward):.6g});"
        f" ε = {float(found.smallest_epsilon):.6g} at δ = {budget.delta:.3g}"
        f"{claimed if claim.epsilon != budget.epsilon else ''}",
        f"Telling release from reference: advantage {float(found.advantage):.6g} (membership inference);"
        f" a test with 5 % false alarms misses {100 * float(found.trade_off(0.05)):.4g} % or more;"
        f" Rényi divergence {divergences}{one_sided}",
        f"The claim {'holds' if found.holds else 'does not hold'} on this log and request.",
    )
    if not found.holds:
        raise typer.Exit(1)
