"""Divergences between two exact output distributions, as ε and δ and by Rényi. The last axis is the arms."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy.curve import check_delta, check_epsilon

_ROUNDING = 4e-16  # a sum of probabilities may exceed its δ by this and still be equal to it


def hockey_stick(release: FloatArray, reference: FloatArray, epsilon: float) -> FloatArray:
    """The smallest δ with P(release ∈ A) ≤ e^ε·P(reference ∈ A) + δ for every set A of arms.

    It is Σ_a (p_a − e^ε·r_a)₊, one direction only; 0 at ε = ∞.

    >>> hockey_stick(np.array([0.9, 0.1]), np.array([0.5, 0.5]), epsilon=0.0)
    array(0.4)
    """
    check_epsilon(epsilon)
    release, reference = np.asarray(release), np.asarray(reference)
    if math.isinf(epsilon):
        return np.zeros(np.broadcast_shapes(release.shape, reference.shape)[:-1])
    if epsilon > 700:  # e^ε overflows, but e^ε·r need not
        with np.errstate(divide="ignore"):
            allowed = np.exp(np.minimum(epsilon + np.log(reference), 1.0))
    else:
        allowed = math.exp(epsilon) * reference
    return np.asarray(np.maximum(release - allowed, 0.0).sum(axis=-1))


def smallest_epsilon(release: FloatArray, reference: FloatArray, delta: float) -> FloatArray:
    """The smallest ε ≥ 0 at which one direction holds with the given δ; ∞ if none does.

    P(A) ≤ e^ε·R(A) + δ must hold for every A; the binding sets take arms in falling order of p_a/r_a, so
    e^ε is the largest (P(A) − δ)/R(A) over these m sets.

    >>> smallest_epsilon(np.array([0.9, 0.1]), np.array([0.5, 0.5]), delta=0.1).round(6)
    np.float64(0.470004)
    """
    check_delta(delta)
    release, reference = np.asarray(release), np.asarray(reference)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(reference > 0, release / reference, np.where(release > 0, np.inf, 0.0))
        order = np.argsort(-ratios, axis=-1, kind="stable")
        excess = np.cumsum(np.take_along_axis(release, order, -1), axis=-1) - delta
        allowed = np.cumsum(np.take_along_axis(reference, order, -1), axis=-1)
        factors = np.where(excess <= _ROUNDING, 0.0, excess / allowed)
    return np.asarray(np.log(np.maximum(factors.max(axis=-1), 1.0)))


def renyi_divergence(release: FloatArray, reference: FloatArray, order: float) -> FloatArray:
    """The Rényi divergence of an order α ≥ 0, ln Σ_a p_a^α·r_a^{1−α} / (α − 1), one direction only.

    Order 1 is the divergence of Kullback and Leibler, order ∞ the largest ln(p/r). It adds up over
    independent releases.

    >>> pair = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    >>> [round(float(renyi_divergence(*pair, order)), 6) for order in (0.5, 1, 2, np.inf)]
    [0.223144, 0.368064, 0.494696, 0.587787]
    """
    if not order >= 0:
        raise InvalidInputError(f"the order of a Rényi divergence must be 0 or more; got {order!r}")
    p, r = np.asarray(release, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        losses = np.where(p > 0, np.log(p) - np.log(r), -np.inf)
        if math.isinf(order):
            found = losses.max(axis=-1)
        elif order == 1:
            found = np.where(p > 0, p * losses, 0.0).sum(axis=-1)
        else:
            # ln Σ p·e^t, from its excess over Σ p = 1 where all t are small, and without overflow elsewhere
            t = np.where(p > 0, (order - 1) * losses, -np.inf)
            largest = t.max(axis=-1, keepdims=True)
            largest = np.where(np.isfinite(largest), largest, 0.0)
            excess = np.where(p > 0, p * np.expm1(t), 0.0).sum(axis=-1)
            sums = np.where(p > 0, p * np.exp(t - largest), 0.0).sum(axis=-1)
            is_small = np.where(p > 0, np.abs(t), 0.0).max(axis=-1) < 1
            found = np.where(is_small, np.log1p(excess), largest[..., 0] + np.log(sums)) / (order - 1)
    return np.asarray(np.maximum(found, 0.0))
