"""Tilt is (ε, δ) for every D and U, whatever its predictive: exact audits and planted faults."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from armnesia import (
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Imitation,
    Learner,
    Release,
    Rollback,
    Tilt,
    audit,
)
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.units import UNIT
from armnesia.unlearners.predictive import flat
from tests.quick import examples, quick_only
from tests.unlearners.tilt_cases import LEARNER, MODERATE, Floats, Ints, uniform

World = tuple[ArmStatistics, DeletionRequest]


def records(rng: np.random.Generator, counts: Ints, kind: str) -> ArmStatistics:
    """Rewards of any size; or, as an adversary would choose them, all 0 or all 1 in an arm."""
    share = rng.random(counts.shape)
    if kind == "extreme":
        share = np.round(share)
    sums = np.minimum(np.floor(share * counts * UNIT).astype(np.int64), counts * UNIT)
    return ArmStatistics(tuple(range(counts.shape[-1])), counts, sums)


def random_worlds(rng: np.random.Generator, n: int, m: int, touched: float) -> World:
    """Unequal counts, arms without records, arms emptied, data sets emptied; requests over several arms."""
    largest = rng.choice([4, 40, 400], size=(n, m))
    kept = rng.integers(0, largest) * (rng.random((n, m)) < 0.85)
    deleted_counts = rng.integers(0, rng.choice([4, 40, 400], size=(n, m))) * (rng.random((n, m)) < touched)
    kept[rng.random(n) < 0.02] = 0
    deleted = records(rng, deleted_counts, str(rng.choice(["extreme", "any"])))
    return records(rng, kept, "any").merge(deleted), DeletionRequest(deleted)


def random_budget(rng: np.random.Generator) -> Budget:
    """ε from 0 to 20, δ from 0 to 0.5, the ends included."""
    epsilon = rng.choice([0.0, rng.uniform(0, 3), rng.uniform(0, 20), 20.0], p=[0.1, 0.4, 0.4, 0.1])
    delta = rng.choice([0.0, 10.0 ** rng.uniform(-9, -2), rng.uniform(0, 0.5), 0.5], p=[0.2, 0.4, 0.3, 0.1])
    return Budget(epsilon=float(epsilon), delta=float(delta))


BATCH = 125


@pytest.mark.parametrize("share", quick_only([None], [None, 0.3]))
@pytest.mark.parametrize("seed", quick_only([0], range(8)))
def test_the_audit_holds_on_random_data_and_requests(seed: int, share: float | None) -> None:
    """80 batches of 125: 10⁴ (D, U) for each kind of tilt. Many releases use their budget up."""
    rng = np.random.default_rng(seed)
    used_up = several = emptied = 0
    for number in range(10):
        m = int(rng.integers(2, 51)) if number % 2 else int(rng.integers(2, 8))
        world = random_worlds(rng, BATCH, m, float(rng.choice([1 / m, min(1.0, 4 / m)])))
        budget = random_budget(rng)
        if share is not None and m > 8:  # it judges every arm as touched: long integrals, so fewer arms
            m = 8
            world = random_worlds(rng, BATCH, m, 0.4)
        result = audit(Tilt(assumed_share=share), LEARNER, *world, budget)
        assert result.holds, (m, budget, float(result.delta.max()) - budget.delta)
        p = result.release.probabilities
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
        used_up += int((np.abs(result.smallest_epsilon - budget.epsilon) < 1e-6).sum()) * (budget.epsilon > 0)
        several += int((world[1].n_sources > 1).sum())
        emptied += int(((world[0].counts == world[1].counts) & (world[1].counts > 0)).any(axis=-1).sum())
    assert used_up > 100
    assert several > 100
    assert emptied > 100


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.3])
def test_the_audit_holds_where_all_of_fifty_arms_are_touched(share: float | None) -> None:
    rng = np.random.default_rng(12)
    for epsilon in (0.5, 3.0, 20.0):
        world, budget = random_worlds(rng, 20, 50, 1.0), Budget(epsilon=epsilon, delta=1e-5)
        assert audit(Tilt(assumed_share=share), LEARNER, *world, budget).holds


arm = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))


@pytest.mark.slow
@examples(300)
@given(
    st.lists(arm, min_size=2, max_size=50),
    st.floats(0, 20),
    st.one_of(st.floats(0, 0.5), st.sampled_from([0.0, 1e-9, 1e-5])),
    st.sampled_from([1e-3, 0.2, 1.0]),
    st.sets(st.integers(0, 49), max_size=6),
)
def test_the_audit_holds_on_whatever_hypothesis_finds(
    arms: list[tuple[int, int, int, int]], epsilon: float, delta: float, confidence: float, touched: set[int]
) -> None:
    """An arm: ones kept, zeros kept, ones deleted, zeros deleted (if the request touches it)."""

    def rewards(ones: int, zeros: int) -> list[int]:
        return [1] * ones + [0] * zeros

    deleted = {a: rewards(*arm[2:]) if a in touched else [] for a, arm in enumerate(arms)}
    data = ArmStatistics.from_rewards({a: rewards(*arm[:2]) + deleted[a] for a, arm in enumerate(arms)})
    request = DeletionRequest.from_rewards(deleted)
    budget = Budget(epsilon=epsilon, delta=delta)
    result = audit(Tilt(), LCB(confidence=confidence), data, request, budget)
    assert result.holds
    old = LCB(confidence=confidence).decide(data).index
    if (
        data.without(request).total > 0
    ):  # the old decision never loses by the tilt, and the others together do
        gains = result.release.probabilities - result.reference
        assert gains[old] >= -4e-16
        assert np.delete(gains, old).sum() <= 4e-16 * len(arms)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "epsilon", quick_only([30.0, 745.0, math.inf], [30.0, 300.0, 700.0, 720.0, 745.0, 800.0, 1e300, math.inf])
)
@pytest.mark.parametrize("delta", quick_only([0.0, 1e-5], [0.0, 1e-5, 0.5, 1.0]))
def test_the_audit_holds_where_e_to_the_epsilon_is_huge(epsilon: float, delta: float) -> None:
    """1 − p is then far below a double's distance to 1: it must not be computed as a difference."""
    world = random_worlds(np.random.default_rng(11), 300, 4, 0.7)
    result = audit(Tilt(), LEARNER, *world, Budget(epsilon=epsilon, delta=delta))
    assert np.isfinite(result.release.probabilities).all()
    assert result.holds


