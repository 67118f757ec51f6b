"""Privacy budgets: how much the released decision may depend on the deleted records, as (ε, δ)."""

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from armnesia.core.errors import InvalidInputError, UnprovedCalibrationWarning
from armnesia.privacy.curve import calibrate, check_delta, check_epsilon, privacy_curve


@dataclass(frozen=True, kw_only=True, repr=False)
class Budget:
    """A privacy budget (ε, δ), and the noise γ = σ/Δ that it needs by the exact curve of Gaussian noise.

    γ is computed when it is first read, unless `from_gamma` or `classic` fixed it. At the edges, δ = 0 needs
    infinite noise (mechanisms that add noise refuse it or roll back); ε = ∞ or δ = 1 guarantees nothing and
    needs no noise.

    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> budget, round(budget.gamma, 8)
    (Budget(epsilon=1.0, delta=1e-05), 3.73063164)
    """

    epsilon: float
    delta: float
    _fixed_gamma: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    @cached_property
    def gamma(self) -> float:
        """The noise γ = σ/Δ: fixed, or the smallest that is (ε, δ)-indistinguishable."""
        if self._fixed_gamma is not None:
            return self._fixed_gamma
        return calibrate(epsilon=self.epsilon, delta=self.delta)

    @classmethod
    def from_gamma(cls, gamma: float, *, delta: float) -> Self:
        """Fix the noise, as the paper's experiments do, and read ε off the exact curve.

        >>> Budget.from_gamma(0.5, delta=1e-5)
        Budget(epsilon=9.9972..., delta=1e-05, gamma=0.5)
        """
        return cls(epsilon=privacy_curve(gamma).epsilon(delta), delta=delta)._with_gamma(gamma)

    @classmethod
    def classic(cls, *, epsilon: float, delta: float) -> Self:
        """The paper's calibration γ = √(2·ln(1.25/δ))/ε, for reproducing it.

        It is proved for ε ≤ 1 only. Above 1 it warns; where the exact curve shows a larger δ than claimed
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
                f" delta = {delta:g} it holds without a proof (the exact delta is {true_delta:.3g})",
                UnprovedCalibrationWarning,
                stacklevel=2,
            )
        return cls(epsilon=epsilon, delta=delta)._with_gamma(gamma)

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it, with the noise γ.

        >>> Budget.from_gamma(0.5, delta=1e-5).to_dict()
        {'epsilon': 9.9972..., 'delta': 1e-05, 'gamma': 0.5}
        """
        return {"epsilon": self.epsilon, "delta": self.delta, "gamma": self.gamma}

    def _with_gamma(self, gamma: float) -> Self:
        object.__setattr__(self, "_fixed_gamma", float(gamma))
        return self

    def __repr__(self) -> str:
        fixed = "" if self._fixed_gamma is None else f", gamma={self._fixed_gamma}"
        return f"Budget(epsilon={self.epsilon}, delta={self.delta}{fixed})"
