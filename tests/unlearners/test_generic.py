"""What every unlearner must do with every learner. Both registries are read: a new entry is tested here."""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from armnesia import (
    LEARNERS,
    UNLEARNERS,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    Learner,
    Level,
    Release,
    Rollback,
    Unlearner,
    audit,
)
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.frozen_rollback import frozen_scores
from armnesia.unlearners.predictive import flat
from tests.learners.bound_learners import bound_learner

BUDGETS = (
    Budget(epsilon=1.0, delta=1e-5),
    Budget(epsilon=8.0, delta=1e-5),
    Budget(epsilon=0.5, delta=0.05),
    Budget(epsilon=20.0, delta=0.01),
    Budget(epsilon=0.0, delta=0.3),
)
NOISY = ("gaussian", "adaptive", "mixing", "multi_source", "strict_adaptive")
UNSUPPORTED = {
    *((noisy, learner) for noisy in NOISY for learner in ("imitation", "kl_lcb")),  # unknown sensitivity
    *((ours, "imitation") for ours in ("frozen_rollback", "tilt")),  # their level is empty for counts alone
    *(("imitation_rollback", learner) for learner in ("lcb", "kl_lcb")),  # it is imitation's own
}
KNOWN = {*NOISY, "rollback", "imitation_rollback", "frozen_rollback", "tilt"}
KNOWN_LEARNERS = {"lcb", "kl_lcb", "imitation"}

Arms = list[tuple[list[int], list[int]]]
"""For each arm the retained and the deleted rewards, in eighths: exact in floats and in units."""


def learner_of(name: str, confidence: float = 0.2) -> Learner:
    """With a default action: it is named by its label, so renaming the arms moves it along."""
    return bound_learner(name, confidence, default_action=0)


def supported_pairs() -> list[tuple[str, str]]:
    """Every pair of the registries that does not refuse the simplest request there is."""
    refused = unsupported_pairs()
    return [pair for pair in every_pair() if pair not in refused]


def every_pair() -> list[tuple[str, str]]:
    return [(unlearner, learner) for unlearner in UNLEARNERS for learner in LEARNERS]


def unsupported_pairs() -> set[tuple[str, str]]:
    refused = set()
    instance = Instance([([8, 0], [8]), ([0], [])])
    for unlearner, learner in every_pair():
        try:
            instance.release(UNLEARNERS[unlearner](), learner_of(learner), BUDGETS[0])
        except UnsupportedError:
            refused.add((unlearner, learner))
    return refused


@dataclass(frozen=True)
class Instance:
    arms: Arms
    low: float = 0.0
    high: float = 1.0

    def _records(self, choose: Callable[[list[int], list[int]], list[int]]) -> dict[Hashable, list[float]]:
        step = (self.high - self.low) / 8
        return {a: [self.low + step * r for r in choose(*arm)] for a, arm in enumerate(self.arms)}

    @property
    def statistics(self) -> ArmStatistics:
        return ArmStatistics.from_rewards(
            self._records(lambda kept, gone: kept + gone), (self.low, self.high)
        )

    @property
    def request(self) -> DeletionRequest:
        return DeletionRequest.from_rewards(self._records(lambda kept, gone: gone), (self.low, self.high))

    def release(self, unlearner: Unlearner, learner: Learner, budget: Budget) -> Release:
        return unlearner.release(learner, self.statistics, self.request, budget)


@st.composite
def instances(draw: st.DrawFn, unlearner: str, m: int | None = None) -> Instance:
    """Unequal counts, some arms empty, k from 0 to N; only what the unlearner accepts."""
    m = draw(st.integers(1, 6)) if m is None else m
    only_binary = unlearner == "mixing"  # the one unlearner that says so
    reward = st.sampled_from([0, 8]) if only_binary or draw(st.booleans()) else st.integers(0, 8)
    arms = []
    for _ in range(m):
        kept = draw(st.lists(reward, max_size=draw(st.sampled_from([0, 3, 30]))))
        arms.append((kept, draw(st.lists(reward, max_size=8))))
    if not UNLEARNERS[unlearner].several_arms:
        chosen = draw(st.integers(0, m - 1))
        arms = [(kept, gone if a == chosen else []) for a, (kept, gone) in enumerate(arms)]
    return Instance(arms)


SUPPORTED_PAIRS = supported_pairs()
each_supported_pair = pytest.mark.parametrize(("unlearner", "learner"), SUPPORTED_PAIRS)
properties = settings(deadline=None, max_examples=60)
confidences = st.sampled_from([0.001, 0.2, 1.0])


