"""The draw of the released arm is exact: every integer the operating system could return is enumerated."""

import math
import secrets
from collections import Counter
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from armnesia.core import randomness
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.randomness import draw_index, generator


def index_for(weights: Any, integer: int) -> tuple[int, int]:
    """The index drawn if the operating system returns `integer`, and the bound it was asked for."""
    with patch.object(secrets, "randbelow", return_value=integer) as randbelow:
        index = draw_index(weights)
    (bound,) = randbelow.call_args.args
    assert randbelow.call_count == 1  # one draw is one integer: nothing else is consumed or leaked
    return index, bound


def exact_frequencies(weights: Any) -> dict[int, Fraction]:
    """How often each index is drawn, over all equally likely integers."""
    bound = index_for(weights, 0)[1]
    drawn = Counter(index_for(weights, integer)[0] for integer in range(bound))
    return {index: Fraction(times, bound) for index, times in drawn.items()}


dyadic_weights = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 4)).map(lambda pair: pair[0] / 2 ** pair[1]),
    min_size=1,
    max_size=5,
).filter(any)


@given(dyadic_weights)
def test_an_index_is_drawn_exactly_in_proportion_to_its_weight(weights: list[float]) -> None:
    total = sum(map(Fraction, weights))
    expected = {index: Fraction(weight) / total for index, weight in enumerate(weights) if weight}
    assert exact_frequencies(weights) == expected


def test_the_enumeration_would_notice_a_cumulative_sum_that_is_off_by_one() -> None:
    """The planted fault: an arm that gets one integer too many is a different distribution."""
    frequencies = exact_frequencies([0.25, 0.75])
    assert frequencies == {0: Fraction(1, 4), 1: Fraction(3, 4)}
    exactly = randomness._integers_and_powers

    def one_too_many(weights: FloatArray) -> tuple[IntArray, NDArray[np.int16]]:
        integers, powers = exactly(weights)
        return integers + (weights == 0.25), powers

    with patch.object(randomness, "_integers_and_powers", one_too_many):
        assert exact_frequencies([0.25, 0.75]) != frequencies


def check_shares(weights: FloatArray) -> None:
    """Walk over all integers, from the first of an index to its last: as many as its exact fraction."""
    fractions = [Fraction(weight) for weight in weights.tolist()]
    denominator = math.lcm(*(fraction.denominator for fraction in fractions))
    integer, seen = 0, set()
    bound = index_for(weights, 0)[1]
    assert bound == sum(fractions) * denominator
    while integer < bound:
        index = index_for(weights, integer)[0]
        assert index not in seen
        seen.add(index)
        integer += int(fractions[index] * denominator)
        assert index_for(weights, integer - 1)[0] == index
    assert integer == bound
    assert seen == set(np.flatnonzero(weights))


def odd_multiples(number: int) -> FloatArray:
    """Weights in [1/2, 1) that need all 53 bits."""
    return np.random.default_rng(5).integers(2**51, 2**52, number) / 2**52 + 2.0**-53


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["few bits", "alike", "far apart"])
def test_many_weights_have_their_exact_fractions(kind: str) -> None:
    """More weights of one power of two than are added at once, many powers, subnormal ones, and zeros."""
    rng = np.random.default_rng(5)
    weights = {
        "alike": odd_multiples(700),
        "far apart": np.concatenate([10.0 ** rng.uniform(-320, 300, 100), [5e-324, 0.0, 1.5e308]]),
        "few bits": rng.choice([0, 1, 2, 3, 5, 7], 820) / 8,
    }[kind]
    check_shares(weights)


def test_the_walk_notices_a_block_that_is_cut_short() -> None:
    weights = odd_multiples(700)
    one_block = patch.object(randomness, "_block_sums", lambda integers: [int(integers.sum())])
    with one_block, pytest.raises(IndexError):
        check_shares(weights)


def test_an_index_of_weight_zero_is_never_drawn_whatever_the_integer() -> None:
    assert set(exact_frequencies([0.0, 0.5, 0.0, 0.25, 0.0])) == {1, 3}
    assert exact_frequencies([0, 0, 1]) == {2: 1}


@pytest.mark.parametrize("power", [60, 1074])
def test_a_tiny_weight_is_one_integer_not_none(power: int) -> None:
    """2⁻⁶⁰ beside 1 would vanish in a comparison of 53-bit floats; 2⁻¹⁰⁷⁴ is the smallest float there is."""
    weights = [2.0**-power, 1.0]
    assert index_for(weights, 0) == (0, 2**power + 1)
    assert index_for(weights, 1) == (1, 2**power + 1)
    assert index_for(weights, 2**power) == (1, 2**power + 1)


def test_weights_need_not_sum_to_one_and_may_be_a_numpy_row() -> None:
    assert exact_frequencies(np.array([3.0, 1.0])) == {0: Fraction(3, 4), 1: Fraction(1, 4)}
    # Floats that do not sum to 1 exactly are used unchanged.
    weights = [0.1, 0.2, 0.7]
    bound = index_for(weights, 0)[1]
    assert Fraction(bound) / sum(map(Fraction, weights)) == 2**55  # the common denominator


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [0.5, -0.1], [0.5, math.nan], [math.inf, 1.0]])
def test_what_is_no_distribution_is_refused(weights: list[float]) -> None:
    with (
        patch.object(secrets, "randbelow", side_effect=AssertionError("drew before refusing")),
        pytest.raises(InvalidInputError, match="weights must be finite, not negative and not all zero"),
    ):
        draw_index(weights)


def furthest_from_claimed(weights: list[float], claimed: list[float], draws: int) -> float:
    drawn = Counter(draw_index(weights) for _ in range(draws))
    return max(abs(drawn[index] / draws - share) for index, share in enumerate(claimed))


@pytest.mark.slow
def test_the_operating_system_is_really_asked() -> None:
    """20 000 real draws, Hoeffding with the union over four arms: false alarm below 10⁻¹⁰.

    The planted fault, shares off by 0.1, is missed with a probability below 10⁻⁴⁰ by the same inequality.
    """
    draws = 20_000
    tolerance = math.sqrt(math.log(2 * 4 / 1e-10) / (2 * draws))
    weights = [0.5, 0.25, 0.25, 0.0]
    assert furthest_from_claimed(weights, weights, draws) < tolerance
    assert furthest_from_claimed([0.6, 0.25, 0.15, 0.0], weights, draws) > tolerance


def test_a_seeded_generator_repeats_itself_and_a_given_one_is_passed_through() -> None:
    assert generator(7).random(5).tolist() == generator(7).random(5).tolist()
    assert generator(7).random(5).tolist() != generator(8).random(5).tolist()
    assert generator(None).random(5).tolist() != generator(None).random(5).tolist()  # equal: chance 2⁻²⁶⁰
    mine = np.random.default_rng(1)
    assert generator(mine) is mine
