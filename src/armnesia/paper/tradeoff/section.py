"""The report's section on tilt's predictive: the picture, the table and what is to be seen in them."""

from collections.abc import Sequence
from pathlib import Path

from armnesia.paper.measures import Measured
from armnesia.paper.report import Section, Table, save_picture
from armnesia.paper.settings import ARM_OF_CASE, DELTA, EASY, HARD
from armnesia.paper.tradeoff.picture import Panel, picture_of_tradeoff
from armnesia.paper.tradeoff.simulation import MAIN, METHODS, NO_DELETION, ROLLBACK, SPARSE, TILTS, Found

FLAT, PRIOR = TILTS["flat"], TILTS["empirical_bayes"]
TOLD_EPSILON = 1.0
CASES: dict[str, tuple[int, ...] | None] = {
    HARD: (ARM_OF_CASE[HARD],),
    EASY: (ARM_OF_CASE[EASY],),
    "every arm": None,
}
"""Whose records are deleted: the best arm's, those of the arm of mean 0.06, any arm's."""


def tradeoff_section(found: Sequence[Found], folder: Path) -> Section:
    """Draw, tabulate and describe the places."""
    picture = picture_of_tradeoff([*_panels_of(_main(found)), _panel_of_all(_papers(found))])
    save_picture(picture, folder, "tradeoff")
    words = [*_words_on_one_place(_main(found)), *_words_on_all(_papers(found)), *_words_on_sparse(found)]
    return Section("Tilt's predictive: a trade-off", words, [picture], [_table(found)])


def _main(found: Sequence[Found]) -> Found:
    return next(each for each in found if each.place == MAIN)


def _papers(found: Sequence[Found]) -> list[Found]:
    """The places of the paper's world."""
    return [each for each in found if each.place != SPARSE]


def _panels_of(found: Found) -> list[Panel]:
    titles = {
        HARD: "the best arm's",
        EASY: "an easy arm's",
        "every arm": "of any arm, at random",
    }
    return [
        {
            "title": f"N = {found.place.n}, {found.place.k} records deleted: {titles[case]}",
            "y_name": "sub-optimality (log scale)",
            "y_log": True,
            "epsilons": found.epsilons,
            "lines": {
                method: _line([found.value(method, epsilon, arms) for epsilon in found.epsilons])
                for method in METHODS
            },
        }
        for case, arms in CASES.items()
    ]


def _panel_of_all(found: Sequence[Found]) -> Panel:
    epsilons = found[0].epsilons
    return {
        "title": f"Of any arm, at random: average over {len(found)} settings",
        "y_name": "times no deletion",
        "y_log": False,
        "epsilons": epsilons,
        "lines": {
            method: _line([summary(found, method, epsilon) for epsilon in epsilons]) for method in METHODS
        },
    }


def _line(measured: Sequence[Measured]) -> dict[str, list[float]]:
    return {"values": [each.value for each in measured], "errors": [each.error for each in measured]}


def summary(found: Sequence[Found], method: str, epsilon: float) -> Measured:
    """The fair summary: times no deletion, the arm drawn at random, averaged over the places."""
    each = [place.times(method, epsilon) for place in found]
    error = sum(one.error**2 for one in each) ** 0.5 / len(each)
    return Measured(sum(one.value for one in each) / len(each), error, epsilon)


def _words_on_one_place(found: Found) -> list[str]:
    def told(method: str) -> str:
        values = [found.value(method, TOLD_EPSILON, arms) for arms in CASES.values()]
        return " / ".join(f"{value.value:.5f}" for value in values)

    return [
        "Tilt keeps the old decision as often as (ε, δ) allows, and to do so it must guess what the old"
        " decision was. Flat: the deleted records had about the mean of those that are left. Empirical"
        " Bayes: their mean is shrunk to those of the other arms. Neither touches the guarantee.",
        f"At N = {found.place.n}, k = {found.place.k}, ε = {TOLD_EPSILON:g} (hard / easy / the arm drawn at"
        f" random): no deletion {told(NO_DELETION)}; flat {told(FLAT)}; empirical Bayes {told(PRIOR)};"
        f" rollback {told(ROLLBACK)}. Who leans on the other arms serves the easy cases better and the hard"
        " one worse; rollback is the extreme, because it takes a bad arm's lost records for a lost cause.",
    ]


