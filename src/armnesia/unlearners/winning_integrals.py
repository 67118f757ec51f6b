"""P(each of several noised scores is the highest), with a small relative error however improbable it is.

P(j wins) = ∫ φ_j(x)·Π_{i≠j} Φ_i(x) dx is the integral of a log-concave density. All arms share one set of
panels. A panel is halved until the logarithm of every density that matters on it changes little, and left
out where tangents, which lie above a concave function, show that it contributes nothing. A guarantee with a
large ε rests on probabilities such as e^(−300): densities are computed as logarithms, and positions as exact
sums of two doubles, because x − f cancels where the noise is much smaller than the scores.
"""

from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import log_ndtr

SMALLEST = float(np.finfo(np.float64).tiny)
"""The least probability of an arm that can win, 2·10⁻³⁰⁸; smaller ones are raised to it.

Below it doubles lose digits, and no e^ε·r is enough for r = 0. Raising the probabilities of two vectors to a
common least value does not increase Σ(p − e^ε·r)₊.
"""
_CHUNK = 2**16  # densities in memory at once: few enough to stay in the processor's cache
_LOG_SMALLEST = float(np.log(SMALLEST))
_REACH = 39.0  # in σ; Φ(−39) is 10⁻³³³, far below SMALLEST
_FLAT = 9.0  # Φ(9) is 1 in doubles: from there on an arm does not bend the densities of the others
_NEGLIGIBLE = 32.0  # a panel with less than e^(−32) of an integral is left out
_STEEPEST = 12.0  # the most that the logarithm of a density may change over a panel
_WIDEST = 4.0  # the longest panel, in σ; with several arms, 1/σ² is the sum of theirs
_FIRST_PANELS = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


