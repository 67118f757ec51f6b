"""The simulated year against exact values, and its section of the report."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.learners import LCB
from armnesia.paper.plan import Plan
from armnesia.paper.results import COLUMNS
from armnesia.paper.run import Run
from armnesia.paper.settings import ENVIRONMENT
from armnesia.paper.year.picture import picture_of_year
from armnesia.paper.year.section import year_section
from armnesia.paper.year.simulation import (
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
    simulate,
)
from armnesia.simulation import exact_release
from armnesia.unlearners import FrozenRollback, Gaussian, Rollback, Unlearner

pytestmark = pytest.mark.slow

LEARNER = LCB(confidence=1 / INITIAL_LOG.n)
FAST = {name: strategy for name, strategy in STRATEGIES.items() if not strategy.slow}
DATASETS = 1000


@pytest.fixture(scope="module")
def hard() -> dict[str, YearResult]:
    return simulate(REQUESTS["hard"], FAST, datasets=DATASETS, seed=5)


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
    values, errors = hard[name].by_month
    exact = EXACT[name](month)
    assert abs(values[month - 1] - exact) < 4.5 * errors[month - 1]
    assert errors[month - 1] < 0.0004


def test_the_comparison_sees_the_wrong_penalty(hard: dict[str, YearResult]) -> None:
    """The planted fault: one penalty's year held against the other's exact value."""
    values, errors = hard["frozen rollback"].by_month
    assert abs(values[-1] - EXACT["frozen rollback, frozen"](MONTHS)) > 20 * errors[-1]


def test_algorithm_2_and_its_strict_version_roll_back_at_this_budget(hard: dict[str, YearResult]) -> None:
    for name in ("adaptive", "strict adaptive"):
        np.testing.assert_array_equal(hard[name].losses, hard["rollback"].losses)
        np.testing.assert_array_equal(hard[f"{name}, frozen"].losses, hard["adaptive, frozen"].losses)


def test_frozen_penalties_keep_the_gain_and_retained_ones_lose_it(hard: dict[str, YearResult]) -> None:
    average = {name: year.average[0] for name, year in hard.items()}
    assert average["tilt, frozen"] < 0.4 * average["tilt"] < 0.4 * average["rollback"]
    assert average["no deletion"] < average["tilt, frozen"] < 2 * average["no deletion"]
    assert hard["tilt, frozen"].churn[0] < 0.6 * hard["rollback"].churn[0]


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
        assert year.churn[0] == pytest.approx(year.changes.mean())
    # A coin that is tossed every month changes in half of them: two arms alike would change 6 times.
    drawn = simulate(REQUESTS["hard"], {"gaussian": Strategy(Gaussian())}, datasets=20)["gaussian"]
    assert ((drawn.changes > 0) & (drawn.changes < MONTHS * (1 - 1 / ENVIRONMENT.n_actions))).all()


def test_errors_are_those_of_independent_data_sets(hard: dict[str, YearResult]) -> None:
    year = hard["tilt"]
    averages = year.losses.mean(axis=1)
    assert len(averages) == DATASETS
    assert year.average == pytest.approx((averages.mean(), averages.std(ddof=1) / math.sqrt(DATASETS)))


@pytest.mark.parametrize("requests", REQUESTS)
def test_each_month_deletes_as_many_records(requests: str) -> None:
    counts = np.tile(INITIAL_LOG.counts, (50, 1))
    deleted, short = REQUESTS[requests].draw_deleted(np.random.default_rng(0), counts)
    assert (deleted.sum(axis=1) == K).all()
    assert short == 0


def test_the_result_does_not_depend_on_the_number_of_processes() -> None:
    both = {name: STRATEGIES[name] for name in ("rollback", "gaussian")}
    one, two = (simulate(REQUESTS["even"], both, datasets=60, seed=3, n_jobs=jobs) for jobs in (1, 2))
    for name in both:
        np.testing.assert_array_equal(one[name].losses, two[name].losses)
    assert (len(one["rollback"].losses), len(one["gaussian"].losses)) == (60, 30)


@pytest.mark.slow
def test_the_section_shows_every_strategy(tmp_path: Path) -> None:
    run = Run(tmp_path, Plan(datasets=2000, quick=True))
    section = year_section(run)
    assert sorted(file.name for file in run.pictures.iterdir()) == ["year.png", "year.svg"]
    assert len(run.rows) == len(REQUESTS) * len(STRATEGIES) * MONTHS
    assert all(set(row) == set(COLUMNS) for row in run.rows)
    (table,) = section.tables
    assert len(table.rows) == len(REQUESTS) * len(STRATEGIES)
    assert len({tuple(row[:3]) for row in table.rows}) == len(table.rows)
    axes = section.pictures[0].axes
    assert [len(axis.lines) for axis in axes] == [len(STRATEGIES)] * len(REQUESTS)
    labels = [text.get_text() for text in section.pictures[0].legends[0].get_texts()]
    assert {"no deletion", "rollback", "tilt, retained", "tilt, frozen"} <= set(labels)


def test_pictures_of_nothing_and_of_unknown_penalties_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        picture_of_year({})
    line = {"method": "tilt", "penalty": "thawed", "values": [0.1], "errors": [0.0]}
    with pytest.raises(InvalidInputError, match="penalty must be one of retained, frozen; got 'thawed'"):
        picture_of_year({"hard": [line]})
