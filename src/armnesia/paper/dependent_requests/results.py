"""Requests that do and do not depend on rewards, for every method at the same exact (ε, δ)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from armnesia.paper.cells import Row
from armnesia.paper.plan import Plan
from armnesia.paper.settings import ARM_OF_CASE, DELTA, ENVIRONMENT, HARD, METHODS
from armnesia.privacy import Budget
from armnesia.simulation import FixedSample, OneArm, RequestModel, TiltedArm, evaluate_all
from armnesia.simulation.requests import Choice
from armnesia.theory import insured_upper
from armnesia.unlearners import Tilt

FIGURE = "dependent_requests"
EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)
FEW_EPSILONS = (1.0, 3.0)
"""For quick runs; the table shows the second one."""
COMPARED_METHODS = (
    *("oracle", "rollback", "gaussian", "centred_gaussian", "mixing", "adaptive"),
    *("strict_adaptive", "frozen_rollback", "tilt", "tilt retained"),
)
"""Every unlearner that works with LCB and takes requests of one arm, tilt at two levels.

Algorithm 7 is Algorithm 2 there.
"""
_BEST = ARM_OF_CASE[HARD]
_PART_OF_DATASETS = 5
"""A point has a fifth of the plan's data sets."""


@dataclass(frozen=True)
class DependentSetting:
    """N records, equally many of each arm, of which k of the best arm are deleted; which ones: `choice`."""

    n: int
    k: int
    choice: Choice
    deleted_mean: float | None = None

    @property
    def request(self) -> RequestModel:
        """The request, for the simulation."""
        if self.deleted_mean is not None:
            return TiltedArm(_BEST, self.k, self.deleted_mean)
        return OneArm(_BEST, self.k, self.choice)

    @property
    def who(self) -> str:
        """Whose records are deleted, as text.

        >>> DependentSetting(3000, 120, "tilted", 0.2).who
        'records with mean 0.2; the others have 0.075'
        """
        if self.deleted_mean is None:
            return {"random": "anyone", "highest": "the highest rewards", "lowest": "the lowest rewards"}[
                self.choice
            ]
        count, mean = self.n // ENVIRONMENT.n_actions, float(ENVIRONMENT.means[_BEST])
        left = max(0.0, (count * mean - self.k * self.deleted_mean) / (count - self.k))
        return f"records with mean {self.deleted_mean:g}; the others have {left:.3g}"


SHOWN = (
    DependentSetting(3000, 120, "random"),
    DependentSetting(3000, 120, "lowest"),
    DependentSetting(3000, 120, "tilted", 0.2),
    DependentSetting(3000, 120, "highest"),
)
"""The panels of the picture: the same number of records, chosen in four ways."""
SETTINGS = (
    *SHOWN,
    DependentSetting(3000, 300, "random"),
    DependentSetting(3000, 300, "tilted", 0.2),
    DependentSetting(1000, 80, "random"),
    DependentSetting(1000, 80, "lowest"),
    DependentSetting(1000, 80, "tilted", 0.15),
    DependentSetting(1000, 80, "highest"),
)
"""The rows of the table. A deletion of 300 records with mean 0.2 leaves an arm without any ones."""


def insured_excess(epsilon: float, delta: float = DELTA) -> float | None:
    """h times the largest gap, h = (1−δ)/(1+e^ε): the most that a deletion costs with insured tilt.

    It bounds the excess over no deletion, whoever asks. A request of one arm has at most two contenders, that
    arm and the best of the others. None where insuring both costs more than tilt pays by default.

    >>> insured_excess(3.0, delta=0.0), insured_excess(1.0, delta=0.0)
    (0.003794..., None)
    """
    bound = insured_upper(
        contenders=2,
        budget=Budget(epsilon=epsilon, delta=delta),
        largest_gap=float(max(ENVIRONMENT.gaps)),
        insurance=Tilt().insurance,
    )
    return bound.value if bound.holds else None


def epsilons_of(plan: Plan) -> tuple[float, ...]:
    """The values of ε of a plan."""
    return FEW_EPSILONS if plan.quick else EPSILONS


def evaluate_setting(setting: DependentSetting, epsilon: float, plan: Plan) -> list[Row]:
    """All methods on the same data sets, one row each."""
    budget = Budget(epsilon=epsilon, delta=DELTA)
    found = evaluate_all(
        *(ENVIRONMENT, FixedSample.round_robin(setting.n, ENVIRONMENT.n_actions), setting.request),
        *({name: METHODS[name] for name in COMPARED_METHODS}, budget),
        protocol="sampled",
        datasets=max(plan.datasets // _PART_OF_DATASETS, 2),
        seed=plan.seed,
    )
    return [
        {
            "figure": FIGURE,
            "panel": f"M_f {setting.who}",
            "model": "fixed",
            "varied": "ε",
            "x": epsilon,
            "n": setting.n,
            "arms": str(_BEST),
            "k": setting.k,
            "gamma": budget.gamma,
            "epsilon": epsilon,
            "c_star": None,
            "method": name,
            "suboptimality": result.suboptimality,
            "standard_error": result.standard_error,
            "protocol": result.protocol,
            "datasets": result.datasets,
            "short_share": result.short_share,
        }
        for name, result in found.items()
    ]


def rows_of_setting(rows: Iterable[Row], setting: DependentSetting) -> list[Row]:
    """The rows of a setting, in order."""
    key = setting.n, setting.k, f"M_f {setting.who}"
    return [row for row in rows if (row["n"], row["k"], row["panel"]) == key]


def value(rows: Sequence[Row], method: str, epsilon: float) -> Row:
    """The row of a method at ε."""
    (found,) = (row for row in rows if (row["method"], row["epsilon"]) == (method, epsilon))
    return found
