"""evaluate with a learner: registered ones by name, those of a user, and what does not fit together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from armnesia import (
    KLLCB,
    LCB,
    UCB,
    Adaptive,
    Budget,
    FrozenRollback,
    Gaussian,
    Greedy,
    Imitation,
    ImitationRollback,
    Learner,
    Rollback,
    Tilt,
)
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.learners import CountsOnlyLearner, MeanAndCountLearner
from armnesia.simulation import (
    Environment,
    Evaluation,
    FixedSample,
    OneArm,
    evaluate_all,
    predictive_error,
)
from armnesia.unlearners import Unlearner
from tests.simulation.all_data_sets import AllDataSets

MEANS, COUNTS, DELETED = [0.7, 0.5, 0.4], [4, 3, 3], [2, 0, 0]
ENVIRONMENT = Environment.bernoulli(MEANS)
BUDGET = Budget(epsilon=1.0, delta=1e-3)


@dataclass(frozen=True, kw_only=True)
class Shrunk(MeanAndCountLearner):
    """A learner of a user: the mean, drawn towards a prior."""

    name: ClassVar[str] = "shrunk"

    def lower_bounds(self, means: Any, counts: Any, n_actions: int) -> Any:
        return (means * counts + 0.2) / (np.asarray(counts) + 1.0)


@dataclass(frozen=True, kw_only=True)
class Rarest(CountsOnlyLearner):
    """A learner of a user that needs no rewards."""

    name: ClassVar[str] = "rarest"

    def unit_scores(self, statistics: Any) -> Any:
        return -statistics.counts.astype(np.float64)


class Falling(Shrunk):
    """Breaks the promise of its kind: a higher mean, a lower score."""

    def lower_bounds(self, means: Any, counts: Any, n_actions: int) -> Any:
        return 0 * np.asarray(counts) - means


def all_found(methods: Mapping[str, Unlearner | None], **options: Any) -> dict[str, Evaluation]:
    return evaluate_all(ENVIRONMENT, FixedSample(tuple(COUNTS)), OneArm(0, 2), methods, BUDGET, **options)


def found_with(unlearner: Unlearner | None, **options: Any) -> Evaluation:
    return all_found({"": unlearner}, **options)[""]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "learner",
    [KLLCB(confidence=0.5), LCB(confidence=0.5), Greedy(), UCB(confidence=0.1), Shrunk(), Rarest()],
    ids=lambda one: one.name,
)
@pytest.mark.parametrize("unlearner", [None, Rollback(), FrozenRollback(), Gaussian(), Adaptive(), Tilt()])
def test_every_learner_by_mean_and_count_or_by_counts_has_exact_values(
    learner: Learner, unlearner: Unlearner | None
) -> None:
    """Against every data set there is."""
    if unlearner is not None and not learner.supports(unlearner.needs):
        with pytest.raises(UnsupportedError, match="needs a learner"):
            found_with(unlearner, learner=learner)
        return
    truth = AllDataSets(MEANS, COUNTS, DELETED).released(unlearner, learner, BUDGET)
    found = found_with(unlearner, learner=learner)
    assert found.protocol == "exact"
    np.testing.assert_allclose(found.probabilities, truth, atol=1e-12)


def test_a_learner_that_is_given_decides_in_the_oracle_too() -> None:
    methods = {"oracle": None, "rollback": Rollback()}
    by_kl = all_found(methods, learner="kl_lcb")
    by_default = all_found(methods)
    assert all(by_kl[name].suboptimality != by_default[name].suboptimality for name in methods)
    same = all_found(methods, learner=KLLCB(confidence=1 / sum(COUNTS)))
    assert all(by_kl[name].suboptimality == same[name].suboptimality for name in methods)


def test_confidence_is_that_of_the_learner() -> None:
    for learner in (None, "lcb", LCB(), LCB(confidence=0.1)):
        found = found_with(Rollback(), learner=learner, confidence=0.7)
        truth = AllDataSets(MEANS, COUNTS, DELETED).released(Rollback(), LCB(confidence=0.7), BUDGET)
        np.testing.assert_allclose(found.probabilities, truth, atol=1e-12)


class LastOfEqual(LCB):
    """Ties go to the last arm."""

    def best_arm(self, statistics: Any, unit_scores: Any) -> Any:
        return unit_scores.shape[-1] - 1 - np.argmax(unit_scores[..., ::-1], axis=-1)


class WithBonus(LCB):
    """Favours an arm by its place."""

    def unit_scores(self, statistics: Any) -> Any:
        return super().unit_scores(statistics) + np.arange(3) / 10


class Contrary(LCB):
    """Serves the arm after the best one."""

    def decide(self, statistics: Any) -> Any:
        decision = super().decide(statistics)
        return replace(decision, index=(decision.index + 1) % 3)


@pytest.mark.parametrize("learner", [LastOfEqual(), WithBonus(), Contrary()])
@pytest.mark.parametrize("unlearner", [None, Rollback(), FrozenRollback(), Tilt(), Gaussian()])
def test_a_learner_that_decides_in_its_own_way_is_not_evaluated_by_a_formula(
    unlearner: Unlearner | None, learner: LCB
) -> None:
    assert found_with(unlearner, learner=learner, datasets=20).protocol == "sampled"
    with pytest.raises(UnsupportedError, match="serves the best score by mean and count"):
        found_with(unlearner, learner=learner, protocol="exact")
    with pytest.raises(UnsupportedError, match="serves the best score by mean and count"):
        predictive_error(ENVIRONMENT, np.array(COUNTS), np.array(DELETED), learner)


def test_other_learners_are_sampled() -> None:
    class ByBoth(Learner):
        name: ClassVar[str] = "by_both"

        def unit_scores(self, statistics: Any) -> Any:
            return statistics.unit_means - np.sqrt(statistics.counts.max(axis=-1, keepdims=True)) / 10

    found = found_with(Rollback(), learner=ByBoth(), datasets=40_000, seed=1)
    truth = AllDataSets(MEANS, COUNTS, DELETED).released(Rollback(), ByBoth(), BUDGET)
    assert found.protocol == "sampled"
    loss = truth @ ENVIRONMENT.gaps
    assert abs(found.suboptimality - loss) < 5 * found.standard_error  # false alarm: 6e-7, fixed seed


@pytest.mark.parametrize("options", [{"learner": "imitation"}, {"learner": Imitation()}, {}])
def test_a_learner_without_confidence_refuses_one(options: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"^the learner 'imitation' takes no confidence; got 0.1$"):
        found_with(ImitationRollback(), confidence=0.1, **options)


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match=r"learner must be one of .*imitation.*; got 'ucb1'"):
        found_with(Rollback(), learner="ucb1")
    with pytest.raises(InvalidInputError, match=r"learner must be a Learner, such as LCB\(\), .*; got int"):
        found_with(Rollback(), learner=3)
    with pytest.raises(InvalidInputError, match=r"confidence must lie in \(0, 1\]; got 2.0"):
        found_with(Rollback(), confidence=2.0)
    methods = {"oracle": None, "rollback": Rollback(), "noise": Gaussian()}
    with pytest.raises(UnsupportedError, match=r"^noise: gaussian needs a learner whose"):
        all_found(methods, learner="imitation")
    with pytest.raises(UnsupportedError, match=r"'shrunk' .* falls as the mean rises"):
        found_with(Rollback(), learner=Falling(), protocol="exact")
