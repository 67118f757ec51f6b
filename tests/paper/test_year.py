"""The simulated year against exact values, and its section of the report."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from armnesia.core.arrays import IntArray
from armnesia.learners import LCB
from armnesia.paper.settings import ENVIRONMENT
from armnesia.paper.year import (
    BUDGET,
    INITIAL_LOG,
    K_OF_MAIN_ARM,
    K_OF_OTHER_ARMS,
    MONTHLY_LOG,
    MONTHS,
    REQUESTS,
    STRATEGIES,
    K,
    Strategy,
    YearResult,
    mean_and_error,
    simulate,
    year_section,
)
from armnesia.simulation import exact_release
from armnesia.simulation.parallel import workers
from armnesia.unlearners import FrozenRollback, Gaussian, Rollback, Unlearner
from tests.paper.invented import InventedRun

pytestmark = pytest.mark.slow

LEARNER = LCB(confidence=1 / INITIAL_LOG.n)
FAST = {name: strategy for name, strategy in STRATEGIES.items() if "gaussian" not in strategy.style}
DATASETS = 1000


def simulated(
    requests: str, strategies: dict[str, Strategy], n_jobs: int = 1, **options: int
) -> dict[str, YearResult]:
    with workers(n_jobs) as those:
        return simulate(REQUESTS[requests], those, strategies, **options)


@pytest.fixture(scope="module")
def hard() -> dict[str, YearResult]:
    return simulated("hard", FAST, datasets=DATASETS, seed=5)


def there(month: int) -> IntArray:
    """The records of each arm that arrived up to a month."""
    return np.asarray(INITIAL_LOG.counts, dtype=np.int64) + month * np.asarray(
        MONTHLY_LOG.counts, dtype=np.int64
    )


def deleted_in(months: int) -> IntArray:
    """The records of each arm that the given number of hard months delete."""
    return months * np.asarray([K_OF_MAIN_ARM, *[K_OF_OTHER_ARMS] * 4], dtype=np.int64)


def exact_loss(counts: IntArray, deleted: IntArray, unlearner: Unlearner | None) -> float:
    p = exact_release(ENVIRONMENT, counts, deleted, unlearner, LEARNER, BUDGET)
    return float(p @ ENVIRONMENT.gaps)


def nothing(month: int) -> IntArray:
    return np.zeros_like(there(month))


EXACT: dict[str, Callable[[int], float]] = {
    # What is deleted does not depend on rewards, so what is left are as many independent records.
    "no deletion": lambda t: exact_loss(there(t), nothing(t), None),
    "rollback": lambda t: exact_loss(there(t), deleted_in(t), Rollback()),
    # The release still has the penalty of this month's deletions, and no earlier one's.
    "frozen rollback": lambda t: exact_loss(there(t) - deleted_in(t - 1), deleted_in(1), FrozenRollback()),
    # A year of frozen deletions is one frozen deletion of all of them.
    "frozen rollback, frozen": lambda t: exact_loss(there(t), deleted_in(t), FrozenRollback()),
    # At this budget it rolls back: with a frozen penalty it lags by one month's counts.
    "adaptive, frozen": lambda t: exact_loss(there(t) - deleted_in(1), deleted_in(t - 1), FrozenRollback()),
}


@pytest.mark.parametrize("month", [1, 6, MONTHS])
@pytest.mark.parametrize("name", EXACT)
def test_months_agree_with_exact_values(hard: dict[str, YearResult], name: str, month: int) -> None:
    """15 comparisons within 4.5 standard errors: a false alarm has probability about 10⁻⁴."""
    values, errors = mean_and_error(hard[name].losses)
    exact = EXACT[name](month)
    assert abs(values[month - 1] - exact) < 4.5 * errors[month - 1]
    assert errors[month - 1] < 0.0004


def test_the_comparison_sees_the_wrong_penalty(hard: dict[str, YearResult]) -> None:
    """The planted fault: one penalty's year held against the other's exact value."""
    values, errors = mean_and_error(hard["frozen rollback"].losses)
    assert abs(values[-1] - EXACT["frozen rollback, frozen"](MONTHS)) > 20 * errors[-1]


def test_algorithm_2_and_its_strict_version_roll_back_at_this_budget(hard: dict[str, YearResult]) -> None:
    for name in ("adaptive", "strict adaptive"):
        np.testing.assert_array_equal(hard[name].losses, hard["rollback"].losses)
        np.testing.assert_array_equal(hard[f"{name}, frozen"].losses, hard["adaptive, frozen"].losses)


def test_frozen_penalties_keep_the_gain_and_retained_ones_lose_it(hard: dict[str, YearResult]) -> None:
    average = {name: year.losses.mean() for name, year in hard.items()}
    assert average["tilt, frozen"] < 0.4 * average["tilt"] < 0.4 * average["rollback"]
    assert average["no deletion"] < average["tilt, frozen"] < 2 * average["no deletion"]
    assert hard["tilt, frozen"].changes.mean() < 0.6 * hard["rollback"].changes.mean()


def test_levels_are_those_of_the_releases(hard: dict[str, YearResult]) -> None:
    assert {name: None if year.level is None else str(year.level) for name, year in hard.items()} == {
        "no deletion": None,
        "rollback": "retained",
        "adaptive": "original_decision",
        "adaptive, frozen": "original_decision",
        "strict adaptive": "request_shape",
        "strict adaptive, frozen": "request_shape",
        "frozen rollback": "request_shape",
        "frozen rollback, frozen": "request_shape",
        "tilt, share assumed": "retained",
        "tilt": "request_shape",
        "tilt, frozen": "request_shape",
    }


def test_changes_of_a_rule_without_noise_are_counted(hard: dict[str, YearResult]) -> None:
    """Gaps tell arms apart, so that a change of the loss is a change of the arm; the first is not seen."""
    for name in ("no deletion", "rollback", "frozen rollback, frozen"):
        year = hard[name]
        seen = (np.diff(year.losses, axis=1) != 0).sum(axis=1)
        first = year.changes - seen
        assert set(np.unique(first)) <= {0.0, 1.0}
    # A coin that is tossed every month changes in half of them: two arms alike would change 6 times.
    drawn = simulated("hard", {"gaussian": Strategy(Gaussian(), "gaussian")}, datasets=20)["gaussian"]
    assert ((drawn.changes > 0) & (drawn.changes < MONTHS * (1 - 1 / ENVIRONMENT.n_actions))).all()


def test_errors_are_those_of_independent_data_sets(hard: dict[str, YearResult]) -> None:
    year = hard["tilt"]
    averages = year.losses.mean(axis=1)
    assert len(averages) == DATASETS
    assert mean_and_error(averages) == pytest.approx(
        (averages.mean(), averages.std(ddof=1) / math.sqrt(DATASETS))
    )


@pytest.mark.parametrize("requests", REQUESTS)
def test_each_month_deletes_as_many_records(requests: str) -> None:
    counts = np.tile(INITIAL_LOG.counts, (50, 1))
    deleted, short = REQUESTS[requests].draw_deleted(np.random.default_rng(0), counts)
    assert (deleted.sum(axis=1) == K).all()
    assert short == 0


def test_the_result_does_not_depend_on_the_number_of_processes() -> None:
    both = {name: STRATEGIES[name] for name in ("rollback", "gaussian")}
    one, two = (simulated("even", both, jobs, datasets=60, seed=3) for jobs in (1, 2))
    for name in both:
        np.testing.assert_array_equal(one[name].losses, two[name].losses)
    assert (len(one["rollback"].losses), len(one["gaussian"].losses)) == (60, 30)


def test_the_section_shows_every_strategy_each_in_a_colour_or_line_of_its_own() -> None:
    run = InventedRun(datasets=2000)
    section = year_section(run)
    assert len(run.rows) == len(REQUESTS) * len(STRATEGIES) * MONTHS
    (table,) = section.tables
    assert len({tuple(row[:3]) for row in table.rows}) == len(table.rows) == len(REQUESTS) * len(STRATEGIES)
    figure = section.pictures["year"]
    assert [len(axis.lines) for axis in figure.axes] == [len(STRATEGIES)] * len(REQUESTS)
    colours: dict[str, set[str]] = {}
    for handle in figure.legends[0].get_lines():
        method = str(handle.get_label()).removesuffix(", frozen").removesuffix(", retained")
        colours.setdefault(str(handle.get_color()), set()).add(method)
    assert all(len(methods) == 1 for methods in colours.values())
    assert len(colours) == len({strategy.style for strategy in STRATEGIES.values()})
