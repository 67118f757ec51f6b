"""Improbable winners: their probabilities have a small relative error, so that a large ε is honoured."""

import mpmath
import numpy as np
import pytest

import armnesia as am
from armnesia.auditing.audit import ROUNDING
from armnesia.core.arrays import FloatArray
from armnesia.unlearners.noisy_argmax import noisy_argmax
from armnesia.unlearners.winning_integrals import SMALLEST
from tests.quick import quick_only

RELATIVE = 1e-12


def wins(scores: list[float], sigma: list[float], arm: int) -> mpmath.mpf:
    """P(the arm has the highest score) at 25 digits, split at the levels of the density and at every arm.

    By Gauss and Legendre's rule: between these cuts the density is smooth.
    """
    f, s = [mpmath.mpf(v) for v in scores], [mpmath.mpf(v) for v in sigma]
    noised = [a for a in range(len(f)) if s[a] > 0]
    quiet = [f[a] for a in range(len(f)) if s[a] == 0]
    if s[arm] == 0:
        return mpmath.fprod(mpmath.ncdf(f[arm], f[a], s[a]) for a in noised) if f[arm] == max(quiet) else 0

    def log_density(x: mpmath.mpf) -> mpmath.mpf:
        others = mpmath.fsum(mpmath.log(mpmath.ncdf(x, f[a], s[a])) for a in noised if a != arm)
        return mpmath.log(mpmath.npdf(x, f[arm], s[arm])) + others

    low, high = max([*quiet, *(f[a] - 45 * s[a] for a in noised)]), f[arm] + 45 * s[arm]
    below, above = low, high
    while above - below > min(s[a] for a in noised) / 1000:  # the density is log-concave
        left, right = below + (above - below) * 0.4, below + (above - below) * 0.6
        below, above = (left, above) if log_density(left) < log_density(right) else (below, right)
    mode = (below + above) / 2
    top = log_density(mode)

    def where(drop: float, end: mpmath.mpf) -> mpmath.mpf:
        near, far = mode, end
        for _ in range(40 if log_density(end) < top - drop else 0):
            middle = (near + far) / 2
            near, far = (near, middle) if log_density(middle) < top - drop else (middle, far)
        return far

    cuts = {where(drop, end) for drop in (1, 3, 6, 10, 15, 22, 30, 40, 52) for end in (low, high)} | {mode}
    steps = {f[a] + z * s[a] for a in noised for z in (-6, -4, -2, -1, 0, 1, 2, 4, 6, 9)}
    grid = sorted(cuts | {x for x in steps if min(cuts) < x < max(cuts)})
    shape = mpmath.quad(lambda x: mpmath.exp(log_density(x) - top), grid, method="gauss-legendre")
    return shape * mpmath.exp(top)


CASES = {
    "30 standard deviations behind": ([0.0, -30.0, -60.0], [1.0, 0.5, 2.0]),
    "a quiet arm between": ([0.5, -0.2, 0.1], [0.05, 0.02, 0.0]),
    "a quiet arm far above": ([0.0, 0.1, 3.0], [0.1, 0.2, 0.0]),
    "scales 1e8 apart": ([0.30, 0.31, 0.29], [1e-8, 1e-2, 1.0]),
    "scales 1e8 apart, hopeless": ([0.3, -4.0, 0.29], [1e-8, 1.0, 1e-4]),
    "four arms": ([0.0, -0.8, -1.4, 0.1], [0.05, 0.06, 0.08, 0.02]),
    "near the smallest double": ([0.0, -37.0, -45.0], [0.1, 1.0, 1.2]),
}


@pytest.mark.parametrize("case", quick_only(["a quiet arm far above"], CASES))
def test_every_probability_has_a_small_relative_error(case: str) -> None:
    scores, sigma = CASES[case]
    found = noisy_argmax(np.array(scores), np.array(sigma))
    with mpmath.workdps(25):
        for arm, probability in enumerate(found.tolist()):
            exact = max(wins(scores, sigma, arm), mpmath.mpf(SMALLEST) if probability else 0)
            assert abs(mpmath.mpf(probability) - exact) <= RELATIVE * exact


def test_the_cases_reach_deep_into_the_tails() -> None:
    """Else the test above would test nothing new."""
    smallest = [noisy_argmax(np.array(f), np.array(s)).min() for f, s in CASES.values()]
    assert sum(value < 1e-80 for value in smallest) >= 4


@pytest.mark.parametrize("number", [2, 3, 7, 40])
@pytest.mark.parametrize("behind", [0.0, 5.0, 20.0, 37.0])
def test_equal_arms_share_what_the_quiet_arm_leaves(number: int, behind: float) -> None:
    """(1 − Φ(c)ⁿ)/n each, c standard deviations behind an arm without noise."""
    found = noisy_argmax(np.array([0.25 * behind, *[0.0] * number]), np.array([0.0, *[0.25] * number]))
    with mpmath.workdps(400):
        exact = (1 - mpmath.ncdf(mpmath.mpf(behind)) ** number) / number
        for probability in found[1:].tolist():
            assert abs(mpmath.mpf(probability) - exact) <= RELATIVE * exact


