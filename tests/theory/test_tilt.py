"""Tilt's chance of keeping the old decision: no reference does better, and the bound is attained."""

import itertools
import math
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from armnesia import LCB, ArmStatistics, DeletionRequest, Tilt
from armnesia.core.arrays import IntArray, one_hot
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.privacy import Budget
from armnesia.simulation import Environment, exact_release, predictive_error
from armnesia.theory import (
    chance_of_keeping,
    insured_from,
    insured_upper,
    lower_fixed,
    tilt_upper,
    worst_chance_of_keeping,
)
from armnesia.unlearners.contenders import contenders
from armnesia.unlearners.predictive import flat
from armnesia.unlearners.tilt_reference import (
    among_contenders,
    best_reference,
    highest_allowed,
    insurance_price,
    insured_arms,
    knee,
)
from tests.simulation.all_data_sets import AllDataSets
from tests.theory.domination import Case, check

budgets = st.builds(Budget, epsilon=st.floats(0, 6), delta=st.sampled_from([0.0, 1e-5, 0.1]))


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), budgets, st.integers(0, 2**32 - 1))
def test_no_reference_keeps_more(weights: list[float], budget: Budget, seed: int) -> None:
    """Against two thousand random references, the predictive itself and all single arms."""
    q = np.array(weights) / sum(weights)
    rng = np.random.default_rng(seed)
    others = np.vstack([rng.dirichlet(np.full(len(q), 0.5), size=2000), q, np.eye(len(q))])
    kept = (q * highest_allowed(others, budget)).sum(axis=-1)
    assert chance_of_keeping(q, budget) >= kept.max() - 1e-12


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8), budgets)
def test_the_bound_holds_for_every_predictive(weights: list[float], budget: Budget) -> None:
    q = np.array(weights) / sum(weights)
    bound = tilt_upper(contenders=len(q), budget=budget, predictive_error=0.0)
    assert bound.holds
    assert 1 - chance_of_keeping(q, budget) <= bound.value + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 9.0, 16.6, 30.0, 36.7, 40.0, 120.0, 699.0])
@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-5, 0.1, 0.6])
def test_the_bound_is_its_formula_also_where_little_is_lost(epsilon: float, delta: float) -> None:
    """1 − hi(1/c) was 0 from ε = 36.7 on, where e^{−ε}·(c−1)/c is not."""
    budget = Budget(epsilon=epsilon, delta=delta)
    with mpmath.workdps(400):
        up, exact_delta = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        for contenders in (1, 2, 3, 10, 1000):
            r = mpmath.mpf(1) / contenders
            highest = min(1, up * r + exact_delta, 1 - (1 - r - exact_delta) / up)
            expected = 1 - highest
            value = tilt_upper(contenders=contenders, budget=budget, predictive_error=0.0).value
            assert abs(value - expected) <= 1e-12 * expected, contenders


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1)), min_size=2, max_size=6).filter(
        lambda pairs: sum(true for _, true in pairs) > 0.01
    ),
    budgets,
)
def test_the_bound_holds_for_every_wrong_predictive(pairs: list[tuple[float, float]], budget: Budget) -> None:
    """Tilt is prepared for q, and π(D) follows another distribution."""
    q, true = (np.array(column) / sum(column) for column in zip(*pairs, strict=True))
    kept = float(true @ highest_allowed(best_reference(q, budget), budget))
    error = float(np.abs(q - true).sum() / 2)
    bound = tilt_upper(contenders=len(q), budget=budget, predictive_error=min(error, 1.0))
    assert 1 - kept <= bound.value + 1e-12


def fixed(means: list[float], left: int, deleted: int, other: int) -> tuple[Environment, IntArray, IntArray]:
    return Environment.bernoulli(means), np.array([left + deleted, other]), np.array([deleted, 0])


