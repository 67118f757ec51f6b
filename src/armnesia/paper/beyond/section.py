"""The part of the report that goes beyond the paper: pictures, tables, and words with computed numbers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from armnesia.paper.beyond.cells import EPSILONS, ONE_ARM_METHODS, WITHOUT_BUDGET
from armnesia.paper.beyond.tables import (
    COMPARED,
    Place,
    places,
    table_of_distances,
    table_of_mixing,
    table_of_values,
    table_of_worst,
)
from armnesia.paper.bounds.curves import Panel, epsilon_curves
from armnesia.paper.bounds.picture import picture_of_bounds
from armnesia.paper.cells import Row
from armnesia.paper.figures.picture import picture_of_beyond, picture_of_distances
from armnesia.paper.report import Section, save_picture
from armnesia.paper.settings import BASE_K, BASE_N, DELTA
from armnesia.privacy import Budget

SHOWN_EPSILON = 1.0
TOLD_EPSILON = 3.0
CHOSEN = {
    "M_f hard": [(1000, "80 of arm 0"), (3000, "500 of arm 0"), (1000, "80 each of arms 0, 1")],
    "M_f easy": [(3000, "500 of arm 2")],
    "M_d hard": [(1000, "80 of arm 0"), (1000, "80 each of arms 0, 1")],
    "M_f people": [(2000, "160 of arm 0, 20 each of the others"), (2000, "48 each of arms 0, 1, 2, 3, 4")],
    "M_d people": [(2000, "240 of random people")],
}
"""The settings of the second picture and of the table of values."""


def beyond_section(rows: Sequence[Row], folder: Path, *, quick: bool) -> Section:
    """Draw, tabulate and describe the finished cells; the pictures are saved as well."""
    found, curves = places(rows), epsilon_curves(quick=quick)
    pictures = {
        "beyond": picture_of_beyond(rows_of_figure(rows)),
        "beyond-distance": picture_of_distances(rows_of_distances(found)),
        "beyond-epsilon": picture_of_bounds(
            curves,
            title="What an ε buys: the lower bound, tilt, Algorithm 2 and rollback",
            note="Solid: exact. Dashed: upper bounds, tilt's if its predictive is right. Dotted: the lower"
            " bound, for references that see D∖U and the request's shape: rollback and tilt, not"
            " Algorithm 2.",
        ),
    }
    for name, picture in pictures.items():
        save_picture(picture, folder, name)
    return Section(
        "Beyond the paper: the same (ε, δ) for every method",
        [*words_on_budgets(found), *words_on_distances(found), *words_on_bounds(curves)],
        list(pictures.values()),
        [
            table_of_values(found, is_chosen, TOLD_EPSILON),
            table_of_worst(found),
            table_of_mixing(found),
            table_of_distances(found),
        ],
    )


def is_chosen(place: Place) -> bool:
    """Whether a setting is shown by itself."""
    return (place.n, place.request) in CHOSEN.get(place.panel, [])


def rows_of_figure(rows: Iterable[Row]) -> list[Row]:
    """Rows for Figure 1's layout: over N and k at one ε, and over ε at the paper's N and k."""
    methods = ("oracle", *(name for name in COMPARED if name in (*WITHOUT_BUDGET, *ONE_ARM_METHODS)))
    one_arm = [row for row in rows if str(row["arms"]).isdigit() and row["method"] in methods]
    at_one = [
        {**row, "epsilon": SHOWN_EPSILON}
        for row in one_arm
        if row["method"] in WITHOUT_BUDGET or row["epsilon"] == SHOWN_EPSILON
    ]
    at_base = [row for row in one_arm if (row["varied"], row["n"], row["k"]) == ("N", BASE_N, BASE_K)]
    epsilons = sorted({row["epsilon"] for row in at_base})
    over_epsilon = [
        {**row, "varied": "ε", "x": epsilon}
        for row in at_base
        for epsilon in (epsilons if row["method"] in WITHOUT_BUDGET else [row["epsilon"]])
    ]
    return sorted([*at_one, *over_epsilon], key=lambda row: methods.index(row["method"]))


def rows_of_distances(found: Iterable[Place]) -> list[Row]:
    """Rows for the picture of distances: the chosen settings, over ε, with the ratio as their value."""
    rows = []
    for place in filter(is_chosen, found):
        if len(place.epsilons) < 2:
            continue  # a curve needs two points
        model, case = place.panel.split()
        title = f"${model}$, {case}, N = {place.n}\n{place.request}"
        for method in COMPARED:
            for epsilon in place.epsilons:
                row, measured = place.row(method, epsilon), place.distance(method, epsilon)
                if row is not None and measured is not None:
                    value = {"suboptimality": measured.value, "standard_error": measured.error}
                    rows.append({**row, **value, "varied": "ε", "x": epsilon, "title": title})
    return sorted(rows, key=lambda row: COMPARED.index(row["method"]))


def words_on_budgets(found: Sequence[Place]) -> list[str]:
    """What is compared, and what the paper's algorithms do at these budgets."""
    noise = {epsilon: Budget(epsilon=epsilon, delta=DELTA).gamma for epsilon in (EPSILONS[0], 1.0, 5.0)}
    needed = ", ".join(f"γ = {gamma:.3g} at ε = {epsilon:g}" for epsilon, gamma in noise.items())
    same, total = _same_as_rollback(found, ("adaptive", "multi_source"))
    strict_same, strict_total = _same_as_rollback(found, ("strict_adaptive",))
    errors = [row["standard_error"] / row["suboptimality"] for place in found for row in place.rows.values()]
    return [
        "The paper fixes the noise γ, which is no promise by itself. Here every method keeps the same exact"
        f" (ε, δ), δ = 10⁻⁵; by the exact curve that takes {needed}. The levels differ:"
        " Algorithms 2 and 7 and mixing are certified against a reference that is told π(D), the weakest"
        " promise; Gaussian noise, strict adaptive, frozen rollback and tilt against one that sees D∖U and"
        " the request's shape; rollback against retraining, the strongest.",
        f"At these budgets Algorithms 2 and 7 are rollback to the last digit at {same} of {total} points, and"
        f" strict adaptive at {strict_same} of {strict_total}: the noise that they would need is above their"
        " thresholds. Under M_f everything is exact but tilt on several arms; under M_d, and there, data sets"
        f" are drawn, and the largest standard error of any value is {100 * max(errors):.1f} % of it.",
    ]


