"""The winner among independent scores, against all outcomes, closed forms and simulation."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import KLLCB, LCB, ArmStatistics, Budget
from armnesia.core.arrays import FloatArray
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner
from armnesia.simulation.fixed_case import FixedCase
from armnesia.simulation.score_distribution import ScoreDistribution, arm_scores, binomial, losing, winner
from tests.quick import examples, quick_only


def by_listing(distributions: list[ScoreDistribution]) -> FloatArray:
    """Every combination of values; the first of the largest wins."""
    chances = np.zeros(len(distributions))
    for outcome in product(*(range(len(one.values)) for one in distributions)):
        scores = [one.values[i] for one, i in zip(distributions, outcome, strict=True)]
        weight = math.prod(one.weights[i] for one, i in zip(distributions, outcome, strict=True))
        chances[scores.index(max(scores))] += weight
    return chances


@st.composite
def quiet_distributions(draw: st.DrawFn) -> ScoreDistribution:
    """Few possible values in common, so that ties are frequent."""
    values = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=4, unique=True))
    weights = np.array(draw(st.lists(st.floats(0.05, 1), min_size=len(values), max_size=len(values))))
    return ScoreDistribution(np.array(sorted(values)), weights / weights.sum())


@examples(80)
@given(st.lists(quiet_distributions(), min_size=1, max_size=5))
def test_ties_go_to_the_first(distributions: list[ScoreDistribution]) -> None:
    found = winner(distributions)
    assert found == pytest.approx(by_listing(distributions), abs=1e-14)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)


def test_ties_to_the_last_would_be_seen() -> None:
    """The planted fault: the same arms in the other order do not win in the other order."""
    coin = ScoreDistribution(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert winner([coin, coin, coin]).tolist() == [0.625, 0.25, 0.125]
    assert losing([coin, coin, coin], 1, np.array([1.0])).tolist() == [0.5]


@examples(40)
@given(
    st.lists(quiet_distributions(), min_size=1, max_size=3),
    quiet_distributions(),
    st.floats(0.01, 3),
    st.data(),
)
def test_one_noised_arm_among_quiet_ones(
    quiet: list[ScoreDistribution], noised: ScoreDistribution, sigma: float, data: st.DataObject
) -> None:
    """Given the best quiet score and who holds it, the noised arm wins with a normal probability."""
    place = data.draw(st.integers(0, len(quiet)))
    distributions = [*quiet[:place], ScoreDistribution(noised.values, noised.weights, sigma), *quiet[place:]]
    expected = np.zeros(len(distributions))
    others = [i for i in range(len(distributions)) if i != place]
    for outcome in product(*(range(len(one.values)) for one in quiet)):
        scores = [one.values[i] for one, i in zip(quiet, outcome, strict=True)]
        weight = math.prod(one.weights[i] for one, i in zip(quiet, outcome, strict=True))
        for value, own in zip(noised.values, noised.weights, strict=True):
            ahead = 0.5 * math.erfc((max(scores) - value) / (sigma * math.sqrt(2)))
            expected[place] += weight * own * ahead
            expected[others[scores.index(max(scores))]] += weight * own * (1 - ahead)
    assert winner(distributions) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.1), (0.01, 2.0), (0.5, 0.05), (1e-3, 1.5e-3)])
def test_two_noised_arms_have_a_closed_form(first: float, second: float) -> None:
    values, weights = np.array([0.0, 0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    distributions = [
        ScoreDistribution(values, weights, first),
        ScoreDistribution(values + 0.1, weights[::-1], second),
    ]
    spread = mpmath.sqrt(mpmath.mpf(first) ** 2 + mpmath.mpf(second) ** 2)
    expected = sum(
        p * q * mpmath.ncdf((mpmath.mpf(x) - mpmath.mpf(y)) / spread)
        for x, p in zip(values, weights, strict=True)
        for y, q in zip(distributions[1].values, distributions[1].weights, strict=True)
    )
    assert winner(distributions)[0] == pytest.approx(float(expected), abs=2e-11)


def mixed_distributions(seed: int) -> list[ScoreDistribution]:
    rng = np.random.default_rng(seed)
    distributions = []
    for arm in range(int(rng.integers(3, 6))):
        values = np.sort(rng.choice(np.arange(8) / 8, size=4, replace=False))
        sigma = float(rng.uniform(0.02, 0.5)) if arm < 2 or rng.random() < 0.5 else 0.0
        distributions.append(ScoreDistribution(values, rng.dirichlet(np.ones(4)), sigma))
    return distributions


def agrees_with_simulation(
    distributions: list[ScoreDistribution], chances: FloatArray, n: int = 200_000
) -> bool:
    """Within 5 standard errors, plus 10 wins for arms that hardly ever win."""
    rng = np.random.default_rng(17)
    scores = [
        rng.choice(one.values, n, p=one.weights) + one.sigma * rng.standard_normal(n) for one in distributions
    ]
    wins = np.bincount(np.argmax(scores, axis=0), minlength=len(distributions))
    return bool((abs(wins - n * chances) <= 5 * np.sqrt(n * chances * (1 - chances)) + 10).all())


@pytest.mark.parametrize("seed", quick_only([0], range(6)))
def test_several_noised_arms_against_simulation(seed: int) -> None:
    """At most 5 comparisons per seed: a false alarm in fewer than 3·10⁻⁶ of seeds."""
    distributions = mixed_distributions(seed)
    assert agrees_with_simulation(distributions, winner(distributions))
    assert winner(distributions).sum() == pytest.approx(1.0, abs=1e-10)


def test_the_simulation_sees_a_quarter_more_noise() -> None:
    """The planted fault, on the same instances: nearly all of them are rejected."""
    rejected = 0
    for seed in range(6):
        distributions = mixed_distributions(seed)
        louder = [ScoreDistribution(one.values, one.weights, 1.25 * one.sigma) for one in distributions]
        rejected += not agrees_with_simulation(distributions, winner(louder))
    assert rejected >= 5


@examples(40)
@given(st.integers(0, 400), st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-6, 1 - 1e-6)))
def test_binomial_probabilities(n: int, p: float) -> None:
    with mpmath.workdps(40):
        q = mpmath.mpf(p)
        exact = [float(mpmath.binomial(n, s) * q**s * (1 - q) ** (n - s)) for s in range(n + 1)]
    assert binomial(n, p) == pytest.approx(exact, abs=1e-13, rel=1e-11)


@examples(40)
@given(st.integers(0, 300), st.floats(0.001, 1), st.integers(1, 9), st.data())
def test_scores_are_the_learner_s_own_bit_for_bit(
    count: int, tau: float, m: int, data: st.DataObject
) -> None:
    """Ties decide, so the scores must be the same doubles, not nearly the same."""
    learners: list[MeanAndCountLearner] = [LCB(confidence=tau), KLLCB(confidence=tau)]
    plain = data.draw(st.sampled_from(learners))
    frozen = plain.with_frozen_penalty(data.draw(st.lists(st.integers(0, 50), min_size=m, max_size=m)))
    arm, sums = data.draw(st.integers(0, m - 1)), np.arange(count + 1)
    statistics = ArmStatistics(
        tuple(range(m)),
        np.full((count + 1, m), count),
        np.broadcast_to(sums[:, None] * UNIT, (count + 1, m)),
    )
    for learner in (plain, frozen):
        expected = learner.unit_scores(statistics)[:, arm]
        assert (arm_scores(learner, arm, sums, count, m) == expected).all()


def test_a_score_distribution_has_the_weight_of_all_its_values() -> None:
    counts = np.full(5, 5000)
    case = FixedCase(np.full(5, 0.1), counts, counts, LCB(confidence=1e-3), Budget(epsilon=0.0, delta=0.0))
    one = case.score_distributions(counts)[0]
    assert len(one.values) < 2000  # the tails are left out
    assert one.weights.sum() == pytest.approx(1.0, abs=1e-13)
    assert (np.diff(one.values) > 0).all()
