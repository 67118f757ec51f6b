"""The exact privacy of Gaussian noise, to 80 digits, computed without the code of armnesia."""

from collections.abc import Callable

import mpmath
import pytest

TrueDelta = Callable[[float, float], mpmath.mpf]


def _true_delta(gamma: float, epsilon: float) -> mpmath.mpf:
    """δ(ε) of noise γ·Δ by its two-term formula; 80 digits outlast the cancellation between the terms."""
    with mpmath.workdps(80):
        noise, loss = mpmath.mpf(gamma), mpmath.mpf(epsilon)
        half, root = 1 / (2 * noise), mpmath.sqrt(2)
        near = mpmath.erfc((loss * noise - half) / root)
        far = mpmath.erfc((loss * noise + half) / root)
        return (near - mpmath.exp(loss) * far) / 2


@pytest.fixture(scope="session")
def true_delta() -> TrueDelta:
    return _true_delta
