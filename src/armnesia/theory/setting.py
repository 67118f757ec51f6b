"""A setting (data model, request and budget), and all bounds that apply to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
from armnesia.theory.adaptive import adaptive_distribution, adaptive_fixed
from armnesia.theory.bound import Bound, Form, LowerForm, check_count, check_coverage, check_form
from armnesia.theory.imitation import imitation_distribution
from armnesia.theory.lcb import lcb_distribution, lcb_fixed
from armnesia.theory.lower import lower_distribution, lower_fixed
from armnesia.theory.mixing import mixing_fixed
from armnesia.theory.multi_source import multi_source_fixed, rollback_distribution, tilt_of_any_request
from armnesia.unlearners.calibration import Sensitivity, Threshold, check_choice

Model = Literal["fixed", "distribution"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A data model, a request and a budget; make one with `Setting.fixed` or `Setting.distribution`.

    `deletions` are (arm, k) pairs. `best` is the index of the best arm, if known; otherwise every bound is
    for the worst case. Noise threshold and sensitivity are those of Algorithm 2, by default as in the paper.

    >>> Setting.fixed(counts=[600] * 5, deletions={0: 80}, budget=Budget(epsilon=1.0, delta=1e-5)).n
    3000
    """

    model: Model
    n: int
    n_actions: int
    deletions: tuple[tuple[int, int], ...]
    budget: Budget
    counts: tuple[int, ...] | None = None
    c_star: float | None = None
    n_best: int | None = None
    best: int | None = None
    tau: float | None = None
    threshold: Threshold = "paper"
    threshold_scale: float = 1.0
    sensitivity: Sensitivity = "paper"
    mixing_ratio: float = 0.5

    def __post_init__(self) -> None:
        check_choice("threshold", self.threshold)
        check_choice("sensitivity", self.sensitivity)
        check_count("n", self.n, least=1)
        check_count("n_actions", self.n_actions, least=1)
        if not 0 <= self.mixing_ratio <= 1:
            raise InvalidInputError(f"mixing_ratio must lie in [0, 1]; got {self.mixing_ratio!r}")
        if self.best is not None:
            check_count("best", self.best, least=0, most=self.n_actions - 1)
        for arm, k in self.deletions:
            check_count("every arm of deletions", arm, least=0, most=self.n_actions - 1)
            check_count(
                f"the deletions of arm {arm}", k, least=0, most=self.counts[arm] if self.counts else self.n
            )
        if self.counts is not None and (len(self.counts) != self.n_actions or sum(self.counts) != self.n):
            raise InvalidInputError(
                f"counts must be {self.n_actions} numbers that sum to n = {self.n}; got {list(self.counts)}"
            )
        if (self.model == "fixed") != (self.counts is not None):
            raise InvalidInputError(
                f"counts must be given for the fixed-sample model and for no other; got {self.counts!r}"
                f" for model {self.model!r}"
            )
        if (self.model == "distribution") != (self.c_star is not None):
            raise InvalidInputError(
                f"c_star must be given for the distribution model and for no other; got {self.c_star!r}"
                f" for model {self.model!r}"
            )
        if self.c_star is not None:
            check_coverage(self.c_star)

    @classmethod
    def fixed(
        cls,
        *,
        counts: Sequence[int],
        deletions: Mapping[int, int],
        budget: Budget,
        n_best: int | None = None,
        best: int | None = None,
        tau: float | None = None,
        threshold: Threshold = "paper",
        threshold_scale: float = 1.0,
        sensitivity: Sensitivity = "paper",
        mixing_ratio: float = 0.5,
    ) -> Self:
        """M_f with the given counts. N_* is `n_best`, or the count of `best`, or the smallest count."""
        return cls(
            model="fixed",
            n=sum(counts),
            n_actions=len(counts),
            deletions=_pairs(deletions),
            budget=budget,
            counts=tuple(counts),
            n_best=n_best,
            best=best,
            tau=tau,
            threshold=threshold,
            threshold_scale=threshold_scale,
            sensitivity=sensitivity,
            mixing_ratio=mixing_ratio,
        )

    @classmethod
    def distribution(
        cls,
        *,
        n: int,
        n_actions: int,
        c_star: float,
        deletions: Mapping[int, int],
        budget: Budget,
        best: int | None = None,
        tau: float | None = None,
        threshold: Threshold = "paper",
        threshold_scale: float = 1.0,
        sensitivity: Sensitivity = "paper",
    ) -> Self:
        """M_d with N points from a policy that serves the best arm with probability at least 1/C*."""
        return cls(
            model="distribution",
            n=n,
            n_actions=n_actions,
            deletions=_pairs(deletions),
            budget=budget,
            c_star=c_star,
            best=best,
            tau=tau,
            threshold=threshold,
            threshold_scale=threshold_scale,
            sensitivity=sensitivity,
        )

    @property
    def n_star(self) -> int:
        """N_*: the least number of records of the best arm (M_f)."""
        if self.n_best is not None:
            return self.n_best
        counts = self.counts or (0,)
        return min(counts) if self.best is None else counts[self.best]

    @property
    def best_is_requested(self) -> bool | None:
        """Whether records of the best arm are deleted; None if the best arm is not known."""
        return None if self.best is None else self.best in dict(self.deletions)


