"""Tilt with each of its predictives, for requests that concern the best arm, an easy arm or a random one.

Reproducing the old decision is not the same as deciding well. A predictive that relies on the retained
records of the arm is better if the best arm lost records; one that relies on the other arms is better if a
worse arm did. The average over arms is the fair comparison. All methods and every ε share their data sets.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.randomness import generators
from armnesia.learners import LCB
from armnesia.paper.comparisons import Estimate, with_error
from armnesia.paper.pictures import BLACK, BLUE, GREEN, VERMILION
from armnesia.paper.protocol import estimated
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import ARM_OF_CASE, C_STAR, DELTA, EASY, HARD, MEANS, Plan
from armnesia.plotting.panels import Curve, Look, Panel, look, picture_of_panels
from armnesia.privacy import Budget
from armnesia.simulation import Environment, OneArm, Row, draw_data_sets
from armnesia.simulation.parallel import Workers
from armnesia.simulation.sweep import data_model
from armnesia.unlearners import Rollback, Tilt
from armnesia.unlearners.base import decision_distribution
from armnesia.unlearners.predictive import PREDICTIVES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_DELETION, ROLLBACK, FLAT, PRIOR = "no deletion", "rollback", "tilt, flat", "tilt, empirical Bayes"
TILTS = {"flat": FLAT, "empirical_bayes": PRIOR}
_LOOKS: dict[str, Look] = {
    NO_DELETION: look(0, color=BLACK, marker=".", linestyle=(0, (5, 2))),
    ROLLBACK: look(0, color=BLUE, marker="o", linestyle=(0, (1.5, 1.2))),
    FLAT: look(0, color=VERMILION, marker="D", linestyle="-"),
    PRIOR: look(0, color=GREEN, marker="^", linestyle=(0, (7, 2, 1.5, 2))),
}
EPSILONS, QUICK_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0), (0.1, 1.0, 3.0)
TEXT_EPSILON = 1.0
ONE_GOOD_ARM = (0.10, *[0.05] * 5)
"""Means with which the other arms carry no information about the best one."""
CASES: dict[str, tuple[int, ...] | None] = {
    "the best arm's": (ARM_OF_CASE[HARD],),
    "an easy arm's": (ARM_OF_CASE[EASY],),
    "of any arm, at random": None,
}
"""The arms that may be requested: the best one, the one of mean 0.06, or any (None)."""
_BLOCKS = 10
_SHARE_OF_DATASETS = 8
"""Each setting uses the plan's number of data sets divided by this."""


@dataclass(frozen=True)
class Setting:
    """The means, N, k and, under M_d, C*; any one arm may be requested."""

    n: int
    k: int
    c_star: float | None = None
    means: tuple[float, ...] = MEANS

    @property
    def environment(self) -> Environment:
        """Bernoulli arms."""
        return Environment.bernoulli(self.means)

    @property
    def name(self) -> str:
        """The model, and the arms if they are not the paper's."""
        model = "M_f" if self.c_star is None else "M_d"
        return model if self.means == MEANS else f"{model}, one good arm of {len(self.means)}"


MAIN_SETTING = Setting(3000, 500)
GRID = tuple(
    Setting(n, k, c_star)
    for c_star in (None, C_STAR)
    for n, k in ((1000, 80), (1000, 160), (2000, 80), (2000, 350), (3000, 80), (3000, 300), (3000, 500))
)
ONE_GOOD_ARM_SETTING = Setting(2400, 332, None, ONE_GOOD_ARM)


@dataclass(frozen=True, eq=False)
class SettingResults:
    """The losses of each method and ε in a setting, by requested arm and block of data sets."""

    setting: Setting
    losses: dict[tuple[str, float], FloatArray]
    datasets: int
    epsilons: tuple[float, ...]

    def suboptimality(self, method: str, epsilon: float, arms: Sequence[int] | None = None) -> Estimate:
        """The expected sub-optimality if the requested arm is drawn uniformly from `arms` (None: all)."""
        blocks = self.blocks(method, epsilon, arms)
        return Estimate(float(blocks.mean()), _error(blocks), epsilon)

    def distance(self, method: str, epsilon: float, arms: Sequence[int] | None = None) -> Estimate:
        """The same, divided by the sub-optimality of no deletion on the same data sets."""
        mine, none = self.blocks(method, epsilon, arms), self.blocks(NO_DELETION, epsilon, arms)
        ratio = float(mine.mean() / none.mean())
        return Estimate(ratio, _error((mine - ratio * none) / none.mean()), epsilon)

    def blocks(self, method: str, epsilon: float, arms: Sequence[int] | None) -> FloatArray:
        """The mean loss of each block."""
        losses = self.losses[method, epsilon]
        return np.asarray((losses if arms is None else losses[list(arms)]).mean(axis=0))


