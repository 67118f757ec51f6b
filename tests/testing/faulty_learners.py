"""Planted faults: each learner breaks one part of the contract, which the named check must find."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from armnesia import LCB, Imitation, Learner
from armnesia.learners import MeanAndCountLearner
from examples.root_penalty import RootPenalty


@dataclass(frozen=True, kw_only=True)
class BoundTwice(LCB):
    def bind(self, statistics: Any) -> Any:
        return replace(self, confidence=1 / int(statistics.total))


@dataclass(frozen=True, kw_only=True)
class ServesTheLast(RootPenalty):
    def best_arm(self, statistics: Any, unit_scores: Any) -> Any:
        last = statistics.n_actions - 1
        return np.where(statistics.total == 0, 0, last - unit_scores[..., ::-1].argmax(axis=-1))


@dataclass(frozen=True, kw_only=True)
class UnknownScore(RootPenalty):
    def unit_scores(self, statistics: Any) -> Any:
        return np.where(statistics.counts > 0, super().unit_scores(statistics), np.nan)


@dataclass(frozen=True, kw_only=True)
class PrefersTheFirst(RootPenalty):
    def unit_scores(self, statistics: Any) -> Any:
        return super().unit_scores(statistics) - 0.01 * np.arange(statistics.n_actions)


@dataclass(frozen=True, kw_only=True)
class ComparesDataSets(RootPenalty):
    def unit_scores(self, statistics: Any) -> Any:
        return super().unit_scores(statistics) / statistics.counts.max()


@dataclass(frozen=True, kw_only=True)
class TakesRewardsAsTheyAre(RootPenalty):
    def unit_scores(self, statistics: Any) -> Any:
        return np.nan_to_num(statistics.means) - self.penalty(statistics.counts + 1, 2)


@dataclass(frozen=True, kw_only=True)
class ImitatesRewards(Imitation):
    def unit_scores(self, statistics: Any) -> Any:
        return statistics.counts + statistics.unit_means


@dataclass(frozen=True, kw_only=True)
class Optimist(MeanAndCountLearner):
    name: ClassVar[str] = "optimist"

    def lower_bounds(self, means: Any, counts: Any, n_actions: int) -> Any:
        return means + 0.5 / np.sqrt(counts)


@dataclass(frozen=True, kw_only=True)
class HasABonus(RootPenalty):
    def unit_scores(self, statistics: Any) -> Any:
        return super().unit_scores(statistics) + 0.01 * (statistics.counts > 5)


@dataclass(frozen=True, kw_only=True)
class Stepwise(RootPenalty):
    """Its penalty falls at powers of two only, so a score falls between them."""

    @property
    def score_falls_then_rises(self) -> bool:
        return True

    def penalty(self, counts: Any, n_actions: int) -> Any:
        return self.width / np.sqrt(2 ** np.floor(np.log2(counts)))


@dataclass(frozen=True, kw_only=True)
class RisingPenalty(RootPenalty):
    def penalty(self, counts: Any, n_actions: int) -> Any:
        return np.asarray(0.01 * np.log(counts))


@dataclass(frozen=True, kw_only=True)
class LessSensitive(RootPenalty):
    def sensitivity(self, counts: Any, deleted: Any, n_actions: int) -> Any:
        return super().sensitivity(counts, deleted, n_actions) / 4


class IsNoValue(RootPenalty):
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


FAULTS: tuple[tuple[type[Learner], str], ...] = (
    (BoundTwice, "once_bound_it_stays"),
    (ServesTheLast, "the_first_of_the_highest_scores_is_served"),
    (UnknownScore, "the_first_of_the_highest_scores_is_served"),
    (PrefersTheFirst, "scores_belong_to_arms"),
    (ComparesDataSets, "scores_belong_to_arms"),
    (TakesRewardsAsTheyAre, "scores_belong_to_arms"),
    (ImitatesRewards, "other_rewards_change_nothing"),
    (Optimist, "scores_do_not_fall_as_mean_or_count_rises"),
    (HasABonus, "scores_are_the_lower_bounds"),
    (Stepwise, "scores_fall_and_then_rise_if_it_says_so"),
    (RisingPenalty, "the_penalty_does_not_rise"),
    (LessSensitive, "the_sensitivity_is_the_largest_change_of_a_score"),
    (LessSensitive, "the_audit_holds[gaussian]"),
    (IsNoValue, "it_is_a_value"),
)
"""Which check finds which fault."""
