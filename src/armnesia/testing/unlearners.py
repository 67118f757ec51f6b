"""The contract of an unlearner: each function is one part of it, with one learner."""

import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from armnesia.auditing import audit, audit_jointly, feasible_reference
from armnesia.core.errors import UnsupportedError
from armnesia.core.randomness import generator
from armnesia.learners import CountsOnlyLearner, Learner, MeanAndCountLearner
from armnesia.privacy import Budget, Level
from armnesia.testing.check import expect, expect_equal, ready
from armnesia.testing.worlds import World, batch, worlds
from armnesia.unlearners import Branch, Unlearner
from armnesia.unlearners.base import decision_distribution

BUDGETS = tuple(
    Budget(epsilon=epsilon, delta=delta)
    for epsilon, delta in ((1.0, 1e-5), (8.0, 1e-5), (0.5, 0.05), (20.0, 0.01), (0.0, 0.3))
)
SIMPLE = World(((1.0, 0.0), ()), ((1.0,), ()))
"""The least that an unlearner takes with a learner that it supports."""
CLOSE_RACES = tuple(
    World(((1.0,) * 60 + (0.0,) * 140,) * 2, ((1.0,) * ones + (0.0,) * (20 - ones), ()))
    for ones in range(3, 9)
)
"""Decisions between two arms, of which one is ahead by about what is deleted."""


def supports(unlearner: Unlearner, learner: Learner) -> bool:
    """Whether the unlearner does not refuse this learner."""
    return not isinstance(_error(unlearner, learner, SIMPLE), UnsupportedError)


def _error(unlearner: Unlearner, learner: Learner, world: World) -> Exception | None:
    try:
        unlearner.release(ready(learner), *world.instance(), BUDGETS[0])
    except Exception as error:
        return error
    return None


def _worlds(unlearner: Unlearner, n_actions: int = 3, binary: bool = True) -> tuple[World, ...]:
    return worlds(n_actions, one_arm=not unlearner.several_arms, binary=binary)


def _batches(unlearner: Unlearner, learner: Learner) -> Iterator[tuple[World, ...]]:
    """Worlds with 1 to 5 arms; the rewards of the last are any, if the unlearner takes that."""
    yield from (_worlds(unlearner, n_actions) for n_actions in (1, 2, 3, 5))
    found = _worlds(unlearner, binary=False)
    if not any(isinstance(_error(unlearner, learner, world), UnsupportedError) for world in found):
        yield found


def refuses_what_it_does_not_take(unlearner: Unlearner, learner: Learner) -> None:
    """A learner is supported, or refused by `UnsupportedError`; so are requests of several arms."""
    error = _error(unlearner, learner, SIMPLE)
    is_refused = isinstance(error, UnsupportedError)
    expect(error is None or is_refused, f"it takes {learner.name}, and breaks: {error!r}")
    is_default = learner.name == unlearner.default_learner.name
    expect(not (is_refused and is_default), f"it refuses its default learner: {error}")
    if error is None and not unlearner.several_arms:
        error = _error(unlearner, learner, World(((1.0,), (0.0,)), ((1.0,), (0.0,))))
        expect(isinstance(error, UnsupportedError), "several_arms is False, but two arms are not refused")


def releases_a_distribution(unlearner: Unlearner, learner: Learner) -> None:
    """Probabilities that sum to 1, the same for the same input, which stays as it was; branches are texts."""
    bound = ready(learner)
    for found in _batches(unlearner, learner):
        statistics, request = batch(found)
        before = pickle.dumps((statistics, request.records))
        for budget in BUDGETS:
            release = unlearner.release(bound, statistics, request, budget)
            expect_equal(release.probabilities.sum(axis=-1), np.ones(len(found)), "the sum", 2e-12)
            expect((release.probabilities >= 0).all(), "a probability is negative")
            expect(all(isinstance(label, str) for label in release.branch), "a branch is no text")
        again = unlearner.release(bound, statistics, request, budget)
        expect_equal(again.probabilities, release.probabilities, "a second release of the same")
        expect(pickle.dumps((statistics, request.records)) == before, "the statistics were changed")


def the_audit_holds(unlearner: Unlearner, learner: Learner) -> None:
    """Release and reference are within the claimed guarantee, with a frozen penalty too if there is one.

    What is claimed is at most what was asked for.
    """
    bound = [ready(learner, records) for records in (5, 1, 1000)]
    for number, found in enumerate(_batches(unlearner, learner)):
        if learner.supports(MeanAndCountLearner):
            deleted = np.arange(len(found[0].kept)) * 3
            bound = [*bound[:3], bound[0].with_frozen_penalty(deleted)]
        for other, budget in enumerate(BUDGETS):
            used = bound[(number + other) % len(bound)]
            audited = audit(unlearner, used, *batch(found), budget)
            claim = audited.guarantee
            found_delta = audited.delta_at_claim.max()
            expect(
                audited.holds,
                f"δ at ε = {claim.epsilon:g} is {found_delta:.3g}, more than is claimed: {claim}",
            )
            expect(claim.level is unlearner.level, f"it claims level {claim.level}, not {unlearner.level}")
            asked = claim.epsilon <= budget.epsilon and claim.delta <= budget.delta
            expect(asked, f"asked for {budget}, it claims only (ε, δ) = ({claim.epsilon}, {claim.delta})")