def probabilities_of_winning(scores: FloatArray, sigma: FloatArray, at_least: FloatArray) -> FloatArray:
    """P(an arm is above `at_least` and above all others), for rows of arms that all carry noise.

    >>> scores, sigma = np.array([[0.0, -30.0]]), np.array([[1.0, 1.0]])
    >>> probabilities_of_winning(scores, sigma, np.array([-np.inf]))[0, 1]  # Φ(−30/√2)
    np.float64(3.6064970862...e-100)
    """
    n_rows, n_arms = scores.shape
    n_chunks = min(n_rows, -(-n_rows * n_arms * _FIRST_PANELS // _CHUNK))
    parts = np.array_split(np.arange(n_rows), n_chunks)
    return np.concatenate([_integrals(_Arms.make(scores[i], sigma[i]), at_least[i]) for i in parts])


def _integrals(arms: "_Arms", at_least: FloatArray) -> FloatArray:
    log_least, panels = _refined(arms, *_first_panels(arms, at_least))
    sums = np.zeros_like(log_least)
    panels_at_once = max(1, _CHUNK // (len(sums) * _NODES.size))
    for first in range(0, panels.row.size, panels_at_once):
        part = panels.of(slice(first, first + panels_at_once))
        x, error = _exact_sum(part.x, part.width / 2 * (1 + _NODES[:, None]))
        _, log_below, log_ratio = arms.of(part.row, values=True).densities(x, part.rest + error)
        density = np.exp(log_below + log_ratio - log_least[:, None, part.row])
        areas = np.einsum("q,aqp->ap", _WEIGHTS, density) * part.width / 2
        sums += np.bincount(_places(sums, part.row), areas.ravel(), minlength=sums.size).reshape(sums.shape)
    with np.errstate(divide="ignore"):  # the sum is 0 where a probability is far below SMALLEST
        return np.exp(np.maximum(log_least + np.log(sums), _LOG_SMALLEST)).T


def _places(values: FloatArray, row: IntArray) -> IntArray:
    """Where each arm's values of these rows are in the flat array: one call is for all arms."""
    n_arms, n_rows = values.shape
    return np.asarray((np.arange(n_arms)[:, None] * n_rows + row).ravel())


@dataclass(frozen=True, eq=False)
class _Arms:
    """The arms on the first axis, the rows on the last: sums over a few arms are faster that way."""

    scores: FloatArray
    sigma: FloatArray
    log_scale: FloatArray

    @classmethod
    def make(cls, scores: FloatArray, sigma: FloatArray) -> "_Arms":
        log_scale = np.log(sigma) + np.log(2 * np.pi) / 2
        return cls(*(np.ascontiguousarray(values.T) for values in (scores, sigma, log_scale)))

    def of(self, row: IntArray, *, values: bool = False) -> "_Arms":
        """The arms of these rows; with an axis for several values of x, if asked."""
        index = (slice(None), None, row) if values else (slice(None), row)
        return _Arms(self.scores[index], self.sigma[index], self.log_scale[index])

    def densities(self, x: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """At x + rest: z of every arm, ln Π Φ_i, and ln φ_j/Φ_j, which add up to the log of j's density."""
        z = x - self.scores  # exact where it cancels
        z += rest
        z /= self.sigma
        log_below = log_ndtr(z)
        log_ratio = z * z
        log_ratio *= -0.5
        log_ratio -= log_below
        log_ratio -= self.log_scale
        return z, log_below.sum(axis=0), log_ratio


@dataclass(frozen=True, eq=False)
class _Edges:
    """Ends of panels, at x + rest, and there, for every arm, z, the log of its density and its slope."""

    x: FloatArray
    rest: FloatArray
    z: FloatArray
    height: FloatArray
    slope: FloatArray

    @classmethod
    def at(cls, arms: _Arms, x: FloatArray, rest: FloatArray) -> "_Edges":
        z, log_below, log_ratio = arms.densities(x, rest)
        ratio = np.exp(log_ratio)
        return cls(x, rest, z, log_below + log_ratio, ratio.sum(axis=0) - ratio - z / arms.sigma)

    def of(self, panels: IntArray) -> "_Edges":
        return _Edges(*(values[..., panels] for values in vars(self).values()))

    def and_then(self, other: "_Edges") -> "_Edges":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Edges(*(np.concatenate(values, axis=-1) for values in both))


@dataclass(frozen=True, eq=False)
class _Panels:
    """Panels that are fine enough: their rows, their lower ends x + rest, and their widths."""

    row: IntArray
    x: FloatArray
    rest: FloatArray
    width: FloatArray

    def of(self, panels: IntArray | slice) -> "_Panels":
        return _Panels(*(values[panels] for values in vars(self).values()))


def _exact_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a + b as a double, and its rounding error, which is a double too (Knuth)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def _first_panels(arms: _Arms, at_least: FloatArray) -> tuple[_Edges, _Edges, IntArray]:
    """The first panels of every row: from where some arm is certainly higher to where no arm can be."""

    def highest(reach: float) -> tuple[FloatArray, FloatArray]:
        x, rest = _exact_sum(arms.scores, reach * arms.sigma)
        arm = np.argmax(x, axis=0)[None]
        return np.take_along_axis(x, arm, 0)[0], np.take_along_axis(rest, arm, 0)[0]

    (low, low_rest), (high, high_rest) = highest(-_REACH), highest(_REACH)
    cut = at_least >= low
    low, low_rest = np.where(cut, at_least, low), np.where(cut, 0.0, low_rest)
    width = (high - low) + (high_rest - low_rest)
    row = np.flatnonzero(width > 0)
    x, error = _exact_sum(low[row], width[row] / _FIRST_PANELS * np.arange(_FIRST_PANELS + 1)[:, None])
    edges = _Edges.at(arms.of(row, values=True), x, error + low_rest[row])

    def of_panels(part: slice) -> _Edges:
        return _Edges(*(v[..., part, :].reshape(*v.shape[:-2], -1) for v in vars(edges).values()))

    return of_panels(slice(0, -1)), of_panels(slice(1, None)), np.tile(row, _FIRST_PANELS)


def _refined(arms: _Arms, low: _Edges, high: _Edges, row: IntArray) -> tuple[FloatArray, _Panels]:
    """Panels that are fine enough for every arm, and lower bounds on the logs of the integrals.

    A concave function lies above its chords and below its tangents: they bound the integral over a panel.
    """
    log_least = np.full(arms.scores.shape, _LOG_SMALLEST)
    nothing = np.zeros(0)
    fine = [_Panels(row[:0], nothing, nothing, nothing)]
    while row.size:
        width = (high.x - low.x) + (high.rest - low.rest)
        log_width = np.log(width)
        chords = (low.height + high.height) / 2 + log_width
        np.maximum.at(log_least.reshape(-1), _places(log_least, row), chords.ravel())
        top = np.minimum(
            low.height + np.maximum(low.slope, 0.0) * width, high.height - np.minimum(high.slope, 0.0) * width
        )
        matters = top + log_width > log_least[:, row] - _NEGLIGIBLE
        flat = top - np.minimum(low.height, high.height) <= _STEEPEST
        lengths = np.where(matters | (low.z < _FLAT), width / arms.sigma[:, row], 0.0)
        enough = (flat | ~matters).all(axis=0) & ((lengths**2).sum(axis=0) <= _WIDEST**2)
        needed = matters.any(axis=0)
        fine.append(_Panels(row, low.x, low.rest, width).of(np.flatnonzero(needed & enough)))
        coarse = np.flatnonzero(needed & ~enough)
        low, high, row = low.of(coarse), high.of(coarse), row[coarse]
        x, error = _exact_sum(low.x, width[coarse] / 2)
        middle = _Edges.at(arms.of(row), x, error + low.rest)
        low, high, row = low.and_then(middle), middle.and_then(high), np.concatenate([row, row])
    parts = zip(*(vars(panels).values() for panels in fine), strict=True)
    return log_least, _Panels(*(np.concatenate(values) for values in parts))
