"""Statistics are exact: after any additions, merges and deletions they equal a fresh count."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import EmpiricalBernsteinLCB

ARMS = ("A", ("B", 2), 3)
RANGE = (-2.5, 7.25)
LARGEST_INT64_COUNT = (2**63 - 1) // UNIT

Record = tuple[int, float]

records = st.tuples(st.integers(0, len(ARMS) - 1), st.floats(*RANGE))
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(records, min_size=1, max_size=1)),
    st.tuples(st.just("merge"), st.lists(records, max_size=6)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 10**6), max_size=6)),
)


def counted_afresh(rows: Iterable[Record]) -> ArmStatistics:
    rewards: dict[int, list[float]] = {arm: [] for arm in range(len(ARMS))}
    for arm, reward in rows:
        rewards[arm].append(reward)
    return ArmStatistics.from_rewards({ARMS[arm]: rewards[arm] for arm in rewards}, RANGE)


def bits(statistics: ArmStatistics) -> tuple[object, ...]:
    """Everything that is stored, in a form where equality is equality of every bit and every type."""
    sums, products = statistics.sums, np.asarray(statistics.products)
    held = [
        tuple((type(value), value) for value in each.flat) if each.dtype == object else each.tobytes()
        for each in (sums, products)
    ]
    return (
        statistics.actions,
        statistics.reward_range,
        sums.dtype,
        sums.shape,
        statistics.counts.dtype,
        statistics.counts.tobytes(),
        products.dtype,
        *held,
    )


@given(st.lists(steps, max_size=12))
def test_any_order_of_additions_merges_and_deletions_equals_a_fresh_count(
    history: list[tuple[str, list[Record] | list[int]]],
) -> None:
    statistics, live = ArmStatistics.empty(ARMS, RANGE), list[Record]()
    for step, payload in history:
        if step == "delete":
            positions = {int(number) % len(live) for number in payload if live}  # type: ignore[arg-type]
            deleted = [live[position] for position in positions]
            live = [row for position, row in enumerate(live) if position not in positions]
            statistics = statistics.without(counted_afresh(deleted))
        else:
            rows: list[Record] = payload  # type: ignore[assignment]
            live = live + rows
            if step == "add":
                statistics = statistics.add(ARMS[rows[0][0]], rows[0][1])
            else:
                statistics = statistics.merge(counted_afresh(rows))
    assert bits(statistics) == bits(counted_afresh(live))
    assert statistics == counted_afresh(live)


@pytest.mark.slow
def test_ten_thousand_additions_and_deletions_leave_no_residue() -> None:
    """Rewards 0.1·k are not exact in binary, so a running float sum beside the integers does leave one."""
    rng = np.random.default_rng(20240607)
    labels = ("A", "B")
    one_row = {
        (arm, k): ArmStatistics.from_rewards({label: [0.1 * k] if label == arm else [] for label in labels})
        for arm in labels
        for k in range(11)
    }
    statistics = ArmStatistics.empty(labels)
    live: list[tuple[str, int]] = []
    float_sums = dict.fromkeys(labels, 0.0)
    # Each step adds, or deletes a random live row, with similar chances; `live` is the ledger.
    for coin, pick, k in zip(
        rng.random(10_000), rng.random(10_000), rng.integers(0, 11, 10_000), strict=True
    ):
        if coin < 0.45 and live:
            position = int(pick * len(live))
            live[position], live[-1] = live[-1], live[position]
            arm, reward = live.pop()
            statistics = statistics.without(one_row[arm, reward])
            float_sums[arm] -= 0.1 * reward
        else:
            arm = labels[int(pick * 2)]
            live.append((arm, int(k)))
            statistics = statistics.merge(one_row[arm, int(k)])
            float_sums[arm] += 0.1 * int(k)

    rows_left = {arm: [k for label, k in live if label == arm] for arm in labels}
    assert len(live) > 100  # enough rows are left to compare
    assert statistics.counts.tolist() == [len(rows_left[arm]) for arm in labels]
    assert statistics.sums.tolist() == [sum(rows_left[arm]) * UNIT // 10 for arm in labels]
    squares = [sum(k * k for k in rows_left[arm]) * (UNIT // 10) ** 2 for arm in labels]
    assert statistics.squares is not None
    assert statistics.squares.tolist() == squares
    assert min(squares) > 2**63  # beyond int64
    again = ArmStatistics.from_rewards({arm: [0.1 * k for k in rows_left[arm]] for arm in labels})
    assert bits(statistics) == bits(again)
    learner = EmpiricalBernsteinLCB(confidence=0.01)
    assert learner.unit_scores(statistics).tobytes() == learner.unit_scores(again).tobytes()
    residues = [float_sums[arm] - math.fsum(0.1 * k for k in rows_left[arm]) for arm in labels]
    assert all(residue != 0 for residue in residues)


@st.composite
def statistics_of_any_size(draw: st.DrawFn) -> ArmStatistics:
    """Counts up to 2·10¹⁰ per arm, many of them near the number of rows where int64 sums end."""
    counts = draw(
        st.lists(
            st.one_of(
                st.integers(0, 20),
                st.integers(LARGEST_INT64_COUNT - 3, LARGEST_INT64_COUNT + 3),
                st.integers(0, 2 * 10**10),
            ),
            min_size=3,
            max_size=3,
        )
    )
    sums = [draw(st.integers(0, count * UNIT)) for count in counts]
    # All rewards but one at an end of the range, or all alike: the extremes of the second moment.
    products = [
        draw(st.sampled_from([s % UNIT * (UNIT - s % UNIT), s * (n * UNIT - s) // max(n, 1)]))
        for n, s in zip(counts, sums, strict=True)
    ]
    return ArmStatistics(
        ARMS, np.array(counts), np.array(sums, dtype=object), products=np.array(products, dtype=object)
    )


@given(statistics_of_any_size(), statistics_of_any_size(), statistics_of_any_size())
def test_merge_is_a_commutative_monoid_and_without_undoes_it(
    one: ArmStatistics, two: ArmStatistics, three: ArmStatistics
) -> None:
    empty = ArmStatistics.empty(ARMS)
    both = one.merge(two)
    assert bits(both) == bits(two.merge(one))
    assert bits(both.merge(three)) == bits(one.merge(two.merge(three)))
    assert bits(one.merge(empty)) == bits(one) == bits(one.without(empty))
    assert bits(both.without(two)) == bits(one)
    assert bits(one.without(one)) == bits(empty)
    assert bits(both.merge(three).without(one).without(three)) == bits(two)
    assert both.sums.tolist() == [x + y for x, y in zip(one.sums.tolist(), two.sums.tolist(), strict=True)]


def test_ten_billion_rows_of_an_arm_are_summed_exactly_and_come_back_to_int64() -> None:
    five_billion = ArmStatistics(("A", "B"), np.array([5 * 10**9, 1]), np.array([5 * 10**18 - 7, 1]))
    ten_billion = five_billion.merge(five_billion)
    assert five_billion.sums.dtype == np.int64
    assert ten_billion.sums.tolist() == [10**19 - 14, 2]  # 10¹⁹ is beyond int64
    assert [type(value) for value in ten_billion.sums] == [int, int]
    assert bits(ten_billion.without(five_billion)) == bits(five_billion)
    assert hash(ten_billion.without(five_billion)) == hash(five_billion)


@pytest.mark.parametrize("over", [0, 1])
def test_sums_are_python_integers_exactly_from_the_first_count_whose_sum_could_overflow(over: int) -> None:
    count = LARGEST_INT64_COUNT + over
    full = ArmStatistics(("A",), np.array([count]), np.array([count * UNIT], dtype=object))
    assert (full.sums.dtype == object) == bool(over)
    assert full.sums.tolist() == [count * UNIT]
    assert full.unit_means.tolist() == [1.0]


@given(statistics_of_any_size())
def test_means_are_those_of_exact_fractions(statistics: ArmStatistics) -> None:
    for mean, count, total in zip(
        statistics.unit_means, statistics.counts.tolist(), statistics.sums.tolist(), strict=True
    ):
        exact = float(Fraction(total, count * UNIT)) if count else 0.0
        assert mean == pytest.approx(exact, rel=1e-15, abs=0)


def batch_of(members: list[ArmStatistics]) -> ArmStatistics:
    def stacked(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.stack(arrays).reshape(2, -1, len(ARMS))

    return ArmStatistics(
        ARMS, stacked([m.counts for m in members]), stacked([m.sums for m in members]), RANGE
    )


@given(st.lists(st.lists(records, max_size=5), min_size=4, max_size=4))
def test_a_batch_is_every_data_set_on_its_own(data_sets: list[list[Record]]) -> None:
    members = [counted_afresh(rows) for rows in data_sets]
    batch = batch_of(members)
    added = batch.add(ARMS[1], 5.5)
    merged = batch.merge(batch)
    for position, member in enumerate(members):
        place = divmod(position, 2)
        assert np.array_equal(batch.means[place], member.means, equal_nan=True)
        assert np.array_equal(batch.gaps[place], member.gaps, equal_nan=True)
        assert batch.total[place] == member.total == len(data_sets[position])
        assert added.sums[place].tolist() == member.add(ARMS[1], 5.5).sums.tolist()
        assert merged.counts[place].tolist() == member.merge(member).counts.tolist()
    assert bits(added.without(ArmStatistics.empty(ARMS, RANGE).add(ARMS[1], 5.5))) == bits(batch)
