"""Exact evaluation of tilt for two arms where the predictive has ties: it is what tilt releases."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from armnesia import LCB, ArmStatistics, Budget, DeletionRequest, Tilt
from armnesia.core.units import UNIT
from armnesia.simulation import Environment, FixedSample, SeveralArms, evaluate, exact_release
from armnesia.unlearners.tilt_reference import best_reference
from tests.unlearners.tilt_cases import Floats

MEANS = [0.6, 0.4]


def enumerated(counts: tuple[int, ...], deleted: tuple[int, ...], tilt: Tilt, budget: Budget) -> Floats:
    """P(released arm), summed over all kept and deleted sums with the release of each."""
    left = np.subtract(counts, deleted)
    numbers = [*left, *deleted]
    sums = np.array(list(product(*(range(number + 1) for number in numbers))))
    weights = np.prod(binom.pmf(sums, numbers, MEANS * 2), axis=-1)
    removed = ArmStatistics((0, 1), np.array(deleted) + 0 * sums[:, 2:], sums[:, 2:] * UNIT)
    kept = ArmStatistics((0, 1), left + 0 * sums[:, :2], sums[:, :2] * UNIT)
    learner = LCB(confidence=1 / sum(counts))
    release = tilt.release(learner, kept.merge(removed), DeletionRequest(removed, binary=True), budget)
    return np.asarray(weights @ release.probabilities)


def test_pieces_whose_gains_differ_by_rounding_only_go_to_the_first_arm() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    tie, near = np.array([0.5, 0.5]), np.array([0.49999999999999967, 0.4999999999999998])
    assert (best_reference(tie, budget) == best_reference(near, budget)).all()
    assert best_reference(near, budget)[0] > 0.7
    assert best_reference(np.array([0.4999999, 0.5000001]), budget)[1] > 0.7
    tiny = best_reference(np.array([1.0, 3e-12, 4e-12]), Budget(epsilon=13.19, delta=0.0))
    assert tiny[1] == 0 < tiny[2]  # 4e-12·e^26.38 is above 1, 3e-12·e^26.38 is not


def test_a_cell_whose_predictive_is_one_half_each() -> None:
    counts, deleted, budget = (7, 6), (7, 2), Budget(epsilon=1.0, delta=1e-5)
    request = SeveralArms(dict(enumerate(deleted)))
    exact = evaluate(Environment.bernoulli(MEANS), FixedSample(counts), request, Tilt(), budget)
    assert exact.protocol == "exact"
    assert exact.suboptimality == pytest.approx(
        0.2 * enumerated(counts, deleted, Tilt(), budget)[1], abs=1e-9
    )
    assert exact.suboptimality == pytest.approx(0.0516, abs=0.0005)


def cells(largest: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    both = product(range(1, largest + 1), repeat=2)
    return [
        (counts, deleted)
        for counts, deleted in product(both, product(range(1, largest + 1), repeat=2))
        if deleted[0] <= counts[0] and deleted[1] <= counts[1] and deleted != counts
    ]


@pytest.mark.parametrize("step", [83, pytest.param(11, marks=pytest.mark.slow)])
def test_many_small_cells_are_what_tilt_releases(step: int) -> None:
    """Two arms with up to eight records each, at least one of each deleted; emptied arms are among them."""
    worst = 0.0
    for counts, deleted in cells(8)[::step]:
        for epsilon in (0.5, 1.0, 3.0):
            budget = Budget(epsilon=epsilon, delta=1e-5)
            learner = LCB(confidence=1 / sum(counts))
            exact = exact_release(
                Environment.bernoulli(MEANS), np.array(counts), np.array(deleted), Tilt(), learner, budget
            )
            worst = max(worst, float(np.abs(exact - enumerated(counts, deleted, Tilt(), budget)).max()))
    assert worst < 1e-9