def bounds(setting: Setting, *, form: LowerForm = "derived") -> list[Bound]:
    """All bounds that apply to a setting, upper bounds first.

    One arm: LCB, Algorithm 2, mixing (M_f) or rollback and, for C* < 2, imitation (M_d), insured tilt, and
    the lower bound. Several arms: the same, with Algorithm 7 instead of Algorithm 2 and mixing in M_f, and
    neither in M_d. With the form `tv` of lower bounds, upper bounds are `exact`.

    >>> budget = Budget.from_gamma(0.1, delta=0.05)
    >>> setting = Setting.fixed(counts=[2_000] * 5, deletions={0: 500}, budget=budget)
    >>> for bound in bounds(setting):
    ...     print(f"{bound.kind} {bound.value:.3g} {bound.holds} {bound.name}")
    upper 0.104 True LCB, no deletion
    upper 0.119 True Algorithm 2, noise (gamma < gamma_0)
    upper 0.12 True Mixing, 250 of 500 rolled back
    upper 0.104 True Insured tilt, any request
    lower 2.05e-32 True Lower bound
    """
    return upper_bounds(setting, form=form) + lower_bounds(setting, form=form)


def upper_bounds(setting: Setting, *, form: LowerForm = "derived") -> list[Bound]:
    """The upper bounds of a setting.

    >>> setting = Setting.distribution(
    ...     n=1000, n_actions=2, c_star=1.3, deletions={0: 80}, budget=Budget(epsilon=1.0, delta=1e-5)
    ... )
    >>> [bound.name for bound in upper_bounds(setting)]
    ['LCB, no deletion', 'Rollback, any arms', 'Algorithm 2', 'Imitation with rollback',
     'Insured tilt, any request']
    """
    check_form(form, LowerForm)
    of_upper: Form = "exact" if form == "tv" else form
    make = _upper_fixed if setting.model == "fixed" else _upper_distribution
    found = make(setting, of_upper)
    if setting.deletions:
        k_arms = [k for _, k in setting.deletions]
        found.append(
            tilt_of_any_request(
                found[0], n=setting.n, k_arms=k_arms, m=setting.n_actions, budget=setting.budget
            )
        )
    return found


def lower_bounds(setting: Setting, *, form: LowerForm = "derived") -> list[Bound]:
    """The lower bound of a setting: with several requested arms, the largest that is proved of one of them.

    The instances of a bound differ in the rewards of one requested arm, or for C* < 2 of two; what is deleted
    of other arms shows a reference no more.

    >>> setting = Setting.fixed(counts=[600] * 5, deletions={0: 80}, budget=Budget(epsilon=1.0, delta=1e-5))
    >>> [round(bound.value, 6) for bound in lower_bounds(setting)]
    [0.000547]
    """
    check_form(form, LowerForm)
    found = [_lower_of_one_arm(setting, arm, k, form) for arm, k in setting.deletions]
    if len(found) < 2:
        return found
    largest = max(found, key=lambda bound: (bound.holds, bound.value))
    return [replace(largest, name="Lower bound, several arms", reference=f"{largest.reference}, of one arm")]