def excess(environment: Environment, counts: IntArray, deleted: IntArray, budget: Budget) -> float:
    """What the shipped tilt adds to the sub-optimality of no deletion, exactly."""
    learner = LCB(confidence=1 / int(counts.sum()))
    tilt, nothing = (
        exact_release(environment, counts, deleted, unlearner, learner, budget)
        for unlearner in (Tilt(), None)
    )
    return float((tilt - nothing) @ environment.gaps)


def test_the_condition_on_the_predictive_is_reported_as_unmet() -> None:
    """One record is left of 501: tilt exceeds the bound more than twice, which was reported as proved."""
    budget = Budget(epsilon=1.5, delta=0.0)
    case = fixed([0.6, 0.5], left=1, deleted=500, other=20_000)
    without = tilt_upper(contenders=2, budget=budget, largest_gap=0.1)
    assert excess(*case, budget) > 2.2 * without.value
    assert not without.holds
    assert [condition.text for condition in without.unmet] == [
        "the predictive q is right: not known; give predictive_error"
    ]
    error = predictive_error(*case, LCB(confidence=1 / 20_501))
    proved = tilt_upper(contenders=2, budget=budget, largest_gap=0.1, predictive_error=error)
    assert proved.holds
    assert excess(*case, budget) <= proved.value


def test_with_the_error_of_the_predictive_the_bound_dominates_and_is_not_far_above() -> None:
    cases: list[Case] = []
    for left, epsilon in product((1, 20, 100), (0.5, 1.0, 1.5, 3.0)):
        budget = Budget(epsilon=epsilon, delta=0.0)
        for means in ([0.6, 0.5], [0.5, 0.6]):
            case = fixed(means, left=left, deleted=100, other=1_000)
            error = predictive_error(*case, LCB(confidence=1 / (left + 1_100)))
            bound = tilt_upper(contenders=2, budget=budget, largest_gap=0.1, predictive_error=error)
            cases.append((bound, excess(*case, budget), 0.1))
    check(cases, least=15, tight=0.5)


@pytest.mark.parametrize(
    ("means", "counts", "deleted"),
    [
        ([0.6, 0.4], [4, 3], [2, 0]),
        ([0.6, 0.4], [3, 4], [0, 3]),
        ([0.5, 0.5, 0.5], [3, 3, 3], [0, 1, 0]),  # ties
        ([0.7, 0.2, 0.5], [4, 1, 2], [4, 0, 0]),  # emptied
        ([0.6, 0.4], [3, 3], [0, 0]),
        ([0.3], [4], [2]),
    ],
)
def test_the_error_of_the_predictive_is_the_average_over_every_data_set(
    means: list[float], counts: list[int], deleted: list[int]
) -> None:
    """P(π(D) | D∖U) counted over all data sets with the same records left."""
    learner, every = LCB(confidence=0.3), AllDataSets(means, counts, deleted)
    retained = every.statistics.without(every.request)
    q = flat(learner, retained, every.request.counts)
    decisions = one_hot(learner.decide(every.statistics).index, len(means))
    if not any(deleted):
        q = decisions
    error = 0.0
    for sums in np.unique(retained.sums, axis=0):
        alike = (retained.sums == sums).all(axis=-1)
        weight = every.weights[alike].sum()
        true = every.weights[alike] @ decisions[alike] / weight
        error += weight * np.abs(q[alike][0] - true).sum() / 2
    found = predictive_error(Environment.bernoulli(means), np.array(counts), np.array(deleted), learner)
    assert found == pytest.approx(error, abs=1e-12)


def test_the_error_of_the_predictive_is_refused_where_it_is_not_known() -> None:
    environment, learner = Environment.bernoulli([0.6, 0.5]), LCB(confidence=0.1)
    for deleted in ([1, 1], [3, 2]):
        with pytest.raises(UnsupportedError, match="a request for one arm, and records that are left"):
            predictive_error(environment, np.array([3, 2]), np.array(deleted), learner)


