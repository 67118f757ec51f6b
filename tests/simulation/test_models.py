"""Both data models: counts, coverage, and the moments of drawn counts.

Moments are compared within 5 standard errors (a false alarm in fewer than 6·10⁻⁷ of comparisons).
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.simulation import DistributionModel, Environment, FixedSample

ENVIRONMENT = Environment.bernoulli([0.3, 0.6, 0.1])


@settings(deadline=None)
@given(st.integers(1, 500), st.integers(1, 9))
def test_round_robin_is_serving_each_arm_in_turn(n: int, m: int) -> None:
    in_turn = [0] * m
    for record in range(n):
        in_turn[record % m] += 1
    model = FixedSample.round_robin(n, m)
    assert list(model.counts) == in_turn
    assert model.n == n


def test_fixed_counts_are_drawn_as_they_are() -> None:
    drawn = FixedSample((4, 0, 7)).draw_counts(np.random.default_rng(0), 5)
    assert drawn.tolist() == [[4, 0, 7]] * 5


def test_whole_numbers_of_any_type_become_ints() -> None:
    model = FixedSample((np.int64(3), 2))  # type: ignore[arg-type]
    assert model.counts == (3, 2)
    assert all(type(count) is int for count in model.counts)


@pytest.mark.parametrize("counts", [(), (0, 0), (3, -1), (2.5, 1), (float("nan"), 2), (float("inf"), 2)])
def test_bad_counts_are_refused(counts: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="counts must be whole numbers"):
        FixedSample(counts)


@pytest.mark.parametrize("n", [0, -3])
def test_no_records_at_all_are_refused(n: int) -> None:
    with pytest.raises(InvalidInputError, match="n must be a whole number, 1 or more"):
        FixedSample.round_robin(n, 3)
    with pytest.raises(InvalidInputError, match="n must be a whole number, 1 or more"):
        DistributionModel(n, (0.5, 0.5))


def test_the_promised_count_of_the_best_arm_is_checked() -> None:
    """The best arm is the second; only its count matters."""
    FixedSample((1, 20, 1), n_star=20).check(ENVIRONMENT)
    with pytest.raises(InvalidInputError, match=r"n_star must not exceed N\(a\*\) = 20; got 21"):
        FixedSample((90, 20, 90), n_star=21).check(ENVIRONMENT)


@pytest.mark.parametrize("model", [FixedSample((1, 2)), DistributionModel(10, (0.5, 0.5))])
def test_other_numbers_of_arms_are_refused(model: FixedSample | DistributionModel) -> None:
    with pytest.raises(InvalidInputError, match="must have the same arms; got 2 and 3"):
        model.check(ENVIRONMENT)


@settings(deadline=None)
@given(st.integers(2, 8), st.floats(1.01, 50), st.data())
def test_coverage_is_the_inverse_share_of_the_best_arm(m: int, c_star: float, data: st.DataObject) -> None:
    best = data.draw(st.integers(0, m - 1))
    model = DistributionModel.with_coverage(100, n_actions=m, best=best, c_star=c_star)
    assert model.policy[best] == pytest.approx(1 / c_star)
    others = [share for arm, share in enumerate(model.policy) if arm != best]
    assert others == pytest.approx([(1 - 1 / c_star) / (m - 1)] * (m - 1))
    means = [0.2] * m
    means[best] = 0.7
    assert model.c_star(Environment.bernoulli(means)) == pytest.approx(c_star)


def z_scores(model: DistributionModel, policy: list[float]) -> tuple[float, float, float]:
    """Of 40 000 drawn counts: the largest deviations of means, variances and covariances, in errors."""
    size, n = 40_000, model.n
    counts = model.draw_counts(np.random.default_rng(5), size).astype(np.float64)
    assert (counts.sum(axis=1) == n).all()
    p = np.array(policy)
    variance = n * p * (1 - p)
    mean = abs(counts.mean(axis=0) - n * p) / np.sqrt(variance / size)
    centred = counts - n * p
    squares = centred**2
    spread = abs(squares.mean(axis=0) - variance) / (squares.std(axis=0) / math.sqrt(size))
    products = centred[:, 0] * centred[:, 1]
    together = abs(products.mean() + n * p[0] * p[1]) / (products.std() / math.sqrt(size))
    return float(mean.max()), float(spread.max()), float(together)


def test_counts_are_multinomial() -> None:
    model = DistributionModel(60, (0.5, 0.3, 0.2))
    assert max(z_scores(model, [0.5, 0.3, 0.2])) < 5


def test_the_check_of_moments_sees_another_policy() -> None:
    """The planted fault: one per cent of the records moved from one arm to another."""
    assert z_scores(DistributionModel(60, (0.5, 0.3, 0.2)), [0.5, 0.31, 0.19])[0] > 5


@pytest.mark.parametrize("policy", [(), (0.5, 0.4), (1.2, -0.2), (0.7, 0.7)])
def test_a_policy_is_a_distribution(policy: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="probabilities that sum to 1"):
        DistributionModel(10, policy)


@pytest.mark.parametrize("c_star", [1.0, 0.5, -2.0, math.nan])
def test_coverage_is_above_one(c_star: float) -> None:
    with pytest.raises(InvalidInputError, match="c_star must be greater than 1"):
        DistributionModel.with_coverage(10, n_actions=3, best=0, c_star=c_star)


@pytest.mark.parametrize(("n_actions", "best"), [(1, 0), (3, 3), (3, -1)])
def test_the_best_arm_is_one_of_several(n_actions: int, best: int) -> None:
    with pytest.raises(InvalidInputError, match="best must be one of at least two arms"):
        DistributionModel.with_coverage(10, n_actions=n_actions, best=best, c_star=2)
