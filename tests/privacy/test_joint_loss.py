"""The joint divergence by convolution: against products written out, and enclosed where they are too many."""

import functools
import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import (
    Budget,
    Guarantee,
    JointLoss,
    Level,
    composed_delta,
    hockey_stick,
    joint_loss,
    smallest_epsilon,
)


def products(tables: FloatArray) -> FloatArray:
    """The distribution of all rows together, outcome by outcome."""
    return np.array([math.prod(outcome) for outcome in itertools.product(*tables.tolist())])


def random_tables(
    random: np.random.Generator, decisions: int, arms: int, *, zeros: bool = False
) -> tuple[FloatArray, FloatArray]:
    releases, references = random.dirichlet(np.full(arms, 0.7), (2, decisions))
    if zeros:
        releases[0] = np.eye(arms)[0]
        references[1] = np.eye(arms)[1]
        references[2] = releases[2]
    return releases, references


@pytest.mark.parametrize(("decisions", "arms"), [(1, 2), (2, 2), (3, 4), (5, 3), (10, 2)])
@pytest.mark.parametrize("zeros", [False, True])
def test_it_is_the_divergence_of_the_product(decisions: int, arms: int, zeros: bool) -> None:
    random = np.random.default_rng(decisions * 10 + arms)
    for _ in range(5):
        releases, references = random_tables(random, max(decisions, 3 if zeros else 1), arms, zeros=zeros)
        loss = JointLoss.of(releases, references)
        assert loss.is_exact
        p, r = products(releases), products(references)
        for epsilon in (0.0, 0.2, 1.0, 4.0, 30.0, 800.0, math.inf):
            expected = float(hockey_stick(p, r, epsilon))
            assert loss.delta(epsilon) == pytest.approx(expected, abs=1e-13)
            assert loss.error(epsilon) == 0.0
        for delta in (0.0, 1e-3, 0.3):
            expected = float(smallest_epsilon(p, r, delta))
            assert loss.epsilon(delta) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_where_outcomes_are_put_together_the_true_value_is_enclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    releases, references = random_tables(random, 9, 4)
    references = 0.9 * releases + 0.1 * references
    p, r = products(releases), products(references)
    for cells, allowed in ((50, 0.1), (500, 1e-3), (5000, 1e-5)):  # the square of the width
        monkeypatch.setattr(joint_loss, "MOST_OUTCOMES", cells)
        loss = JointLoss.of(releases, references)
        assert not loss.is_exact
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            expected = float(hockey_stick(p, r, epsilon))
            upper, error = loss.delta(epsilon), loss.error(epsilon)
            assert upper - error - 1e-13 <= expected <= upper + 1e-13
            assert error <= allowed
        assert loss.epsilon(1e-3) >= float(smallest_epsilon(p, r, 1e-3)) - 1e-9


def test_losses_beyond_all_measure_are_enclosed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_loss, "MOST_OUTCOMES", 200)
    random = np.random.default_rng(8)
    releases, references = random_tables(random, 5, 4)
    for row, (small, large) in enumerate([(1e-250, 0.3), (0.2, 1e-250), (1e-120, 1e-5)]):
        for tables, value in ((releases, small), (references, large)):
            tables[row, 0] = value
            tables[row, 1:] *= (1 - value) / tables[row, 1:].sum()
    p, r = products(releases), products(references)
    for forward in (True, False):
        loss = JointLoss.of(releases, references) if forward else JointLoss.of(references, releases)
        for epsilon in (0.0, 1.0, 5.0):
            expected = float(hockey_stick(p, r, epsilon) if forward else hockey_stick(r, p, epsilon))
            assert loss.delta(epsilon) - loss.error(epsilon) - 1e-13 <= expected
            assert expected <= loss.delta(epsilon) + 1e-13


def test_equal_decisions_stay_exact_however_many() -> None:
    p = np.array([0.52, 0.48])
    loss = JointLoss.of(np.tile(p, (300, 1)), np.tile(p[::-1], (300, 1)))
    assert loss.is_exact
    ones = np.arange(301)
    log_ways = np.array([math.lgamma(301) - math.lgamma(k + 1) - math.lgamma(301 - k) for k in ones])
    left = np.exp(log_ways + ones * math.log(0.52) + (300 - ones) * math.log(0.48))
    expected = np.maximum(left - math.e * left[::-1], 0.0).sum()
    assert loss.delta(1.0) == pytest.approx(float(expected), rel=1e-10)


def test_many_different_decisions_agree_with_dp_accounting() -> None:
    """dp-accounting rounds losses up to a grid: its δ is at least ours, and at most ours at a smaller ε."""
    random = np.random.default_rng(11)
    releases = random.dirichlet(np.full(3, 5.0), 40)
    references = releases * np.exp(random.uniform(-0.05, 0.05, (40, 3)))
    references /= references.sum(axis=-1, keepdims=True)
    parts = [
        privacy_loss_distribution.from_two_probability_mass_functions(
            dict(enumerate(np.log(r))), dict(enumerate(np.log(p))), value_discretization_interval=1e-5
        )
        for p, r in zip(releases, references, strict=True)
    ]
    accounted = functools.reduce(lambda left, right: left.compose(right), parts)
    loss = JointLoss.of(releases, references)
    assert not loss.is_exact
    for epsilon in (0.0, 0.1, 0.3, 0.6):
        assert loss.error(epsilon) < 1e-4 * loss.delta(epsilon)
        found, rounded = loss.delta(epsilon), 40 * 1e-5  # each of the 40 losses is rounded up by this at most
        assert accounted.get_delta_for_epsilon(epsilon + rounded) <= found * (1 + 1e-6) + 1e-9
        assert found <= accounted.get_delta_for_epsilon(epsilon) * (1 + 1e-6) + 1e-9


