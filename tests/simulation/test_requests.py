"""Requests: how many records of each arm go, which ones, and what reward-dependent requests break.

Moments are compared within 5 standard errors (a false alarm in fewer than 6·10⁻⁷ of comparisons).
"""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.units import UNIT
from armnesia.simulation import (
    AcrossArms,
    Bernoulli,
    ClippedNormal,
    DistributionModel,
    Environment,
    FixedSample,
    OneArm,
    SeveralArms,
    TiltedArm,
    draw_data_sets,
    drawing,
)
from armnesia.simulation.requests import Choice


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@settings(deadline=None)
@given(st.data())
def test_several_arms_lose_what_is_requested_or_all_they_have(data: st.DataObject) -> None:
    rows, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    counts = data.draw(
        st.lists(st.lists(st.integers(0, 9), min_size=m, max_size=m), min_size=rows, max_size=rows)
    )
    requested = data.draw(st.dictionaries(st.integers(0, m - 1), st.integers(0, 9), min_size=1))
    deleted, short_share = SeveralArms(requested).draw_deleted(rng(), np.array(counts))
    assert deleted.tolist() == [[min(requested.get(a, 0), row[a]) for a in range(m)] for row in counts]
    short = [any(row[arm] < k for arm, k in requested.items()) for row in counts]
    assert short_share == pytest.approx(sum(short) / rows)


def test_one_arm_is_a_request_of_one_arm() -> None:
    deleted, short_share = OneArm(1, 3).draw_deleted(rng(), np.array([[5, 5], [5, 2]]))
    assert deleted.tolist() == [[0, 3], [0, 2]]
    assert short_share == 0.5


def exact_moments(counts: list[int], k: int) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of how many records of each arm are among k of all, by listing the subsets."""
    owners = [arm for arm, n in enumerate(counts) for _ in range(n)]
    every = np.array([np.bincount(some, minlength=len(counts)) for some in combinations(owners, k)])
    return every.mean(axis=0), np.cov(every.T, bias=True)


def deviation(deleted: IntArray, counts: list[int], k: int) -> float:
    """The largest deviation of any first or second moment, in standard errors."""
    means, covariances = exact_moments(counts, k)
    centred = deleted - means
    products = centred[:, :, None] * centred[:, None, :]
    size = math.sqrt(len(deleted))
    first = abs(centred.mean(axis=0)) / (centred.std(axis=0) / size)
    second = abs(products.mean(axis=0) - covariances) / (products.std(axis=0) / size)
    return float(max(first.max(), second.max()))


def drawn_across(counts: list[int], k: int) -> IntArray:
    many = np.broadcast_to(np.array(counts), (40_000, len(counts)))
    deleted, short_share = AcrossArms(k).draw_deleted(rng(7), many)
    assert (deleted.sum(axis=1) == k).all()
    assert (deleted <= many).all()
    assert short_share == 0
    return deleted


@pytest.mark.parametrize(("counts", "k"), [([6, 4, 3], 5), ([2, 9, 1], 3), ([5, 4, 1], 8)])
def test_random_records_are_multivariate_hypergeometric(counts: list[int], k: int) -> None:
    assert deviation(drawn_across(counts, k), counts, k) < 5


def test_the_check_of_moments_sees_other_counts() -> None:
    """The planted fault: one more record of the last arm."""
    assert deviation(drawn_across([6, 4, 3], 5), [6, 4, 4], 5) > 5


def test_more_than_there_is_takes_everything() -> None:
    counts = np.array([[2, 3], [10, 10], [0, 0]])
    deleted, short_share = AcrossArms(6).draw_deleted(rng(), counts)
    assert deleted[0].tolist() == [2, 3]
    assert deleted[1].sum() == 6
    assert deleted[2].tolist() == [0, 0]
    assert short_share == pytest.approx(2 / 3)


def test_short_requests_are_reported_with_the_data_sets() -> None:
    """N(a) is Binomial(20, 0.3): P(N < 6) by summing, within 5 standard errors of 20 000 draws."""
    short = sum(math.comb(20, n) * 0.3**n * 0.7 ** (20 - n) for n in range(6))
    environment = Environment.bernoulli([0.5, 0.5])
    drawn = draw_data_sets(environment, DistributionModel(20, (0.3, 0.7)), OneArm(0, 6), rng(8), 20_000)
    assert abs(drawn.short_share - short) < 5 * math.sqrt(short * (1 - short) / 20_000)
    counts, deleted = drawn.statistics.counts, drawn.request.counts
    assert (deleted[:, 0] == np.minimum(counts[:, 0], 6)).all()


class Recorded(Bernoulli):
    """Hands out rewards prepared by the test, row by row, whatever shape is asked for."""

    rewards: FloatArray

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        assert isinstance(size, tuple)
        rows, self.__dict__["rewards"] = self.rewards[: size[0]], self.rewards[size[0] :]
        return rows[:, : size[1]]


def recorded(rewards: FloatArray) -> Recorded:
    distribution = Recorded(0.5)
    distribution.__dict__["rewards"] = rewards
    return distribution


@pytest.mark.parametrize("choice", ["lowest", "highest"])
@pytest.mark.parametrize("kind", ["bernoulli", "continuous"])
def test_chosen_by_reward_is_sorting_the_records(
    kind: str, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unequal counts, in chunks of a few rows, against sorting each data set's own rewards."""
    counts = np.array([5, 0, 8, 1, 3, 8])
    deleted = np.array([2, 0, 8, 0, 3, 5])
    rewards = rng(9).random((6, 8)) if kind == "continuous" else (rng(9).random((6, 8)) < 0.4).astype(float)
    monkeypatch.setattr(drawing, "_ROWS_AT_ONCE", 20)
    left, gone = drawing._draw_arm(rng(), recorded(rewards.copy()), counts, deleted, choice)
    for row, (n, k) in enumerate(zip(counts.tolist(), deleted.tolist(), strict=True)):
        own = sorted(rewards[row, :n].tolist(), reverse=choice == "highest")
        for moments, records in ((left, own[k:]), (gone, own[:k])):
            assert moments[0][row] / UNIT == pytest.approx(sum(records), abs=1e-8)
            products = sum(reward * (1 - reward) for reward in records)
            assert moments[1][row] / UNIT**2 == pytest.approx(products, abs=1e-8)


