"""The contract of a learner: each function is one part of it."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from armnesia.core.statistics import ArmStatistics
from armnesia.learners import CountsOnlyLearner, Learner, MeanAndCountLearner, PenaltyLearner
from armnesia.testing.check import expect, expect_equal, ready
from armnesia.testing.worlds import batch, worlds

_BATCHES = tuple(worlds(n, binary=binary) for n, binary in ((1, True), (2, True), (5, True), (3, False)))
_SMALL = 1e-15


def once_bound_it_stays(learner: Learner) -> None:
    """A second log changes nothing: what was taken from the first is public."""
    first, second = (ArmStatistics.from_rewards({0: [1.0] * n, 1: [0.0]}) for n in (5, 9))
    bound = learner.bind(first)
    bound.check_bound()
    expect(bound.bind(second) == bound, f"bound again to another log it becomes {bound.bind(second)!r}")


def the_first_of_the_highest_scores_is_served(learner: Learner) -> None:
    """One finite score per arm; without records the default action, and the decision says so."""
    for default, found in product((0, 1), _BATCHES[1:]):
        statistics, _ = batch(found)
        bound = ready(learner, default_action=default)
        scores, decision = bound.unit_scores(statistics), bound.decide(statistics)
        is_finite = scores.shape == statistics.counts.shape and np.isfinite(scores).all()
        expect(is_finite, "the scores are not one finite number per arm")
        served = np.where(statistics.total > 0, scores.argmax(axis=-1), default)
        expect_equal(decision.index, served, "the served arm")
        expect_equal(decision.no_data, statistics.total == 0, "no_data")


def scores_belong_to_arms(learner: Learner) -> None:
    """Those of a batch are those one by one, whatever the order of the arms and the scale of the rewards."""
    bound = ready(learner)
    for found in _BATCHES:
        together = bound.unit_scores(batch(found)[0])
        scaled = bound.unit_scores(batch(found, (1.0, 5.0))[0])
        expect_equal(scaled, together, "the scores with rewards from 1 to 5")
        order = np.roll(range(together.shape[-1]), 1).tolist()
        for row, world in enumerate(found):
            alone = bound.unit_scores(world.instance()[0])
            expect_equal(together[row], alone, "the scores in a batch")
            renamed = bound.unit_scores(world.instance(order)[0])
            expect_equal(renamed, alone[order], f"the scores with arms {order}")


def other_rewards_change_nothing(learner: Any) -> None:
    """Of a learner by counts alone."""
    statistics, _ = batch(worlds(3))
    others = ArmStatistics(statistics.actions, statistics.counts, np.zeros_like(statistics.counts))
    found, expected = (ready(learner).unit_scores(each) for each in (others, statistics))
    expect_equal(found, expected, "the scores with other rewards")


def scores_do_not_fall_as_mean_or_count_rises(learner: Any) -> None:
    """By more than `score_rounding`; the score of an optimist must not rise with the count."""
    counts = np.unique(np.geomspace(1, 3000, 200).astype(int))[:, None, None]
    means = np.linspace(0, 1, 101)[None, :, None]
    scores = ready(learner).lower_bounds(*(np.broadcast_arrays(means, counts)), 3)
    rises = {"mean": np.diff(scores, axis=1), "count": _sign(learner) * np.diff(scores, axis=0)}
    for what, steps in rises.items():
        fall = -steps.min()
        expect(fall <= max(learner.score_rounding, _SMALL), f"a score falls by {fall} as the {what} rises")


def _sign(learner: Any) -> int:
    return -1 if learner.falls_with_count else 1


def scores_are_the_lower_bounds(learner: Any) -> None:
    """−1 without records; with a frozen penalty, the bound at the count with the deleted records."""
    statistics, request = batch(worlds(3))
    bound, deleted = ready(learner), request.counts
    for extra, made in ((0 * deleted, bound), (deleted, bound.with_frozen_penalty(deleted))):
        bounds = bound.lower_bounds(statistics.unit_means, np.maximum(statistics.counts, 1) + extra, 3)
        expected = np.where(statistics.counts > 0, bounds, -1.0)
        expect_equal(made.unit_scores(statistics), expected, "the scores, beside the lower bounds")


def scores_fall_and_then_rise_if_it_says_so(learner: Any) -> None:
    """As zeros are added to an arm: after the first rise there is no fall."""
    most = learner.score_rounding + _SMALL
    for ones, frozen in product((0, 1, 3, 20, 60), (0, 1, 10, 100)):
        counts = max(ones, 1) + np.arange(2000)[:, None]
        scores = ready(learner).with_frozen_penalty([frozen]).lower_bounds(ones / counts, counts, 1)[:, 0]
        rose = np.maximum.accumulate(np.diff(scores) > most)
        fall = -np.diff(scores)[rose].min(initial=0.0)
        expect(not learner.score_falls_then_rises or fall <= most, f"a score rises, then falls by {fall}")


def the_penalty_does_not_rise(learner: Any) -> None:
    """With the number of records; a bonus, its negative, must not fall."""
    steps = _sign(learner) * np.diff(ready(learner).penalty(np.arange(1, 2000), 3))
    expect((steps <= 0).all(), f"the penalty rises by {steps.max()}")


def the_sensitivity_is_the_largest_change_of_a_score(learner: Any) -> None:
    """Over all logs of zeros and ones, which are the extremes, with frozen penalties too."""
    for count, frozen in (*product((1, 2, 5), (0, 3)), (7, 100)):
        made = ready(learner).with_frozen_penalty([frozen, 0]) if frozen else ready(learner)
        score = {
            (n, ones): made.unit_scores(
                ArmStatistics.from_rewards({0: [1] * ones + [0] * (n - ones), 1: [0]})
            )[0]
            for n in range(count + 1)
            for ones in range(n + 1)
        }
        for deleted in range(1, count + 1):
            largest = max(
                abs(score[count, ones] - score[count - deleted, ones - gone])
                for ones in range(count + 1)
                for gone in range(max(0, deleted - (count - ones)), min(ones, deleted) + 1)
            )
            claimed = made.sensitivity([count, 1], [deleted, 0], n_actions=2)
            what = f"the sensitivity to {deleted} of {count} records"
            expect_equal(claimed, [largest, 0.0], what, 1e-12)


CONTRACT: Mapping[Any, tuple[Callable[..., None], ...]] = {
    Learner: (once_bound_it_stays, the_first_of_the_highest_scores_is_served, scores_belong_to_arms),
    CountsOnlyLearner: (other_rewards_change_nothing,),
    MeanAndCountLearner: (
        scores_do_not_fall_as_mean_or_count_rises,
        scores_are_the_lower_bounds,
        scores_fall_and_then_rise_if_it_says_so,
    ),
    PenaltyLearner: (the_penalty_does_not_rise, the_sensitivity_is_the_largest_change_of_a_score),
}
"""What holds of a learner of each kind."""
