"""Who wins among independent scores: against listing all outcomes, closed forms and simulation."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia import LCB, ArmStatistics
from armnesia.core.arrays import FloatArray
from armnesia.core.units import UNIT
from armnesia.simulation.score_distribution import ScoreLaw, binomial, lcb_scores, losing, score_law, winner


def by_listing(laws: list[ScoreLaw]) -> FloatArray:
    """Every combination of values; the first of the largest wins."""
    chances = np.zeros(len(laws))
    for outcome in product(*(range(len(law.values)) for law in laws)):
        scores = [law.values[i] for law, i in zip(laws, outcome, strict=True)]
        weight = math.prod(law.weights[i] for law, i in zip(laws, outcome, strict=True))
        chances[scores.index(max(scores))] += weight
    return chances


@st.composite
def quiet_laws(draw: st.DrawFn) -> ScoreLaw:
    """Few possible values in common, so that ties are frequent."""
    values = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=4, unique=True))
    weights = np.array(draw(st.lists(st.floats(0.05, 1), min_size=len(values), max_size=len(values))))
    return ScoreLaw(np.array(sorted(values)), weights / weights.sum())


@settings(max_examples=150, deadline=None)
@given(st.lists(quiet_laws(), min_size=1, max_size=5))
def test_ties_go_to_the_first(laws: list[ScoreLaw]) -> None:
    found = winner(laws)
    assert found == pytest.approx(by_listing(laws), abs=1e-14)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)


def test_ties_to_the_last_would_be_seen() -> None:
    """The planted fault: the same arms in the other order do not win in the other order."""
    coin = ScoreLaw(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert winner([coin, coin, coin]).tolist() == [0.625, 0.25, 0.125]
    assert losing([coin, coin, coin], 1, np.array([1.0])).tolist() == [0.5]


@settings(max_examples=60, deadline=None)
@given(st.lists(quiet_laws(), min_size=1, max_size=3), quiet_laws(), st.floats(0.01, 3), st.data())
def test_one_noised_arm_among_quiet_ones(
    quiet: list[ScoreLaw], noised: ScoreLaw, sigma: float, data: st.DataObject
) -> None:
    """Given the best quiet score and who holds it, the noised arm wins with a normal probability."""
    place = data.draw(st.integers(0, len(quiet)))
    laws = [*quiet[:place], ScoreLaw(noised.values, noised.weights, sigma), *quiet[place:]]
    expected = np.zeros(len(laws))
    others = [i for i in range(len(laws)) if i != place]
    for outcome in product(*(range(len(law.values)) for law in quiet)):
        scores = [law.values[i] for law, i in zip(quiet, outcome, strict=True)]
        weight = math.prod(law.weights[i] for law, i in zip(quiet, outcome, strict=True))
        for value, own in zip(noised.values, noised.weights, strict=True):
            ahead = 0.5 * math.erfc((max(scores) - value) / (sigma * math.sqrt(2)))
            expected[place] += weight * own * ahead
            expected[others[scores.index(max(scores))]] += weight * own * (1 - ahead)
    assert winner(laws) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.1), (0.01, 2.0), (0.5, 0.05), (1e-3, 1.5e-3)])
def test_two_noised_arms_have_a_closed_form(first: float, second: float) -> None:
    values, weights = np.array([0.0, 0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    laws = [ScoreLaw(values, weights, first), ScoreLaw(values + 0.1, weights[::-1], second)]
    spread = mpmath.sqrt(mpmath.mpf(first) ** 2 + mpmath.mpf(second) ** 2)
    expected = sum(
        p * q * mpmath.ncdf((mpmath.mpf(x) - mpmath.mpf(y)) / spread)
        for x, p in zip(values, weights, strict=True)
        for y, q in zip(laws[1].values, laws[1].weights, strict=True)
    )
    assert winner(laws)[0] == pytest.approx(float(expected), abs=2e-11)


def mixed_laws(seed: int) -> list[ScoreLaw]:
    rng = np.random.default_rng(seed)
    laws = []
    for arm in range(int(rng.integers(3, 6))):
        values = np.sort(rng.choice(np.arange(8) / 8, size=4, replace=False))
        sigma = float(rng.uniform(0.02, 0.5)) if arm < 2 or rng.random() < 0.5 else 0.0
        laws.append(ScoreLaw(values, rng.dirichlet(np.ones(4)), sigma))
    return laws


def agrees_with_simulation(laws: list[ScoreLaw], chances: FloatArray, n: int = 200_000) -> bool:
    """Within 5 standard errors, plus 10 wins for arms that hardly ever win."""
    rng = np.random.default_rng(17)
    scores = [rng.choice(law.values, n, p=law.weights) + law.sigma * rng.standard_normal(n) for law in laws]
    wins = np.bincount(np.argmax(scores, axis=0), minlength=len(laws))
    return bool((abs(wins - n * chances) <= 5 * np.sqrt(n * chances * (1 - chances)) + 10).all())


@pytest.mark.parametrize("seed", range(6))
def test_several_noised_arms_against_simulation(seed: int) -> None:
    """At most 5 comparisons a seed: a false alarm in fewer than 3·10⁻⁶ of seeds."""
    laws = mixed_laws(seed)
    assert agrees_with_simulation(laws, winner(laws))
    assert winner(laws).sum() == pytest.approx(1.0, abs=1e-10)


def test_the_simulation_sees_a_quarter_more_noise() -> None:
    """The planted fault, on the same instances: nearly all of them are rejected."""
    rejected = 0
    for seed in range(6):
        laws = mixed_laws(seed)
        louder = [ScoreLaw(law.values, law.weights, 1.25 * law.sigma) for law in laws]
        rejected += not agrees_with_simulation(laws, winner(louder))
    assert rejected >= 5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 400), st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-6, 1 - 1e-6)))
def test_binomial_probabilities(n: int, p: float) -> None:
    with mpmath.workdps(40):
        q = mpmath.mpf(p)
        exact = [float(mpmath.binomial(n, s) * q**s * (1 - q) ** (n - s)) for s in range(n + 1)]
    assert binomial(n, p) == pytest.approx(exact, abs=1e-13, rel=1e-11)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.floats(0.001, 1), st.integers(1, 9))
def test_scores_are_the_learner_s_own_bit_for_bit(count: int, tau: float, m: int) -> None:
    """Ties decide, so that the scores must be the same doubles, not nearly the same."""
    learner = LCB(confidence=tau)
    sums = np.arange(count + 1)
    statistics = ArmStatistics(
        tuple(range(m)),
        np.full((count + 1, m), count),
        np.broadcast_to(sums[:, None] * UNIT, (count + 1, m)),
    )
    assert (lcb_scores(learner, sums, count, m) == learner.unit_scores(statistics)[:, 0]).all()


def test_a_score_law_has_the_weight_of_all_its_atoms() -> None:
    law = score_law(LCB(confidence=1e-3), 5000, 0.1, 5)
    assert len(law.values) < 2000  # the tails are left out
    assert law.weights.sum() == pytest.approx(1.0, abs=1e-13)
    assert (np.diff(law.values) > 0).all()
