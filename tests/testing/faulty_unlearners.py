"""Planted faults: each unlearner breaks one part of the contract, which the named check must find."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np

from armnesia import Budget, Guarantee, Level, Release, Rollback, Tilt, Unlearner
from armnesia.unlearners.base import decision_distribution
from examples.lottery import Lottery

Change = Callable[..., Any]


@dataclass(frozen=True)
class Same(Unlearner):
    """Releases what its reference is: a mixture of the decision of D∖U and all arms, at (0, 0)."""

    name: ClassVar[str] = "same"
    level: ClassVar[Level] = Level.RETAINED
    needs_budget: ClassVar[bool] = False
    conceals_empty_requests: ClassVar[bool] = True

    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Any) -> Any:
        return self.reference_probabilities(learner, retained, None, None, budget), "same"

    def reference_probabilities(
        self, learner: Any, retained: Any, shape: Any, original_decision: Any, budget: Any
    ) -> Any:
        even = np.full(retained.counts.shape, 1 / retained.n_actions)
        share = self.share(retained)
        return (1 - share) * decision_distribution(learner, retained) + share * even

    def share(self, retained: Any) -> Any:
        return 0.1


@dataclass(frozen=True)
class ClaimsNothing(Lottery):
    def guarantee(self, request: Any, budget: Budget) -> Guarantee:
        return Guarantee(0.0, 0.0, self.level)


@dataclass(frozen=True)
class ClaimsLessThanAsked(Rollback):
    def guarantee(self, request: Any, budget: Budget) -> Guarantee:
        return Guarantee(budget.epsilon + 1, 0.5, self.level)


@dataclass(frozen=True)
class ForgetsNothing(Rollback):
    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Any) -> Any:
        return decision_distribution(learner, statistics), "rollback"


@dataclass(frozen=True)
class ForgetsNothingIfFrozen(Rollback):
    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Any) -> Any:
        used = retained if learner.unfrozen is learner else statistics
        return decision_distribution(learner, used), "rollback"


_LAST: list[Any] = []


@dataclass(frozen=True)
class ReferenceRemembersTheRelease(ForgetsNothing):
    """Its own reference hides that it forgets nothing: only the search for any reference can see it."""

    def answer(self, *case: Any) -> Any:
        _LAST[:] = [super().answer(*case)[0]]
        return _LAST[0], "rollback"

    def reference_probabilities(self, *case: Any) -> Any:
        return _LAST[0]


@dataclass(frozen=True)
class LosesProbability(Rollback):
    def release(self, *case: Any) -> Release:
        found = super().release(*case)
        return replace(found, probabilities=0.9 * found.probabilities)


@dataclass(frozen=True)
class HasAMood(Same):
    def share(self, retained: Any, _times: Any = count()) -> Any:  # noqa: B008
        return 0.1 + 0.01 * (next(_times) % 7)


@dataclass(frozen=True)
class ChangesTheStatistics(Rollback):
    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Any) -> Any:
        statistics.counts.flags.writeable = True
        statistics.counts[...] += 1
        return super().answer(learner, statistics, request, retained, budget)


@dataclass(frozen=True)
class HesitatesWithoutARequest(Same):
    conceals_empty_requests: ClassVar[bool] = False


@dataclass(frozen=True)
class KnowsNoDefault(Rollback):
    def release(self, learner: Any, statistics: Any, request: Any, budget: Any) -> Release:
        return super().release(replace(learner, default_action=0), statistics, request, budget)


@dataclass(frozen=True)
class FavoursTheFirst(Same):
    def reference_probabilities(self, learner: Any, retained: Any, *seen: Any) -> Any:
        first = np.eye(retained.n_actions)[0]
        return 0.9 * decision_distribution(learner, retained) + 0.1 * first


@dataclass(frozen=True)
class TakesRewardsForShares(Same):
    def share(self, retained: Any) -> Any:
        return np.nan_to_num(retained.means).max(axis=-1, keepdims=True) / 8


@dataclass(frozen=True)
class LooksAtTheWholeBatch(Same):
    def share(self, retained: Any) -> Any:
        return 0.1 if (retained.counts == 0).any() else 0.2


@dataclass(frozen=True)
class ComposesAsGaussian(Tilt):
    composes_as_gaussian: ClassVar[bool] = True


@dataclass(frozen=True)
class NeedsAPenaltyUnsaid(Rollback):
    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Any) -> Any:
        learner.penalty(retained.counts + 1, retained.n_actions)
        return super().answer(learner, statistics, request, retained, budget)


@dataclass(frozen=True)
class TakesTwoArmsUnsaid(Rollback):
    several_arms: ClassVar[bool] = False

    def check_supported(self, learner: Any, shape: Any) -> None:
        pass


class IsNoValue(Rollback):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


FAULTS: dict[type[Unlearner], str] = {
    ClaimsNothing: "the_audit_holds[lcb]",
    ClaimsLessThanAsked: "the_audit_holds[lcb]",
    ForgetsNothing: "the_audit_holds[lcb]",
    ForgetsNothingIfFrozen: "the_audit_holds[lcb]",
    ReferenceRemembersTheRelease: "a_reference_exists[lcb]",
    LosesProbability: "releases_a_distribution[lcb]",
    HasAMood: "releases_a_distribution[lcb]",
    ChangesTheStatistics: "releases_a_distribution[lcb]",
    HesitatesWithoutARequest: "an_empty_request_keeps_the_decision[lcb]",
    KnowsNoDefault: "without_records_the_default_is_served[lcb]",
    FavoursTheFirst: "renaming_the_arms_renames_the_answer[lcb]",
    TakesRewardsForShares: "the_scale_of_the_rewards_does_not_matter[lcb]",
    LooksAtTheWholeBatch: "a_batch_is_its_data_sets_one_by_one[lcb]",
    ComposesAsGaussian: "releases_in_many_decisions_hold_together[lcb]",
    NeedsAPenaltyUnsaid: "refuses_what_it_does_not_take[imitation]",
    TakesTwoArmsUnsaid: "refuses_what_it_does_not_take[lcb]",
    IsNoValue: "it_is_a_value",
}
"""Which check finds which fault."""
