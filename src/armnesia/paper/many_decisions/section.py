"""The report's section on one person in many decisions, with one guarantee for all of them.

The decisions are alike and independent, and each of those that the request touches gets the same share of the
budget. So the expected loss of one decision, exact, is that of a single decision with that share.
"""

from typing import TYPE_CHECKING

from armnesia.paper.cells import Row
from armnesia.paper.pictures import (
    full_width_panels,
    label_figure,
    plain_log_scale,
    save_picture,
    title_panel,
)
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import ARM_OF_CASE, DELTA, ENVIRONMENT, HARD
from armnesia.plotting.style import COLOURS
from armnesia.privacy import Budget, Composition
from armnesia.simulation import FixedSample, OneArm, evaluate
from armnesia.unlearners import UNLEARNERS, Tilt, Unlearner
from armnesia.unlearners.joint import budget_of_each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = (1, 5, 20, 100)
EPSILONS = (1.0, 3.0)
N, K = 1000, 80
_MODEL = FixedSample.round_robin(N, ENVIRONMENT.n_actions)
_REQUEST = OneArm(ARM_OF_CASE[HARD], K)

METHODS: dict[str, tuple[Unlearner | None, Composition]] = {
    "no deletion": (None, "best"),
    **{name.replace("_", " "): (kind(), "best") for name, kind in UNLEARNERS.items()},
    "tilt, even split": (Tilt(), "even"),
}
"""Every unlearner with its default options, by the best composition; tilt also by the even split."""

Losses = dict[tuple[str, float, int], float]
"""Expected sub-optimality of one decision, by method, total ε and the number of decisions touched."""


def losses() -> Losses:
    """Evaluate every method for every total budget and number of decisions, exactly."""
    found: Losses = {}
    for name, (unlearner, composition) in METHODS.items():
        for epsilon in EPSILONS:
            for number in NUMBERS:
                budget = Budget(epsilon=epsilon, delta=DELTA)
                if unlearner is not None:
                    budget = budget_of_each(unlearner, budget, number, composition)
                result = evaluate(ENVIRONMENT, _MODEL, _REQUEST, unlearner, budget, protocol="exact")
                found[name, epsilon, number] = result.suboptimality
    return found


def many_decisions_section(run: Run) -> Section:
    """One person in 1, 5, 20 and 100 decisions: the loss of each decision with one guarantee for all."""
    found = losses()
    run.rows += _result_rows(found)
    picture = _picture(found)
    save_picture(picture, run.pictures, "many_decisions")
    header = ["method", *(f"ε = {epsilon:g}, d = {number}" for epsilon in EPSILONS for number in NUMBERS)]
    rows = [
        [name, *(f"{found[name, epsilon, number]:.5f}" for epsilon in EPSILONS for number in NUMBERS)]
        for name in METHODS
    ]
    caption = (
        f"Expected sub-optimality of one decision, exact: M_f, N = {N}, k = {K} records of the best arm in"
        f" each of d decisions, (ε, {DELTA:g}) for all d releases together."
    )
    return Section(
        "One person in many decisions", _paragraphs(found), [picture], [Table(header, rows, caption=caption)]
    )


def _paragraphs(found: Losses) -> list[str]:
    def shown(name: str, number: int) -> str:
        return f"{found[name, 1.0, number]:.5f}"

    return [
        "A request that touches d decisions is answered by d releases, and the guarantee is for all of them"
        " together. Noise is composed as Gaussian noise, so that it grows with √d; the budget of tilt is"
        " split by the optimal composition theorem where that is better than ε/d each. Rollback, frozen"
        " rollback and imitation have no budget to split.",
        f"At ε = 1 in all, tilt loses {shown('tilt', 1)} in a single decision, {shown('tilt', 20)} in each of"
        f" 20 ({shown('tilt, even split', 20)} by the even split) and {shown('tilt', 100)} in each of 100"
        f" ({shown('tilt, even split', 100)}); frozen rollback, at the same level and (0, 0), loses"
        f" {shown('frozen rollback', 1)}, rollback {shown('rollback', 1)}, and without a deletion it would be"
        f" {shown('no deletion', 1)}.",
        "With so little for each decision tilt is close to frozen rollback, and its loss does not always fall"
        " as its share rises: tilt keeps the old decision as often as it can, which is not quite the same as"
        " the highest expected reward.",
    ]


def _result_rows(found: Losses) -> list[Row]:
    return [
        {
            "figure": "many_decisions",
            "panel": f"epsilon {epsilon:g}",
            "model": "fixed",
            "varied": "decisions",
            "x": float(number),
            "n": N,
            "arms": str(ARM_OF_CASE[HARD]),
            "k": K,
            "gamma": Budget(epsilon=epsilon, delta=DELTA).gamma,
            "epsilon": epsilon,
            "c_star": None,
            "method": name,
            "suboptimality": value,
            "standard_error": 0.0,
            "protocol": "exact",
            "datasets": 0,
            "short_share": 0.0,
        }
        for (name, epsilon, number), value in found.items()
    ]


def _picture(found: Losses) -> "Figure":
    figure, (axes,) = full_width_panels(1, len(EPSILONS), height=5.0, sharey="row")
    handles = []
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        handles = [
            axis.plot(
                NUMBERS,
                [found[name, epsilon, number] for number in NUMBERS],
                color=COLOURS[place % len(COLOURS)],
                marker="osD^v*PX"[place % 8],
                linestyle="-" if place < len(COLOURS) else (0, (4, 2)),
                linewidth=max(1.4, 3.2 - 0.2 * place),  # methods that coincide stay visible
                label=name,
            )[0]
            for place, name in enumerate(METHODS)
        ]
        plain_log_scale(axis, "x")
        title_panel(axis, f"ε = {epsilon:g} for all decisions together")
        axis.set_xlabel("decisions touched")
    axes[0].set_ylabel("sub-optimality of each decision")
    note = f"M_f, N = {N}, k = {K} of the best arm in each decision, δ = {DELTA:g}; exact."
    label_figure(figure, "One person in many decisions", note, handles, columns=4)
    return figure
