"""The terms of the upper bounds: the width 2·b(N), the cost σ/√(2π) of noise, and their balance γ₀."""

import math
from dataclasses import dataclass
from typing import Self

from armnesia.learners import LCB
from armnesia.theory.bound import BoundCondition, check_count
from armnesia.unlearners.calibration import (
    Sensitivity,
    Threshold,
    check_choice,
    noise_threshold,
    score_sensitivity,
    sensitivity_certified,
)


@dataclass(frozen=True)
class Confidence:
    """The LCB learner of a bound: m arms, level τ (1/N by default), L = ln(m/τ).

    >>> confidence = Confidence.of(n=1000, m=5)
    >>> round(confidence.width(200), 4), round(confidence.log_term, 4)
    (0.2918, 8.5172)
    """

    learner: LCB
    m: int
    tau: float

    @classmethod
    def of(cls, *, n: int, m: int, tau: float | None = None) -> Self:
        """Use τ = 1/N if none is given."""
        check_count("n", n, least=1)
        check_count("m", m, least=1)
        learner = LCB(confidence=1 / n if tau is None else tau)
        return cls(learner, m, learner.confidence or 1.0)

    @property
    def log_term(self) -> float:
        """L = ln(m/τ)."""
        return self.learner.log_term(self.m)

    def width(self, count: float) -> float:
        """2·b(N) = √(2L/N): the loss if no score deviates by more than b; 2 for an arm without records."""
        return 2 * float(self.learner.penalty(count, self.m))

    def noise_cost(self, count: float, k: int, gamma: float, sensitivity: Sensitivity) -> float:
        """E[(−ν)₊] = σ/√(2π), the mean of the noise that lowers a score, σ = γ·Δ; 0 if nothing is deleted."""
        if k == 0:
            return 0.0
        change = float(score_sensitivity(sensitivity, self.learner, count, k, self.m))
        return gamma * change / math.sqrt(2 * math.pi)

    def gamma_0(self, count: float, k: int, threshold: Threshold, sensitivity: Sensitivity) -> float:
        """The noise threshold γ₀, printed or exact."""
        check_choice("threshold", threshold)
        check_choice("sensitivity", sensitivity)
        return float(
            noise_threshold(self.learner, count, k, self.m, threshold=threshold, sensitivity=sensitivity)
        )

    def deviation(self, times: float = 1.0) -> float:
        """The probability of `times` one-sided deviations by b(N), τ/m each, and at most 1."""
        return min(1.0, times * self.tau / self.m)

    def certificate(self, count: float, k: int, sensitivity: Sensitivity) -> BoundCondition:
        """Whether Δ bounds the sensitivity of the score: exactly if (N−k) + √(N(N−k)) ≥ √(2LN)."""
        if sensitivity == "exact":
            return BoundCondition("the exact sensitivity is certified for every k", holds=True)
        left = max(count - k, 0)
        reached, needed = left + math.sqrt(count * left), math.sqrt(2 * self.log_term * count)
        certified = bool(sensitivity_certified(sensitivity, self.learner, count, min(k, count), self.m))
        return BoundCondition(
            "3k/(2N) bounds the sensitivity, (N-k) + sqrt(N(N-k)) >= sqrt(2LN):"
            f" {reached:.6g} >= {needed:.6g} at N = {count:g}, k = {k}",
            certified,
        )

    def printed_certificate(self, count: float, k: int) -> BoundCondition:
        """The paper's sufficient condition, k ≤ N − √(NL/2)."""
        most = count - math.sqrt(count * self.log_term / 2)
        return BoundCondition(f"k <= N - sqrt(NL/2): {k} <= {most:.6g} at N = {count:g}", k <= most)