def test_tables_of_different_shape_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"tables of the same shape; got \(2, 2\) and \(2, 3\)"):
        JointLoss.of(np.full((2, 2), 0.5), np.full((2, 3), 1 / 3))
    with pytest.raises(InvalidInputError, match=r"tables of the same shape; got \(2,\) and \(2,\)"):
        JointLoss.of(np.array([0.5, 0.5]), np.array([0.5, 0.5]))


def test_no_decision_touched_is_no_loss() -> None:
    loss = JointLoss.of(np.eye(3), np.eye(3))
    assert (loss.delta(0.0), loss.epsilon(0.0), loss.is_exact) == (0.0, 0.0, True)


def test_both_ways_is_the_larger_of_both() -> None:
    random = np.random.default_rng(13)
    releases, references = random_tables(random, 5, 3, zeros=True)
    one_way = JointLoss.of(releases, references), JointLoss.of(references, releases)
    both = JointLoss.both_ways(releases, references)
    assert both.is_exact
    for epsilon in (0.0, 0.5, 2.0, math.inf):
        assert both.delta(epsilon) == max(each.delta(epsilon) for each in one_way)
        assert both.error(epsilon) == 0
    for delta in (0.3, 0.9, 0.99):
        expected = max(each.epsilon(delta) for each in one_way)
        assert both.epsilon(delta) == pytest.approx(expected, abs=1e-12)


KNOWN: list[Budget | Guarantee] = [
    Budget(epsilon=1.0, delta=0.0),
    Budget(epsilon=0.3, delta=1e-3),
    Guarantee(0.7, 0.01, Level.RETAINED),
    Budget(epsilon=0.0, delta=0.05),
]


def test_the_worst_case_of_known_guarantees_is_a_product_of_randomised_responses() -> None:
    rows = []
    for each in KNOWN:
        lie = (1 - each.delta) / (1 + math.exp(each.epsilon))
        rows.append([each.delta, 1 - each.delta - lie, lie, 0.0])
    tables = np.array(rows)
    p, r = products(tables), products(tables[:, ::-1])
    loss = JointLoss.worst_case(KNOWN)
    assert loss.is_exact
    for epsilon in (0.0, 0.4, 1.1, 2.5):
        assert loss.delta(epsilon) == pytest.approx(float(hockey_stick(p, r, epsilon)), abs=1e-14)


def test_the_worst_case_of_equal_guarantees_is_the_optimal_composition() -> None:
    for epsilon_each, delta_each, number in ((0.1, 1e-6, 100), (1.0, 0.0, 7), (0.5, 1e-3, 1)):
        loss = JointLoss.worst_case([Budget(epsilon=epsilon_each, delta=delta_each)] * number)
        for epsilon in (0.0, 0.5, 2.0, 6.0):
            expected = composed_delta(
                epsilon_each=epsilon_each, delta_each=delta_each, number=number, epsilon=epsilon
            )
            assert loss.delta(epsilon) == pytest.approx(expected, rel=1e-8, abs=1e-15)


@pytest.mark.slow
def test_the_worst_case_agrees_with_dp_accounting() -> None:
    """It rounds losses up to a grid, so its δ is at least ours, and at most ours at a smaller ε."""
    random = np.random.default_rng(17)
    known = [Budget(epsilon=each, delta=1e-6) for each in random.uniform(0.01, 0.6, 20)]
    step = 1e-5
    parts = [
        privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(each.epsilon, each.delta), value_discretization_interval=step
        )
        for each in known
    ]
    accounted = functools.reduce(lambda left, right: left.compose(right), parts)
    loss = JointLoss.worst_case(known)
    for epsilon in (0.5, 1.5, 3.0):
        found = loss.delta(epsilon)
        assert loss.error(epsilon) < 1e-3 * found
        assert accounted.get_delta_for_epsilon(epsilon + 20 * step) <= found * (1 + 1e-6)
        assert found <= accounted.get_delta_for_epsilon(epsilon) * (1 + 1e-3)
    assert loss.epsilon(1e-3) < 0.9 * sum(each.epsilon for each in known)


def test_what_promises_nothing_makes_the_whole_promise_nothing() -> None:
    for vacuous in (Budget(epsilon=math.inf, delta=0.0), Budget(epsilon=1.0, delta=1.0)):
        loss = JointLoss.worst_case([*KNOWN, vacuous])
        assert loss.delta(5.0) == pytest.approx(1.0, abs=1e-15)
    assert JointLoss.worst_case([]).delta(0.0) == 0.0