@pytest.mark.parametrize("contenders", [1, 2, 3, 5, 50])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0, 5.0])
def test_the_bound_is_the_formula_and_is_attained(contenders: int, epsilon: float) -> None:
    """At δ = 0: e^−ε(c−1)/c or 1 − e^ε/c; attained by the uniform predictive where c ≤ 1 + e^ε."""
    budget = Budget(epsilon=epsilon, delta=0.0)
    c = contenders
    few = c <= 1 + math.exp(epsilon)
    expected = math.exp(-epsilon) * (c - 1) / c if few else 1 - math.exp(epsilon) / c
    assert tilt_upper(contenders=c, budget=budget).value == pytest.approx(expected, abs=1e-12)
    uniform = 1 - chance_of_keeping(np.full(c, 1 / c), budget)
    assert uniform == pytest.approx(expected, abs=1e-12)


def test_it_falls_as_the_lower_bound_does() -> None:
    """Both by e^−ε: their ratio does not depend on ε (δ = 0, two contenders)."""
    ratios = []
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        upper = tilt_upper(contenders=2, budget=Budget(epsilon=epsilon, delta=0.0)).value
        lower = lower_fixed(n=2000, n_arm=1000, k=100, epsilon=epsilon, delta=0.0).value
        ratios.append(upper / lower)
    assert ratios == pytest.approx([ratios[0]] * 4)


def test_bad_numbers() -> None:
    with pytest.raises(InvalidInputError, match=r"predictive_error must be .* between 0 and 1.*got 1.5"):
        tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), predictive_error=1.5)
    with pytest.raises(InvalidInputError, match="contenders"):
        tilt_upper(contenders=0, budget=Budget(epsilon=1, delta=0))
    right = tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), predictive_error=0.0)
    assert right.holds
    large = tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), predictive_error=0.0, largest_gap=2.0)
    assert not large.holds


