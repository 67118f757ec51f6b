"""What an audit reports, what it shows to a reference, and the small worlds that it searches."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    Decision,
    DeletionRequest,
    Gaussian,
    Learner,
    Level,
    Release,
    Rollback,
    audit,
    feasible_reference,
)
from armnesia.auditing import small_worlds
from armnesia.auditing.linear_programs import worst_divergence
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError

LEARNER = LCB(confidence=0.2)
BUDGET = Budget(epsilon=0.4, delta=0.01)
DATA = ArmStatistics.from_rewards({"a": [1] * 12 + [0] * 4, "b": [1] * 9 + [0] * 7, "c": [1, 1, 0]})
REQUEST = DeletionRequest.from_rewards({"a": [1] * 6, "b": [0] * 3, "c": []})


@dataclass(frozen=True)
class Fixed(Rollback):
    """Releases one given vector and compares it with another; remembers what the reference was shown."""

    p: tuple[float, ...] = (0.7, 0.2, 0.1)
    r: tuple[float, ...] = (0.4, 0.3, 0.3)
    shown: list[dict[str, Any]] = field(default_factory=list)

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        rolled_back = super().release(learner, statistics, request, budget)
        return Release(statistics.actions, np.array(self.p), rolled_back.branch, rolled_back.guarantee)

    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        self.shown.append({"retained": retained, "shape": shape, "decision": original_decision})
        return np.array(self.r)


@dataclass(frozen=True)
class AtRequestShape(Fixed):
    level: ClassVar[Level] = Level.REQUEST_SHAPE


@dataclass(frozen=True)
class AtOriginalDecision(Fixed):
    level: ClassVar[Level] = Level.ORIGINAL_DECISION


def test_both_directions_are_computed() -> None:
    """(0.7, 0.2, 0.1) and (0.4, 0.3, 0.3) at ε = ln 1.5: 0.1 forwards, 0.15 backwards, by hand."""
    budget = Budget(epsilon=math.log(1.5), delta=0.01)
    result = audit(Fixed(), LEARNER, DATA, REQUEST, budget)
    assert result.delta_forward == pytest.approx(0.1)
    assert result.delta_backward == pytest.approx(0.15)
    assert result.delta == pytest.approx(0.15)
    assert not result.holds  # it claims (0, 0)
    assert result.budget is budget
    assert result.guarantee is result.release.guarantee


def test_the_smallest_epsilon_is_where_delta_is_met_both_ways() -> None:
    """Brute force over all sets of arms, slightly above and below."""
    result = audit(Fixed(), LEARNER, DATA, REQUEST, BUDGET)
    p, r = np.array(Fixed().p), np.array(Fixed().r)

    def delta(epsilon: float) -> float:
        sets = [list(s) for size in range(4) for s in itertools.combinations(range(3), size)]
        pairs = [(float(p[s].sum()), float(r[s].sum())) for s in sets]
        return max(max(x - math.exp(epsilon) * y, y - math.exp(epsilon) * x) for x, y in pairs)

    assert delta(float(result.smallest_epsilon) + 1e-9) <= BUDGET.delta
    assert delta(float(result.smallest_epsilon) - 1e-6) > BUDGET.delta


def test_a_batch_reports_each_data_set_and_holds_only_if_all_do() -> None:
    statistics, request = small_worlds(2)
    sound = audit(Gaussian(), LEARNER, statistics, request, BUDGET)
    assert sound.delta.shape == sound.smallest_epsilon.shape == (len(statistics.counts),)
    assert sound.holds
    n = len(statistics.counts)
    p = np.tile([1.0, 0.0], (n, 1))
    almost = p.copy()
    almost[n // 2] = [0.9, 0.1]
    result = audit(Fixed(p=p, r=almost), LEARNER, statistics, request, BUDGET)  # type: ignore[arg-type]
    assert not result.holds
    assert np.flatnonzero(result.delta > 0).tolist() == [n // 2]
    assert audit(Fixed(p=p, r=p), LEARNER, statistics, request, BUDGET).holds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spy", "sees_shape", "sees_decision"),
    [(Fixed(), False, False), (AtRequestShape(), True, False), (AtOriginalDecision(), True, True)],
    ids=["retained", "request_shape", "original_decision"],
)
def test_a_reference_sees_only_what_its_level_may_see(
    spy: Fixed, sees_shape: bool, sees_decision: bool
) -> None:
    audit(spy, LEARNER, DATA, REQUEST, BUDGET)
    (shown,) = spy.shown
    assert shown["retained"] == ArmStatistics.from_rewards(
        {"a": [1] * 6 + [0] * 4, "b": [1] * 9 + [0] * 4, "c": [1, 1, 0]}
    )
    if sees_shape:
        np.testing.assert_array_equal(shown["shape"], [6, 3, 0])
    else:
        assert shown["shape"] is None
    if sees_decision:
        assert shown["decision"].index == LEARNER.decide(DATA).index
    else:
        assert shown["decision"] is None


def worlds_by_hand(max_count: int, *, several_arms: bool) -> set[tuple[int, ...]]:
    """Every (zeros, ones) of D and of U ⊂ D for both arms: a second enumeration, from D down."""
    arms = [
        (zeros, ones, gone_zeros, gone_ones)
        for zeros in range(max_count + 1)
        for ones in range(max_count + 1 - zeros)
        for gone_zeros in range(zeros + 1)
        for gone_ones in range(ones + 1)
    ]
    worlds: set[tuple[int, ...]] = set()
    for left, right in itertools.product(arms, arms):
        if left[0] + left[1] + right[0] + right[1] == 0:
            continue
        if not several_arms and left[2] + left[3] > 0 and right[2] + right[3] > 0:
            continue
        worlds.add((*left, *right))
    return worlds


@pytest.mark.parametrize("several_arms", [True, False])
@pytest.mark.parametrize("max_count", [1, 2, 3, 4])
def test_small_worlds_are_all_of_them_once(max_count: int, several_arms: bool) -> None:
    statistics, request = small_worlds(max_count, several_arms=several_arms)
    unit = 10**9
    rows = []
    for arm in range(2):
        ones, gone_ones = statistics.sums[:, arm] // unit, request.sums[:, arm] // unit
        rows += [statistics.counts[:, arm] - ones, ones, request.counts[:, arm] - gone_ones, gone_ones]
    listed = [tuple(map(int, row)) for row in np.stack(rows, axis=-1)]
    assert len(set(listed)) == len(listed)
    assert set(listed) == worlds_by_hand(max_count, several_arms=several_arms)
    assert request.binary


@pytest.mark.parametrize("max_count", [0, 13, -1])
def test_small_worlds_have_a_size(max_count: int) -> None:
    with pytest.raises(InvalidInputError, match="max_count must lie between 1 and 12"):
        small_worlds(max_count)


def test_the_witness_shows_why_a_level_fails() -> None:
    budget = Budget(epsilon=1, delta=1e-5)
    result = feasible_reference(Gaussian(), LEARNER, level="retained", budget=budget, max_count=3)
    assert not result.holds
    witness = result.witness
    assert len(witness.instances) == len(witness.releases) > 1
    for (statistics, request), release in zip(witness.instances, witness.releases, strict=True):
        assert statistics.without(request) == witness.retained
        again = Gaussian().release(LEARNER, statistics, request, budget)
        np.testing.assert_allclose(again.probabilities, release, rtol=0, atol=1e-14)
    assert len(np.unique(witness.releases, axis=0)) > 1
    assert result.delta == pytest.approx(
        worst_divergence(witness.releases, witness.reference, 1.0), abs=1e-12
    )


def test_the_search_goes_on_past_a_group_that_only_looks_worst() -> None:
    """At ε = 0 with two arms a group's δ is half the width of its releases.

    The first group is 0.9 wide, but neither its mean nor one of its own releases is near its middle, so
    that its easy bound is above the 0.5 of the second group.
    """
    wide, widest = [0.1, 0.98, 0.99, 1.0], [0.0, 1.0]
    instances = []
    for kept, group in (([1], wide), ([0], widest)):
        for k in range(len(group)):
            statistics = ArmStatistics.from_rewards({0: kept + [1] * k, 1: [0]})
            instances.append((statistics, DeletionRequest.from_rewards({0: [1] * k, 1: []})))
    p: Any = np.array([[first, 1 - first] for first in wide + widest])
    result = feasible_reference(
        Fixed(p=p), LEARNER, level="retained", budget=Budget(epsilon=0, delta=0.1), instances=instances
    )
    assert (result.n_groups, len(result.witness.instances)) == (2, 2)
    assert result.delta == pytest.approx(0.5, abs=1e-9)
    assert result.witness.retained == ArmStatistics.from_rewards({0: [0], 1: [0]})


def test_groups_are_what_the_level_sees() -> None:
    """Counted a second time, from the small worlds themselves."""
    statistics, request = small_worlds(3)
    retained = statistics.without(request)
    decision = LEARNER.decide(statistics).index
    shape = [tuple(row) for row in request.counts.tolist()]
    left = [(*c, *s) for c, s in zip(retained.counts.tolist(), retained.sums.tolist(), strict=True)]
    expected = {
        "retained": len(set(left)),
        "request_shape": len(set(zip(left, shape, strict=True))),
        "original_decision": len(set(zip(left, shape, decision.tolist(), strict=True))),
    }
    for level, groups in expected.items():
        result = feasible_reference(Rollback(), LEARNER, level=level, budget=BUDGET, max_count=3)
        assert (result.n_groups, result.n_instances) == (groups, len(shape))
        assert result.level is Level(level)
    with pytest.raises(ValueError, match="unheard of"):
        feasible_reference(Rollback(), LEARNER, level="unheard of", budget=BUDGET, max_count=1)


def test_progress_is_told_and_ends_complete() -> None:
    calls: list[tuple[int, int]] = []
    result = feasible_reference(
        Gaussian(),
        LEARNER,
        level="retained",
        budget=BUDGET,
        max_count=2,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert {total for _, total in calls} == {result.n_groups}
    assert calls[-1] == (result.n_groups, result.n_groups)


def test_instances_of_ones_own() -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        feasible_reference(Rollback(), LEARNER, level="retained", budget=BUDGET, instances=[])
    other = ArmStatistics.from_rewards({"x": [1], "y": []}), DeletionRequest.from_rewards({"x": [], "y": []})
    with pytest.raises(InvalidInputError, match="actions differ"):
        feasible_reference(
            Rollback(), LEARNER, level="retained", budget=BUDGET, instances=[(DATA, REQUEST), other]
        )
    result = feasible_reference(
        Gaussian(), LEARNER, level="request_shape", budget=BUDGET, instances=[(DATA, REQUEST)]
    )
    assert (result.delta, result.n_instances, result.n_groups) == (0.0, 1, 1)
