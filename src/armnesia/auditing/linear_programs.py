"""The linear program of a level: the reference that is closest to all releases of a group."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.privacy import hockey_stick

_LARGEST_EPSILON = 700.0
"""Beyond it e^ε overflows; candidates are sought at this ε, and their δ is evaluated at the one asked for."""
_MOST_AT_A_TIME = 1 << 18
"""So many differences of probabilities are in memory at once."""


def worst_divergence(releases: FloatArray, reference: FloatArray, epsilon: float) -> float:
    """The δ at which all releases lie within (ε, δ) of the reference, both ways.

    >>> worst_divergence(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.75, 0.25]), epsilon=0.0)
    0.25
    """
    return float(worst_divergences(releases, reference[None], epsilon)[0])


def worst_divergences(releases: FloatArray, references: FloatArray, epsilon: float) -> FloatArray:
    """The same δ for each of several references.

    >>> worst_divergences(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.75, 0.25], [1, 0]]), epsilon=0.0)
    array([0.25, 0.5 ])
    """
    at_a_time = max(1, _MOST_AT_A_TIME // releases.size)
    deltas = []
    for start in range(0, len(references), at_a_time):
        some = references[start : start + at_a_time, None]
        forward, backward = hockey_stick(releases, some, epsilon), hockey_stick(some, releases, epsilon)
        deltas.append(np.maximum(forward, backward).max(axis=-1))
    return np.concatenate(deltas)


def simple_references(releases: FloatArray) -> FloatArray:
    """References without a search: the releases themselves and their mean."""
    return np.vstack([releases, releases.mean(axis=0)])


def closest_reference(releases: FloatArray, epsilon: float) -> tuple[float, FloatArray]:
    """The smallest δ over all references r, and the r that attains it.

    minimise δ over r in the simplex with Σ_a (p_a − e^ε·r_a)₊ ≤ δ and Σ_a (r_a − e^ε·p_a)₊ ≤ δ for every
    release p; the positive parts are slack variables. With two arms the solution is an intersection of lines
    and exact. The δ returned is evaluated at r, not taken from the solver, and is never larger than that of
    the releases themselves or of their mean; so it is attained, whatever the tolerance of the solver.

    >>> closest_reference(np.array([[1.0, 0.0], [0.0, 1.0]]), epsilon=0.0)
    (0.5, array([0.5, 0.5]))
    """
    releases = np.unique(releases, axis=0)
    candidates = simple_references(releases)
    if releases.shape[1] == 2:
        candidates = np.vstack([candidates, _two_arms(releases, epsilon)])
    elif len(releases) > 1:
        candidates = np.vstack([candidates, _by_linear_program(releases, epsilon)])
    deltas = worst_divergences(releases, candidates, epsilon)
    best = int(np.argmin(deltas))
    return float(deltas[best]), candidates[best]


def smallest_possible(releases: FloatArray, epsilon: float) -> float:
    """A lower bound on the δ of every reference.

    For two releases p and q and any set A: p(A) ≤ e^ε·r(A) + δ ≤ e^ε·(e^ε·q(A) + δ) + δ, so that
    δ ≥ (p(A) − e^{2ε}·q(A)) / (1 + e^ε), whatever r is.

    >>> smallest_possible(np.array([[1.0, 0.0], [0.0, 1.0]]), epsilon=0.0)
    0.5
    """
    distinct = np.unique(releases, axis=0)
    apart = max(float(hockey_stick(distinct, q, 2 * epsilon).max()) for q in distinct)
    return 0.0 if epsilon > _LARGEST_EPSILON else apart / (1 + math.exp(epsilon))


def _by_linear_program(releases: FloatArray, epsilon: float) -> FloatArray:
    """Solve for the reference. From about ε = 10 on, e^ε makes the solver's tolerance visible."""
    from scipy.optimize import linprog  # noqa: PLC0415 (slow to import, and needed here only)
    from scipy.sparse import coo_array, hstack, identity, kron, vstack  # noqa: PLC0415

    n, m = releases.shape
    # Rows are divided by e^ε where that keeps the coefficients near 1; the variables are r, s, t, δ.
    factor = math.exp(-min(epsilon, _LARGEST_EPSILON))
    each = kron(np.ones((n, 1)), identity(m))
    none = coo_array((n * m, n * m))
    slack = identity(n * m)
    edge = coo_array((n * m, 1))
    row_sums = kron(identity(n), np.ones((1, m)))
    blank = coo_array((n, m))
    nothing = coo_array((n, n * m))
    ones = coo_array(np.ones((n, 1)))
    constraints = vstack(
        [
            hstack([-each, -factor * slack, none, edge]),  # p·e^−ε − r ≤ s·e^−ε
            hstack([factor * each, none, -factor * slack, edge]),  # r·e^−ε − p ≤ t·e^−ε
            hstack([blank, row_sums, nothing, -ones]),
            hstack([blank, nothing, row_sums, -ones]),
        ],
        format="csr",
    )
    limits = np.concatenate([-factor * releases.ravel(), releases.ravel(), np.zeros(2 * n)])
    cost = np.zeros(m + 2 * n * m + 1)
    cost[-1] = 1.0
    simplex = np.zeros((1, cost.size))
    simplex[0, :m] = 1.0
    solution = linprog(
        cost,
        A_ub=constraints,
        b_ub=limits,
        A_eq=simplex,
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        raise ArithmeticError(f"the linear program of the audit was not solved: {solution.message}")
    reference = np.maximum(solution.x[:m], 0.0)
    return np.asarray(reference / reference.sum())


def _two_arms(releases: FloatArray, epsilon: float) -> FloatArray:
    """Candidates that include the best reference of two arms.

    Only the extreme probabilities of arm 0 matter, because the divergences are convex in the release. Two of
    the four conditions need a larger r, two a smaller one; the best r is where two of their lines meet.
    """
    low, high = releases[:, 0].min(), releases[:, 0].max()
    grow = math.exp(min(epsilon, _LARGEST_EPSILON))
    falling = [(high, grow), (1 - grow * (1 - high), 1.0)]  # δ ≥ value − slope·r
    rising = [(1 - low - grow, grow), (-grow * low, 1.0)]  # δ ≥ value + slope·r
    crossings = [(a - c) / (b + d) for a, b in falling for c, d in rising]
    first = np.clip(crossings, 0.0, 1.0)
    return np.stack([first, 1 - first], axis=-1)
