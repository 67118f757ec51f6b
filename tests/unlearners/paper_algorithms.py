"""The paper's algorithms written down literally, on lists of rewards, with their noise drawn.

Nothing here comes from the package: scores, branches, sensitivities and thresholds are computed a second
time, in plain Python, so that agreement means something. Every function returns how often each arm won in
`n` runs, and whether noise was drawn at all.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rewards = list[list[float]]
"""The rewards of each arm."""


@dataclass(frozen=True)
class Runs:
    """How often each arm won, and whether the algorithm drew noise."""

    wins: NDArray[np.int64]
    noise: bool


@dataclass(frozen=True)
class Setting:
    """τ, γ, the variants, the number of runs, and a factor with which to plant a fault in σ."""

    tau: float
    gamma: float
    n: int
    rng: np.random.Generator
    paper_sensitivity: bool = False
    paper_threshold: bool = False
    threshold_scale: float = 1.0
    wrong_sigma: float = 1.0


def penalty(count: int, m: int, tau: float) -> float:
    return math.sqrt(math.log(m / tau) / (2 * count)) if count > 0 else 1.0


def lcb(data: Rewards, tau: float) -> list[float]:
    """Algorithm 1."""
    scores = []
    for rewards in data:
        mean = math.fsum(rewards) / len(rewards) if rewards else 0.0
        scores.append(mean - penalty(len(rewards), len(data), tau))
    return scores


def first_best(scores: list[float]) -> int:
    return scores.index(max(scores))


def difference(data: Rewards, deleted: Rewards) -> Rewards:
    """D∖U, record by record."""
    left = [list(rewards) for rewards in data]
    for rewards, of_arm in zip(left, deleted, strict=True):
        for reward in of_arm:
            rewards.remove(reward)
    return left


def tally(scores: list[float], sigma: dict[int, float], s: Setting) -> Runs:
    """Draw ν for each arm of `sigma` in each run, add it, and count the winners (ties to the first arm)."""
    best = np.full(s.n, -np.inf)
    winner = np.zeros(s.n, dtype=np.int64)
    for arm, score in enumerate(scores):
        value = score + s.rng.normal(0.0, s.wrong_sigma * sigma[arm], s.n) if arm in sigma else score
        ahead = value > best
        best, winner = np.where(ahead, value, best), np.where(ahead, arm, winner)
    return Runs(np.bincount(winner, minlength=len(scores)), bool(sigma))


def sensitivity(count: int, k: int, m: int, s: Setting) -> float | None:
    """Δ of a score that loses k of its records; None where 3k/(2N) does not bound it."""
    before = penalty(count, m, s.tau)
    if k == count:  # from anywhere in [−b, 1 − b] to −1
        exact = max(abs(1 - before + 1), abs(-before + 1))
    else:
        exact = k / count + penalty(count - k, m, s.tau) - before
    if not s.paper_sensitivity:
        return exact
    return 1.5 * k / count if k < count and exact <= 1.5 * k / count else None


def threshold(count: int, k: int, m: int, s: Setting) -> float:
    """γ₀ for k < N: as printed, or where both sides of the paper's balance are equal, by bisection."""
    if s.paper_threshold:
        return s.threshold_scale * 4 / 3 * math.sqrt(math.pi * math.log(m / s.tau) / (count - k))
    delta = 1.5 * k / count if s.paper_sensitivity else sensitivity(count, k, m, s)
    assert delta is not None
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        noise = 2 * penalty(count, m, s.tau) + middle * delta / math.sqrt(2 * math.pi)
        low, high = (middle, high) if noise < 2 * penalty(count - k, m, s.tau) else (low, middle)
    return s.threshold_scale * low


def rollback(data: Rewards, deleted: Rewards, s: Setting) -> Runs:
    return tally(lcb(difference(data, deleted), s.tau), {}, s)


def imitation_rollback(data: Rewards, deleted: Rewards, s: Setting) -> Runs:
    """Algorithm 6: subtract the counts; the most frequent arm."""
    counts = [float(len(rewards) - len(of_arm)) for rewards, of_arm in zip(data, deleted, strict=True)]
    return tally(counts, {}, s)


def gaussian_sigma(counts: list[int], k: list[int], s: Setting, joint: bool) -> dict[int, float]:
    """Noise for every requested arm whose sensitivity is certified."""
    m = len(counts)
    deltas = {a: sensitivity(counts[a], k[a], m, s) for a in range(m) if k[a] > 0}
    usable = {a: delta for a, delta in deltas.items() if delta is not None}
    factor = math.sqrt(len(usable)) if joint else 1.0
    return {a: factor * s.gamma * delta for a, delta in usable.items()}


