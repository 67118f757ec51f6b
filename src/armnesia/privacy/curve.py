"""The exact privacy of Gaussian noise: δ(ε) for noise of γ sensitivities, and its inverses.

Noise σ = γ·Δ on a value of sensitivity Δ is (ε, δ)-indistinguishable exactly when
δ ≥ Φ(1/(2γ) − εγ) − e^ε·Φ(−1/(2γ) − εγ)   (Balle & Wang, 2018).

With a and b the two arguments, e^ε·φ(b) = φ(a), so that δ = φ(a)·(R(a) − R(b)) with Mills' ratio
R(x) = Φ(x)/φ(x). In this form nothing overflows and little cancels: the value is accurate to about 10⁻¹²
relative. Every function rounds to the safe side of that.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.special import erfcx, ndtr

_REAL = (float, Real)  # float first: the check for a Real is slow
_DELTA_MARGIN = 1e-11
_SOLVER_MARGIN = 1e-10
_SMALLEST_DELTA = 1e-300  # below it δ(ε) leaves the range of doubles; it is treated as 0
_WIDE_NOISE = 100.0  # beyond this γ, R(a) − R(b) cancels and is integrated instead
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _mills(x: FloatArray) -> FloatArray:
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(-x / math.sqrt(2)))


def _exact_delta(gamma: float, epsilon: FloatArray) -> FloatArray:
    """δ(ε) for 0 < γ < ∞ and finite ε, accurate to about 10⁻¹² relative."""
    half_width = 1 / (2 * gamma)
    a, b = half_width - epsilon * gamma, -half_width - epsilon * gamma
    with np.errstate(over="ignore"):  # a² overflows only where the density is 0 anyway
        density = np.exp(-(a**2) / 2) / math.sqrt(2 * math.pi)
    if gamma > _WIDE_NOISE:
        # R' = 1 + x·R is smooth and positive, and [b, a] is short: eight nodes are exact to rounding.
        x = -epsilon[..., None] * gamma + half_width * _NODES
        return np.asarray(density * half_width * ((1 + x * _mills(x)) @ _WEIGHTS))
    low = np.minimum(a, 5.0)  # R overflows for large a; there Φ(a) is close to 1 and nothing cancels
    return np.asarray(np.where(a > 5.0, ndtr(a) - density * _mills(b), density * (_mills(low) - _mills(b))))


def _safe_delta(gamma: float, epsilon: FloatArray | float) -> FloatArray:
    """δ(ε) rounded up by more than its error, and never down to zero."""
    exact = _exact_delta(gamma, np.asarray(epsilon, dtype=np.float64))
    return np.asarray(np.clip(exact * (1 + _DELTA_MARGIN), np.nextafter(0, 1), 1.0))


@dataclass(frozen=True)
class PrivacyCurve:
    """The exact trade-off between ε and δ of Gaussian noise with standard deviation γ·Δ.

    >>> curve = privacy_curve(0.5)
    >>> round(curve.delta(5.0), 4), round(curve.epsilon(1e-5), 2)
    (0.0323, 10.0)
    """

    gamma: float

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray: ...
    def delta(self, epsilon: ArrayLike) -> float | FloatArray:
        """The smallest δ that holds at ε, rounded up; vectorised.

        >>> privacy_curve(1.0).delta([0, 1, 2]).round(6)
        array([0.382925, 0.126937, 0.020924])
        """
        values = np.asarray(epsilon, dtype=np.float64)
        if np.any(~(values >= 0)):
            raise InvalidInputError(f"epsilon must be 0 or more; got {epsilon!r}")
        promising = np.isfinite(values)
        if self.gamma == 0:  # without noise nothing is hidden
            deltas = np.ones_like(values)
        elif math.isinf(self.gamma):
            deltas = np.zeros_like(values)
        else:
            deltas = _safe_delta(self.gamma, np.where(promising, values, 0.0))
        deltas = np.where(promising, deltas, 0.0)
        return float(deltas) if deltas.ndim == 0 else deltas

    def epsilon(self, delta: float) -> float:
        """The smallest ε that holds at δ, rounded up."""
        check_delta(delta)
        if self.gamma == 0:
            return 0.0 if delta == 1 else math.inf
        if math.isinf(self.gamma) or _safe_delta(self.gamma, 0.0) <= delta:
            return 0.0
        if delta < _SMALLEST_DELTA:
            return math.inf
        return _smallest(lambda epsilon: bool(_safe_delta(self.gamma, epsilon) <= delta))


def privacy_curve(gamma: float) -> PrivacyCurve:
    """The exact (ε, δ) trade-off of noise of γ sensitivities.

    γ = 0 is no noise (δ = 1 at every finite ε), γ = ∞ is noise alone (δ = 0). An infinite ε guarantees
    nothing, so δ = 0 holds there.
    """
    if not isinstance(gamma, _REAL) or not gamma >= 0:
        raise InvalidInputError(f"gamma must be 0 or more; got {gamma!r}")
    return PrivacyCurve(float(gamma))


def calibrate(*, epsilon: float, delta: float) -> float:
    """The smallest γ whose noise is (ε, δ)-indistinguishable: the analytic Gaussian mechanism.

    Where no finite noise is enough (δ = 0) γ is ∞; where none is needed (ε = ∞ or δ = 1) it is 0.

    >>> round(calibrate(epsilon=1.0, delta=1e-5), 8)
    3.73063164
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if math.isinf(epsilon) or delta == 1:
        return 0.0
    if delta < _SMALLEST_DELTA:
        return math.inf
    return _smallest(lambda gamma: bool(_safe_delta(gamma, epsilon) <= delta))


def check_epsilon(epsilon: float) -> None:
    """Refuse a value that is not a privacy loss."""
    if not isinstance(epsilon, _REAL) or not epsilon >= 0:
        raise InvalidInputError(f"epsilon must be 0 or more; got {epsilon!r}")
    if epsilon > sys.float_info.max and epsilon != math.inf:  # an integer of any size
        raise InvalidInputError("epsilon must be a float, or inf; got a larger integer")


def check_delta(delta: float) -> None:
    """Refuse a value that is not a probability."""
    if not isinstance(delta, _REAL) or not 0 <= delta <= 1:
        raise InvalidInputError(f"delta must be a probability between 0 and 1; got {delta!r}")


def _smallest(enough: Callable[[float], bool]) -> float:
    """Find the smallest positive value that is enough by bisection of its logarithm, rounded up."""
    low = high = 1.0
    while not enough(high):
        low, high = high, high * 2
    while enough(low):
        low, high = low / 2, low
    while high / low > 1 + 1e-13:
        middle = low * math.sqrt(high / low)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high * (1 + _SOLVER_MARGIN)
