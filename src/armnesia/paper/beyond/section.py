"""The report's section beyond the paper: pictures, tables, and paragraphs with computed numbers.

The section also shows bounds over ε: this slice uses the curves and the picture of `bounds`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from armnesia.paper.beyond.cells import EPSILONS, beyond_cells
from armnesia.paper.beyond.curves import epsilon_curves
from armnesia.paper.beyond.picture import (
    is_shown,
    picture_of_beyond,
    picture_of_distances,
    rows_of_distances,
    rows_of_figure,
)
from armnesia.paper.beyond.results import SettingResults, distances, results_by_setting
from armnesia.paper.beyond.tables import table_of_distances, table_of_mixing, table_of_values, table_of_worst
from armnesia.paper.bounds.curves import BoundsPanel
from armnesia.paper.bounds.picture import picture_of_bounds
from armnesia.paper.cells import Row
from armnesia.paper.pictures import save_picture
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.settings import DELTA
from armnesia.privacy import Budget

TABLE_EPSILON = 3.0


def beyond_section(run: Run) -> Section:
    """Evaluate all cells, and describe the results."""
    rows = run.evaluate_and_record(beyond_cells(run.plan))
    return describe_results(rows, run.pictures, quick=run.plan.quick)


def describe_results(rows: Sequence[Row], folder: Path, *, quick: bool) -> Section:
    """Make pictures, tables and paragraphs of the rows; the pictures are also saved in the folder."""
    settings, curves = results_by_setting(rows), epsilon_curves(quick=quick)
    pictures = {
        "beyond": picture_of_beyond(rows_of_figure(rows)),
        "beyond-distance": picture_of_distances(rows_of_distances(settings)),
        "beyond-epsilon": picture_of_bounds(
            curves,
            title="Sub-optimality over ε: the lower bound, tilt, Algorithm 2 and rollback",
            note="Solid: exact. Dashed: upper bounds, tilt's if its predictive is right. Dotted: the lower"
            " bound, for references that see D∖U and the request's shape: rollback and tilt, not"
            " Algorithm 2.",
        ),
    }
    for name, picture in pictures.items():
        save_picture(picture, folder, name)
    return Section(
        "Beyond the paper: the same (ε, δ) for every method",
        [
            *paragraphs_on_budgets(settings),
            *paragraphs_on_distances(settings),
            *paragraphs_on_bounds(curves),
        ],
        list(pictures.values()),
        [
            table_of_values(settings, is_shown, TABLE_EPSILON),
            table_of_worst(settings),
            table_of_mixing(settings),
            table_of_distances(settings),
        ],
    )


def paragraphs_on_budgets(settings: Sequence[SettingResults]) -> list[str]:
    """What is compared, and how the paper's algorithms behave at these budgets."""
    noise = {epsilon: Budget(epsilon=epsilon, delta=DELTA).gamma for epsilon in (EPSILONS[0], 1.0, 5.0)}
    needed = ", ".join(f"γ = {gamma:.3g} at ε = {epsilon:g}" for epsilon, gamma in noise.items())
    same, total = _same_as_rollback(settings, ("adaptive", "multi_source"))
    strict_same, strict_total = _same_as_rollback(settings, ("strict_adaptive",))
    rows = [row for setting in settings for row in setting.rows.values()]
    largest_error = max(row["standard_error"] / row["suboptimality"] for row in rows)
    return [
        "The paper fixes the noise γ, which is not a guarantee by itself. Here every method has the same"
        f" exact (ε, δ) with δ = 10⁻⁵. By the exact curve, the noise for this is {needed}. The levels differ."
        " The reference of Algorithms 2 and 7 and of mixing sees π(D), which is the weakest level. The"
        " reference of Gaussian noise (also centred), strict adaptive, frozen rollback and tilt sees D∖U and"
        " the request's shape. The reference of rollback is retraining, which is the strictest level.",
        "At these budgets Algorithms 2 and 7 have the same sub-optimality as rollback at"
        f" {same} of {total} points, and strict adaptive at {strict_same} of {strict_total}: the noise that"
        " they would need is above their thresholds. Under M_f all values are exact, except those of tilt on"
        " more than two arms. Those, and all values under M_d, are sampled; the largest standard error is"
        f" {100 * largest_error:.1f} % of its value.",
    ]