@pytest.mark.parametrize("contenders", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_the_insured_bound_is_what_the_knee_leaves(contenders: int, epsilon: float, delta: float) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    bound = insured_upper(contenders=contenders, budget=budget, largest_gap=0.5, insurance=0.02)
    h = (1 - delta) / (1 + math.exp(epsilon))
    assert bound.value == pytest.approx(h / 2 if contenders > 1 else 0.0, abs=1e-15)
    assert 1 - highest_allowed(np.array(h), budget) == pytest.approx(h, abs=1e-15)
    assert bound.holds == (contenders * h <= 1 and (contenders - 1) * math.exp(-epsilon) * h <= 0.02)
    assert bound.holds == bool(insurance_price(np.array(contenders), budget) <= 0.02)
    assert not insured_upper(contenders=contenders, budget=budget, insurance=0).holds


def test_the_insured_bound_has_the_price_that_tilt_compares() -> None:
    """To the last bit: at this insurance and ε tilt does not insure four contenders."""
    budget, insurance = Budget(epsilon=2.22, delta=0.0), 0.03192091358221213
    assert insurance_price(np.array(4), budget) > insurance
    assert not insured_upper(contenders=4, budget=budget, insurance=insurance).holds
    rng = np.random.default_rng(9)
    for epsilon, c in zip(rng.uniform(0.5, 6, size=500), rng.integers(1, 30, size=500), strict=True):
        budget = Budget(epsilon=float(epsilon), delta=float(rng.choice([0.0, 1e-5])))
        price = float(insurance_price(np.array(c), budget))
        for limit in (np.nextafter(price, 0), price, np.nextafter(price, 1)):
            if 0 < limit <= 1:
                bound = insured_upper(contenders=int(c), budget=budget, insurance=float(limit))
                assert bound.holds == (price <= limit)


def one_sided(*given: object) -> NDArray[np.float64]:
    return np.array([1.0, 0.0])


def two_of_three(*given: object) -> NDArray[np.float64]:
    return np.array([0.5, 0.5, 0.0])


def test_the_bound_counts_the_contenders_and_not_the_arms_that_the_predictive_names() -> None:
    """The predictive is right about π(D), but contenders that it excludes are insured, at their price."""
    learner, budget = LCB(confidence=0.01), Budget(epsilon=3.0, delta=0.0)
    retained = ArmStatistics.from_rewards({"A": [1] * 50, "B": [0] * 50})
    deleted = ArmStatistics.from_rewards({"A": [], "B": [0] * 500})
    request = DeletionRequest(deleted, binary=True)
    possible = contenders(learner, retained, request.counts)
    assert possible.all()
    release = Tilt(predictive=one_sided).release(learner, retained.merge(deleted), request, budget)
    lost = 1 - float(release.probabilities[0])
    assert tilt_upper(contenders=1, budget=budget, predictive_error=0.0).value < 0.002 < lost
    assert lost <= tilt_upper(contenders=2, budget=budget, predictive_error=0.0).value
    assert lost == pytest.approx(1 - chance_of_keeping([1.0, 0.0], budget, insured=possible), abs=1e-12)

    three = np.ones(3, dtype=bool)
    lost = 1 - chance_of_keeping(two_of_three(), budget, insured=three)
    assert tilt_upper(contenders=2, budget=budget, predictive_error=0.0).value < lost
    assert lost <= tilt_upper(contenders=3, budget=budget, predictive_error=0.0).value
    assert "contenders counts every arm that can have been" in tilt_upper(contenders=2, budget=budget).note


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=2, max_size=6).filter(
        lambda rows: sum(q for q, _, _ in rows) > 0.01 and sum(t for _, t, c in rows if c) > 0.01
    ),
    budgets,
)
def test_the_bound_holds_for_insured_references(
    rows: list[tuple[float, float, bool]], budget: Budget
) -> None:
    """Any q; π(D) follows another distribution on the contenders; tilt's own steps with them insured."""
    q, true, possible = (np.array(column) for column in zip(*rows, strict=True))
    q, true = q / q.sum(), np.where(possible, true, 0.0) / true[possible].sum()
    c = int((possible | (q > 0)).sum())
    if possible.sum() * knee(budget) > 1:
        return
    kept = float(
        true @ highest_allowed(best_reference(among_contenders(q, possible), budget, possible), budget)
    )
    error = min(float(np.abs(q - true).sum() / 2), 1.0)
    assert 1 - kept <= tilt_upper(contenders=c, budget=budget, predictive_error=error).value + 1e-12


def test_the_bound_holds_where_some_contenders_are_insured() -> None:
    """Many contenders, few of them likely: all are more than can be insured."""
    rng, partly = np.random.default_rng(10), 0
    for _ in range(400):
        budget = Budget(epsilon=float(rng.uniform(0, 3)), delta=float(rng.choice([0.0, 1e-5, 0.1])))
        c = int(rng.integers(2, 60))
        likely = np.where(rng.random(c) < rng.choice([0.1, 0.9]), math.exp(-2 * budget.epsilon), 1e-9)
        q = likely * rng.choice([0.99, 1.01], size=c)
        q[int(rng.integers(c))] = rng.choice([1.0, 2.0])
        q /= q.sum()
        insured = insured_arms(q, np.ones(c, dtype=bool), rng.random(c), budget, float(rng.uniform(0, 0.5)))
        kept = float(q @ highest_allowed(best_reference(q, budget, insured), budget))
        assert 1 - kept <= tilt_upper(contenders=c, budget=budget, predictive_error=0.0).value + 1e-12
        partly += int(insured.any() and not insured.all())
    assert partly > 40


