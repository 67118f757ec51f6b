"""The winner's distribution under noise, against 30-digit quadrature, closed forms and symmetries."""

import time
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from armnesia.unlearners import winning_integrals
from armnesia.unlearners.noisy_argmax import noisy_argmax
from tests.quick import examples, quick_only

Floats = NDArray[np.float64]

CASES = {
    "two noised": ([0.5, 0.4], [0.1, 0.2]),
    "two noised, one quiet": ([0.5, 0.4, 0.45], [0.1, 0.2, 0.0]),
    "three noised, scales 1e-6 to 1": ([0.30, 0.31, 0.29], [1e-6, 1e-2, 1.0]),
    "scales 1e-6 to 1 and a quiet arm between": ([0.30, 0.31, 0.29, 0.305], [1e-6, 1e-2, 1.0, 0.0]),
    "scales 1e-6 to 1e3": ([0.1, 0.2, 0.0], [1e-6, 0.3, 1e3]),
    "quiet arm far below": ([0.5, 0.6, -40.0], [0.1, 0.15, 0.0]),
    "quiet arm above nearly everything": ([0.1, 0.2, 1.0], [0.1, 0.12, 0.0]),
    "quiet arm far above": ([0.0, 0.0, 9.0], [0.1, 0.2, 0.0]),
    "one noised arm hopeless": ([0.5, 0.45, -5.0], [0.1, 0.1, 0.2]),
    "five noised, all but two hopeless": ([0.5, 0.3, 0.49, 0.1, 0.2], [0.01, 0.002, 0.02, 0.005, 0.001]),
    "all but one hopeless, none quiet": ([0.5, 0.3, 0.1], [0.01, 0.002, 0.005]),
    "five noised": ([0.5, 0.4, 0.45, 0.48, 0.3], [0.1, 0.2, 0.01, 0.07, 0.3]),
    "five noised, two quiet": (
        [0.5, 0.4, 0.45, 0.48, 0.3, 0.44, 0.47],
        [0.1, 0.2, 0.01, 0.07, 0.3, 0.0, 0.0],
    ),
}

QUICK = ["two noised, one quiet", "quiet arm above nearly everything", "all but one hopeless, none quiet"]