def gaussian(data: Rewards, deleted: Rewards, s: Setting, *, joint: bool) -> Runs:
    """Section 3: the old score plus noise on every requested arm (without a certificate: rolled back)."""
    sigma = gaussian_sigma([len(r) for r in data], [len(r) for r in deleted], s, joint)
    scores = lcb(data, s.tau)
    rolled_back = lcb(difference(data, deleted), s.tau)
    for arm, of_arm in enumerate(deleted):
        if of_arm and arm not in sigma:
            scores[arm] = rolled_back[arm]
    return tally(scores, sigma, s)


def gaussian_reference(left: Rewards, k: list[int], s: Setting, *, joint: bool) -> Runs:
    """The same noise on the scores of D∖U."""
    counts = [len(r) + removed for r, removed in zip(left, k, strict=True)]
    return tally(lcb(left, s.tau), gaussian_sigma(counts, k, s, joint), s)


def served_sigma(counts: list[int], k: list[int], served: int, s: Setting) -> float | None:
    """Algorithms 2 and 7: σ for the served arm, or None where it is to be rolled back."""
    m = len(counts)
    requested = [a for a in range(m) if k[a] > 0]
    if served not in requested:
        return None
    n_min, k_max = min(counts[a] for a in requested), max(k)
    if n_min <= k_max or not s.gamma < threshold(n_min, k_max, m, s):
        return None
    delta = sensitivity(counts[served], k[served], m, s)
    return None if delta is None else s.gamma * delta


def multi_source(data: Rewards, deleted: Rewards, s: Setting, *, printed: bool = False) -> Runs:
    """Algorithm 7 (Algorithm 2 is its case of one arm), as proved or, with `printed`, as printed.

    Printed, a served arm with γ ≥ γ₀ keeps its old score.
    """
    old, new = lcb(data, s.tau), lcb(difference(data, deleted), s.tau)
    served = first_best(old)
    noise = served_sigma([len(r) for r in data], [len(r) for r in deleted], served, s)
    scores = list(old)
    for arm, of_arm in enumerate(deleted):
        if of_arm and (arm != served or (noise is None and not printed)):
            scores[arm] = new[arm]
    return tally(scores, {} if noise is None else {served: noise}, s)


def multi_source_reference(left: Rewards, k: list[int], served: int, s: Setting) -> Runs:
    """The empty request, given π(D), the arms, k and N: noise on the score of D∖U."""
    noise = served_sigma([len(r) + removed for r, removed in zip(left, k, strict=True)], k, served, s)
    return tally(lcb(left, s.tau), {} if noise is None else {served: noise}, s)


def mixing(
    data: Rewards, deleted: Rewards, s: Setting, *, k_first: int, chosen: list[float] | None = None
) -> Runs:
    """Algorithm 4 for a request of one arm: U′ is `chosen`, or drawn anew, uniformly, in every run."""
    m, old = len(data), lcb(data, s.tau)
    arm = next(a for a in range(m) if deleted[a])
    count, k = len(data[arm]), len(deleted[arm])
    k_first = k_first if first_best(old) == arm else k
    delta = sensitivity(count - k_first, k - k_first, m, s) if k_first < k else 0.0
    if delta is None:
        return rollback(data, deleted, s)
    if chosen is not None and k_first < k:
        drawn = np.full(s.n, math.fsum(chosen))
    else:
        records = np.broadcast_to(np.array(deleted[arm], dtype=np.float32), (s.n, k))
        drawn = s.rng.permuted(records, axis=1)[:, :k_first].sum(axis=1, dtype=np.float64)
    left = count - k_first
    mean = (math.fsum(data[arm]) - drawn) / left if left else np.zeros(s.n)
    value = mean - penalty(left, m, s.tau) + s.rng.normal(0.0, s.wrong_sigma * s.gamma * delta, s.n)
    quiet = [-math.inf if a == arm else score for a, score in enumerate(old)]
    rival = first_best(quiet)
    wins = (value >= quiet[rival]) if arm < rival else (value > quiet[rival])
    return Runs(np.bincount(np.where(wins, arm, rival), minlength=m), delta > 0)


def mixing_reference(left: Rewards, k: list[int], served: int, s: Setting, *, k_first: int) -> Runs:
    """The empty request of Algorithm 4: noise for k − k′ of N − k′ records on the score of D∖U."""
    arm = next(a for a in range(len(k)) if k[a] > 0)
    count, rest = len(left[arm]) + k[arm], k[arm] - k_first
    delta = sensitivity(count - k_first, rest, len(left), s) if served == arm and rest > 0 else None
    return tally(lcb(left, s.tau), {} if delta is None else {arm: s.gamma * delta}, s)