def _error(blocks: FloatArray) -> float:
    return float(blocks.std(ddof=1) / np.sqrt(blocks.size))


def simulate(plan: Plan, those: Workers) -> list[SettingResults]:
    """Simulate all settings; when quick, the main one, one with few deletions, and ONE_GOOD_ARM_SETTING."""
    settings = (*((MAIN_SETTING, Setting(1000, 80)) if plan.quick else GRID), ONE_GOOD_ARM_SETTING)
    epsilons = QUICK_EPSILONS if plan.quick else EPSILONS
    size = max(2, plan.datasets // (_SHARE_OF_DATASETS * _BLOCKS))
    jobs = [(setting, arm) for setting in settings for arm in range(len(setting.means))]
    work = partial(_simulate_arm, epsilons=epsilons, size=size, seed=plan.seed)
    found = dict(zip(jobs, those.map(work, jobs), strict=True))
    return [
        SettingResults(
            setting,
            {
                key: np.stack([found[setting, arm][key] for arm in range(len(setting.means))])
                for key in found[setting, 0]
            },
            size * _BLOCKS,
            epsilons,
        )
        for setting in settings
    ]


def _simulate_arm(
    job: tuple[Setting, int], *, epsilons: tuple[float, ...], size: int, seed: int
) -> dict[tuple[str, float], FloatArray]:
    """The mean losses of every block if this arm is requested."""
    setting, arm = job
    rng = generators(seed, arm + 1)[arm]  # different data for each arm
    losses = _losses(setting, arm, epsilons, _BLOCKS * size, rng)
    return {key: each.reshape(_BLOCKS, size).mean(axis=1) for key, each in losses}


def _losses(
    setting: Setting, arm: int, epsilons: Iterable[float], size: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[str, float], FloatArray]]:
    environment, learner = setting.environment, LCB(confidence=1 / setting.n)
    model = data_model(
        "distribution" if setting.c_star else "fixed", setting.n, environment, setting.c_star or C_STAR
    )
    drawn = draw_data_sets(environment, model, OneArm(arm, setting.k), rng, size)
    data = learner, drawn.statistics, drawn.request
    retained = drawn.statistics.without(drawn.request)
    # The predictives, which take most of the time, do not depend on ε.
    predictives = {name: PREDICTIVES[name](learner, retained, drawn.request.counts) for name in TILTS}
    no_deletion = decision_distribution(learner, drawn.statistics)
    rolled_back = Rollback().release(*data, Budget(epsilon=0.0, delta=0.0)).probabilities
    for epsilon in epsilons:
        budget = Budget(epsilon=epsilon, delta=DELTA)
        released = {NO_DELETION: no_deletion, ROLLBACK: rolled_back}
        for name, predictive in predictives.items():
            tilt = Tilt(predictive=lambda *_, predictive=predictive: predictive)
            released[TILTS[name]] = tilt.release(*data, budget).probabilities
        for method, p in released.items():
            yield (method, epsilon), p @ environment.gaps


def result_rows(plan: Plan, found: Iterable[SettingResults]) -> list[Row]:
    """One row per method, arm and ε."""
    rows = []
    for each in found:
        for method, epsilon in each.losses:
            for arm in range(len(each.setting.means)):
                value, blocks = (
                    each.suboptimality(method, epsilon, [arm]),
                    each.blocks(method, epsilon, [arm]),
                )
                result = estimated(value.value, value.error, each.datasets, blocks)
                cell = plan.cell(
                    ("tradeoff", each.setting.name, "ε", epsilon),
                    *(each.setting.n, OneArm(arm, each.setting.k), {}),
                    epsilon=epsilon,
                    c_star=each.setting.c_star,
                    environment=each.setting.environment,
                )
                rows.append(cell.row(method, result))
    return rows