@pytest.mark.parametrize("extra", [[], [-100.0]])
def test_two_arms_have_a_closed_form_at_any_distance(extra: list[float]) -> None:
    """Φ(d/√(σ₀² + σ₁²)); with a third arm far below that carries hardly any noise, too."""
    rng = np.random.default_rng(6)
    distance, sigma = rng.uniform(0, 30, 40), 10.0 ** rng.uniform(-4, 0, (40, 2))
    scores = np.stack([np.zeros(40), -distance * np.hypot(*sigma.T)], axis=-1)
    more = np.tile(np.array(extra), (40, 1))
    found = noisy_argmax(np.hstack([scores, more]), np.hstack([sigma, np.full_like(more, 1e-9)]))
    with mpmath.workdps(30):
        for row in range(40):
            spread = mpmath.hypot(mpmath.mpf(sigma[row, 0]), mpmath.mpf(sigma[row, 1]))
            exact = mpmath.ncdf(mpmath.mpf(scores[row, 1]) / spread)
            assert abs(mpmath.mpf(found[row, 1]) - exact) <= RELATIVE * exact


def test_probabilities_sum_to_1_with_scales_1e8_apart() -> None:
    """They summed to 1 ± 4·10⁻¹⁰: next to a narrow arm, positions in doubles were too coarse."""
    rng = np.random.default_rng(7)
    scores = rng.uniform(0.2, 0.4, (300, 4))
    sigma = 10.0 ** rng.uniform(-8, 0, (300, 4))
    sigma[:, :2] = [1e-8, 1.0]
    scores[:100, 2] = scores[:100, 0]
    sums = noisy_argmax(scores, sigma).sum(axis=-1)
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=RELATIVE)


def test_no_arm_that_can_win_has_probability_0() -> None:
    scores = np.array([[0.0, -1e3, -2e3, 5.0], [0.0, -1e3, -2e3, -5.0]])
    found = noisy_argmax(scores, np.array([1.0, 2.0, 3.0, 0.0]))
    assert (found >= SMALLEST).all()
    one = noisy_argmax(np.array([0.0, 1e3, 0.0]), np.array([1.0, 0.0, 0.0]))
    assert one.tolist() == [SMALLEST, 1.0, 0.0]  # the third is below the second for certain


def shifted(rival: int, *, both: bool) -> tuple[am.ArmStatistics, am.DeletionRequest]:
    """Of 100 records each, arm A loses its 50 ones and arm B 50 zeros: their scores move far."""
    statistics = am.ArmStatistics.from_rewards(
        {"A": [1] * 50 + [0] * 50, "B": [1] * rival + [0] * (100 - rival), "C": [0] * 100}
    )
    return statistics, am.DeletionRequest.from_rewards({"A": [1] * 50, "B": [0] * 50 * both, "C": []})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.05, 0.02, 0.01, 0.001])
@pytest.mark.parametrize("both", [False, True], ids=["one arm", "two arms"])
def test_the_audit_confirms_gaussian_noise_at_every_epsilon(gamma: float, both: bool) -> None:
    """At γ = 0.05 it measured δ = 0.98: the reference gave 0 to an arm that the release served."""
    improbable = check_audits(am.Gaussian(), gamma, both=both)
    assert improbable or gamma >= 0.1  # the release serves A, and the reference hardly ever does


@pytest.mark.sampled(3)
@pytest.mark.parametrize("gamma", [0.01, 0.002])
@pytest.mark.parametrize(
    "unlearner", [am.Adaptive(), am.StrictAdaptive(), am.MultiSource(), am.Mixing()], ids=lambda one: one.name
)
def test_the_audit_confirms_the_other_noise_based_unlearners(unlearner: am.Unlearner, gamma: float) -> None:
    assert check_audits(unlearner, gamma, both=False) > 0


def check_audits(unlearner: am.Unlearner, gamma: float, *, both: bool) -> int:
    """Audit a row of data sets; how many of them serve A where the reference gives it less than 10⁻¹⁹."""
    budget, improbable = am.Budget.from_gamma(gamma, delta=1e-5), 0
    for rival in range(0, 50, 2):
        statistics, request = shifted(rival, both=both)
        result = am.audit(unlearner, am.LCB(confidence=0.01), statistics, request, budget)
        assert result.holds
        assert float(result.delta) <= 1e-5 + ROUNDING
        improbable += bool(result.release.probabilities[0] > 0.9 and result.reference[0] < 1e-19)
    return improbable


def test_too_little_noise_is_still_refuted_at_a_large_epsilon() -> None:
    """With half the noise that the budget stands for, δ is near 1."""

    class TooQuiet(am.Gaussian):
        def plan(self, *arguments: object) -> object:  # type: ignore[override]
            plan = super().plan(*arguments)  # type: ignore[arg-type]
            return type(plan)(plan.noised, plan.sigma / 2, plan.branch)

    budget = am.Budget.from_gamma(0.05, delta=1e-5)
    deltas = []
    for rival in range(0, 50, 2):
        statistics, request = shifted(rival, both=True)
        deltas.append(float(am.audit(TooQuiet(), am.LCB(confidence=0.01), statistics, request, budget).delta))
    assert max(deltas) > 0.5


def divergence(p: FloatArray, r: FloatArray, epsilon: float) -> float:
    return float(np.maximum(p - np.exp(epsilon) * r, 0).sum())


def test_raising_to_a_least_value_does_not_increase_the_divergence() -> None:
    rng = np.random.default_rng(8)
    for _ in range(2000):
        p, r = 10.0 ** rng.uniform(-6, 0, (2, 4))
        epsilon, least = rng.uniform(0, 8), 10.0 ** rng.uniform(-6, -1)
        raised = divergence(np.maximum(p, least), np.maximum(r, least), epsilon)
        assert raised <= divergence(p, r, epsilon) + 1e-15
