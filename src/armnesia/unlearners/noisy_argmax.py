"""The exact distribution of the winning arm when some scores carry independent Gaussian noise."""

import numpy as np

from armnesia.core.arrays import FloatArray, one_hot
from armnesia.core.special import log_ndtr, ndtr
from armnesia.unlearners.winning_integrals import SMALLEST, probabilities_of_winning


def noisy_argmax(scores: FloatArray, sigma: FloatArray) -> FloatArray:
    """P(arm a has the highest score) when arm a's score gets noise N(0, σ_a²); σ_a = 0 is no noise.

    No noise: all on the highest score, ties to the first arm. Noise on one arm: it wins with probability
    Φ((f − highest other)/σ). Noise on several arms: one-dimensional integrals. The relative error is below
    10⁻¹², also of the smallest probabilities: a guarantee with a large ε rests on them. No arm that can win
    has less than 2·10⁻³⁰⁸, the smallest double with all its digits.

    >>> noisy_argmax(np.array([0.5, 0.4, 0.1]), np.array([0.1, 0.0, 0.0])).round(6)
    array([0.841345, 0.158655, 0.      ])
    >>> noisy_argmax(np.array([0.5, 0.4, 0.1]), np.array([0.004, 0.003, 0.0]))[1]
    np.float64(2.75...e-89)
    """
    n_actions = scores.shape[-1]
    shape = np.broadcast_shapes(scores.shape, sigma.shape)
    flat_scores = np.broadcast_to(scores, shape).reshape(-1, n_actions)
    flat_sigma = np.broadcast_to(sigma, shape).reshape(-1, n_actions)
    n_noised = (flat_sigma > 0).sum(axis=-1)
    probabilities = one_hot(np.argmax(flat_scores, axis=-1), n_actions)
    for number in np.unique(n_noised[n_noised > 0]).tolist():
        rows = np.flatnonzero(n_noised == number)
        if number == 1:
            probabilities[rows] = _one_noised_arm(flat_scores[rows], flat_sigma[rows])
        elif number == 2 == n_actions:
            probabilities[rows] = _two_noised_arms(flat_scores[rows], flat_sigma[rows])
        else:
            probabilities[rows] = _several_noised_arms(flat_scores[rows], flat_sigma[rows], number)
    return probabilities.reshape(shape)


def _one_noised_arm(scores: FloatArray, sigma: FloatArray) -> FloatArray:
    arm = np.argmax(sigma > 0, axis=-1)[:, None]
    others = np.where(sigma > 0, -np.inf, scores)
    rival = np.argmax(others, axis=-1)
    z = (np.take_along_axis(scores, arm, -1) - others.max(axis=-1, keepdims=True)) / sigma.max(
        axis=-1, keepdims=True
    )
    probabilities = one_hot(rival, scores.shape[-1]) * np.maximum(ndtr(-z), SMALLEST)
    np.put_along_axis(probabilities, arm, np.maximum(ndtr(z), SMALLEST), axis=-1)
    return np.asarray(probabilities)


def _two_noised_arms(scores: FloatArray, sigma: FloatArray) -> FloatArray:
    """Without a third arm the difference of the two scores is what counts, and it is normal."""
    z = (scores[:, :1] - scores[:, 1:]) / np.hypot(sigma[:, :1], sigma[:, 1:])
    return np.maximum(ndtr(np.concatenate([z, -z], axis=-1)), SMALLEST)


def _several_noised_arms(scores: FloatArray, sigma: FloatArray, number: int) -> FloatArray:
    """The best arm without noise wins where all noised ones are below it; these win by integrals above it."""
    arms = np.argsort(-(sigma > 0).astype(np.int8), axis=-1, kind="stable")[:, :number]
    f = np.take_along_axis(scores, arms, -1)
    s = np.take_along_axis(sigma, arms, -1)
    quiet = np.where(sigma > 0, -np.inf, scores)
    best_quiet = quiet.max(axis=-1, keepdims=True)
    all_below = np.exp(log_ndtr((best_quiet - f) / s).sum(axis=-1, keepdims=True))
    probabilities = one_hot(np.argmax(quiet, axis=-1), scores.shape[-1])
    probabilities *= np.maximum(all_below, SMALLEST)
    # If every arm is noised, the first is among them, and what it was given here is replaced.
    np.put_along_axis(probabilities, arms, probabilities_of_winning(f, s, best_quiet[:, 0]), axis=-1)
    return probabilities