def _same_as_rollback(settings: Iterable[SettingResults], methods: Sequence[str]) -> tuple[int, int]:
    """At how many points methods have the sub-optimality of rollback on the same data, and of how many."""
    pairs = [
        (row["suboptimality"], setting.rows["rollback", None]["suboptimality"])
        for setting in settings
        for (method, _), row in setting.rows.items()
        if method in methods
    ]
    return sum(abs(ours - rollbacks) <= 1e-12 for ours, rollbacks in pairs), len(pairs)


def paragraphs_on_distances(settings: Sequence[SettingResults]) -> list[str]:
    """The distance of tilt and rollback to no deletion, and where tilt is worse than rollback."""
    one_arm = [setting for setting in settings if setting.one_arm]
    several = [setting for setting in settings if not setting.one_arm]
    half = [setting for setting in one_arm if setting.at_most_half_deleted]
    weak = _worse_than_rollback(one_arm)
    easy = sum("easy" in setting.panel for setting in weak)
    which = "all" if easy == len(weak) else str(easy)
    smallest = min(epsilon for setting in one_arm for epsilon in setting.epsilons)
    return [
        "The distance to no deletion is the sub-optimality of a method divided by that of no deletion."
        f" In {len(one_arm)} settings with one requested arm (those of Figure 1, both models, hard and easy),"
        f" the distance of tilt is at most {_worst(one_arm, 'tilt', 5.0):.2f} at ε = 5 and"
        f" {_worst(one_arm, 'tilt', 3.0):.2f} at ε = 3; where at most half of the arm is deleted, it is at"
        f" most {_worst(half, 'tilt', 3.0):.2f} at ε = 3 and {_worst(half, 'tilt', 1.0):.2f} at ε = 1."
        f" The distance of rollback is up to {_worst(one_arm, 'rollback', 1.0):.1f}, that of frozen rollback"
        f" up to {_worst(one_arm, 'frozen_rollback', 1.0):.1f}. In {len(several)} settings with several"
        f" requested arms, the distance of tilt at ε = 3 is at most {_worst(several, 'tilt', 3.0):.2f}, that"
        f" of rollback up to {_worst(several, 'rollback', 3.0):.1f}.",
        f"At ε = {smallest:g} rollback has a smaller sub-optimality than tilt in {len(weak)} of the"
        f" {len(one_arm)} settings with one arm, {which} of them easy. Deleting records of a worse arm"
        " raises its penalty, so that rollback serves that arm less often. Tilt keeps the decision of the"
        " full data.",
    ]


def _worst(group: Iterable[SettingResults], method: str, epsilon: float) -> float:
    return max(distances(group, method, epsilon), default=float("nan"))


def _worse_than_rollback(group: Iterable[SettingResults]) -> list[SettingResults]:
    """The settings in which tilt at the smallest ε is worse than rollback."""
    return [
        setting
        for setting in group
        if setting.rows["tilt", setting.epsilons[0]]["suboptimality"]
        > setting.rows["rollback", None]["suboptimality"]
    ]


def paragraphs_on_bounds(curves: Sequence[BoundsPanel]) -> list[str]:
    """Tilt beside the lower bound, on the instances of the proof."""
    hard, papers = curves
    lower, tilt = (hard["series"][name]["values"] for name in ("lower bound", "tilt, exact"))
    first, last = hard["x"][0], hard["x"][-1]
    upper = papers["series"]["upper bound of tilt, predictive right"]["values"]
    rollback = papers["series"]["rollback, exact"]["values"][0]
    below_rollback = [x for x, value in zip(papers["x"], upper, strict=True) if value < rollback]
    smallest = min(below_rollback, default=float("nan"))
    no_deletion = hard["series"]["no deletion, exact"]["values"][-1]
    return [
        "On the two instances of the lower bound's proof, the sub-optimality of tilt is"
        f" {tilt[0] / lower[0]:.1f} times the lower bound at ε = {first:g}. As ε grows, the lower bound falls"
        " like e^−ε to 0, because it bounds the cost of the deletion and not that of learning. The"
        " sub-optimality of tilt falls to that of no deletion, and is"
        f" {tilt[-1] / no_deletion:.3f} times that at ε = {last:g}; the difference falls like e^−ε too. In"
        " the paper's setting, the upper bound of tilt (no deletion plus the most that tilt adds if its"
        f" predictive is right) is below the exact value of rollback from ε = {smallest:g} on. The bound of"
        " Algorithm 2 does not depend on ε and exceeds the largest gap.",
    ]
