"""Mixing: the choice of U′ is integrated exactly, compared with every subset there is."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import LCB, ArmStatistics, Branch, Budget, DeletionRequest, Gaussian, Mixing, Rollback
from armnesia.core.errors import UnsupportedError
from armnesia.unlearners import mixing as mixing_module
from armnesia.unlearners.mixing import likely_numbers
from tests.quick import examples, quick_only

TAU = 0.05
LEARNER = LCB(confidence=TAU)
BUDGET = Budget(epsilon=3.0, delta=1e-3)


def penalty(count: int) -> float:
    return math.sqrt(math.log(2 / TAU) / (2 * count)) if count else 1.0


def by_every_subset(kept: list[int], deleted: list[int], other: list[int], k_first: int) -> float:
    """P(arm a is released): the average over all U′ ⊂ U of Φ((f(D∖U′) − f_b)/σ), for a served arm a."""
    count, rest = len(kept) + len(deleted), len(deleted) - k_first
    left = count - k_first
    after = penalty(left - rest)
    delta = rest / left + after - penalty(left) if left > rest else max(2 - penalty(left), penalty(left) - 1)
    sigma = BUDGET.gamma * delta
    rival = sum(other) / len(other) - penalty(len(other))
    total = []
    for part in itertools.combinations(range(len(deleted)), k_first):
        ones = sum(kept) + sum(deleted) - sum(deleted[i] for i in part)
        z = (ones / left - penalty(left) - rival) / sigma
        total.append(0.5 * math.erfc(-z / math.sqrt(2)))
    return math.fsum(total) / len(total)


bits = st.lists(st.integers(0, 1), min_size=1, max_size=12)


@examples(120)
@given(bits, st.lists(st.integers(0, 1), min_size=2, max_size=9), st.data())
def test_the_mixture_is_the_average_over_all_choices(
    kept: list[int], deleted: list[int], data: st.DataObject
) -> None:
    kept, other = [*kept, 1, 1, 1], [0] * 40  # arm a is served: its bound is above that of 40 zeros …
    if sum(kept + deleted) / len(kept + deleted) - penalty(len(kept + deleted)) <= -penalty(40):
        kept = [*kept, *[1] * 20]  # … or else after 20 more ones
    k_first = data.draw(st.integers(0, len(deleted) - 1))
    statistics = ArmStatistics.from_rewards({"a": kept + deleted, "b": other})
    request = DeletionRequest.from_rewards({"a": deleted, "b": []})
    release = Mixing(rolled_back=k_first).release(LEARNER, statistics, request, BUDGET)
    assert release.branch == (Branch.MIXING if k_first else Branch.GAUSSIAN)
    expected = by_every_subset(kept, deleted, other, k_first)
    np.testing.assert_allclose(release.probabilities, [expected, 1 - expected], rtol=0, atol=1e-13)


def test_a_wrong_number_of_ones_would_be_seen() -> None:
    """The planted fault: the subsets of another request give another mixture."""
    kept, deleted, other = [1] * 10, [1, 1, 1, 0, 0, 0], [0] * 40
    statistics = ArmStatistics.from_rewards({"a": kept + deleted, "b": other})
    request = DeletionRequest.from_rewards({"a": deleted, "b": []})
    p = Mixing(rolled_back=3).release(LEARNER, statistics, request, BUDGET).probabilities[0]
    assert p == pytest.approx(by_every_subset(kept, deleted, other, 3), abs=1e-13)
    assert abs(p - by_every_subset([1] * 10, [1, 1, 0, 0, 0, 0], other, 3)) > 1e-3


@pytest.mark.parametrize(
    ("k", "ones", "k_first"), [(30, 7, 12), (200, 150, 81), (150, 0, 40), (300, 299, 299)]
)
def test_large_requests_are_weighted_by_exact_binomial_coefficients(k: int, ones: int, k_first: int) -> None:
    """Too many subsets to list: the number of ones in U′ with weights in rational arithmetic."""
    kept, rival = [1] * 300 + [0] * 100, [1] * 200 + [0] * 200
    deleted = [1] * ones + [0] * (k - ones)
    total, ways = Fraction(0), math.comb(k, k_first)
    for hit in range(k_first + 1):
        weight = Fraction(math.comb(ones, hit) * math.comb(k - ones, k_first - hit), ways)
        if weight:
            # All U′ with `hit` ones give one release: that of a single choice, checked above.
            part = DeletionRequest.from_rewards({"a": [1] * hit + [0] * (k_first - hit), "b": []})
            statistics = ArmStatistics.from_rewards({"a": kept + deleted, "b": rival})
            request = DeletionRequest.from_rewards({"a": deleted, "b": []})
            chosen = Mixing(rolled_back=part).release(LEARNER, statistics, request, BUDGET)
            total += weight * Fraction(float(chosen.probabilities[0]))
    release = Mixing(rolled_back=k_first).release(LEARNER, statistics, request, BUDGET)
    assert release.branch == Branch.MIXING
    np.testing.assert_allclose(release.probabilities[0], float(total), rtol=0, atol=1e-12)


def huge_request(k: int, ones: int) -> tuple[ArmStatistics, DeletionRequest]:
    """k of the 2k records of arm a, which has a mean slightly above that of arm b."""
    deleted = ArmStatistics(("a", "b"), np.array([k, 0]), np.array([ones, 0], dtype=object) * 10**9)
    kept = ArmStatistics(
        ("a", "b"), np.array([k, 2 * k]), np.array([k // 10, k // 10 + ones - k // 200], dtype=object) * 10**9
    )
    return kept.merge(deleted), DeletionRequest(deleted, binary=True)


@pytest.mark.parametrize(
    ("k", "ones"), quick_only([(5 * 10**8, 7)], [(5 * 10**8, 5 * 10**7), (5 * 10**8, 7), (10**10, 10**9)])
)
def test_a_request_of_any_size_is_integrated(k: int, ones: int) -> None:
    """With the ratios of successive weights from the likeliest number of ones on, in plain Python."""
    statistics, request = huge_request(k, ones)
    release = Mixing().release(LEARNER, statistics, request, BUDGET)
    assert release.branch == Branch.MIXING
    k_first, left = k // 2, 2 * k - k // 2
    sigma = BUDGET.gamma * ((k - k_first) / left + penalty(k) - penalty(left))
    rival = (k // 10 + ones - k // 200) / (2 * k) - penalty(2 * k)

    def kept_by(hit: int) -> float:
        score = (k // 10 + ones - hit) / left - penalty(left)
        return 0.5 * math.erfc(-(score - rival) / sigma / math.sqrt(2))

    weights, values = [], []
    for step in (1, -1):
        hit, weight = ones // 2 + (step < 0) * step, 1.0
        if step < 0:
            weight = (ones // 2) * (k - ones - k_first + ones // 2) / ((ones - hit) * (k_first - hit))
        while weight > 1e-22 and 0 <= hit <= ones:
            weights.append(weight)
            values.append(weight * kept_by(hit))
            up = (ones - hit) * (k_first - hit) / ((hit + 1) * (k - ones - k_first + hit + 1))
            down = hit * (k - ones - k_first + hit) / ((ones - hit + 1) * (k_first - hit + 1))
            weight *= up if step > 0 else down
            hit += step
    expected = math.fsum(values) / math.fsum(weights)
    assert release.probabilities[0] == pytest.approx(expected, abs=1e-10)
    assert abs(kept_by(0) - expected) > 1e-9  # another number of ones is another probability


def test_a_request_that_is_too_large_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        UnsupportedError, match="10000000000000 deleted records are too many: use another unlearner"
    ):
        Mixing().release(LEARNER, *huge_request(10**13, 10**12), BUDGET)


def test_what_is_left_out_is_below_the_rounding_error() -> None:
    """Exact tails outside the window, for few and many ones, in rational arithmetic."""
    for k, ones, k_first in ((4000, 2000, 2000), (4000, 1000, 100), (4000, 3900, 1000)):
        fewest, most = likely_numbers(*(np.array(number) for number in (k, ones, k_first)))
        outside = sum(
            math.comb(ones, hit) * math.comb(k - ones, k_first - hit)
            for hit in range(max(0, ones + k_first - k), min(ones, k_first) + 1)
            if not fewest <= hit <= most
        )
        assert Fraction(outside, math.comb(k, k_first)) < Fraction(1, 10**20)
        if (k, ones) == (4000, 2000):  # the window is a part of what is possible
            assert most - fewest < k_first / 2
            assert outside > 0


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_the_choice_may_be_integrated_in_pieces(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = ArmStatistics.from_rewards({"a": [1] * 40 + [0] * 20, "b": [1] * 30 + [0] * 30})
    request = DeletionRequest.from_rewards({"a": [1] * 12 + [0] * 8, "b": []})
    whole = Mixing().release(LEARNER, statistics, request, BUDGET).probabilities
    monkeypatch.setattr(mixing_module, "_CHUNK", chunk)
    pieces = Mixing().release(LEARNER, statistics, request, BUDGET).probabilities
    np.testing.assert_allclose(pieces, whole, rtol=0, atol=1e-15)


def test_the_ends_of_the_ratio_are_gaussian_and_rollback() -> None:
    statistics = ArmStatistics.from_rewards({"a": [1] * 40 + [0] * 20, "b": [1] * 30 + [0] * 30})
    request = DeletionRequest.from_rewards({"a": [1] * 12 + [0] * 8, "b": []})
    for ratio, same in ((0.0, Gaussian()), (1.0, Rollback())):
        np.testing.assert_allclose(
            Mixing(ratio=ratio).release(LEARNER, statistics, request, BUDGET).probabilities,
            same.release(LEARNER, statistics, request, BUDGET).probabilities,
            rtol=0,
            atol=1e-13,
        )


@pytest.mark.parametrize(
    ("ratio", "k", "k_first"), [(None, 7, 3), (0.5, 8, 4), (0.25, 7, 1), (0.9, 9, 8), (0.1, 5, 0)]
)
def test_the_ratio_is_rounded_down(ratio: float | None, k: int, k_first: int) -> None:
    statistics = ArmStatistics.from_rewards({"a": [1] * 40 + [0] * 20, "b": [1] * 30 + [0] * 30})
    request = DeletionRequest.from_rewards({"a": [1] * (k - 2) + [0] * 2, "b": []})
    np.testing.assert_array_equal(
        Mixing(ratio=ratio).release(LEARNER, statistics, request, BUDGET).probabilities,
        Mixing(rolled_back=k_first).release(LEARNER, statistics, request, BUDGET).probabilities,
    )


def test_given_records_that_all_choices_share_give_the_same_release() -> None:
    """If all of U has one reward, every U′ of a size is the same."""
    statistics = ArmStatistics.from_rewards({"a": [1] * 40 + [0] * 20, "b": [1] * 30 + [0] * 30})
    request = DeletionRequest.from_rewards({"a": [1] * 12, "b": []})
    part = DeletionRequest.from_rewards({"a": [1] * 5, "b": []})
    np.testing.assert_allclose(
        Mixing(rolled_back=part).release(LEARNER, statistics, request, BUDGET).probabilities,
        Mixing(rolled_back=5).release(LEARNER, statistics, request, BUDGET).probabilities,
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("percent", range(101))
def test_a_ratio_in_per_cent_of_a_hundred_records_is_that_many(percent: int) -> None:
    assert Mixing(ratio=percent / 100).rolled_back_first(np.array([100, 0])).tolist() == [percent, 0]


def test_numpy_integers_are_whole_numbers_to_roll_back() -> None:
    assert Mixing(rolled_back=np.int64(4)).rolled_back_first(np.array([10, 0])).tolist() == [4, 0]  # type: ignore[arg-type]


def test_mixing_of_many_records_is_a_probability_vector() -> None:
    """The weights of 10⁵ possible choices carry rounding of their own."""
    n = 200_000
    statistics = ArmStatistics(("A", "B"), np.array([n, n]), np.array([n // 2, n // 2 - 10]) * 10**9)
    deleted = ArmStatistics(("A", "B"), np.array([n // 2, 0]), np.array([n // 4, 0]) * 10**9)
    p = (
        Mixing()
        .release(LCB().bind(statistics), statistics, DeletionRequest(deleted, True), BUDGET)
        .probabilities
    )
    assert p.sum() == pytest.approx(1.0, abs=1e-14)
    assert p.max() <= 1.0
