"""Frozen rollback: recomputed from the definition, exact at its level, and no more than that."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import (
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Imitation,
    Level,
    Rollback,
    audit,
    feasible_reference,
)
from armnesia.auditing import small_worlds
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.unlearners.frozen_rollback import frozen_scores
from tests.quick import examples, quick_only

NOTHING = Budget(epsilon=0, delta=0)
TAU = 0.2
LEARNER = LCB(confidence=TAU)

Arms = list[tuple[list[int], list[int]]]
"""For each arm the retained and the deleted rewards, in eighths."""

rewards = st.lists(st.integers(0, 8), max_size=30)
arms_of_any_kind = st.lists(st.tuples(rewards, rewards), min_size=1, max_size=6)


def data_of(arms: Arms) -> tuple[ArmStatistics, DeletionRequest]:
    data = {a: [r / 8 for r in kept + removed] for a, (kept, removed) in enumerate(arms)}
    deleted = {a: [r / 8 for r in removed] for a, (_, removed) in enumerate(arms)}
    return ArmStatistics.from_rewards(data), DeletionRequest.from_rewards(deleted)


def literal_scores(arms: Arms) -> list[float]:
    """Mean of what is left, penalty of what was there; −1 if nothing is left."""
    log_term = math.log(len(arms) / TAU)
    return [
        sum(kept) / 8 / len(kept) - math.sqrt(log_term / (2 * (len(kept) + len(removed)))) if kept else -1.0
        for kept, removed in arms
    ]


@examples(80)
@given(arms_of_any_kind)
def test_it_is_what_its_definition_says(arms: Arms) -> None:
    statistics, request = data_of(arms)
    scores = literal_scores(arms)
    np.testing.assert_allclose(
        frozen_scores(LEARNER, statistics.without(request), request.counts), scores, rtol=0, atol=1e-9
    )
    release = FrozenRollback().release(LEARNER, statistics, request, NOTHING)
    chosen = int(np.argmax(release.probabilities))
    assert sorted(release.probabilities.tolist()) == [0.0] * (len(arms) - 1) + [1.0]
    if any(kept for kept, _ in arms):
        assert scores[chosen] >= max(scores) - 1e-9
    else:
        assert chosen == 0
    assert (release.guarantee.epsilon, release.guarantee.delta) == (0.0, 0.0)
    assert release.guarantee.level is Level.REQUEST_SHAPE
    assert audit(FrozenRollback(), LEARNER, statistics, request, NOTHING).holds


def test_the_penalties_of_what_is_left_would_be_seen() -> None:
    """The planted fault is rollback itself: here it gives up the arm that the frozen penalty keeps."""
    statistics, request = data_of([([8] * 30, [8] * 30), ([8] * 50, [])])
    assert FrozenRollback().release(LEARNER, statistics, request, NOTHING).probabilities.tolist() == [1, 0]
    assert Rollback().release(LEARNER, statistics, request, NOTHING).probabilities.tolist() == [0, 1]


@examples(40)
@given(arms_of_any_kind)
def test_where_nothing_is_deleted_it_is_rollback(arms: Arms) -> None:
    statistics, request = data_of([(kept, []) for kept, _ in arms])
    frozen = FrozenRollback().release(LEARNER, statistics, request, NOTHING)
    rolled_back = Rollback().release(LEARNER, statistics, request, NOTHING)
    np.testing.assert_array_equal(frozen.probabilities, rolled_back.probabilities)
    assert frozen.branch == rolled_back.branch
    np.testing.assert_array_equal(
        frozen_scores(LEARNER, statistics, request.counts), LEARNER.unit_scores(statistics)
    )


def test_an_emptied_arm_scores_minus_one() -> None:
    """However many and however good its records were."""
    statistics, request = data_of([([], [8] * 500), ([0] * 10, [])])
    retained = statistics.without(request)
    scores = frozen_scores(LEARNER, retained, request.counts)
    assert scores[0] == -1.0
    assert scores[1] == pytest.approx(-math.sqrt(math.log(2 / TAU) / 20), abs=1e-12)
    release = FrozenRollback().release(LEARNER, statistics, request, NOTHING)
    assert release.probabilities.tolist() == [0, 1]
    assert release.branch == Branch.FROZEN


def test_with_no_data_left_the_default_is_served() -> None:
    learner = LCB(confidence=TAU, default_action=1)
    statistics, request = data_of([([], [8] * 5), ([], [0] * 3), ([], [])])
    release = FrozenRollback().release(learner, statistics, request, NOTHING)
    assert release.probabilities.tolist() == [0, 1, 0]
    assert release.branch == Branch.NO_DATA_LEFT


def test_a_batch_is_its_data_sets_one_by_one() -> None:
    statistics, request = small_worlds(3)
    batch = FrozenRollback().release(LEARNER, statistics, request, NOTHING).probabilities
    assert batch.shape == statistics.counts.shape
    for i in range(0, len(batch), 97):
        one = ArmStatistics((0, 1), statistics.counts[i], statistics.sums[i])
        deleted = DeletionRequest(ArmStatistics((0, 1), request.counts[i], request.sums[i]))
        single = FrozenRollback().release(LEARNER, one, deleted, NOTHING).probabilities
        np.testing.assert_array_equal(batch[i], single)


@pytest.mark.parametrize("confidence", quick_only([0.5], [0.1, 0.5, 1.0]))
def test_it_is_exact_at_request_shape_and_not_at_retained(confidence: float) -> None:
    """All data sets with up to 4 records per arm, all requests; at level retained no budget is enough."""
    learner = LCB(confidence=confidence)
    with_shape = feasible_reference(
        FrozenRollback(), learner, level="request_shape", budget=NOTHING, max_count=4
    )
    assert with_shape.delta == 0
    assert with_shape.holds
    assert audit(FrozenRollback(), learner, *small_worlds(4), NOTHING).holds
    for budget in (NOTHING, Budget(epsilon=3.0, delta=0.01)):
        result = feasible_reference(FrozenRollback(), learner, level="retained", budget=budget, max_count=4)
        assert result.refuted
        assert not result.holds


def test_imitation_is_refused() -> None:
    """At request_shape imitation has nothing left to hide: its decision depends on counts alone."""
    statistics, request = data_of([([8, 8], [8]), ([0], [])])
    with pytest.raises(UnsupportedError, match=r"frozen_rollback.*'imitation'.*rollback"):
        FrozenRollback().release(Imitation(), statistics, request, NOTHING)
    with pytest.raises(UnsupportedError, match="'imitation'"):
        FrozenRollback().reference(Imitation(), statistics, NOTHING, shape=request.counts)


def test_a_reference_needs_the_shape() -> None:
    statistics, _ = data_of([([8, 8], []), ([0], [])])
    with pytest.raises(InvalidInputError, match="frozen_rollback needs shape"):
        FrozenRollback().reference(LEARNER, statistics, NOTHING)


def test_an_unbound_learner_is_refused() -> None:
    statistics, request = data_of([([8, 8], [8]), ([0], [])])
    with pytest.raises(InvalidInputError, match="no confidence yet"):
        FrozenRollback().release(LCB(), statistics, request, NOTHING)