def test_exactly_the_expected_pairs_are_unsupported() -> None:
    known = {pair for pair in unsupported_pairs() if pair[0] in KNOWN and pair[1] in KNOWN_LEARNERS}
    assert known == UNSUPPORTED
    for unlearner in UNLEARNERS:
        assert any(pair[0] == unlearner for pair in SUPPORTED_PAIRS), f"{unlearner} supports no learner"


def test_a_new_unlearner_is_included(monkeypatch: pytest.MonkeyPatch) -> None:
    class New(Rollback):
        name = "new"

    monkeypatch.setitem(UNLEARNERS, "new", New)
    assert {pair for pair in supported_pairs() if pair[0] == "new"} == {("new", name) for name in LEARNERS}


@pytest.mark.parametrize(("unlearner", "learner"), sorted(unsupported_pairs()))
def test_a_refusal_names_alternatives_that_work(unlearner: str, learner: str) -> None:
    """Learners for this unlearner, and unlearners for this learner at a level that is not weaker."""
    instance, kind = Instance([([8, 0], [8]), ([0], [])]), UNLEARNERS[unlearner]
    with pytest.raises(UnsupportedError) as refusal:
        instance.release(kind(), learner_of(learner), BUDGETS[0])
    sentence = rf"{unlearner} needs a learner .*, such as (.*); got '{learner}', for which use (.*)"
    found = re.fullmatch(sentence, str(refusal.value))
    assert found
    learners, unlearners = (re.split(", | or ", part) for part in found.groups())
    for other in learners:
        instance.release(kind(), learner_of(other.strip("'")), BUDGETS[0])
    assert "rollback" in unlearners
    for other in unlearners:
        instance.release(UNLEARNERS[other](), learner_of(learner), BUDGETS[0])
        assert Level.weakest(UNLEARNERS[other].level, kind.level) is kind.level


@pytest.mark.parametrize("name", UNLEARNERS)
def test_the_default_learner_is_supported(name: str) -> None:
    kind = UNLEARNERS[name]
    assert (name, kind.default_learner.name) in SUPPORTED_PAIRS


@each_supported_pair
def test_a_reference_depends_on_what_its_level_sees_and_nothing_else(unlearner: str, learner: str) -> None:
    kind, chosen = UNLEARNERS[unlearner](), learner_of(learner)
    instance = Instance([([8, 0, 8], [8]), ([0, 8], [])])
    retained = instance.statistics.without(instance.request)
    shape, decision = instance.request.counts, chosen.decide(instance.statistics)
    seen = {"shape": kind.level.sees_shape, "original_decision": kind.level.sees_decision}
    everything: dict[str, Any] = {"shape": shape, "original_decision": decision}
    full = kind.reference(chosen, retained, BUDGETS[0], **everything)
    for name, is_seen in seen.items():
        missing = {key: value for key, value in everything.items() if key != name}
        if is_seen:
            with pytest.raises(InvalidInputError, match=f"the reference of {unlearner} needs {name}"):
                kind.reference(chosen, retained, BUDGETS[0], **missing)
        else:
            np.testing.assert_array_equal(kind.reference(chosen, retained, BUDGETS[0], **missing), full)


