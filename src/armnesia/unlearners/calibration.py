"""The noise that a deletion needs, and the γ below which noise costs less than rollback."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import BoolArray, FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.learners import PenaltyLearner

Sensitivity = Literal["paper", "exact"]
Threshold = Literal["paper", "exact"]

SENSITIVITY_HELP = "The sensitivity Δ that the noise is scaled to: the paper's 3k/(2N), or exact."
"""The help of the parameter `sensitivity`, which all unlearners that add noise have."""


def check_choice(name: str, value: str) -> None:
    """Refuse a variant that does not exist."""
    if value not in ("paper", "exact"):
        raise InvalidInputError(f"{name} must be 'paper' or 'exact'; got {value!r}")


def score_sensitivity(
    kind: Sensitivity, learner: PenaltyLearner, counts: ArrayLike, deleted: ArrayLike, n_actions: int
) -> FloatArray:
    """Δ: the most that deleting k of N records moves an arm's score (Lemma A.1, or exactly).

    >>> from armnesia import LCB
    >>> score_sensitivity("paper", LCB(confidence=0.01), [200], [80], n_actions=5)
    array([0.6])
    """
    if kind == "paper":
        return np.asarray(1.5 * np.asarray(deleted) / np.maximum(counts, 1))
    return learner.sensitivity(counts, deleted, n_actions)


def sensitivity_certified(
    kind: Sensitivity, learner: PenaltyLearner, counts: ArrayLike, deleted: ArrayLike, n_actions: int
) -> BoolArray:
    """Whether Δ bounds the change of the score. The exact Δ always does; 3k/(2N) only if k is small enough.

    >>> from armnesia import LCB
    >>> sensitivity_certified("paper", LCB(confidence=0.001), [200, 200], [80, 195], n_actions=5)
    array([ True, False])
    """
    if kind == "exact":
        return np.ones(np.broadcast_shapes(np.shape(counts), np.shape(deleted)), dtype=np.bool_)
    return learner.paper_sensitivity_holds(counts, deleted, n_actions)


def noise_threshold(
    learner: PenaltyLearner,
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
    twice as large. If no records or all records are deleted, there is no balance, and γ₀ is 0.

    >>> from armnesia import LCB
    >>> lcb = LCB(confidence=1 / 3000)
    >>> noise_threshold(lcb, [600], [80], 5, threshold="paper", sensitivity="paper").round(4)
    array([0.3214])
    >>> noise_threshold(lcb, [600], [80], 5, threshold="exact", sensitivity="paper").round(4)
    array([0.1664])
    """
    before, removed = np.asarray(counts), np.asarray(deleted)
    balanced = (removed > 0) & (removed < before)
    before, removed = np.where(balanced, before, 2), np.where(balanced, removed, 1)
    left = before - removed
    if threshold == "paper":
        values = 4 / 3 * np.sqrt(math.pi * learner.log_term(n_actions) / left)
    else:
        loss = learner.penalty(left, n_actions) - learner.penalty(before, n_actions)
        values = (
            2
            * math.sqrt(2 * math.pi)
            * loss
            / score_sensitivity(sensitivity, learner, before, removed, n_actions)
        )
    return np.asarray(np.where(balanced, values, 0.0))
