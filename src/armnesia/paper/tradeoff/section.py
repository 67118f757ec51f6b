"""The report's section on tilt's predictive: picture, table and paragraphs with computed numbers."""

from collections.abc import Sequence
from pathlib import Path

from armnesia.paper.comparisons import Estimate
from armnesia.paper.pictures import save_picture
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table, with_error
from armnesia.paper.settings import ARM_OF_CASE, DELTA, EASY, HARD
from armnesia.paper.tradeoff.picture import EpsilonPanel, picture_of_tradeoff
from armnesia.paper.tradeoff.simulation import (
    MAIN_SETTING,
    METHODS,
    NO_DELETION,
    ONE_GOOD_ARM_SETTING,
    ROLLBACK,
    TILTS,
    SettingResults,
    result_rows,
    simulate,
)

FLAT, PRIOR = TILTS["flat"], TILTS["empirical_bayes"]
TEXT_EPSILON = 1.0
CASES: dict[str, tuple[int, ...] | None] = {
    HARD: (ARM_OF_CASE[HARD],),
    EASY: (ARM_OF_CASE[EASY],),
    "every arm": None,
}
"""The arms that may be requested: the best one, the one of mean 0.06, or any (None)."""


def tradeoff_section(run: Run) -> Section:
    """Simulate all settings, and describe the results."""
    found = simulate(run.plan, run.n_jobs)
    run.rows += result_rows(found)
    return describe_results(found, run.pictures)


def describe_results(found: Sequence[SettingResults], folder: Path) -> Section:
    """Make a picture, a table and paragraphs of the results; the picture is also saved in the folder."""
    (main,) = (each for each in found if each.setting == MAIN_SETTING)
    (one_good_arm,) = (each for each in found if each.setting == ONE_GOOD_ARM_SETTING)
    papers_arms = [each for each in found if each is not one_good_arm]
    picture = picture_of_tradeoff([*_panels_of_setting(main), _panel_of_averages(papers_arms)])
    save_picture(picture, folder, "tradeoff")
    paragraphs = [
        *_paragraphs_on_setting(main),
        _paragraph_on_averages(papers_arms),
        _paragraph_on_one_good_arm(one_good_arm),
    ]
    return Section("Tilt's predictive: a trade-off", paragraphs, [picture], [_table(found)])


def _panels_of_setting(found: SettingResults) -> list[EpsilonPanel]:
    titles = {
        HARD: "the best arm's",
        EASY: "an easy arm's",
        "every arm": "of any arm, at random",
    }
    return [
        {
            "title": f"N = {found.setting.n}, {found.setting.k} records deleted: {titles[case]}",
            "y_name": "sub-optimality (log scale)",
            "y_log": True,
            "epsilons": found.epsilons,
            "lines": {
                method: _line([found.suboptimality(method, epsilon, arms) for epsilon in found.epsilons])
                for method in METHODS
            },
        }
        for case, arms in CASES.items()
    ]


def _panel_of_averages(found: Sequence[SettingResults]) -> EpsilonPanel:
    epsilons = found[0].epsilons
    return {
        "title": f"Of any arm, at random: average over {len(found)} settings",
        "y_name": "times no deletion",
        "y_log": False,
        "epsilons": epsilons,
        "lines": {
            method: _line([average_distance(found, method, epsilon) for epsilon in epsilons])
            for method in METHODS
        },
    }


def _line(estimates: Sequence[Estimate]) -> dict[str, list[float]]:
    return {"values": [each.value for each in estimates], "errors": [each.error for each in estimates]}


def average_distance(found: Sequence[SettingResults], method: str, epsilon: float) -> Estimate:
    """The distance to no deletion with the requested arm drawn at random, averaged over the settings."""
    each = [results.distance(method, epsilon) for results in found]
    error = sum(one.error**2 for one in each) ** 0.5 / len(each)
    return Estimate(sum(one.value for one in each) / len(each), error, epsilon)


