"""The special functions, loaded when first needed: importing scipy.special takes longer than the rest."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armnesia.arrays import FloatArray


@cache
def _functions() -> Any:
    import scipy.special  # noqa: PLC0415

    return scipy.special


def ndtr(x: ArrayLike) -> FloatArray:
    """Φ(x), the distribution function of the standard normal.

    >>> ndtr([0.0, -np.inf])
    array([0.5, 0. ])
    """
    return np.asarray(_functions().ndtr(x))


def erfcx(x: ArrayLike) -> FloatArray:
    """exp(x²)·erfc(x), which does not underflow.

    >>> erfcx([0.0])
    array([1.])
    """
    return np.asarray(_functions().erfcx(x))


def gammaln(x: ArrayLike) -> FloatArray:
    """ln Γ(x), for x > 0.

    >>> gammaln([5.0]).round(6)
    array([3.178054])
    """
    return np.asarray(_functions().gammaln(x))