def _lower_of_one_arm(setting: Setting, arm: int, k: int, form: LowerForm) -> Bound:
    epsilon, delta = setting.budget.epsilon, setting.budget.delta
    if setting.counts is None:
        return lower_distribution(
            n=setting.n,
            c_star=setting.c_star or 0.0,
            k=k,
            epsilon=epsilon,
            delta=delta,
            deletion="one_arm",
            form=form,
        )
    others = [count for other, count in enumerate(setting.counts) if other != arm]
    return lower_fixed(
        n=setting.n,
        n_arm=setting.counts[arm],
        k=k,
        epsilon=epsilon,
        delta=delta,
        n_best=setting.n_best,
        n_other=max(others, default=0),
        form=form,
    )


def _pairs(deletions: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((arm, k) for arm, k in deletions.items() if k != 0))


def _upper_fixed(setting: Setting, form: Form) -> list[Bound]:
    counts, gamma, m = setting.counts or (), setting.budget.gamma, setting.n_actions
    n, n_best, tau, requested = setting.n, setting.n_star, setting.tau, setting.best_is_requested
    threshold, scale, sensitivity = setting.threshold, setting.threshold_scale, setting.sensitivity
    found = [lcb_fixed(n=n, n_best=n_best, m=m, tau=tau)]
    if len(setting.deletions) == 1:
        ((arm, k),) = setting.deletions
        n_arm, rolled_back = counts[arm], int(setting.mixing_ratio * k)
        found.append(
            adaptive_fixed(
                n=n, n_best=n_best, n_arm=n_arm, k=k, m=m, gamma=gamma, a0_is_best=requested, tau=tau,
                threshold=threshold, threshold_scale=scale, sensitivity=sensitivity, form=form,
            )
        )  # fmt: skip
        found.append(
            mixing_fixed(
                n=n, n_best=n_best, n_arm=n_arm, k=k, rolled_back=rolled_back, m=m, gamma=gamma,
                a0_is_best=requested, tau=tau, sensitivity=sensitivity, form=form,
            )
        )  # fmt: skip
    elif setting.deletions:
        found.append(
            multi_source_fixed(
                n=n, n_best=n_best, n_arms=[counts[arm] for arm, _ in setting.deletions],
                k_arms=[k for _, k in setting.deletions], m=m, gamma=gamma, best_is_requested=requested,
                tau=tau, threshold=threshold, threshold_scale=scale, sensitivity=sensitivity, form=form,
            )
        )  # fmt: skip
    return found


def _upper_distribution(setting: Setting, form: Form) -> list[Bound]:
    n, m, c_star, requested = setting.n, setting.n_actions, setting.c_star or 0.0, setting.best_is_requested
    found = [lcb_distribution(n=n, c_star=c_star, m=m, tau=setting.tau, form=form)]
    if setting.deletions:
        deleted = dict(setting.deletions)
        k = max(deleted.values()) if setting.best is None else deleted.get(setting.best, 0)
        ours: Form = "derived" if form == "printed" else form  # the paper has none
        found.append(rollback_distribution(n=n, c_star=c_star, k=k, m=m, tau=setting.tau, form=ours))
        if c_star < 2 and len(deleted) > 1:
            found.append(imitation_distribution(n=n, c_star=c_star, k=k, form=ours))
    if len(setting.deletions) != 1:
        return found
    ((_, k),) = setting.deletions
    found.append(
        adaptive_distribution(
            n=n, c_star=c_star, k=k, m=m, gamma=setting.budget.gamma, a0_is_best=requested, tau=setting.tau,
            threshold=setting.threshold, threshold_scale=setting.threshold_scale,
            sensitivity=setting.sensitivity, form=form,
        )
    )  # fmt: skip
    if c_star < 2:
        found.append(imitation_distribution(n=n, c_star=c_star, k=k, a0_is_best=requested, form=form))
    return found
