"""The exact distribution of the winning arm when some scores carry independent Gaussian noise."""

import numpy as np

from armnesia.core.arrays import FloatArray, one_hot
from armnesia.core.special import ndtr

_REACH = 9.0  # Φ(−9) is 10⁻¹⁹, below the precision of a double
_FEW = 3  # up to this many noised arms, panels of 3σ are smooth enough; more arms need shorter panels
_MANY = 12  # above this number of noised arms, one grid for all arms is cheaper than panels for each
_STEP = 0.5  # panels of that grid, in standard deviations: shorter than the highest of many noises is spread
_IMPOSSIBLE = -45.0  # the logarithm of a probability below the precision of a double
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)
_CHUNK = 2**21  # integrand values in memory at once


def noisy_argmax(scores: FloatArray, sigma: FloatArray) -> FloatArray:
    """P(arm a has the highest score) when arm a's score gets noise N(0, σ_a²); σ_a = 0 is no noise.

    No noise: all on the highest score, ties to the first arm. Noise on one arm: it wins with probability
    Φ((f − highest other)/σ). Noise on several arms: one-dimensional integrals, to about 10⁻¹⁵ (a thousand
    arms: 10⁻¹²).

    >>> noisy_argmax(np.array([0.5, 0.4, 0.1]), np.array([0.1, 0.0, 0.0])).round(6)
    array([0.841345, 0.158655, 0.      ])
    """
    n_actions = scores.shape[-1]
    shape = np.broadcast_shapes(scores.shape, sigma.shape)
    flat_scores = np.broadcast_to(scores, shape).reshape(-1, n_actions)
    flat_sigma = np.broadcast_to(sigma, shape).reshape(-1, n_actions)
    flat_scores, flat_sigma = _without_hopeless(flat_scores, flat_sigma)
    n_noised = (flat_sigma > 0).sum(axis=-1)
    probabilities = one_hot(np.argmax(flat_scores, axis=-1), n_actions)
    one = n_noised == 1
    if one.any():
        probabilities[one] = _one_noised_arm(flat_scores[one], flat_sigma[one])
    for number in np.unique(n_noised[n_noised > 1]):
        rows = np.flatnonzero(n_noised == number)
        if number > _MANY:
            for row in rows:
                probabilities[row] = _many_noised_arms(flat_scores[row], flat_sigma[row])
            continue
        panels_a_row = _panel_ends(int(number)).size * int(number)
        rows_at_once = max(1, _CHUNK // (panels_a_row * _NODES.size * int(number)))
        for part in np.array_split(rows, -(-rows.size // rows_at_once)):
            probabilities[part] = _several_noised_arms(flat_scores[part], flat_sigma[part], int(number))
    return probabilities.reshape(shape)


def _without_hopeless(scores: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out noised arms that lose even when they are 9σ up and another arm is 9σ down."""
    certain = (scores - _REACH * sigma).max(axis=-1, keepdims=True)
    hopeless = (sigma > 0) & (scores + _REACH * sigma < certain)
    return np.where(hopeless, -np.inf, scores), np.where(hopeless, 0.0, sigma)


def _panel_ends(number: int) -> FloatArray:
    """The ends of the integration panels, in standard deviations of each noise."""
    return np.linspace(-_REACH, _REACH, 7 if number <= _FEW else 19)


def _one_noised_arm(scores: FloatArray, sigma: FloatArray) -> FloatArray:
    arm = np.argmax(sigma > 0, axis=-1)[:, None]
    others = np.where(sigma > 0, -np.inf, scores)
    rival = np.argmax(others, axis=-1)
    z = (np.take_along_axis(scores, arm, -1) - others.max(axis=-1, keepdims=True)) / sigma.max(
        axis=-1, keepdims=True
    )
    probabilities = one_hot(rival, scores.shape[-1]) * ndtr(-z)
    np.put_along_axis(probabilities, arm, ndtr(z), axis=-1)
    return np.asarray(probabilities)


def _several_noised_arms(scores: FloatArray, sigma: FloatArray, number: int) -> FloatArray:
    """Integrate P(j wins) = ∫ φ_j(x)·Π_{i≠j} Φ_i(x) dx above the best arm without noise.

    The panels end at multiples of each arm's own σ, so the integrand is smooth on every panel, however
    different the scales are.
    """
    arms = np.argsort(-(sigma > 0).astype(np.int8), axis=-1, kind="stable")[:, :number]
    f = np.take_along_axis(scores, arms, -1)
    s = np.take_along_axis(sigma, arms, -1)
    quiet = np.where(sigma > 0, -np.inf, scores)
    best_quiet = quiet.max(axis=-1, keepdims=True)
    # Scores below an arm's f − 9σ never win: that arm is above them.
    start = np.maximum(best_quiet, (f - _REACH * s).max(axis=-1, keepdims=True))
    edges = (f[..., None] + s[..., None] * _panel_ends(number)).reshape(len(f), -1)
    edges = np.sort(np.maximum(edges, start), axis=-1)
    wins = np.zeros_like(f)
    panels_at_once = max(1, _CHUNK // (f.size * _NODES.size))
    for first in range(0, edges.shape[-1] - 1, panels_at_once):
        panel_edges = edges[:, first : first + panels_at_once + 1]
        half = np.diff(panel_edges, axis=-1)[..., None] / 2
        x = panel_edges[:, :-1, None] + half * (1 + _NODES)
        z = (x[..., None] - f[:, None, None, :]) / s[:, None, None, :]
        below = ndtr(z)  # at least Φ(−9) from `start` on, so that dividing by it is safe
        density = np.exp(-(z**2) / 2) / below
        weights = half * _WEIGHTS * below.prod(axis=-1)
        wins += np.einsum("rpq,rpqa->ra", weights, density) / (np.sqrt(2 * np.pi) * s)
    probabilities = one_hot(np.argmax(quiet, axis=-1), scores.shape[-1])
    probabilities *= ndtr((best_quiet - f) / s).prod(axis=-1, keepdims=True)  # 0 if every arm is noised
    np.put_along_axis(probabilities, arms, wins, axis=-1)
    return probabilities


def _many_noised_arms(scores: FloatArray, sigma: FloatArray) -> FloatArray:
    """The same integrals on one grid: for a data set with m noised arms of similar scales, linear in m.

    The integration starts where all arms have started to matter, so the panels may grow: they are as short
    as the smallest σ of the arms that are not yet 9σ below x.
    """
    noised = np.flatnonzero(sigma > 0)
    f, s = scores[noised], sigma[noised]
    quiet = np.where(sigma > 0, -np.inf, scores)
    best_quiet = quiet.max()
    probabilities = one_hot(np.asarray(np.argmax(quiet)), scores.size)
    probabilities *= ndtr((best_quiet - f) / s).prod()  # 0 if every arm is noised
    start = max(float(best_quiet), _first_possible(f, s))
    order = np.argsort(f + _REACH * s)
    f, s, noised = f[order], s[order], noised[order]
    ends, finest = f + _REACH * s, np.minimum.accumulate(s[::-1])[::-1]
    edges = [start]
    while (x := edges[-1]) < ends[-1]:
        wide = _STEP * float(finest[np.searchsorted(ends, x, side="right")])
        edges.append(max(x + wide, float(np.nextafter(x, np.inf))))  # a tiny σ must not stop at x
    panels_at_once = max(1, _CHUNK // (f.size * _NODES.size))
    wins = np.zeros(f.size)
    for first in range(0, len(edges) - 1, panels_at_once):
        panel_edges = np.array(edges[first : first + panels_at_once + 1])
        half = np.diff(panel_edges)[:, None] / 2
        nodes = (panel_edges[:-1, None] + half * (1 + _NODES)).ravel()
        active = slice(int(np.searchsorted(ends, panel_edges[0], side="right")), None)
        z = (nodes[:, None] - f[active]) / s[active]
        below = ndtr(z)
        weights = (half * _WEIGHTS).ravel() * below.prod(axis=-1)
        density = np.exp(-(z**2) / 2) / below
        wins[active] += weights @ density / (np.sqrt(2 * np.pi) * s[active])
    probabilities[noised] = wins
    return probabilities


def _first_possible(f: FloatArray, s: FloatArray) -> float:
    """A score below which the highest of the noised ones never is: its probability is less than 10⁻¹⁹."""
    low, high = float((f - _REACH * s).max()), float((f + _REACH * s).max())
    for _ in range(30):
        middle = (low + high) / 2
        if np.log(ndtr((middle - f) / s)).sum() < _IMPOSSIBLE:
            low = middle
        else:
            high = middle
    return low