def _paragraphs_on_setting(found: SettingResults) -> list[str]:
    def values_of(method: str) -> str:
        values = [found.suboptimality(method, TEXT_EPSILON, arms) for arms in CASES.values()]
        return " / ".join(f"{value.value:.5f}" for value in values)

    return [
        "Tilt keeps the old decision as often as (ε, δ) allows. For this its reference has to predict the old"
        " decision. Flat assumes that the deleted records had about the mean of those that are left."
        " Empirical Bayes shrinks their mean towards those of the other arms. The guarantee is the same.",
        f"At N = {found.setting.n}, k = {found.setting.k}, ε = {TEXT_EPSILON:g} (hard / easy / the arm drawn"
        f" at random): no deletion {values_of(NO_DELETION)}; flat {values_of(FLAT)}; empirical Bayes"
        f" {values_of(PRIOR)}; rollback {values_of(ROLLBACK)}. Empirical Bayes, which uses the other"
        " arms, is better in the easy case and worse in the hard one. Rollback goes further in the same"
        " direction: the penalty of the arm rises, so that it is served less often.",
    ]


def _paragraph_on_averages(found: Sequence[SettingResults]) -> str:
    epsilons = found[0].epsilons

    def listed(method: str) -> str:
        values = [average_distance(found, method, epsilon) for epsilon in epsilons]
        return ", ".join(with_error(value.value, value.error, 3) for value in values)

    better = sum(
        each.suboptimality(PRIOR, epsilon).value < each.suboptimality(FLAT, epsilon).value
        for each in found
        for epsilon in epsilons
    )
    worst = {
        method: max(each.distance(method, TEXT_EPSILON, CASES[HARD]).value for each in found)
        for method in (FLAT, PRIOR)
    }
    return (
        "On average over arms: the requested arm is drawn at random, and the sub-optimality is divided by"
        f" that of no deletion. Averaged over {len(found)} settings, for ε ="
        f" {', '.join(f'{e:g}' for e in epsilons)}: flat {listed(FLAT)}; empirical Bayes {listed(PRIOR)}."
        f" Empirical Bayes has the smaller value in {better} of the {len(found) * len(epsilons)} pairs of"
        f" setting and ε. Its worst hard case at ε = {TEXT_EPSILON:g} is {worst[PRIOR]:.2f} times no"
        f" deletion, flat's {worst[FLAT]:.2f}."
    )


def _paragraph_on_one_good_arm(found: SettingResults) -> str:
    setting = found.setting
    best = [setting.environment.best]
    flat, prior = (found.distance(method, TEXT_EPSILON, best) for method in (FLAT, PRIOR))
    fair_flat, fair_prior = (found.distance(method, TEXT_EPSILON) for method in (FLAT, PRIOR))
    return (
        "Flat is the default. Empirical Bayes has a slightly better average, but is worse if records of the"
        " best arm are deleted, and most of all if the other arms carry no information about the best one."
        f" With one arm of mean {max(setting.means):g} and {len(setting.means) - 1} of"
        f" {min(setting.means):g}, {setting.k} of {setting.n // len(setting.means)} records deleted and ε ="
        f" {TEXT_EPSILON:g}, the sub-optimality after a request for the best arm is {prior.value:.1f} ±"
        f" {prior.error:.1f} times that of no deletion with empirical Bayes and {flat.value:.1f} ±"
        f" {flat.error:.1f} times with flat; with the arm drawn at random {fair_prior.value:.2f} ±"
        f" {fair_prior.error:.2f} and {fair_flat.value:.2f} ± {fair_flat.error:.2f} times."
    )


def _table(found: Sequence[SettingResults]) -> Table:
    rows: list[list[object]] = []
    for each in found:
        shown = [epsilon for epsilon in each.epsilons if epsilon in (0.1, 1.0, 3.0)]
        for epsilon in shown:
            fair = [each.distance(method, epsilon) for method in (ROLLBACK, FLAT, PRIOR)]
            hard = [
                each.distance(method, epsilon, [each.setting.environment.best])
                for method in (ROLLBACK, FLAT, PRIOR)
            ]
            no_deletion = each.suboptimality(NO_DELETION, epsilon)
            rows.append(
                [
                    each.setting.name,
                    each.setting.n,
                    each.setting.k,
                    f"{epsilon:g}",
                    with_error(no_deletion.value, no_deletion.error),
                    *(with_error(one.value, one.error, 3) for one in (*fair, *hard)),
                ]
            )
    header = ["model", "N", "k", "ε", "no deletion"]
    for case in ("any arm", "best arm"):
        header += [f"{case}: rollback", f"{case}: flat", f"{case}: empirical Bayes"]
    datasets = found[0].datasets
    caption = (
        f"Times no deletion, δ = {DELTA:g}; {datasets:,} data sets per arm, the same for all methods; ± is"
        " one standard error. Any arm: the requested arm is drawn at random."
    )
    return Table(header, rows, caption=caption)