def tradeoff_section(run: Run) -> Section:
    """Simulate all settings, and describe the results."""
    found = simulate(run.plan, run.workers)
    run.rows += result_rows(run.plan, found)
    return describe_results(found)


def describe_results(found: Sequence[SettingResults]) -> Section:
    """Make a picture, a table and paragraphs of the results."""
    (main,) = (each for each in found if each.setting == MAIN_SETTING)
    (one_good_arm,) = (each for each in found if each.setting == ONE_GOOD_ARM_SETTING)
    papers_arms = [each for each in found if each is not one_good_arm]
    paragraphs = [
        *_paragraphs_on_setting(main),
        _paragraph_on_averages(papers_arms),
        _paragraph_on_one_good_arm(one_good_arm),
    ]
    picture = _picture(main, papers_arms)
    return Section("Tilt's predictive: a trade-off", paragraphs, {"tradeoff": picture}, [_table(found)])


def _picture(main: SettingResults, papers_arms: Sequence[SettingResults]) -> "Figure":
    """The main setting by requested arm, and the average over all settings."""

    def panel(title: str, y_name: str, value: Any, y_log: bool) -> Panel:
        curves = []
        for method, shown in _LOOKS.items():
            each: list[Estimate] = [value(method, epsilon) for epsilon in main.epsilons]
            y, errors = [one.value for one in each], [one.error for one in each]
            curves.append(Curve(method, main.epsilons, y, errors, shown))
        return Panel(title, "ε (log scale)", y_name, curves, x_log=True, y_log=y_log)

    setting = main.setting
    panels = [
        panel(
            f"N = {setting.n}, {setting.k} records deleted: {case}",
            "sub-optimality (log scale)",
            partial(main.suboptimality, arms=arms),
            y_log=True,
        )
        for case, arms in CASES.items()
    ]
    title = f"Of any arm, at random: average over {len(papers_arms)} settings"
    panels.append(panel(title, "times no deletion", partial(average_distance, papers_arms), y_log=False))
    return picture_of_panels(
        [panels[:2], panels[2:]],
        title="Tilt's predictive: better for requests of some arms is worse for others",
        note=r"$\delta = 10^{-5}$. Bands: ± 2 standard errors; all methods on the same data sets.",
        row_height=3.5,
    )


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
    best = (ARM_OF_CASE[HARD],)
    worst = {
        method: max(each.distance(method, TEXT_EPSILON, best).value for each in found)
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
        f" {TEXT_EPSILON:g}, the sub-optimality after a request for the best arm is"
        f" {with_error(prior.value, prior.error, 1)} times that of no deletion with empirical Bayes and"
        f" {with_error(flat.value, flat.error, 1)} times with flat; with the arm drawn at random"
        f" {with_error(fair_prior.value, fair_prior.error, 2)} and"
        f" {with_error(fair_flat.value, fair_flat.error, 2)} times."
    )


def _table(found: Sequence[SettingResults]) -> Table:
    methods = (ROLLBACK, FLAT, PRIOR)
    rows: list[list[object]] = []
    for each in found:
        best = [each.setting.environment.best]
        for epsilon in (epsilon for epsilon in each.epsilons if epsilon in QUICK_EPSILONS):
            distances = [each.distance(method, epsilon, arms) for arms in (None, best) for method in methods]
            no_deletion = each.suboptimality(NO_DELETION, epsilon)
            rows.append(
                [
                    *(each.setting.name, each.setting.n, each.setting.k, f"{epsilon:g}"),
                    with_error(no_deletion.value, no_deletion.error),
                    *(with_error(one.value, one.error, 3) for one in distances),
                ]
            )
    header = ["model", "N", "k", "ε", "no deletion"]
    for case in ("any arm", "best arm"):
        header += [f"{case}: rollback", f"{case}: flat", f"{case}: empirical Bayes"]
    caption = (
        f"Times no deletion, δ = {DELTA:g}; {found[0].datasets:,} data sets per arm, the same for all"
        " methods; ± is one standard error. Any arm: the requested arm is drawn at random."
    )
    return Table(header, rows, caption=caption)