def test_names_are_those_of_the_registry() -> None:
    assert all(kind.name == name for name, kind in (UNLEARNERS | LEARNERS).items())


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS), confidences)
def test_probabilities_are_a_distribution(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget, confidence: float
) -> None:
    instance = data.draw(instances(unlearner))
    release = instance.release(UNLEARNERS[unlearner](), learner_of(learner, confidence), budget)
    assert release.actions == instance.statistics.actions
    assert release.probabilities.shape == (len(instance.arms),)
    assert (release.probabilities >= 0).all()
    assert release.probabilities.sum() == pytest.approx(1.0, abs=2e-12)


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS), confidences)
def test_the_audit_holds_at_the_claimed_level(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget, confidence: float
) -> None:
    instance = data.draw(instances(unlearner))
    result = audit(
        UNLEARNERS[unlearner](),
        learner_of(learner, confidence),
        instance.statistics,
        instance.request,
        budget,
    )
    assert result.holds
    assert result.guarantee.level is UNLEARNERS[unlearner].level
    # What is claimed is never more than was asked for.
    assert result.guarantee.epsilon <= budget.epsilon
    assert result.guarantee.delta <= budget.delta


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS))
def test_an_empty_request_releases_the_decision(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget
) -> None:
    arms: Arms = [(kept + gone, []) for kept, gone in data.draw(instances(unlearner)).arms]
    instance, chosen = Instance(arms), learner_of(learner)
    decision = chosen.decide(instance.statistics)
    release = instance.release(UNLEARNERS[unlearner](), chosen, budget)
    expected = [float(arm == decision.index) for arm in range(len(arms))]
    np.testing.assert_array_equal(release.probabilities, expected)
    no_data = not any(kept for kept, _ in arms)
    assert release.branch is (Branch.NO_DATA_LEFT if no_data else Branch.UNCHANGED)


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS))
def test_renaming_the_arms_renames_the_answer(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget
) -> None:
    """Where no two scores tie, or may have tied; ties go to the first arm, which renaming changes."""
    instance, chosen = data.draw(instances(unlearner)), learner_of(learner)
    statistics, request = instance.statistics, instance.request
    for world in (statistics, statistics.without(request)):
        scores = np.sort(chosen.unit_scores(world))
        assume(world.total == 0 or np.all(np.diff(scores) > 1e-9))
    order = data.draw(st.permutations(range(len(instance.arms))))

    def reordered(records: ArmStatistics) -> ArmStatistics:
        return ArmStatistics(tuple(order), records.counts[order], records.sums[order])

    if isinstance(chosen, MeanAndCountLearner):
        retained, shape = statistics.without(request), request.counts
        frozen = np.sort(frozen_scores(chosen, retained, shape))
        assume(retained.total == 0 or np.all(np.diff(frozen) > 1e-9))
        guessed, renamed_guess = (
            flat(chosen, retained, shape),
            flat(chosen, reordered(retained), shape[order]),
        )
        assume(np.allclose(renamed_guess, guessed[order], rtol=0, atol=1e-12))
        likely = np.sort(guessed[guessed > 0])
        assume(np.all(np.diff(likely) > 1e-9))
    plain = UNLEARNERS[unlearner]().release(chosen, statistics, request, budget)
    renamed = UNLEARNERS[unlearner]().release(
        chosen, reordered(statistics), DeletionRequest(reordered(request.records), request.binary), budget
    )
    np.testing.assert_allclose(renamed.probabilities, plain.probabilities[order], rtol=0, atol=1e-12)
    assert renamed.branch is plain.branch


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS))
def test_the_scale_of_the_rewards_does_not_matter(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget
) -> None:
    instance, chosen = data.draw(instances(unlearner)), learner_of(learner)
    on_one_to_five = Instance(instance.arms, 1.0, 5.0)
    plain = instance.release(UNLEARNERS[unlearner](), chosen, budget)
    scaled = on_one_to_five.release(UNLEARNERS[unlearner](), chosen, budget)
    np.testing.assert_array_equal(scaled.probabilities, plain.probabilities)
    assert scaled.branch is plain.branch


@each_supported_pair
@settings(deadline=None, max_examples=25)
@given(st.data(), st.sampled_from(BUDGETS), st.integers(1, 5))
def test_a_batch_is_its_data_sets_one_by_one(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget, m: int
) -> None:
    rows = data.draw(st.lists(instances(unlearner, m), min_size=2, max_size=5))
    chosen = learner_of(learner)

    def stack(items: list[ArmStatistics]) -> ArmStatistics:
        counts, sums = np.stack([i.counts for i in items]), np.stack([i.sums for i in items])
        return ArmStatistics(items[0].actions, counts, sums)

    request = DeletionRequest(
        stack([row.request.records for row in rows]), all(row.request.binary for row in rows)
    )
    statistics = stack([row.statistics for row in rows])
    batch = UNLEARNERS[unlearner]().release(chosen, statistics, request, budget)
    single = [row.release(UNLEARNERS[unlearner](), chosen, budget) for row in rows]
    np.testing.assert_allclose(batch.probabilities, [one.probabilities for one in single], rtol=0, atol=1e-14)
    assert list(batch.branch) == [one.branch for one in single]
    checked = audit(UNLEARNERS[unlearner](), chosen, statistics, request, budget)
    each = [audit(UNLEARNERS[unlearner](), chosen, row.statistics, row.request, budget) for row in rows]
    np.testing.assert_allclose(checked.delta, [one.delta for one in each], rtol=0, atol=1e-12)
