"""How much noise a deletion needs, and below which γ noise costs less than rollback."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import BoolArray, FloatArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.learners import LCB, ConfidenceLearner, Learner

Sensitivity = Literal["paper", "exact"]
Threshold = Literal["paper", "exact"]


def require_lcb(learner: Learner, unlearner: str) -> LCB:
    """Gaussian noise is calibrated to the sensitivity of the scores, which is known for LCB."""
    if not isinstance(learner, LCB):
        others = " or tilt" if isinstance(learner, ConfidenceLearner) else ""
        raise UnsupportedError(
            f"{unlearner} needs a learner whose score sensitivity is known, such as 'lcb';"
            f" got {learner.name!r}, for which use rollback{others}"
        )
    return learner


def require_confidence(learner: Learner, unlearner: str) -> ConfidenceLearner:
    """Freezing the counts and forgetting the means needs scores that are made of both."""
    if not isinstance(learner, ConfidenceLearner):
        raise UnsupportedError(
            f"{unlearner} needs a learner that scores by means and counts, such as 'lcb';"
            f" got {learner.name!r}: for one that depends on counts alone, level request_shape is empty;"
            " use rollback"
        )
    return learner


def check_choice(parameter: str, value: str) -> None:
    """Refuse a variant that does not exist."""
    if value not in ("paper", "exact"):
        raise InvalidInputError(f"{parameter} must be 'paper' or 'exact'; got {value!r}")


def score_sensitivity(
    kind: Sensitivity, learner: LCB, counts: ArrayLike, deleted: ArrayLike, n_actions: int
) -> FloatArray:
    """Δ: the most that deleting k of N records moves an arm's score (Lemma A.1, or exactly).

    >>> score_sensitivity("paper", LCB(confidence=0.01), [200], [80], n_actions=5)
    array([0.6])
    """
    if kind == "paper":
        return np.asarray(1.5 * np.asarray(deleted) / np.maximum(counts, 1))
    return learner.sensitivity(counts, deleted, n_actions)


def sensitivity_certified(
    kind: Sensitivity, learner: LCB, counts: ArrayLike, deleted: ArrayLike, n_actions: int
) -> BoolArray:
    """Whether Δ really bounds the move. The exact Δ always does; 3k/(2N) only if few enough are deleted.

    The paper's condition k ≤ N − √(NL/2) is sufficient; 3k/(2N) is a bound exactly when
    (N−k) + √(N(N−k)) ≥ √(2LN).

    >>> sensitivity_certified("paper", LCB(confidence=0.001), [200, 200], [80, 195], n_actions=5)
    array([ True, False])
    """
    before = np.asarray(counts, dtype=np.float64)
    if kind == "exact":
        return np.ones(np.broadcast_shapes(before.shape, np.shape(deleted)), dtype=np.bool_)
    left = before - np.asarray(deleted)
    return np.asarray(left + np.sqrt(before * left) >= np.sqrt(2 * learner.log_term(n_actions) * before))


def noise_threshold(
    learner: LCB,
    counts: ArrayLike,
    deleted: ArrayLike,
    n_actions: int,
    *,
    threshold: Threshold,
    sensitivity: Sensitivity,
) -> FloatArray:
    """γ₀: below it, noise worsens the bound less than losing k records does.

    `"paper"` is the printed γ₀ = (4/3)·√(πL/(N−k)); `"exact"` solves the paper's own balance
    2·b(N−k) = 2·b(N) + γΔ/√(2π), that is γ₀ = 2√(2π)·(b(N−k) − b(N))/Δ; the printed one is up to
    twice as large.
    Where nothing or everything is deleted there is nothing to balance, and it is 0.

    >>> lcb = LCB(confidence=1 / 3000)
    >>> noise_threshold(lcb, [600], [80], 5, threshold="paper", sensitivity="paper").round(4)
    array([0.3214])
    >>> noise_threshold(lcb, [600], [80], 5, threshold="exact", sensitivity="paper").round(4)
    array([0.1664])
    """
    before, gone = np.asarray(counts), np.asarray(deleted)
    balanced = (gone > 0) & (gone < before)
    before, gone = np.where(balanced, before, 2), np.where(balanced, gone, 1)
    left = before - gone
    if threshold == "paper":
        values = 4 / 3 * np.sqrt(math.pi * learner.log_term(n_actions) / left)
    else:
        loss = learner.penalty(left, n_actions) - learner.penalty(before, n_actions)
        values = (
            2
            * math.sqrt(2 * math.pi)
            * loss
            / score_sensitivity(sensitivity, learner, before, gone, n_actions)
        )
    return np.asarray(np.where(balanced, values, 0.0))