def a_reference_exists(unlearner: Unlearner, learner: Learner) -> None:
    """On all small data sets some reference is within the claim; the unlearner's own is not used."""
    if learner.supports(CountsOnlyLearner) and unlearner.level is not Level.RETAINED:
        return  # the level is empty for such a learner
    for budget, records in ((BUDGETS[2], 1), (Budget(epsilon=2.0, delta=1e-3), 2)):
        claim = unlearner.guarantee(SIMPLE.instance()[1], budget)
        at_budget: Any = SimpleNamespace(
            several_arms=unlearner.several_arms,
            release=lambda *case, budget=budget: unlearner.release(case[0], case[1], case[2], budget),
        )
        claimed = Budget(epsilon=claim.epsilon, delta=claim.delta)
        bound = ready(learner, records)
        found = feasible_reference(at_budget, bound, level=claim.level, budget=claimed, max_count=3)
        expect(found.holds, f"{claim} is false for every reference: δ is at least {found.at_least}")


def an_empty_request_keeps_the_decision(unlearner: Unlearner, learner: Learner) -> None:
    """π(D) is released, and the branch says so, unless empty requests are concealed."""
    bound = ready(learner)
    for budget, found in zip(BUDGETS, _batches(unlearner, learner), strict=False):
        statistics, request = batch(tuple(world.untouched() for world in found))
        release = unlearner.release(bound, statistics, request, budget)
        if not unlearner.conceals_empty_requests:
            expected = decision_distribution(bound, statistics)
            kept = np.array_equal(release.probabilities, expected)
            expect(
                kept, "an empty request does not release π(D); if that is meant, set conceals_empty_requests"
            )
            labels = np.where(statistics.total > 0, Branch.UNCHANGED, Branch.NO_DATA_LEFT)
            expect(release.branch.tolist() == labels.tolist(), f"its branches are {set(release.branch)}")


def without_records_the_default_is_served(unlearner: Unlearner, learner: Learner) -> None:
    """Where all records are deleted."""
    world = World(((), ()), ((), (1.0, 0.0)))
    release = unlearner.release(ready(learner, default_action=1), *world.instance(), BUDGETS[0])
    expect_equal(release.probabilities, [0.0, 1.0], "the release of default action 1 of 2")
    expect(release.branch == Branch.NO_DATA_LEFT, f"the branch is {release.branch!r}")


def renaming_the_arms_renames_the_answer(unlearner: Unlearner, learner: Learner) -> None:
    """Where no arms tie, which go to the first, and counts do not look as if all had been equal."""
    bound, order, random = ready(learner), [2, 0, 1], generator(7)

    def rewards(counts: Any) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple((random.random(count) < 0.5).astype(float).tolist()) for count in counts)

    for _ in range(12):
        gone = random.integers(1, 9, 3) if unlearner.several_arms else np.array([0, 0, 7])
        world = World(rewards(random.permutation([41, 67, 127]) + random.integers(0, 13, 3)), rewards(gone))
        statistics, request = world.instance()
        scores = [bound.unit_scores(each) for each in (statistics, statistics.without(request))]
        for budget in BUDGETS[:2] if np.diff(np.sort(scores)).min() > 1e-6 else ():
            plain = unlearner.release(bound, statistics, request, budget)
            renamed = unlearner.release(bound, *world.instance(order), budget)
            what = f"the release with arms {order}"
            expect_equal(renamed.probabilities, plain.probabilities[order], what, 1e-10)
            expect(renamed.branch == plain.branch, f"the branch: {renamed.branch!r}, not {plain.branch!r}")


def the_scale_of_the_rewards_does_not_matter(unlearner: Unlearner, learner: Learner) -> None:
    """Rewards from 1 to 5 as those from 0 to 1."""
    bound = ready(learner)
    for budget, found in zip(BUDGETS, _batches(unlearner, learner), strict=False):
        plain = unlearner.release(bound, *batch(found), budget)
        scaled = unlearner.release(bound, *batch(found, (1.0, 5.0)), budget)
        expect_equal(scaled.probabilities, plain.probabilities, "the release with rewards from 1 to 5")


def a_batch_is_its_data_sets_one_by_one(unlearner: Unlearner, learner: Learner) -> None:
    """Releases, references and branches."""
    for budget, found in zip(BUDGETS, _batches(unlearner, learner), strict=False):
        together = audit(unlearner, ready(learner), *batch(found), budget)
        for row, world in enumerate(found[:6]):
            alone = audit(unlearner, ready(learner), *world.instance(), budget)
            released, label = together.release.probabilities[row], together.release.branch[row]
            expect_equal(released, alone.release.probabilities, "a release in a batch", 1e-13)
            expect_equal(together.reference[row], alone.reference, "a reference in a batch", 1e-13)
            expect(label == alone.release.branch, f"{label!r} in a batch, {alone.release.branch!r} alone")


def releases_in_many_decisions_hold_together(unlearner: Unlearner, learner: Learner) -> None:
    """The joint audit holds, where the budget is split over decisions."""
    over: Any = "touched" if unlearner.level.sees_shape or not unlearner.needs_budget else "all"
    for found, budget in ((_worlds(unlearner)[:4], BUDGETS[0]), (CLOSE_RACES, BUDGETS[0])):
        joint = audit_jointly(unlearner, ready(learner), *batch(found), budget, over=over)
        expect(
            joint.holds, f"{joint.guarantee}: {joint.verdict}, δ at its ε is {joint.delta_at_claim[1]:.3g}"
        )


CONTRACT: tuple[Callable[[Unlearner, Learner], None], ...] = (
    releases_a_distribution,
    the_audit_holds,
    a_reference_exists,
    an_empty_request_keeps_the_decision,
    without_records_the_default_is_served,
    renaming_the_arms_renames_the_answer,
    the_scale_of_the_rewards_does_not_matter,
    a_batch_is_its_data_sets_one_by_one,
    releases_in_many_decisions_hold_together,
)
"""What holds with every learner that the unlearner supports."""