def _words_on_all(found: Sequence[Found]) -> list[str]:
    epsilons = found[0].epsilons

    def listed(method: str) -> str:
        values = [summary(found, method, epsilon) for epsilon in epsilons]
        return ", ".join(f"{value.value:.3f} ± {value.error:.3f}" for value in values)

    better = sum(
        each.value(PRIOR, epsilon).value < each.value(FLAT, epsilon).value
        for each in found
        for epsilon in epsilons
    )
    worst = {
        method: max(each.times(method, TOLD_EPSILON, CASES[HARD]).value for each in found)
        for method in (FLAT, PRIOR)
    }
    return [
        "The fair summary draws the requested arm at random and divides by what no deletion gives up;"
        f" averaged over {len(found)} settings, for ε = {', '.join(f'{e:g}' for e in epsilons)}: flat"
        f" {listed(FLAT)}; empirical Bayes {listed(PRIOR)}. Empirical Bayes has the smaller value in {better}"
        f" of the {len(found) * len(epsilons)} pairs of setting and ε. Its worst hard case at"
        f" ε = {TOLD_EPSILON:g} is {worst[PRIOR]:.2f} times no deletion, flat's {worst[FLAT]:.2f}.",
    ]


def _words_on_sparse(found: Sequence[Found]) -> list[str]:
    sparse = next(each for each in found if each.place == SPARSE)
    best = [sparse.place.environment.best]
    flat, prior = (sparse.times(method, TOLD_EPSILON, best) for method in (FLAT, PRIOR))
    fair_flat, fair_prior = (sparse.times(method, TOLD_EPSILON) for method in (FLAT, PRIOR))
    return [
        "Flat is the default. Empirical Bayes has the better average, by little, and pays for it where most"
        " is at stake, when the best arm's records go. The more so where the other arms say nothing of the"
        f" best one: with one arm of mean {max(SPARSE.means):g} and {len(SPARSE.means) - 1} of"
        f" {min(SPARSE.means):g}, {SPARSE.k} of {SPARSE.n // len(SPARSE.means)} records deleted and"
        f" ε = {TOLD_EPSILON:g}, a request for the best arm costs {prior.value:.1f} ± {prior.error:.1f} times"
        f" no deletion with empirical Bayes and {flat.value:.1f} ± {flat.error:.1f} times with flat; with the"
        f" arm drawn at random {fair_prior.value:.2f} ± {fair_prior.error:.2f} and {fair_flat.value:.2f} ±"
        f" {fair_flat.error:.2f} times.",
    ]


def _table(found: Sequence[Found]) -> Table:
    rows: list[list[object]] = []
    for each in found:
        shown = [epsilon for epsilon in each.epsilons if epsilon in (0.1, 1.0, 3.0)]
        for epsilon in shown:
            fair = [each.times(method, epsilon) for method in (ROLLBACK, FLAT, PRIOR)]
            hard = [
                each.times(method, epsilon, [each.place.environment.best])
                for method in (ROLLBACK, FLAT, PRIOR)
            ]
            oracle = each.value(NO_DELETION, epsilon)
            rows.append(
                [
                    each.place.name,
                    each.place.n,
                    each.place.k,
                    f"{epsilon:g}",
                    f"{oracle.value:.5f} ± {oracle.error:.5f}",
                    *(f"{one.value:.3f} ± {one.error:.3f}" for one in fair),
                    *(f"{one.value:.3f} ± {one.error:.3f}" for one in hard),
                ]
            )
    header = ["model", "N", "k", "ε", "no deletion"]
    for case in ("any arm", "best arm"):
        header += [f"{case}: rollback", f"{case}: flat", f"{case}: empirical Bayes"]
    datasets = found[0].datasets
    caption = (
        f"Times no deletion, δ = {DELTA:g}; {datasets:,} data sets an arm, the same for all methods; ± is one"
        " standard error. Any arm: the requested arm is drawn at random."
    )
    return Table(header, rows, caption=caption)
