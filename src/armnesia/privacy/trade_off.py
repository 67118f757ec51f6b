"""f-DP: how well any test can tell a release from its reference, as a trade-off between its two errors.

A test of a null hypothesis errs by rejecting it where it is true (type I) or by keeping it where it is false
(type II). T(P, Q)(α) is the smallest type II error of a test of P against Q whose type I error is α. The best
tests reject the outcomes of the largest likelihood ratio (Neyman and Pearson), at random on one of them, so
between finitely many outcomes T is piecewise linear, and its corners are exact. See Dong, Roth and Su (2022),
"Gaussian differential privacy"; its Proposition 2.12 relates f to (ε, δ).
"""

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError


def trade_off_corners(release: FloatArray, reference: FloatArray) -> FloatArray:
    """The corners (type I error, type II error) of the trade-off curve, from type I error 0 to 1.

    It is the f of f-DP, the largest convex curve below T(reference, release) and its mirror image,
    T(release, reference): no test is below it, whichever is the null hypothesis.

    >>> trade_off_corners(np.array([0.9, 0.1]), np.array([0.5, 0.5]))
    array([[0. , 1. ],
           [0.1, 0.5],
           [0.5, 0.1],
           [1. , 0. ]])
    """
    p, r = np.asarray(release, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if p.ndim != 1 or p.shape != r.shape:
        raise InvalidInputError(
            f"a trade-off curve is that of two vectors over the same arms; got shapes {p.shape}, {r.shape}"
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(-np.where(r > 0, p / r, np.inf), kind="stable")
    # Tests reject the reference on the first arms of this order: more and more of them.
    false_alarms = np.concatenate([[0.0], np.cumsum(r[order])])
    misses = np.concatenate([np.cumsum(p[order][::-1])[::-1], [0.0]])
    false_alarms[-1] = misses[0] = 1.0  # up to rounding it is
    tests = np.minimum(np.stack([false_alarms, misses], axis=-1), 1.0)
    return _lower_hull(np.concatenate([tests, tests[:, ::-1]]))


def trade_off(corners: FloatArray, type_1: ArrayLike) -> FloatArray:
    """The smallest type II error at a type I error, on the curve with these corners.

    >>> trade_off(trade_off_corners(np.array([0.9, 0.1]), np.array([0.5, 0.5])), [0.05, 0.5]).round(6)
    array([0.75, 0.1 ])
    """
    values = np.asarray(type_1, dtype=np.float64)
    if np.any(~((values >= 0) & (values <= 1))):
        raise InvalidInputError(f"a type I error is a probability between 0 and 1; got {type_1!r}")
    return np.asarray(np.interp(values, *corners.T))


def _lower_hull(points: FloatArray) -> FloatArray:
    """The corners of the largest convex curve below the points, from left to right."""
    hull: list[tuple[float, float]] = []
    for x, y in sorted(map(tuple, points.tolist())):
        if hull and x == hull[-1][0]:  # the lowest of one x came first
            continue
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append((x, y))
    return np.array(hull)