def the_worst_arm(learner: Learner, retained: ArmStatistics, shape: Ints) -> Floats:
    return np.asarray(np.eye(retained.n_actions)[np.argmin(learner.unit_scores(retained), axis=-1)])


def at_random(learner: Learner, retained: ArmStatistics, shape: Ints) -> Floats:
    alpha = np.full(retained.n_actions, 0.3)
    return np.asarray(np.random.default_rng(3).dirichlet(alpha, size=retained.counts.shape[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.3])
def test_the_audit_holds_with_an_empirical_prior(share: float | None) -> None:
    """2,500 (D, U) of each kind, with emptied arms and data sets, and requests over several arms."""
    rng = np.random.default_rng(22)
    shrunk = Tilt(predictive="empirical_bayes", assumed_share=share)
    for _ in range(20):
        world, budget = random_worlds(rng, BATCH, int(rng.integers(2, 7)), 0.4), random_budget(rng)
        assert audit(shrunk, LEARNER, *world, budget).holds, budget


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("predictive", quick_only([the_worst_arm], [uniform, the_worst_arm, at_random]))
def test_a_bad_predictive_costs_quality_and_never_privacy(
    predictive: Callable[[Learner, ArmStatistics, Ints], Floats], share: float | None
) -> None:
    rng = np.random.default_rng(21)
    bad = Tilt(predictive=predictive, assumed_share=share)
    for _ in range(20):
        world, budget = random_worlds(rng, BATCH, int(rng.integers(2, 51)), 0.3), random_budget(rng)
        assert audit(bad, LEARNER, *world, budget).holds, budget
    world = random_worlds(rng, BATCH, 5, 0.3)
    old = np.eye(5)[LEARNER.decide(world[0]).index] > 0
    good_p = Tilt().release(LEARNER, *world, MODERATE).probabilities[old].mean()
    uninsured = replace(bad, insurance=0)  # with insurance, arms that cannot have been served do not count
    bad_p, less_bad_p = (
        each.release(LEARNER, *world, MODERATE).probabilities[old].mean() for each in (uninsured, bad)
    )
    assert bad_p < good_p - 0.05
    assert less_bad_p >= bad_p


class OneOtherArmPaysForAll(Tilt):
    """A planted fault: all that is left goes to one of the other arms, more than e^ε·r_a or not."""

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        right = super().release(learner, statistics, request, budget)
        m = statistics.n_actions
        old = np.eye(m)[learner.decide(statistics).index]
        heir = np.eye(m)[np.argmax(right.probabilities * (1 - old), axis=-1)]
        kept = (right.probabilities * old).sum(axis=-1, keepdims=True)
        return replace(right, probabilities=kept * old + (1 - kept) * heir)


def by_linear_program(r: Floats, scores: Floats, epsilon: float) -> float:
    """The largest Σ p_a·f_a over all p within (ε, 0) of r."""
    grow = math.exp(epsilon)
    solution = linprog(
        -scores,
        A_eq=np.ones((1, len(r))),
        b_eq=[1.0],
        bounds=list(zip(r / grow, np.minimum(r * grow, 1.0), strict=True)),
    )
    assert solution.success
    return -float(solution.fun)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_release_near_the_reference_has_a_better_score(epsilon: float) -> None:
    """Of all p within (ε, 0) of r, tilt has the highest expected score on D; equal shares have not."""
    rng, budget = np.random.default_rng(33), Budget(epsilon=epsilon, delta=0.0)
    uneven = Tilt(predictive=at_random, insurance=0)  # a bad guess: π(D) often has a small r
    world = random_worlds(rng, 60, 6, 0.5)
    result = audit(uneven, LEARNER, *world, budget)
    assert result.holds
    scores = LEARNER.unit_scores(world[0])
    old = LEARNER.decide(world[0]).index
    shared = []
    for p, r, f, x, left in zip(
        result.release.probabilities,
        result.reference,
        scores,
        old,
        world[0].without(world[1]).total,
        strict=True,
    ):
        if left == 0:
            continue
        best = by_linear_program(r, f, epsilon)
        assert p @ f == pytest.approx(best, abs=1e-9)
        kept = np.arange(len(r)) == x
        alike = np.where(kept, p[x], r * (1 - p[x]) / max(1 - r[x], 1e-300))
        shared.append(best - alike @ f)
    assert max(shared) > 1e-4


def test_a_wrong_share_of_the_others_is_caught() -> None:
    world = random_worlds(np.random.default_rng(31), BATCH, 6, 0.6)
    assert audit(Tilt(), LEARNER, *world, MODERATE).holds
    assert not audit(OneOtherArmPaysForAll(), LEARNER, *world, MODERATE).holds


@pytest.mark.parametrize(
    "wrong",
    [
        lambda r, budget: np.clip(math.exp(budget.epsilon) * r + 2 * budget.delta + 0.01, r, 1.0),
        lambda r, budget: np.clip(math.exp(budget.epsilon) * r + budget.delta, r, 1.0),  # one direction only
        lambda r, budget: np.clip(
            1 - math.exp(-budget.epsilon) * (1 - r - budget.delta), r, 1.0
        ),  # the other
    ],
)
def test_a_raise_too_high_is_caught(wrong: Callable[[Floats, Budget], Floats]) -> None:
    """Planted faults, built from the right reference by a raise that ignores a condition."""

    class RaisedTooHigh(Tilt):
        def release(
            self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
        ) -> Release:
            right = super().release(learner, statistics, request, budget)
            r = self.reference(learner, statistics.without(request), budget, shape=request.counts)
            old = np.eye(statistics.n_actions)[learner.decide(statistics).index]
            kept = (r * old).sum(axis=-1, keepdims=True)
            raised = wrong(kept, budget)
            scale = (1 - raised) / np.where(kept < 1, 1 - kept, 1.0)
            return replace(right, probabilities=np.where(old > 0, raised, r * scale))

    world = random_worlds(np.random.default_rng(32), 200, 4, 0.6)
    assert audit(Tilt(), LEARNER, *world, MODERATE).holds
    assert not audit(RaisedTooHigh(), LEARNER, *world, MODERATE).holds


@pytest.mark.parametrize("insurance", [-0.01, 1.5, math.nan, "0.1", None])
def test_no_insurance_outside_of_zero_and_one(insurance: float) -> None:
    with pytest.raises(InvalidInputError, match=r"insurance must lie in \[0, 1\]; got"):
        Tilt(insurance=insurance)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_no_share_outside_of_zero_and_one(share: float) -> None:
    with pytest.raises(InvalidInputError, match=r"assumed_share must lie in \(0, 1\); got"):
        Tilt(assumed_share=share)


def test_no_budget_releases_the_likeliest_old_decision_almost_always_that_of_the_frozen_rollback() -> None:
    rng, nothing = np.random.default_rng(51), Budget(epsilon=0, delta=0)
    kept, deleted_counts = rng.integers(1, 200, size=(400, 4)), np.zeros((400, 4), dtype=np.int64)
    deleted_counts[np.arange(400), rng.integers(0, 4, 400)] = rng.integers(1, 150, 400)
    deleted = records(rng, deleted_counts, "any")
    world = records(rng, kept, "any").merge(deleted), DeletionRequest(deleted)
    released = Tilt().release(LEARNER, *world, nothing).probabilities
    likeliest = np.argmax(flat(LEARNER, world[0].without(world[1]), world[1].counts), axis=-1)
    np.testing.assert_allclose(released, np.eye(4)[likeliest], rtol=0, atol=1e-15)
    frozen = FrozenRollback().release(LEARNER, *world, nothing).probabilities
    assert (released == frozen).all(axis=-1).mean() > 0.97
    assert (frozen != Rollback().release(LEARNER, *world, nothing).probabilities).any()


def test_an_empty_request_releases_the_decision_exactly_at_any_budget() -> None:
    """Rounding must not give probability to an arm that cannot have been served."""
    rng = np.random.default_rng(52)
    statistics = records(rng, rng.integers(1, 90, size=(20, 3)), "any")
    request = DeletionRequest(records(rng, np.zeros((20, 3), dtype=np.int64), "any"))
    for _ in range(300):
        p = Tilt().release(LEARNER, statistics, request, random_budget(rng)).probabilities
        np.testing.assert_array_equal(p, np.eye(3)[LEARNER.decide(statistics).index])


@pytest.mark.parametrize("insurance", [0, 0.02])
def test_an_empty_request_releases_the_decision_also_if_the_predictive_does_not_know_it(
    insurance: float,
) -> None:
    """In a batch with other requests; where nothing is left, the predictive may return anything."""
    counts, ones = np.array([[9, 8, 7]] * 3), np.array([[8, 3, 2]] * 3)
    statistics = ArmStatistics((0, 1, 2), counts, ones * UNIT)
    some = np.array([[0] * 3, [1, 1, 0], [9, 8, 7]])
    removed = ArmStatistics((0, 1, 2), some, np.where(some == counts, ones, 0) * UNIT)
    guess = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [math.nan] * 3])
    tilt = Tilt(predictive=lambda *_: guess, insurance=insurance)
    release = tilt.release(LEARNER, statistics, DeletionRequest(removed), Budget(epsilon=3.0, delta=1e-5))
    assert release.branch.tolist() == [Branch.UNCHANGED, Branch.TILT, Branch.NO_DATA_LEFT]
    assert release.probabilities[0].tolist() == release.probabilities[2].tolist() == [1.0, 0.0, 0.0]
    assert release.probabilities[1, 0] < 1 or insurance > 0  # insured, it is the only contender


