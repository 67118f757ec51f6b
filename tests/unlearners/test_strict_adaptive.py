"""Algorithm 2 without π(D): the same noise, chosen by what a reference at `request_shape` may see."""

import numpy as np
import pytest

from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    Level,
    StrictAdaptive,
    audit,
    feasible_reference,
)
from armnesia.auditing import small_worlds
from armnesia.unlearners import Branch
from armnesia.unlearners.frozen_rollback import frozen_scores
from tests.quick import quick_only

EAGER = StrictAdaptive(threshold_scale=1e6)  # takes the noise branch wherever it is certified


@pytest.mark.parametrize(
    ("epsilon", "delta"), quick_only([(5.0, 1e-5)], [(1.0, 1e-5), (5.0, 1e-5), (0.3, 0.05)])
)
@pytest.mark.parametrize("confidence", quick_only([0.5], [0.01, 0.5]))
def test_it_holds_on_every_small_data_set(epsilon: float, delta: float, confidence: float) -> None:
    budget, learner = Budget(epsilon=epsilon, delta=delta), LCB(confidence=confidence)
    found = feasible_reference(EAGER, learner, level="request_shape", budget=budget, max_count=5)
    assert found.branches.get("gaussian", 0) > 500
    assert found.holds
    assert not found.refuted


def test_the_instance_that_breaks_algorithm_2_does_not_break_it() -> None:
    def instance(ones: int, zeros: int) -> tuple[ArmStatistics, DeletionRequest]:
        deleted = [1] * ones + [0] * zeros
        statistics = ArmStatistics.from_rewards({0: [1] * 50 + deleted, 1: [1] * 1745 + [0] * 605})
        return statistics, DeletionRequest.from_rewards({0: deleted, 1: []})

    found = feasible_reference(
        StrictAdaptive(threshold="paper"),
        LCB(confidence=1 / 2500),
        level="request_shape",
        budget=Budget(epsilon=5, delta=1e-5),
        instances=[instance(81, 19), instance(0, 100)],
    )
    assert found.branches == {"gaussian": 2}
    assert found.holds


def test_the_branch_depends_on_nothing_but_what_is_left_and_the_counts() -> None:
    statistics, request = small_worlds(4)
    learner, budget = LCB(confidence=0.3), Budget(epsilon=5.0, delta=1e-5)
    branches = EAGER.release(learner, statistics, request, budget).branch
    retained = statistics.without(request)
    seen = np.concatenate([retained.counts, retained.sums, request.counts], axis=-1)
    _, group = np.unique(seen, axis=0, return_inverse=True)
    for number in range(group.max() + 1):
        assert len(set(branches[group == number])) == 1


def test_noise_goes_to_the_best_frozen_arm_if_it_is_requested() -> None:
    """Literally: the arm with the highest μ̂′ − b(N), noised if it lost records, all others rolled back."""
    statistics, request = small_worlds(4)
    learner, budget = LCB(confidence=0.3), Budget(epsilon=5.0, delta=1e-5)
    release = EAGER.release(learner, statistics, request, budget)
    retained = statistics.without(request)
    guess = np.argmax(frozen_scores(learner, retained, request.counts), axis=-1)
    lost = np.take_along_axis(request.counts, guess[:, None], -1)[:, 0] > 0
    noised = release.branch == Branch.GAUSSIAN
    assert not (noised & ~lost).any()
    assert noised.sum() > 100


def test_it_claims_and_passes_its_own_audit() -> None:
    statistics = ArmStatistics.from_rewards({"A": [1] * 55 + [0] * 45, "B": [1] * 50 + [0] * 50})
    request = DeletionRequest.from_rewards({"A": [1] * 10, "B": [0] * 5})
    result = audit(EAGER, LCB().bind(statistics), statistics, request, Budget(epsilon=5, delta=1e-5))
    assert result.guarantee.level is Level.REQUEST_SHAPE
    assert result.holds