def test_what_the_bounds_do_not_cover_is_in_their_notes() -> None:
    """If nothing is left, the default arm is served; larger requests than assumed are not insured."""
    budget, learner = Budget(epsilon=3.0, delta=0.0), LCB(confidence=0.1)
    data = ArmStatistics.from_rewards({"A": [0] * 5, "B": [1] * 5})
    everything = DeletionRequest.from_rewards({"A": [0] * 5, "B": [1] * 5})
    assert Tilt().release(learner, data, everything, budget).probabilities.tolist() == [1.0, 0.0]
    for bound in (tilt_upper(contenders=2, budget=budget), insured_upper(contenders=2, budget=budget)):
        assert "that leave" in bound.note
        assert "a record" in bound.note
    assert (
        "with assumed_share, only for requests of at most that share"
        in insured_upper(contenders=2, budget=budget).note
    )


def test_with_a_large_delta_the_worst_case_keeps_always() -> None:
    """1 − e^{−ε}(1 − 1/c − δ) would be above 1."""
    budget = Budget(epsilon=1.0, delta=0.6)
    assert worst_chance_of_keeping(contenders=2, budget=budget) == 1.0
    assert kept_in_the_worst_case([0, 1], 2, 1.0, 0.6) == pytest.approx(1.0)
    assert highest_allowed(np.array([0.45, 0.55]), budget).tolist() == [1.0, 1.0]  # not only the uniform one


@pytest.mark.parametrize("bad", ["2", None, 2.5, True, math.nan, 0])
def test_bad_numbers_of_contenders(bad: Any) -> None:
    budget = Budget(epsilon=1, delta=0)
    for call in (tilt_upper, insured_upper, worst_chance_of_keeping):
        with pytest.raises(InvalidInputError, match=r"contenders must be .*at least 1; got"):
            call(contenders=bad, budget=budget)


@pytest.mark.parametrize("bad", [5, -1, "x", math.nan, None, True])
def test_bad_insurances_and_gaps(bad: Any) -> None:
    budget = Budget(epsilon=1, delta=0)
    with pytest.raises(InvalidInputError, match="insurance must be a number between 0 and 1; got"):
        insured_upper(contenders=2, budget=budget, insurance=bad)
    if bad not in (5, -1):
        for call in (tilt_upper, insured_upper):
            with pytest.raises(InvalidInputError, match="largest_gap must be a finite number; got"):
                call(contenders=2, budget=budget, largest_gap=bad)


@pytest.mark.parametrize(
    "bad", [[0.7, 0.7], [math.nan, 1.0], "ab", [], [[0.5, 0.5]], [[1.0], [0.5, 0.5]], [2, -1]]
)
def test_bad_predictives_of_the_chance_of_keeping(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="predictive must be one probability per arm, with the sum 1"):
        chance_of_keeping(bad, Budget(epsilon=1, delta=0))


@pytest.mark.parametrize("bad", [[1, 0], [True], [True, True]])
def test_bad_insured_arms(bad: Any) -> None:
    with pytest.raises(
        InvalidInputError, match="insured must be a truth value per arm, for 3 arms, at most 2"
    ):
        chance_of_keeping([0.5, 0.3, 0.2], Budget(epsilon=0.0, delta=0), insured=[True, True, True])
    with pytest.raises(InvalidInputError, match="insured must be a truth value per arm, for 3 arms"):
        chance_of_keeping([0.5, 0.3, 0.2], Budget(epsilon=1, delta=0), insured=bad)