@pytest.mark.parametrize("share", [1 - 1e-16, 1 - 1e-15, 1 - 1e-13])
def test_a_share_so_large_that_counts_overflow_is_refused_in_one_sentence(share: float) -> None:
    data = ArmStatistics((0, 1), np.array([10**6, 10**6]), np.array([10**15, 0]))
    request = DeletionRequest.from_rewards({0: [1], 1: []})
    with pytest.raises(InvalidInputError, match=r"assumed_share must be so small that .* 1e\+18 records"):
        Tilt(assumed_share=share).release(LEARNER, data, request, MODERATE)


@pytest.mark.parametrize("predictive", quick_only([at_random], [flat, at_random]))
def test_without_delta_nothing_is_released_that_the_reference_excludes(
    predictive: Callable[[Learner, ArmStatistics, Ints], Floats],
) -> None:
    """Not even with the 10⁻¹⁶ by which a sum of probabilities misses 1: it would reveal the deletion."""
    rng, excluded = np.random.default_rng(53), 0
    for epsilon in (0.1, 1.0, 1.7, 3.6, 10.0):
        world = random_worlds(rng, 1000, 8, 0.6)
        result = audit(Tilt(predictive=predictive), LEARNER, *world, Budget(epsilon=epsilon, delta=0.0))
        old = np.eye(8)[LEARNER.decide(world[0]).index] > 0
        excluded += int((result.reference[old] == 0).sum())
        assert (result.release.probabilities[result.reference == 0] == 0).all()
    assert excluded > 100


