"""With very many records a deletion moves a score by less than its rounding; the claims hold all the same."""

from typing import Any

import numpy as np
import pytest

from armnesia import LCB, UNLEARNERS, ArmStatistics, Budget, CentredGaussian, DeletionRequest, audit
from armnesia.core.units import UNIT
from armnesia.unlearners import noise_based

LEARNER = LCB(confidence=0.01)
BUDGET = Budget(epsilon=1.0, delta=1e-5)


def close_races(n: int, k: int, *, two_arms: bool) -> tuple[ArmStatistics, DeletionRequest]:
    """Arms of n records: arm 0 loses k ones or zeros, arm 1 is near it and loses the opposite or nothing."""
    most = n // 10 * 9 * UNIT
    worst = BUDGET.epsilon * BUDGET.gamma**2  # in sensitivities: where the noise hides the least
    near = [
        sign * worst * of + step for sign in (-1, 1) for of in (0.5, 1.0) for step in np.linspace(-1, 1, 41)
    ]
    steps = [round(step * k * UNIT) for step in (*near, *np.linspace(-45, 45, 91))]
    counts, sums, gone, gone_sums = [], [], [], []
    for ones in (0, k):
        for step in steps:
            counts.append([n, n, n])
            sums.append([most, most + step, max(most - 2000 * k * UNIT, 0)])
            gone.append([k, k if two_arms else 0, 0])
            gone_sums.append([ones * UNIT, (k - ones) * UNIT if two_arms else 0, 0])
    statistics = ArmStatistics((0, 1, 2), np.array(counts), np.array(sums, dtype=object))
    return statistics, DeletionRequest(ArmStatistics((0, 1, 2), np.array(gone), np.array(gone_sums)), True)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("n", [10**8, 10**12, 10**15, 10**16])
@pytest.mark.parametrize("name", UNLEARNERS)
def test_every_claim_holds(name: str, n: int) -> None:
    unlearner = UNLEARNERS[name]()
    learner: Any = LEARNER if unlearner.default_learner is LCB else unlearner.default_learner()
    for two_arms in (False, True) if unlearner.several_arms else (False,):
        for k in (1, 1000):
            statistics, request = close_races(n, k, two_arms=two_arms)
            found = audit(unlearner, learner, statistics, request, BUDGET)
            assert found.holds, (two_arms, k, found)


def test_without_noise_for_the_rounding_the_claim_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault; at ordinary counts that noise is nothing."""
    few, many = (close_races(n, 1, two_arms=False) for n in (1000, 10**15))
    ordinary = CentredGaussian().release(LEARNER, *few, BUDGET).probabilities
    monkeypatch.setattr(noise_based, "_ROUNDING", 0.0)
    assert not audit(CentredGaussian(), LEARNER, *many, BUDGET).holds
    without = CentredGaussian().release(LEARNER, *few, BUDGET).probabilities
    np.testing.assert_allclose(ordinary, without, rtol=1e-9, atol=1e-30)