def kept_in_the_worst_case(served: list[int], m: int, epsilon: float, delta: float) -> float:
    """The most that any unlearner keeps in the worst of these worlds, which look alike to its reference.

    A linear program over r, one release p for each world and t: p keeps the served arm with probability t or
    more, and r and p are within (ε, δ) of each other on every set of arms, both ways.
    """
    n, grow = len(served), math.exp(epsilon)
    size = m * (n + 1) + 1
    rows, right = [], []
    for world, arm in enumerate(served):
        row = np.zeros(size)
        row[-1], row[m * (world + 1) + arm] = 1.0, -1.0
        rows.append(row)
        right.append(0.0)
        for chosen in itertools.product([0.0, 1.0], repeat=m):
            for signs in ((1.0, -grow), (-grow, 1.0)):
                row = np.zeros(size)
                row[m * (world + 1) : m * (world + 2)] = signs[0] * np.array(chosen)
                row[:m] = signs[1] * np.array(chosen)
                rows.append(row)
                right.append(delta)
    sums = np.zeros((n + 1, size))
    for vector in range(n + 1):
        sums[vector, m * vector : m * (vector + 1)] = 1.0
    goal: NDArray[np.float64] = np.zeros(size)
    goal[-1] = -1.0
    solution = linprog(
        goal, A_ub=np.array(rows), b_ub=right, A_eq=sums, b_eq=np.ones(n + 1), bounds=(0.0, 1.0)
    )
    assert solution.fun is not None, solution.message
    return -float(solution.fun)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.0), (1.0, 1e-5), (2.0, 0.05), (3.0, 1e-5)]
)
def test_no_unlearner_keeps_more_in_the_worst_case(epsilon: float, delta: float) -> None:
    """Small D∖U and shapes of three arms, with every π(D) that some deleted rewards lead to."""
    rng, learner, found = np.random.default_rng(8), LCB(confidence=0.5), set()
    budget = Budget(epsilon=epsilon, delta=delta)
    for _ in range(12):
        retained = ArmStatistics.from_rewards(
            {a: [1] * ones + [0] * zeros for a, (ones, zeros) in enumerate(rng.integers(1, 4, size=(3, 2)))}
        )
        shape = rng.integers(0, 4, size=3)
        served = []
        for ones in itertools.product(*(range(k + 1) for k in shape)):
            removed = {a: [1] * g + [0] * int(shape[a] - g) for a, g in enumerate(ones)}
            served.append(int(learner.decide(retained.merge(ArmStatistics.from_rewards(removed))).index))
        c = int(contenders(learner, retained, shape).sum())
        assert c == len(set(served))
        best = kept_in_the_worst_case(sorted(set(served)), 3, epsilon, delta)
        assert worst_chance_of_keeping(contenders=c, budget=budget) == pytest.approx(best, abs=1e-7)
        if c * knee(budget) <= 1:
            value = min(1.0, 1 - math.exp(-epsilon) * (1 - 1 / c - delta))
            assert best == pytest.approx(value, abs=1e-7)
        found.add(c)
    assert found == {1, 2, 3}


@pytest.mark.parametrize("number", [1, 2, 3, 5, 9, 40])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
@pytest.mark.parametrize("insurance", [0.001, 0.02, 0.3, 1.0])
def test_insurance_begins_where_its_conditions_begin_to_hold(
    number: int, delta: float, insurance: float
) -> None:
    least = insured_from(contenders=number, delta=delta, insurance=insurance)

    def holds(epsilon: float) -> bool:
        budget = Budget(epsilon=epsilon, delta=delta)
        return insured_upper(contenders=number, budget=budget, insurance=insurance).holds

    assert holds(least + 1e-9)
    assert least == 0 or not holds(least - 1e-9)
    assert insured_from(contenders=2, insurance=0) == math.inf


def test_the_documented_epsilons_are_those_from_which_on_it_insures() -> None:
    docs = Path(__file__).parents[2] / "docs"
    theory, choosing = ((docs / name).read_text(encoding="utf-8") for name in ("theory.md", "choosing.md"))

    def rounded_up(number: int, insurance: float = 0.02) -> str:
        return f"{math.ceil(100 * insured_from(contenders=number, delta=1e-5, insurance=insurance)) / 100:g}"

    assert f"0.02 from ε = {rounded_up(2)} on, 0.01 from {rounded_up(2, 0.01)} on" in theory
    assert f"insures from ε = {rounded_up(5)} on" in theory
    assert f"requests of one arm are insured from ε = {rounded_up(2)} on" in choosing
    assert f"five arms are insured from ε = {rounded_up(5)} on" in choosing
    assert insured_from(contenders=9, delta=1e-5) < 3 < insured_from(contenders=10, delta=1e-5)
