"""Divergences of exact output distributions against brute force over every set of arms."""

import itertools
import math
from itertools import product

import mpmath
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import hockey_stick, renyi_divergence, smallest_epsilon
from tests.quick import examples


@st.composite
def pairs_of_distributions(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Two distributions over up to six arms; small whole weights make zeros and equal ratios common."""
    m = draw(st.integers(1, 6))

    def distribution() -> FloatArray:
        weights = np.array(draw(st.lists(st.integers(0, 9), min_size=m, max_size=m).filter(any)), dtype=float)
        return np.asarray(weights / weights.sum())

    return distribution(), distribution()


# Off the lattice of all probabilities above (denominators up to 54), so that rounding decides no tie.
deltas = st.integers(0, 996).map(lambda number: (number + 0.5) / 997)


def brute_force(release: FloatArray, reference: FloatArray, epsilon: float) -> float:
    """The largest P(A) − e^ε·R(A), over all 2^m sets A."""
    sets = np.array(list(product([0.0, 1.0], repeat=len(release))))
    return float((sets @ release - math.exp(epsilon) * (sets @ reference)).max())


def epsilon_by_bisection(release: FloatArray, reference: FloatArray, delta: float) -> float:
    low, high = 0.0, 40.0
    if brute_force(release, reference, low) <= delta:
        return 0.0
    if brute_force(release, reference, high) > delta:
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if brute_force(release, reference, middle) <= delta else (middle, high)
    return high


@examples(100)
@given(pairs_of_distributions(), st.floats(0, 5))
def test_the_hockey_stick_is_the_worst_set_of_arms(
    pair: tuple[FloatArray, FloatArray], epsilon: float
) -> None:
    assert float(hockey_stick(*pair, epsilon)) == pytest.approx(brute_force(*pair, epsilon), abs=1e-13)


@examples(100)
@given(pairs_of_distributions())
def test_at_epsilon_zero_it_is_the_total_variation_distance_both_ways(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    release, reference = pair
    distance = float(np.abs(release - reference).sum() / 2)
    assert float(hockey_stick(release, reference, 0.0)) == pytest.approx(distance, abs=1e-13)
    assert float(hockey_stick(reference, release, 0.0)) == pytest.approx(distance, abs=1e-13)


def test_the_two_directions_differ() -> None:
    # By hand, e^ε = 2: (0.9 − 1)₊ + (0.1 − 1)₊ = 0 one way, (0.5 − 0.2)₊ = 0.3 the other.
    release, reference = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    assert hockey_stick(release, reference, math.log(2)) == 0
    assert float(hockey_stick(reference, release, math.log(2))) == pytest.approx(0.3, abs=1e-15)


@examples(100)
@given(pairs_of_distributions(), deltas)
def test_the_smallest_epsilon_is_where_brute_force_first_holds(
    pair: tuple[FloatArray, FloatArray], delta: float
) -> None:
    expected = epsilon_by_bisection(*pair, delta)
    assert float(smallest_epsilon(*pair, delta)) == pytest.approx(expected, abs=1e-9)


@examples(100)
@given(pairs_of_distributions(), deltas)
def test_the_two_divergences_are_inverses(pair: tuple[FloatArray, FloatArray], delta: float) -> None:
    epsilon = float(smallest_epsilon(*pair, delta))
    assert hockey_stick(*pair, epsilon) <= delta + 1e-12
    if 1e-6 < epsilon < math.inf:
        assert hockey_stick(*pair, epsilon * 0.999) > delta


@examples(100)
@given(pairs_of_distributions())
def test_a_pure_epsilon_is_the_largest_log_ratio(pair: tuple[FloatArray, FloatArray]) -> None:
    release, reference = pair
    ratios = [
        p / r if r else math.inf for p, r in zip(release.tolist(), reference.tolist(), strict=True) if p
    ]
    assert float(smallest_epsilon(release, reference, 0.0)) == pytest.approx(math.log(max(1.0, *ratios, 1.0)))


def test_disjoint_supports_are_told_apart_by_anything_but_delta_one() -> None:
    release, reference = np.array([0.25, 0.75, 0.0]), np.array([0.0, 0.0, 1.0])
    for epsilon in (0.0, 5.0, 699.0, 701.0, 1e6):
        assert hockey_stick(release, reference, epsilon) == 1
    assert smallest_epsilon(release, reference, 0.999) == math.inf
    assert smallest_epsilon(release, reference, 1.0) == 0


@pytest.mark.parametrize("epsilon", [700.5, 709.0, 1e4, 1e308])
def test_a_huge_epsilon_leaves_only_what_the_reference_cannot_produce(epsilon: float) -> None:
    release, reference = np.array([0.5, 0.25, 0.25]), np.array([0.9, 0.0, 0.1])
    assert hockey_stick(release, reference, epsilon) == 0.25
    assert hockey_stick(reference, release, epsilon) == 0


def test_an_infinite_epsilon_asks_for_nothing() -> None:
    assert hockey_stick(np.array([1.0, 0.0]), np.array([0.0, 1.0]), math.inf) == 0


@examples(100)
@given(st.lists(pairs_of_distributions(), min_size=6, max_size=6), st.floats(0, 5), deltas)
def test_a_batch_is_every_pair_on_its_own(
    pairs: list[tuple[FloatArray, FloatArray]], epsilon: float, delta: float
) -> None:
    padded = [
        tuple(np.pad(side, (0, 6 - len(side))) for side in pair) for pair in pairs
    ]  # zeros change nothing
    release = np.stack([pair[0] for pair in padded]).reshape(2, 3, 6)
    reference = np.stack([pair[1] for pair in padded]).reshape(2, 3, 6)
    sticks = hockey_stick(release, reference, epsilon)
    epsilons = smallest_epsilon(release, reference, delta)
    assert sticks.shape == epsilons.shape == (2, 3)
    for position, pair in enumerate(pairs):
        place = divmod(position, 3)
        assert sticks[place] == pytest.approx(float(hockey_stick(*pair, epsilon)), abs=1e-15)
        assert epsilons[place] == pytest.approx(float(smallest_epsilon(*pair, delta)), abs=1e-12)


def test_what_is_neither_a_loss_nor_a_probability_is_refused() -> None:
    half = np.array([0.5, 0.5])
    for epsilon in (-0.1, math.nan):
        with pytest.raises(InvalidInputError, match="epsilon must be 0 or more"):
            hockey_stick(half, half, epsilon)
    for delta in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidInputError, match="delta must be a probability"):
            smallest_epsilon(half, half, delta)


ORDERS = (0.0, 0.3, 0.999999, 1.0, 1.000001, 1.5, 2.0, 17.0, 800.0, math.inf)


def exact_renyi(release: FloatArray, reference: FloatArray, order: float) -> float:
    """By its definition, with 60 digits."""
    with mpmath.workdps(60):
        sides = [[mpmath.mpf(each) for each in side.tolist()] for side in (release, reference)]
        p_and_r = zip(*([each / sum(side) for each in side] for side in sides), strict=True)
        arms = [(p, r) for p, r in p_and_r if p > 0]
        if order >= 1 and any(r == 0 for _, r in arms):
            return math.inf
        if order == 1:
            return float(sum(p * mpmath.log(p / r) for p, r in arms))
        if math.isinf(order):
            return float(max(mpmath.log(p / r) for p, r in arms))
        total = sum(p**order * r ** (1 - mpmath.mpf(order)) for p, r in arms)
        return math.inf if total == 0 else float(mpmath.log(total) / (mpmath.mpf(order) - 1))


@examples(60)
@given(pairs_of_distributions(), st.sampled_from(ORDERS), st.sampled_from([0.0, 0.9, 0.99999]))
def test_the_renyi_divergence_is_its_definition(
    pair: tuple[FloatArray, FloatArray], order: float, common: float
) -> None:
    """Also of pairs that are nearly equal, where the sum is nearly 1."""
    release, reference = (common * pair[0] + (1 - common) * side for side in pair)
    found = float(renyi_divergence(release, reference, order))
    assert found == pytest.approx(exact_renyi(release, reference, order), rel=1e-9, abs=1e-15)


@examples(60)
@given(pairs_of_distributions())
def test_the_renyi_divergence_rises_with_its_order_to_the_pure_epsilon(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    found = [float(renyi_divergence(*pair, order)) for order in ORDERS]
    assert all(low <= high + 1e-9 for low, high in itertools.pairwise(found))
    assert found[-1] == pytest.approx(float(smallest_epsilon(*pair, 0.0)), abs=1e-12)


@pytest.mark.parametrize("order", [1.25, 2.0, 8.0, 64.0])
def test_the_renyi_divergence_of_randomised_response_is_that_of_dp_accounting(order: float) -> None:
    for noise, buckets in ((0.2, 2), (0.7, 5)):
        accountant = RdpAccountant([order], NeighboringRelation.REPLACE_ONE)
        accountant.compose(RandomizedResponseDpEvent(noise, buckets))
        (expected,) = accountant._rdp  # it is shown as an ε at some δ only
        kept, other = np.full((2, buckets), noise / buckets)
        kept[0] += 1 - noise
        other[1] += 1 - noise
        assert float(renyi_divergence(kept, other, order)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 10.0])
def test_the_renyi_divergence_of_two_gaussians_on_a_fine_grid_is_half_the_order(order: float) -> None:
    edges = np.append(np.linspace(-20, 8, 20001), np.inf)  # the tail that counts is the left one
    p, r = (np.diff(norm.cdf(edges, loc), prepend=0.0) for loc in (-1, 0))
    found = float(renyi_divergence(p, r, order))
    assert found == pytest.approx(order / 2, rel=1e-3)


def test_an_order_below_zero_is_refused() -> None:
    half = np.array([0.5, 0.5])
    for order in (-1.0, math.nan):
        with pytest.raises(InvalidInputError, match="the order of a Rényi divergence must be 0 or more"):
            renyi_divergence(half, half, order)