def _same_as_rollback(found: Iterable[Place], methods: Sequence[str]) -> tuple[int, int]:
    """At how many points a method gives up just what rollback does, on the same data."""
    pairs = [
        (row["suboptimality"], place.rows["rollback", None]["suboptimality"])
        for place in found
        for (method, _), row in place.rows.items()
        if method in methods
    ]
    return sum(abs(ours - rollbacks) <= 1e-12 for ours, rollbacks in pairs), len(pairs)


def words_on_distances(found: Sequence[Place]) -> list[str]:
    """How far tilt and rollback are from no deletion, and where tilt is weak."""
    one_arm = [place for place in found if place.one_arm]
    several = [place for place in found if not place.one_arm]
    half = [place for place in one_arm if place.at_most_half_deleted]
    weak = _weak(one_arm)
    easy = sum("easy" in place.panel for place in weak)
    which = "all" if easy == len(weak) else str(easy)
    smallest = min(epsilon for place in one_arm for epsilon in place.epsilons)
    return [
        f"In {len(one_arm)} settings with one requested arm (Figure 1's, both models, hard and easy) tilt"
        f" gives up at most {_worst(one_arm, 'tilt', 5.0):.2f} times what no deletion does at ε = 5 and"
        f" {_worst(one_arm, 'tilt', 3.0):.2f} times at ε = 3; where no more than half of the arm is deleted,"
        f" {_worst(half, 'tilt', 3.0):.2f} times at ε = 3 and {_worst(half, 'tilt', 1.0):.2f} at ε = 1."
        f" Rollback gives up as much as {_worst(one_arm, 'rollback', 1.0):.1f} times what no deletion does,"
        f" frozen rollback {_worst(one_arm, 'frozen_rollback', 1.0):.1f}. With several requested arms"
        f" ({len(several)} settings) tilt gives up at most {_worst(several, 'tilt', 3.0):.2f} times as much"
        f" at ε = 3, rollback as much as {_worst(several, 'rollback', 3.0):.1f} times.",
        f"Where tilt is weak: at ε = {smallest:g} rollback gives up less than tilt in {len(weak)} of the"
        f" {len(one_arm)} settings with one arm, {which} of them easy. Deleting records of a worse arm raises"
        " its penalty, which happens to be right; tilt keeps to the decision of the full data.",
    ]


def _worst(group: Iterable[Place], method: str, epsilon: float) -> float:
    values = [m.value for place in group if (m := place.distance(method, epsilon)) is not None]
    return max(values, default=float("nan"))


def _weak(group: Iterable[Place]) -> list[Place]:
    """Where tilt at the smallest ε gives up more than rollback."""
    return [
        place
        for place in group
        if place.rows["tilt", place.epsilons[0]]["suboptimality"]
        > place.rows["rollback", None]["suboptimality"]
    ]


def words_on_bounds(curves: Sequence[Panel]) -> list[str]:
    """Tilt beside the lower bound, on the instances of its proof."""
    hard, papers = curves
    lower, tilt = (hard["series"][name]["values"] for name in ("lower bound", "tilt, exact"))
    first, last = hard["x"][0], hard["x"][-1]
    upper = papers["series"]["upper bound of tilt"]["values"]
    says = [epsilon for epsilon, value in zip(papers["x"], upper, strict=True) if value < _rollback(papers)]
    untouched = hard["series"]["no deletion, exact"]["values"][-1]
    return [
        "Over ε: on the two instances of the lower bound's proof tilt gives up"
        f" {tilt[0] / lower[0]:.1f} times the lower bound at ε = {first:g}. As ε grows the lower bound falls"
        " on by e^−ε, for it counts what the deletion costs and not what learning does, while tilt comes"
        f" down to what no deletion gives up: {tilt[-1] / untouched:.3f} times that at ε = {last:g}. What"
        " tilt adds to it falls by e^−ε too. In the paper's setting tilt's upper bound (no deletion and the"
        " most that tilt adds if its predictive is right) is below rollback's loss from ε ="
        f" {min(says, default=float('nan')):g} on, while the bound of Algorithm 2 does not move with ε and"
        " exceeds the largest gap.",
    ]


def _rollback(panel: Mapping[str, Any]) -> float:
    return float(panel["series"]["rollback, exact"]["values"][0])
