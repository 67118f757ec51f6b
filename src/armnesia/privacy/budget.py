"""How much the released decision may differ from one that never saw the deleted records: (ε, δ)."""

import math
import warnings
from dataclasses import dataclass, field
from typing import Self

from armnesia.core.errors import InvalidInputError, UnprovedCalibrationWarning
from armnesia.privacy.curve import calibrate, check_delta, check_epsilon, privacy_curve


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A privacy budget (ε, δ) with the noise γ = σ/Δ it needs, by the exact curve of Gaussian noise.

    The edges mean what they say: δ = 0 needs infinite noise (mechanisms that add noise refuse it or roll
    back); ε = ∞ or δ = 1 promises nothing and needs none.

    >>> Budget(epsilon=1.0, delta=1e-5)
    Budget(epsilon=1.0, delta=1e-05, gamma=3.73063163...)
    """

    epsilon: float
    delta: float
    gamma: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", calibrate(epsilon=self.epsilon, delta=self.delta))

    @classmethod
    def from_gamma(cls, gamma: float, *, delta: float) -> Self:
        """Fix the noise, as the paper's experiments do, and read the true ε off the exact curve.

        >>> Budget.from_gamma(0.5, delta=1e-5)
        Budget(epsilon=9.9972..., delta=1e-05, gamma=0.5)
        """
        return cls(epsilon=privacy_curve(gamma).epsilon(delta), delta=delta)._with_gamma(gamma)

    @classmethod
    def classic(cls, *, epsilon: float, delta: float) -> Self:
        """The paper's calibration γ = √(2·ln(1.25/δ))/ε, for reproducing it.

        It is proved for ε ≤ 1 only. Above that it warns; where the exact curve shows a larger δ than claimed
        (from about ε = 8.4 on at δ = 10⁻⁵) it is refused.

        >>> Budget.classic(epsilon=1.0, delta=1e-5).gamma
        4.84480...
        """
        check_epsilon(epsilon)
        check_delta(delta)
        if epsilon in (0, math.inf) or delta == 0:
            raise InvalidInputError(
                "the classic calibration needs 0 < epsilon < inf and delta > 0;"
                f" got epsilon = {epsilon:g}, delta = {delta:g}"
            )
        gamma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        true_delta = privacy_curve(gamma).delta(epsilon)
        if true_delta > delta:
            raise InvalidInputError(
                f"the classic calibration is false at epsilon = {epsilon:g}, delta = {delta:g}: its noise,"
                f" gamma = {gamma:.6g}, has delta = {true_delta:.3g}; use Budget(epsilon=…, delta=…)"
            )
        if epsilon > 1:
            warnings.warn(
                f"the classic calibration is proved for epsilon <= 1 only; at epsilon = {epsilon:g},"
                f" delta = {delta:g} it happens to hold (the exact delta is {true_delta:.3g})",
                UnprovedCalibrationWarning,
                stacklevel=2,
            )
        return cls(epsilon=epsilon, delta=delta)._with_gamma(gamma)

    def _with_gamma(self, gamma: float) -> Self:
        object.__setattr__(self, "gamma", float(gamma))
        return self
