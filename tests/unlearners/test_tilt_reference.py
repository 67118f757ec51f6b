"""Tilt's parts: the reference against a linear program, and the highest raise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from armnesia import LCB, ArmStatistics, Budget, DeletionRequest, Tilt
from armnesia.unlearners.predictive import flat
from armnesia.unlearners.tilt import tilted
from armnesia.unlearners.tilt_reference import best_reference, highest_allowed
from tests.quick import examples, quick_only

Floats = NDArray[np.float64]


def lines(r: Floats, epsilon: float, delta: float) -> Floats:
    """hi(r), written out: the lowest of three lines."""
    grow = math.exp(epsilon)
    return np.minimum(1.0, np.minimum(grow * r + delta, 1 - (1 - r - delta) / grow))


def by_linear_program(q: Floats, epsilon: float, delta: float) -> float:
    """The largest Σ q_a·t_a over r in the simplex and t below each of the three lines; variables (r, t)."""
    m, grow = len(q), math.exp(epsilon)
    eye = np.eye(m)
    solution = linprog(
        np.concatenate([np.zeros(m), -q]),
        A_ub=np.vstack([np.hstack([-grow * eye, eye]), np.hstack([-eye / grow, eye])]),
        b_ub=np.concatenate([np.full(m, delta), np.full(m, 1 - (1 - delta) / grow)]),
        A_eq=np.concatenate([np.ones(m), np.zeros(m)])[None, :],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * m + [(None, 1.0)] * m,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.fun is not None, solution.message
    return -float(solution.fun)


def random_predictive(rng: np.random.Generator, m: int) -> Floats:
    """From nearly certain to nearly uniform, some arms impossible, some tied."""
    q = np.asarray(rng.dirichlet(np.full(m, rng.choice([0.05, 0.5, 5.0]))))
    if rng.random() < 0.3:
        q = np.where(rng.random(m) < 0.5, q, 0.0)
    if rng.random() < 0.2:
        q = np.round(q, 1)
    return q / q.sum() if q.sum() > 0 else np.full(m, 1 / m)


def random_budget(rng: np.random.Generator, number: int) -> Budget:
    epsilon = 0.0 if number % 10 == 0 else float(rng.uniform(0, 10))
    delta = 0.0 if number % 7 == 0 else float(rng.choice([rng.uniform(0, 0.5), 10.0 ** rng.uniform(-9, -2)]))
    return Budget(epsilon=epsilon, delta=delta)


def falls_short(q: Floats, r: Floats, budget: Budget) -> float:
    value = float(q @ lines(r, budget.epsilon, budget.delta))
    return by_linear_program(q, budget.epsilon, budget.delta) - value


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_only([0], range(4)))
def test_the_greedy_fill_is_the_optimum_of_the_linear_program(seed: int) -> None:
    """1000 instances over the four seeds. Equal means both ways: above the optimum r would be infeasible."""
    rng = np.random.default_rng(seed)
    for number in range(250):
        q, budget = random_predictive(rng, int(rng.integers(2, 21))), random_budget(rng, number)
        r = best_reference(q, budget)
        assert (r >= 0).all()
        assert r.sum() == pytest.approx(1.0, abs=1e-12)
        assert abs(falls_short(q, r, budget)) < 1e-9, (q, budget)


def test_another_reference_would_be_seen_to_fall_short() -> None:
    """Planted faults: q itself, all on the best arm, and a thousandth of the right one moved."""
    rng = np.random.default_rng(5)
    short: dict[str, int] = {"q": 0, "best": 0, "moved": 0}
    for _ in range(60):
        q, budget = rng.dirichlet(np.ones(4)), Budget(epsilon=float(rng.uniform(0.5, 5)), delta=0.01)
        best = best_reference(q, budget)
        moved = 0.999 * best + 0.001 * np.eye(4)[np.argmin(q)]
        for name, wrong in (("q", q), ("best", np.eye(4)[np.argmax(q)]), ("moved", moved)):
            short[name] += falls_short(q, wrong, budget) > 1e-9
    assert min(short.values()) >= 55, short


def test_no_budget_puts_everything_on_the_likeliest_arm() -> None:
    rng = np.random.default_rng(6)
    q = rng.dirichlet(np.ones(7), size=200)
    r = best_reference(q, Budget(epsilon=0, delta=0))
    np.testing.assert_allclose(r, np.eye(7)[np.argmax(q, axis=-1)], rtol=0, atol=1e-15)


@pytest.mark.parametrize("m", [2, 3, 8])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_ties_lose_nothing(m: int, epsilon: float, delta: float) -> None:
    """Under a uniform q the optimum is mean hi(1/m) where hi is linear enough, and never below it."""
    q, budget = np.full(m, 1 / m), Budget(epsilon=epsilon, delta=delta)
    r = best_reference(q, budget)
    assert r.sum() == pytest.approx(1.0, abs=1e-12)
    assert q @ lines(r, epsilon, delta) >= lines(np.array(1 / m), epsilon, delta) - 1e-12
    assert abs(falls_short(q, r, budget)) < 1e-9


def test_renaming_the_arms_renames_the_reference() -> None:
    rng = np.random.default_rng(7)
    for _ in range(100):
        q, budget = rng.dirichlet(np.ones(6)), Budget(epsilon=float(rng.uniform(0, 6)), delta=0.05)
        order = rng.permutation(6)
        expected = best_reference(q, budget)[order]
        np.testing.assert_allclose(best_reference(q[order], budget), expected, rtol=0, atol=1e-14)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
def test_many_data_sets_at_once_are_filled_as_one_by_one(seed: int) -> None:
    """Many are filled without sorting the pieces; ties, sure arms and insured ones are among them."""
    rng = np.random.default_rng(seed)
    for number in range(40):
        m, budget = int(rng.integers(1, 9)), random_budget(rng, number)
        q = np.array([random_predictive(rng, m) for _ in range(60)])
        q[:3] = [np.zeros(m), np.eye(m)[0], np.full(m, 1 / m)]
        insured = None if number % 3 == 0 else rng.random(q.shape) < rng.random()
        one_by_one = [
            best_reference(row, budget, None if insured is None else insured[i]) for i, row in enumerate(q)
        ]
        np.testing.assert_allclose(best_reference(q, budget, insured), one_by_one, rtol=0, atol=1e-14)


def test_a_batch_in_which_some_share_out_more_is_tilted_as_one_by_one() -> None:
    """Where the old decision has less than h, e^{−ε}·r of the others is not all, and the best get more."""
    rng, budget, m = np.random.default_rng(8), Budget(epsilon=1.0, delta=0.01), 4
    reference, scores = rng.dirichlet(np.ones(m), size=200), rng.integers(0, 3, size=(200, m)) / 4
    old = np.eye(m)[rng.integers(0, m, size=200)]
    together = tilted(reference, old, scores, budget)
    alone = [tilted(*row, budget) for row in zip(reference, old, scores, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-15)
    np.testing.assert_allclose(together.sum(axis=-1), 1.0, rtol=0, atol=1e-14)  # all of it is shared out
    gets_more = ((old == 0) & (together > 1.001 * math.exp(-1) * reference)).any(axis=-1)
    assert 50 < gets_more.sum() < 150


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 699.0, 700.0, 701.0, 1e4, 1e300, math.inf])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.5, 1.0])
def test_the_edges_of_the_budget_are_numbers(epsilon: float, delta: float) -> None:
    """Warnings are errors here; where nothing is promised, every arm that may have been served is kept."""
    budget = Budget(epsilon=epsilon, delta=delta)
    for q in (np.array([0.6, 0.4, 0.0]), np.array([1.0, 0.0, 0.0]), np.full(3, 1 / 3)):
        r = best_reference(q, budget)
        raised = highest_allowed(r, budget)
        assert np.isfinite(r).all()
        assert np.isfinite(raised).all()
        assert r.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((raised >= r) & (raised <= 1)).all()
        if epsilon > 600 or delta == 1:
            np.testing.assert_allclose(raised[q > 0], 1.0, rtol=0, atol=1e-12)


@examples(300)
@given(
    st.one_of(st.floats(0, 1), st.floats(0, 1e-3), st.sampled_from([0.0, 0.5, 1.0])),
    st.floats(0, 20),
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-5, 1.0])),
)
def test_the_raise_is_the_largest_that_both_directions_allow(r: float, epsilon: float, delta: float) -> None:
    """By bisection on the two conditions: p ≤ e^ε·r + δ and 1 − r ≤ e^ε·(1 − p) + δ."""
    grow = math.exp(epsilon)

    def allowed(p: float) -> bool:
        # Divided by e^ε, so that the rounding of 1 − p is not blown up; 1e-15 for the rounding itself.
        return p <= grow * r + delta + 1e-15 and (1 - r - delta) / grow <= (1 - p) + 1e-15

    low, high = r, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    largest = 1.0 if allowed(1.0) else low
    raised = float(highest_allowed(np.array(r), Budget(epsilon=epsilon, delta=delta)))
    assert raised == pytest.approx(largest, abs=4e-15)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.0, 0.1), (0.3, 1e-5), (1.0, 0.0), (2.0, 0.05), (5.0, 1e-5)]
)
def test_two_arms_no_other_reference_keeps_the_old_decision_more_often(epsilon: float, delta: float) -> None:
    """Same D∖U and shape; the deleted were all ones (arm 0 was served) or all zeros (arm 1 was).

    The release keeps the served arm with p₀ or p₁; under q that is Σ q_a·p_a, which no r on the grid beats.
    """
    budget, learner = Budget(epsilon=epsilon, delta=delta), LCB(confidence=0.1)
    retained = ArmStatistics.from_rewards({0: [1] * 50 + [0] * 50, 1: [1] * 40 + [0] * 40})
    kept = []
    for arm, reward in ((0, 1), (1, 0)):
        request = DeletionRequest.from_rewards({0: [reward] * 20, 1: []})
        data = retained.merge(request)
        assert learner.decide(data).index == arm
        kept.append(float(Tilt().release(learner, data, request, budget).probabilities[arm]))
    q = flat(learner, retained, np.array([20, 0]))
    assert 0.05 < q[0] < 0.95
    first = np.linspace(0, 1, 100_001)
    grid = q[0] * lines(first, epsilon, delta) + q[1] * lines(1 - first, epsilon, delta)
    assert q @ kept >= grid.max() - 1e-12
    assert q @ kept <= grid.max() + 1e-4  # and it is on the curve, up to the grid's step
    r = best_reference(q, budget)
    assert q @ highest_allowed(r, budget) == pytest.approx(q @ kept, abs=1e-12)
