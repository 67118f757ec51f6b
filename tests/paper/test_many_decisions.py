"""One person in many decisions: the exact losses against releases of drawn decisions, and the section."""

import math

import numpy as np
import pytest

from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB
from armnesia.paper.comparisons import only, pick
from armnesia.paper.many_decisions import (
    EPSILONS,
    METHODS,
    NUMBERS,
    K,
    N,
    many_decisions_cells,
    many_decisions_section,
    with_the_budget_of_all,
)
from armnesia.paper.settings import DELTA, ENVIRONMENT, MEANS, Plan
from armnesia.privacy import Budget
from armnesia.simulation import Row
from armnesia.unlearners import UNLEARNERS, release_jointly
from tests.paper.invented import InventedRun, run_here

UNIT = 10**9


@pytest.fixture(scope="module")
def found() -> list[Row]:
    return with_the_budget_of_all(run_here(many_decisions_cells(Plan())))


def drawn(number: int, random: np.random.Generator) -> tuple[ArmStatistics, DeletionRequest]:
    """Decisions with N/5 rewards of each arm, in each of which K records of the best arm are deleted."""
    counts = np.full((number, 5), N // 5)
    sums = random.binomial(counts, MEANS)
    deleted = np.zeros_like(counts)
    deleted[:, 0] = K
    ones = random.hypergeometric(sums, counts - sums, deleted)
    statistics = ArmStatistics(tuple(range(5)), counts, sums * UNIT)
    return statistics, DeletionRequest(ArmStatistics(tuple(range(5)), deleted, ones * UNIT), binary=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rollback", "gaussian", "mixing", "frozen rollback", "tilt", "tilt, even split"]
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_losses_are_those_of_joint_releases(found: list[Row], name: str, epsilon: float) -> None:
    """150 people in 20 decisions each; within 5 standard errors, a false alarm in about 10⁶ tests."""
    unlearner, composition = METHODS[name]
    assert unlearner is not None
    random = np.random.default_rng(17)
    means = []
    for _ in range(150):
        statistics, request = drawn(20, random)
        release = release_jointly(
            *(unlearner, LCB(confidence=1 / N), statistics, request),
            Budget(epsilon=epsilon, delta=DELTA),
            composition=composition,
        )
        means.append(float((release.probabilities @ ENVIRONMENT.gaps).mean()))
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    exact = only(found, method=name, epsilon=epsilon, x=20)["suboptimality"]
    assert abs(np.mean(means) - exact) < 5 * error


def test_what_needs_no_budget_does_not_depend_on_the_number(found: list[Row]) -> None:
    for name in ("no deletion", "rollback", "frozen rollback", "imitation rollback"):
        assert len({row["suboptimality"] for row in pick(found, method=name)}) == 1
    for epsilon in EPSILONS:
        gaussian = [row["suboptimality"] for row in pick(found, method="gaussian", epsilon=epsilon)]
        assert gaussian == sorted(gaussian)
        assert len(set(gaussian)) == len(NUMBERS)


def test_the_section_has_every_unlearner_and_rows_name_the_budget_of_all() -> None:
    run = InventedRun()
    section = many_decisions_section(run)
    (table,) = section.tables
    assert [str(row[0]).replace(" ", "_") for row in table.rows][1:-1] == list(UNLEARNERS)
    assert len(table.header) == 1 + len(EPSILONS) * len(NUMBERS)
    assert len(run.rows) == len(METHODS) * len(EPSILONS) * len(NUMBERS)
    assert {row["epsilon"] for row in run.rows} == set(EPSILONS)
