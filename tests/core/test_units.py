"""Reward units: the rounding rule, and which ranges and rewards are refused."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.core.units import UNIT, checked_reward_range, from_unit_scale, to_units

ranges = st.sampled_from([(0.0, 1.0), (1.0, 5.0), (-2.5, 7.25), (-1e-3, 1e6), (0.1, 0.3)])


@given(st.floats(0, 1))
@example(2.5e-9)
@example(3.5e-9)
@example(0.5e-9)
@example(0.1 + 0.2)
@example(5e-324)
def test_rewards_round_to_the_nearest_unit_with_ties_to_even(reward: float) -> None:
    """Python rounds a fraction half to even, exactly; on (0, 1) the float product is the value rounded."""
    assert to_units(reward, (0, 1)) == round(Fraction(reward * 1e9))


@pytest.mark.parametrize(
    ("halves", "units"), [(1, 0), (3, 2), (5, 2), (7, 4), (2 * UNIT - 1, UNIT), (2 * UNIT - 3, UNIT - 2)]
)
def test_exact_ties_go_to_the_even_unit(halves: int, units: int) -> None:
    # On a range as wide as 2·10⁹ a whole reward is exactly that many half units.
    assert to_units(halves, (0, 2 * UNIT)) == units


@given(ranges, st.data())
def test_a_unit_is_never_further_than_half_a_unit_from_the_exact_reward(
    reward_range: tuple[float, float], data: st.DataObject
) -> None:
    low, high = map(Fraction, reward_range)
    reward = data.draw(st.floats(*reward_range))
    exact = (Fraction(reward) - low) / (high - low) * UNIT
    # Four float operations of relative error 2⁻⁵³, on values up to 10⁹, move a tie by so much at most.
    assert abs(int(to_units(reward, reward_range)) - exact) <= Fraction(1, 2) + 4 * UNIT * Fraction(1, 2**53)


@given(ranges)
def test_the_ends_of_the_range_are_exact(reward_range: tuple[float, float]) -> None:
    assert to_units(list(reward_range), reward_range).tolist() == [0, UNIT]


@given(ranges, st.data())
def test_units_keep_the_order_of_rewards_and_come_back_within_half_a_unit(
    reward_range: tuple[float, float], data: st.DataObject
) -> None:
    rewards = np.sort(data.draw(st.lists(st.floats(*reward_range), min_size=1, max_size=5)))
    units = to_units(rewards, reward_range)
    assert (np.diff(units) >= 0).all()
    width = reward_range[1] - reward_range[0]
    assert np.abs(from_unit_scale(units / UNIT, reward_range) - rewards).max() <= 0.5001e-9 * width


def test_any_shape_and_any_number_type_is_converted() -> None:
    assert to_units([[True, False], [False, True]], (0, 1)).tolist() == [[UNIT, 0], [0, UNIT]]
    assert to_units(np.array([0.5], dtype=np.float32), (0, 1)).tolist() == [UNIT // 2]
    assert to_units([], (0, 1)).shape == (0,)


def test_rewards_outside_the_range_are_refused_with_their_positions() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        to_units([0.5, 1.5, np.nan, -np.inf, 7], (0, 1))
    # The first three are named; the rest would only make the message longer.
    assert str(refusal.value) == (
        "rewards must lie in reward_range [0, 1]; got 1.5 at position 1,"
        " nan at position 2, -inf at position 3"
    )


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf, np.nextafter(1, 2), -5e-324])
def test_one_reward_outside_is_enough(reward: float) -> None:
    with pytest.raises(InvalidInputError, match=r"at position 1$"):
        to_units([1.0, reward], (0, 1))


@pytest.mark.parametrize(
    "reward_range",
    [(1, 1), (5, 1), (0, np.inf), (-1e308, 1e308), (np.nan, 1), (0, 1, 2), (0,), 5, None, ("low", "high")],
)
def test_what_is_not_a_reward_range_is_refused(reward_range: Any) -> None:
    with pytest.raises(InvalidInputError, match="reward_range must be"):
        checked_reward_range(reward_range)