def by_quadrature(scores: list[float], sigma: list[float]) -> list[float]:
    """P(arm wins) by tanh-sinh quadrature at 30 digits, split at every arm's σ-scale."""
    with mpmath.workdps(30):
        f, s = [mpmath.mpf(v) for v in scores], [mpmath.mpf(v) for v in sigma]
        noised = [a for a in range(len(f)) if s[a] > 0]
        quiet = [a for a in range(len(f)) if s[a] == 0]
        low = max((f[a] for a in quiet), default=-mpmath.inf)
        floor = low if quiet else min(f[a] - 14 * s[a] for a in noised)
        cuts = {f[a] + z * s[a] for a in noised for z in range(-14, 15, 4)}
        grid = [floor, *sorted(cut for cut in cuts if cut > floor)]
        answer = [0.0] * len(f)

        @cache  # the arms have their nodes in common
        def below(x: mpmath.mpf, arm: int) -> mpmath.mpf:
            return mpmath.ncdf(x, f[arm], s[arm])

        for arm in noised:

            def density(x: mpmath.mpf, arm: int = arm) -> mpmath.mpf:
                value = mpmath.npdf(x, f[arm], s[arm])
                for other in noised:
                    if other != arm:
                        value *= below(x, other)
                return value

            answer[arm] = float(mpmath.quad(density, grid, maxdegree=5)) if len(grid) > 1 else 0.0
        if quiet:
            winner = max(quiet, key=lambda a: (f[a], -a))
            answer[winner] = float(mpmath.fprod(mpmath.ncdf(low, f[a], s[a]) for a in noised))
        return answer


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", quick_only(QUICK, CASES))
def test_several_noised_arms_agree_with_quadrature(case: str) -> None:
    scores, sigma = CASES[case]
    exact = by_quadrature(scores, sigma)
    assert sum(exact) == pytest.approx(1.0, abs=1e-13)  # the quadrature itself is right
    np.testing.assert_allclose(noisy_argmax(np.array(scores), np.array(sigma)), exact, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_random_scales_agree_with_quadrature() -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        m = int(rng.integers(2, 5))
        scores = rng.normal(0, 0.3, m)
        sigma = 10.0 ** rng.uniform(-4, 1, m) * (rng.random(m) < 0.8)
        exact = by_quadrature(scores.tolist(), sigma.tolist())
        np.testing.assert_allclose(noisy_argmax(scores, sigma), exact, rtol=0, atol=1e-12)


def test_a_wrong_sigma_would_be_seen() -> None:
    scores, sigma = CASES["two noised, one quiet"]
    wrong = noisy_argmax(np.array(scores), 1.0001 * np.array(sigma))
    assert np.abs(wrong - by_quadrature(scores, sigma)).max() > 1e-6


def test_two_noised_arms_have_a_closed_form() -> None:
    """X₀ > X₁ has probability Φ((f₀ − f₁)/√(σ₀² + σ₁²))."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(500, 2))
    sigma = 10.0 ** rng.uniform(-5, 2, size=(500, 2))
    expected = ndtr((scores[:, 0] - scores[:, 1]) / np.hypot(sigma[:, 0], sigma[:, 1]))
    result = noisy_argmax(scores, sigma)
    np.testing.assert_allclose(result[:, 0], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.sum(axis=-1), 1.0, rtol=0, atol=1e-12)


def test_one_noised_arm_has_a_closed_form() -> None:
    result = noisy_argmax(np.array([0.2, 0.5, 0.4]), np.array([0.0, 0.0, 0.3]))
    p = 0.5 * float(mpmath.erfc(mpmath.mpf("0.1") / mpmath.mpf("0.3") / mpmath.sqrt(2)))
    np.testing.assert_allclose(result, [0.0, 1 - p, p], rtol=0, atol=1e-15)


def test_equal_noise_on_equal_scores_is_uniform() -> None:
    for m in range(2, 9):
        result = noisy_argmax(np.full(m, 0.3), np.full(m, 0.01))
        np.testing.assert_allclose(result, 1 / m, rtol=0, atol=1e-12)


def test_no_noise_takes_the_first_highest() -> None:
    scores = np.array([[0.1, 0.3, 0.3], [0.5, 0.5, 0.5], [-1.0, -2.0, 0.0]])
    result = noisy_argmax(scores, np.zeros(3))
    np.testing.assert_array_equal(result, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_one_arm_always_wins(sigma: float) -> None:
    np.testing.assert_array_equal(noisy_argmax(np.array([-0.3]), np.array([sigma])), [1.0])


arms = st.lists(
    st.tuples(st.floats(-1, 1), st.sampled_from([0.0, 1e-3, 0.05, 0.3, 2.0])), min_size=1, max_size=5
)


@examples(80)
@given(arms, st.floats(-3, 3), st.sampled_from([0.25, 4.0, 1024.0]))
def test_shifting_scaling_and_renaming_change_nothing(
    arms: list[tuple[float, float]], shift: float, scale: float
) -> None:
    scores, sigma = (np.array(column) for column in zip(*arms, strict=True))
    quiet = scores[sigma == 0]
    base = noisy_argmax(scores, sigma)
    assert (base >= 0).all()
    assert base.sum() == pytest.approx(1.0, abs=1e-12)
    # Scaling by powers of two is exact; a shift rounds, which moves a rival of a noised arm by at most
    # an ulp (times 1/σ), so quiet scores that nearly tie are left out of the shift.
    np.testing.assert_allclose(noisy_argmax(scale * scores, scale * sigma), base, rtol=0, atol=1e-12)
    if len(quiet) < 2 or np.diff(np.sort(quiet)).min() > 1e-9:
        np.testing.assert_allclose(noisy_argmax(scores + shift, sigma), base, rtol=0, atol=1e-11)
        order = np.argsort(np.random.default_rng(len(arms)).random(len(arms)))
        np.testing.assert_allclose(noisy_argmax(scores[order], sigma[order]), base[order], rtol=0, atol=1e-12)


@examples(60)
@given(arms, st.floats(0.001, 0.5))
def test_a_higher_score_never_lowers_its_own_probability(arms: list[tuple[float, float]], up: float) -> None:
    scores, sigma = (np.array(column) for column in zip(*arms, strict=True))
    raised = scores.copy()
    raised[0] += up
    assert noisy_argmax(raised, sigma)[0] >= noisy_argmax(scores, sigma)[0] - 1e-12


@pytest.mark.parametrize("chunk", [None, 1, 500, 5000])
def test_a_batch_is_its_rows_one_by_one(chunk: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows, or the panels of one row, are split over several chunks."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(6, 7, 5))
    sigma = rng.choice([0.0, 0.01, 0.3, 2.0], size=(6, 7, 5))
    rows = [noisy_argmax(f, s) for f, s in zip(scores.reshape(-1, 5), sigma.reshape(-1, 5), strict=True)]
    if chunk is not None:
        monkeypatch.setattr(winning_integrals, "_CHUNK", chunk)
    batch = noisy_argmax(scores, sigma)
    assert batch.shape == scores.shape
    np.testing.assert_allclose(batch.reshape(-1, 5), rows, rtol=0, atol=1e-14)


def test_more_rows_than_one_chunk_holds() -> None:
    """3000 rows of five noised arms exceed the real chunk size."""
    rng = np.random.default_rng(4)
    scores, sigma = rng.normal(size=(3000, 5)), np.full(5, 0.4)
    assert winning_integrals._CHUNK < 3000 * 5 * winning_integrals._FIRST_PANELS
    batch = noisy_argmax(scores, sigma)
    np.testing.assert_allclose(batch.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
    for row in (0, 1499, 2999):
        np.testing.assert_allclose(batch[row], noisy_argmax(scores[row], sigma), rtol=0, atol=1e-14)


def by_many_points(scores: Floats, sigma: Floats) -> Floats:
    """P(arm wins) by the trapezoidal rule, exact for smooth integrands that vanish at both ends."""
    x = np.linspace((scores - 12 * sigma).min(), (scores + 12 * sigma).max(), 40_001)
    z = (x[:, None] - scores) / sigma
    logs = log_ndtr(z)
    others = logs.sum(axis=-1, keepdims=True) - logs
    density = np.exp(others - z**2 / 2) / (np.sqrt(2 * np.pi) * sigma)
    return np.asarray(density.sum(axis=0) * (x[1] - x[0]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", quick_only([13, 60], [13, 20, 60, 300]))
@pytest.mark.parametrize("centre_spread", [0.0, 0.02, 0.05])
def test_many_noised_arms_agree_with_another_rule(number: int, centre_spread: float) -> None:
    """More arms than the panels of each arm are used for; scales differ by a factor of four."""
    rng = np.random.default_rng(number)
    scores, sigma = rng.normal(0, centre_spread, number), rng.uniform(0.005, 0.02, number)
    result = noisy_argmax(scores, sigma)
    np.testing.assert_allclose(result, by_many_points(scores, sigma), rtol=0, atol=1e-12)
    assert result.sum() == pytest.approx(1.0, abs=1e-12)
    if centre_spread == 0.02:
        assert np.abs(noisy_argmax(scores, 1.001 * sigma) - result).max() > 1e-8  # a wrong σ would be seen


def test_many_noised_arms_and_a_quiet_one_sum_to_one_at_all_scales() -> None:
    """The quiet arm's probability is a product, the others' are integrals; the scales go from 1e-17 to 1."""
    rng = np.random.default_rng(9)
    for lowest in (-2, -6, -17):
        scores, sigma = rng.normal(0.5, 0.1, 41), 10.0 ** rng.uniform(lowest, 0, 41)
        sigma[7] = 0.0
        scores[7] = 0.9
        result = noisy_argmax(scores, sigma)
        quiet = np.delete(scores, 7), np.delete(sigma, 7)
        assert result[7] == pytest.approx(float(ndtr((0.9 - quiet[0]) / quiet[1]).prod()), abs=1e-15)
        assert result.sum() == pytest.approx(1.0, abs=1e-12)
        batch = noisy_argmax(np.stack([scores, scores[::-1]]), np.stack([sigma, sigma[::-1]]))
        np.testing.assert_allclose(batch, [result, result[::-1]], rtol=0, atol=1e-15)


@pytest.mark.slow
def test_ten_thousand_arms_of_which_a_fifth_is_noised() -> None:
    """The panels of each arm took minutes for this."""
    rng = np.random.default_rng(10)
    scores, sigma = rng.normal(0, 0.01, 10_000), np.where(np.arange(10_000) % 5 == 0, 0.006, 0.0)
    started = time.process_time()
    result = noisy_argmax(scores, sigma)
    assert time.process_time() - started < 10
    assert result.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("number", quick_only([4, 50], [4, 8, 20, 50, 200, 1000]))
def test_many_equal_noised_arms_share_the_chance_equally(number: int) -> None:
    """The maximum of many noises is sharp; by symmetry each of them wins with probability 1/number."""
    chances = noisy_argmax(np.full(number, 0.3), np.full(number, 0.01))
    assert np.abs(chances - 1 / number).max() < 1e-14
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