ENVIRONMENTS = {
    "bernoulli": Environment.bernoulli([0.3, 0.6]),
    "uniform": Environment.uniform([(0.1, 0.8), (0.0, 1.0)]),
    "clipped normal": Environment.clipped_normal([(0.3, 0.3), (0.9, 0.2)]),
}


def retained_bias(environment: Environment, choice: Choice) -> float:
    """(mean of what is left of arm 0) − (its true mean), in standard errors."""
    drawn = draw_data_sets(environment, FixedSample((30, 20)), OneArm(0, 10, choice), rng(10), 8000)
    left = drawn.statistics.without(drawn.request)
    means = left.unit_means[:, 0]
    return float((means.mean() - environment.means[0]) / (means.std() / math.sqrt(means.size)))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_only_requests_that_ignore_rewards_leave_the_mean_alone(name: str) -> None:
    """The paper's assumption; deleting by reward breaks it, which the same check sees."""
    environment = ENVIRONMENTS[name]
    assert abs(retained_bias(environment, "random")) < 5
    assert retained_bias(environment, "lowest") > 50
    assert retained_bias(environment, "highest") < -50


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("choice", ["random", "lowest", "highest"])
def test_other_arms_are_untouched(name: str, choice: Choice) -> None:
    drawn = draw_data_sets(ENVIRONMENTS[name], FixedSample((6, 5)), OneArm(0, 4, choice), rng(11), 50)
    assert (drawn.request.counts == [4, 0]).all()
    assert (drawn.request.sums[:, 1] == 0).all()
    assert drawn.request.binary == (name == "bernoulli")
    assert drawn.statistics.without(drawn.request).counts.tolist() == [[2, 5]] * 50


@pytest.mark.parametrize("deletions", [{}, {-1: 3}, {0: -2}, {0: 1.5}, {0.5: 1}])
def test_bad_deletions_are_refused(deletions: dict[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="deletions"):
        SeveralArms(deletions)


def test_other_refusals() -> None:
    with pytest.raises(InvalidInputError, match="below the number of arms, 2; got 2"):
        OneArm(2, 1).draw_deleted(rng(), np.array([[3, 3]]))
    with pytest.raises(InvalidInputError, match="k must be a whole number"):
        AcrossArms(-1)
    with pytest.raises(InvalidInputError, match="k must be a whole number"):
        AcrossArms(1.5)  # type: ignore[arg-type]
    for wrong in (lambda c: OneArm(0, 1, c), lambda c: AcrossArms(1, c)):
        with pytest.raises(InvalidInputError, match="choice must be"):
            wrong("best")


def test_tilted_requests_have_the_means_that_are_asked_for() -> None:
    """200,000 data sets; each mean within 5 standard errors, and the planted fault (no tilt) far outside."""
    environment, model, size = Environment.bernoulli([0.1, 0.08]), FixedSample((200, 150)), 200_000
    drawn = draw_data_sets(environment, model, TiltedArm(0, 80, deleted_mean=0.15), rng(2), size)
    plain = draw_data_sets(environment, model, OneArm(0, 80), rng(2), size)
    assert (drawn.request.counts == [80, 0]).all()
    assert (drawn.request.sums[:, 1] == 0).all()

    def errors(found: drawing.Drawn) -> list[float]:
        left = found.statistics.without(found.request)
        shares = [(found.request.sums[:, 0], 80, 0.15), (left.sums[:, 0], 120, (20 - 12) / 120)]
        shares += [(found.statistics.sums[:, 0], 200, 0.1), (found.statistics.sums[:, 1], 150, 0.08)]
        return [
            abs(sums.mean() / UNIT / n - mean) / math.sqrt(mean * (1 - mean) / n / size)
            for sums, n, mean in shares
        ]

    assert max(errors(drawn)) < 5
    assert errors(plain)[0] > 100
    assert errors(plain)[1] > 100


def test_a_tilt_that_cannot_be_is_refused() -> None:
    environment, model = Environment.bernoulli([0.1, 0.08]), FixedSample((200, 150))
    with pytest.raises(InvalidInputError, match="deleted_mean must leave a mean between 0 and 1"):
        draw_data_sets(environment, model, TiltedArm(0, 80, deleted_mean=0.5), rng(), 3)
    with pytest.raises(InvalidInputError, match=r"deleted_mean must lie in \[0, 1\]; got 1.5"):
        TiltedArm(0, 80, deleted_mean=1.5)
    with pytest.raises(InvalidInputError, match="arm and k must be whole numbers"):
        TiltedArm(0, -1, deleted_mean=0.5)
    everything = draw_data_sets(environment, model, TiltedArm(0, 500, deleted_mean=0.1), rng(), 3)
    assert everything.short_share == 1.0
    assert (everything.request.counts == [200, 0]).all()
    other = Environment((Bernoulli(0.1), ClippedNormal(0.5, 0.1)))
    with pytest.raises(UnsupportedError, match="tilted requests need Bernoulli rewards"):
        draw_data_sets(other, model, TiltedArm(0, 8, deleted_mean=0.2), rng(), 3)
