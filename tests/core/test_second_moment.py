"""The second moment: exact, checked, lost where a part of it is not known, and stored."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from armnesia import ArmStatistics, DeletionRequest
from armnesia.core.errors import ImpossibleDeletionError, InvalidInputError
from armnesia.core.units import UNIT

HALVES = ArmStatistics.from_rewards({"A": [0.5] * 100, "B": [1, 0, 0.25]})


def squares_of(statistics: ArmStatistics) -> list[int]:
    assert statistics.squares is not None
    return [int(value) for value in statistics.squares]


def test_it_is_the_sum_of_the_squares_also_beyond_int64() -> None:
    assert squares_of(HALVES) == [100 * (UNIT // 2) ** 2, UNIT**2 + (UNIT // 4) ** 2]
    assert HALVES.products is not None
    assert HALVES.products.dtype == object
    fewer = HALVES.without(ArmStatistics.from_rewards({"A": [0.5] * 90, "B": []}))
    assert fewer.products is not None
    assert fewer.products.dtype == np.int64
    assert fewer == ArmStatistics.from_rewards({"A": [0.5] * 10, "B": [1, 0, 0.25]})


def test_variances_are_those_of_fractions() -> None:
    random = np.random.default_rng(3)
    rewards = {arm: random.uniform(0.5, 0.5 + 0.5 / 10**arm, 50).round(9).tolist() for arm in range(8)}
    found = ArmStatistics.from_rewards(rewards | {8: [0.3], 9: [], 10: [1, 0, 1], 11: [0.7] * 9})
    assert found.unit_variances is not None
    for arm, values in rewards.items():
        units = [Fraction(round(value * UNIT), UNIT) for value in values]
        mean = sum(units) / 50
        exact = sum((unit - mean) ** 2 for unit in units) / 49
        assert float(found.unit_variances[arm]) == pytest.approx(float(exact), rel=1e-15)
    assert found.unit_variances[8:].tolist() == pytest.approx([0, 0, 1 / 3, 0], rel=1e-15)


def test_exactly_the_possible_moments_are_accepted() -> None:
    """Of up to three rewards in quarters: every one that occurs, and nothing beyond the extremes."""
    for count in range(1, 4):
        found: dict[int, set[int]] = {}
        for rewards in product(range(5), repeat=count):
            units = [reward * UNIT // 4 for reward in rewards]
            found.setdefault(sum(units), set()).add(sum(u * (UNIT - u) for u in units))
        for total, products in found.items():

            def made(value: int, total: int = total, count: int = count) -> ArmStatistics:
                return ArmStatistics(("A",), np.array([count]), np.array([total]), products=np.array([value]))

            for value in products:
                made(value)
            rest, most = total % UNIT, Fraction(total * (count * UNIT - total), count)
            assert min(products) == rest * (UNIT - rest)
            assert max(products) <= most
            for value in (min(products) - 1, int(most) + 1):
                with pytest.raises(InvalidInputError, match="no rewards with this count and sum have this"):
                    made(value)


def test_records_that_are_not_contained_are_refused() -> None:
    """By count and sum alone, a reward of a half could have been there."""
    log = ArmStatistics.from_rewards({"A": [1, 1, 0, 0], "B": []})
    request = ArmStatistics.from_rewards({"A": [0.5], "B": []})
    assert log.without(replace(request, products=None)).counts.tolist() == [3, 0]
    with pytest.raises(ImpossibleDeletionError, match="'A' does not contain these records"):
        log.without(request)


def test_it_is_unknown_where_a_part_is() -> None:
    known = ArmStatistics.from_rewards({"A": [1], "B": []})
    unknown = replace(known, products=None)
    assert unknown.squares is None
    assert unknown.unit_variances is None
    for found in (known.merge(unknown), unknown.merge(known), known.without(unknown), unknown.without(known)):
        assert found.products is None
    assert unknown.add("A", 0.5).products is None


def test_it_is_stored_and_may_be_missing() -> None:
    stored = json.loads(json.dumps(HALVES.to_dict()))
    assert stored["squares"][0] == 100 * (UNIT // 2) ** 2
    assert ArmStatistics.from_dict(stored) == HALVES
    missing = {key: value for key, value in stored.items() if key != "squares"}
    assert ArmStatistics.from_dict(missing) == replace(HALVES, products=None)
    assert "squares" not in replace(HALVES, products=None).to_dict()
    for wrong in ([1.5, 2], [1], "many", [None, None], [[1, 2], [3]]):
        with pytest.raises(InvalidInputError):
            ArmStatistics.from_dict(stored | {"squares": wrong})


def test_a_binary_request_has_no_products() -> None:
    whole = ArmStatistics.from_rewards({"A": [0.5, 0.5]})
    with pytest.raises(InvalidInputError, match="by their squares, not all rewards are 0 or 1"):
        DeletionRequest(whole, binary=True)
