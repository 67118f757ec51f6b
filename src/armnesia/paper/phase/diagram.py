"""Which method is best at each (N, k) and (ε, δ), and where Algorithm 2 switches; not in the paper."""

from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.learners import LCB
from armnesia.paper.settings import BASE_GAMMA, ENVIRONMENT, METHODS
from armnesia.privacy import Budget, privacy_curve
from armnesia.simulation import FixedSample, OneArm, evaluate_all
from armnesia.unlearners.calibration import Threshold, noise_threshold, sensitivity_certified

CANDIDATES = ("rollback", "gaussian", "mixing")
THRESHOLDS: dict[str, tuple[Threshold, float]] = {
    "γ₀ of the paper": ("paper", 1.0),
    "1.3 γ₀, as it is run": ("paper", 1.3),
    "exact γ₀": ("exact", 1.0),
}
"""Algorithm 2 adds noise if γ is below its threshold."""

TRUE_BALANCE = "where Algorithm 2's noise equals rollback"
NOISE_IF_SERVED = "mixing 0"
"""The noise branch of Algorithm 2: noise if the requested arm was served, rollback otherwise."""

PhaseMap = dict[str, Any]
"""A map of the best method, as in `picture_of_phases`."""


def phase_maps(*, quick: bool = False) -> list[PhaseMap]:
    """Maps over (N, k) at γ = 0.5 and over (ε, δ) at N = 1800, k = 80; M_f, hard case, exact."""
    step = 3 if quick else 1
    return [
        _over_n_and_k(
            list(range(500, 5001, 250 * step)), [float(k) for k in np.linspace(0.1, 0.9, 17)[::step]]
        ),
        _over_epsilon_and_delta(
            np.linspace(1, 48, 48)[::step].tolist(), np.geomspace(1e-8, 0.5, 24)[::step].tolist()
        ),
    ]


def best_method(n: int, k: int, budget: Budget) -> str:
    """The method of CANDIDATES with the least sub-optimality, in the hard case with equal counts.

    >>> best_method(1000, 80, Budget.from_gamma(0.05, delta=1e-5))
    'gaussian'
    >>> best_method(5000, 80, Budget.from_gamma(0.5, delta=1e-5))
    'rollback'
    """
    model = FixedSample.round_robin(n, ENVIRONMENT.n_actions)
    methods = {name: METHODS[name] for name in CANDIDATES}
    found = evaluate_all(ENVIRONMENT, model, OneArm(ENVIRONMENT.best, k), methods, budget)
    return min(found, key=lambda name: found[name].suboptimality)


def _over_n_and_k(ns: list[int], shares: list[float]) -> PhaseMap:
    """The y axis is the deleted share k/N(a₀), so that every point of the map exists."""
    budget = Budget.from_gamma(BASE_GAMMA, delta=1e-5)
    m = ENVIRONMENT.n_actions
    return {
        "title": f"γ = {BASE_GAMMA:g}",
        "x_name": "N",
        "y_name": "deleted share k / N(a₀)",
        "x": ns,
        "y": shares,
        "best": [[best_method(n, max(1, round(share * (n // m))), budget) for n in ns] for share in shares],
        "lines": {
            **{
                label: [_share_at_threshold(n, kind, scale) for n in ns]
                for label, (kind, scale) in THRESHOLDS.items()
            },
            TRUE_BALANCE: [_share_at_balance(n, budget) for n in ns],
        },
        "x_log": False,
        "y_log": False,
    }


def _share_at_threshold(n: int, kind: Threshold, scale: float) -> float | None:
    """The smallest deleted share at which Algorithm 2 adds noise, at γ = 0.5; None if there is none."""
    count = n // ENVIRONMENT.n_actions
    ks = np.arange(1, count)
    adds_noise = scale * _gamma_0(n, count, ks, kind) > BASE_GAMMA
    return float(ks[np.argmax(adds_noise)] / count) if adds_noise.any() else None


def noise_beats_rollback(n: int, k: int, budget: Budget) -> bool:
    """Whether Algorithm 2's noise branch has less sub-optimality than rollback (hard case, equal counts).

    >>> noise_beats_rollback(1000, 80, Budget.from_gamma(0.5, delta=1e-5))
    True
    """
    model = FixedSample.round_robin(n, ENVIRONMENT.n_actions)
    methods = {name: METHODS[name] for name in (NOISE_IF_SERVED, "rollback")}
    found = evaluate_all(ENVIRONMENT, model, OneArm(ENVIRONMENT.best, k), methods, budget)
    return found[NOISE_IF_SERVED].suboptimality < found["rollback"].suboptimality


def _share_at_balance(n: int, budget: Budget) -> float | None:
    """The smallest deleted share at which noise beats rollback, by bisection; None if there is none."""
    count, m = n // ENVIRONMENT.n_actions, ENVIRONMENT.n_actions
    ks = np.arange(1, count)
    certified = sensitivity_certified("paper", LCB(confidence=1 / n), np.full(count - 1, count), ks, m)
    # For larger k the sensitivity is not certified, and no noise is added.
    low, high = 0, int(ks[certified][-1])
    if not noise_beats_rollback(n, high, budget):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if noise_beats_rollback(n, middle, budget) else (middle, high)
    return high / count


def _gamma_at_balance(n: int, k: int) -> float:
    """The γ below which noise beats rollback, by bisection of its logarithm."""
    low, high = 1e-3, 2.0
    for _ in range(20):
        middle = (low * high) ** 0.5
        is_better = noise_beats_rollback(n, k, Budget.from_gamma(middle, delta=1e-5))
        low, high = (middle, high) if is_better else (low, middle)
    return low


def _over_epsilon_and_delta(epsilons: list[float], deltas: list[float]) -> PhaseMap:
    n, k = 1800, 80
    count = n // ENVIRONMENT.n_actions
    lines = {}
    for label, (kind, scale) in THRESHOLDS.items():
        gamma = float(scale * _gamma_0(n, count, np.array([k]), kind)[0])
        lines[label] = [_within(privacy_curve(gamma).delta(epsilon), deltas) for epsilon in epsilons]
    balance = _gamma_at_balance(n, k)
    lines[TRUE_BALANCE] = [_within(privacy_curve(balance).delta(epsilon), deltas) for epsilon in epsilons]
    best = [
        [best_method(n, k, Budget(epsilon=epsilon, delta=delta)) for epsilon in epsilons] for delta in deltas
    ]
    return {
        "title": f"N = {n}, k = {k} of {count}",
        "x_name": "ε",
        "y_name": "δ",
        "x": epsilons,
        "y": deltas,
        "best": best,
        "lines": lines,
        "x_log": False,
        "y_log": True,
    }


def _gamma_0(n: int, count: int, ks: Any, kind: Threshold) -> FloatArray:
    learner = LCB(confidence=1 / n)
    return noise_threshold(learner, count, ks, ENVIRONMENT.n_actions, threshold=kind, sensitivity="paper")


def _within(value: float, axis: list[float]) -> float | None:
    return value if axis[0] <= value <= axis[-1] else None