def test_a_predictive_without_a_name_is_refused() -> None:
    with pytest.raises(
        InvalidInputError,
        match="must be one of flat, empirical_bayes, nothing_or_share, equal_counts, by_counts, "
        "or a function; got 'x'",
    ):
        Tilt(predictive="x")


@pytest.mark.parametrize("predictive", [[], {}, 3, True])
def test_a_predictive_that_is_neither_a_name_nor_a_function_is_refused(predictive: Any) -> None:
    with pytest.raises(InvalidInputError, match="predictive must be one of flat, "):
        Tilt(predictive=predictive)


BAD_GUESSES = [
    *([0.5, 0.5, 0.0], np.array([1.0]), 1.0, "a", None, [[0.5, 0.5]], [["0.5", "0.5"]], ["a", "b"]),
    *([0.5, math.nan], [1.0, -0.1], [math.inf, 0.0], [0.0, 0.0], [0.5, 0.5j], [[0.5], [0.5, 0.5]]),
]


@pytest.mark.parametrize("guess", BAD_GUESSES)
def test_a_predictive_that_is_not_one_probability_per_arm_is_refused(guess: object) -> None:
    data = ArmStatistics.from_rewards({"a": [1] * 9, "b": [0] * 9})
    request = DeletionRequest.from_rewards({"a": [1], "b": []})
    with pytest.raises(InvalidInputError, match=r"one number per arm, finite, .*, for 2 arms; got"):
        Tilt(predictive=lambda *_: guess).release(LEARNER, data, request, MODERATE)  # type: ignore[arg-type]
    a_list = Tilt(predictive=lambda *_: [1, 0])  # type: ignore[arg-type]
    assert a_list.release(LEARNER, data, request, MODERATE).probabilities[0] == 1


def test_refusals() -> None:
    data = ArmStatistics.from_rewards({"a": [1] * 9, "b": [0] * 9})
    request = DeletionRequest.from_rewards({"a": [1], "b": []})
    with pytest.raises(UnsupportedError, match=r"tilt.*'imitation'"):
        Tilt().release(Imitation(), data, request, MODERATE)
    with pytest.raises(InvalidInputError, match="needs shape"):
        Tilt().reference(LEARNER, data, MODERATE)
