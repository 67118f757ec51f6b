"""What every unlearner must do with every learner. Both registries are read: a new entry is tested here."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
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
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.frozen_rollback import frozen_scores
from armnesia.unlearners.predictive import flat
from tests.learners.bound_learners import bound_learner
from tests.quick import examples, quick_only

BUDGETS = (
    Budget(epsilon=1.0, delta=1e-5),
    Budget(epsilon=8.0, delta=1e-5),
    Budget(epsilon=0.5, delta=0.05),
    Budget(epsilon=20.0, delta=0.01),
    Budget(epsilon=0.0, delta=0.3),
)
NOISY = ("gaussian", "centred_gaussian", "adaptive", "mixing", "multi_source", "strict_adaptive")
UNSUPPORTED = {
    # Unknown sensitivity.
    *((noisy, learner) for noisy in NOISY for learner in ("imitation", "kl_lcb", "bernstein_lcb")),
    *((ours, "imitation") for ours in ("frozen_rollback", "tilt")),  # their level is empty for counts alone
    *((ours, "bernstein_lcb") for ours in ("frozen_rollback", "tilt")),  # it scores by the variance as well
    # It is imitation's own.
    *(("imitation_rollback", each) for each in ("lcb", "kl_lcb", "bernstein_lcb", "greedy", "ucb")),
}
KNOWN = {*NOISY, "rollback", "imitation_rollback", "frozen_rollback", "tilt"}
KNOWN_LEARNERS = {"lcb", "kl_lcb", "bernstein_lcb", "greedy", "ucb", "imitation"}

Arm = tuple[int, int, int, int]
"""The retained records and the deleted ones: counts, and sums in eighths, which are exact in units."""


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
    for unlearner, learner in every_pair():
        try:
            SIMPLE.release(UNLEARNERS[unlearner](), learner_of(learner), BUDGETS[0])
        except UnsupportedError:
            refused.add((unlearner, learner))
    return refused


@dataclass(frozen=True)
class Instance:
    arms: list[Arm]
    binary: bool = False

    def _records(self, deleted: bool, reward_range: tuple[float, float]) -> ArmStatistics:
        chosen = np.array([arm[2:] if deleted else arm[:2] for arm in self.arms], dtype=np.int64)
        sums = chosen[:, 1] * UNIT // 8
        products = sums % UNIT * (UNIT - sums % UNIT)  # all rewards but one are 0 or 1
        return ArmStatistics(tuple(range(len(chosen))), chosen[:, 0], sums, reward_range, products)

    def statistics(self, reward_range: tuple[float, float] = (0.0, 1.0)) -> ArmStatistics:
        return self._records(False, reward_range).merge(self._records(True, reward_range))

    def request(self, reward_range: tuple[float, float] = (0.0, 1.0)) -> DeletionRequest:
        return DeletionRequest(self._records(True, reward_range), self.binary)

    def release(
        self,
        unlearner: Unlearner,
        learner: Learner,
        budget: Budget,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> Release:
        return unlearner.release(learner, self.statistics(reward_range), self.request(reward_range), budget)


SIMPLE = Instance([(2, 8, 1, 8), (1, 0, 0, 0)], binary=True)
"""Two records of each reward and one request: what every supported pair takes."""


@st.composite
def instances(draw: st.DrawFn, unlearner: str, m: int | None = None) -> Instance:
    """Unequal counts, some arms empty, k from 0 to N; only what the unlearner accepts."""
    m = draw(st.integers(1, 6)) if m is None else m
    binary = unlearner == "mixing" or draw(st.booleans())  # mixing is the one unlearner that needs it
    touched = range(m) if UNLEARNERS[unlearner].several_arms else [draw(st.integers(0, m - 1))]

    def records(most: int) -> tuple[int, int]:
        count = draw(st.integers(0, most))
        return count, 8 * draw(st.integers(0, count)) if binary else draw(st.integers(0, 8 * count))

    arms = [
        (*records(draw(st.sampled_from([0, 3, 30]))), *(records(8) if arm in touched else (0, 0)))
        for arm in range(m)
    ]
    return Instance(arms, binary)


SUPPORTED_PAIRS = supported_pairs()
each_supported_pair = pytest.mark.parametrize(
    ("unlearner", "learner"),
    # KL-LCB takes long and has tests of its own; multi_source is adaptive for requests of several arms, and
    # greedy is UCB without a bonus.
    quick_only(
        [pair for pair in SUPPORTED_PAIRS if {"kl_lcb", "multi_source", "greedy"}.isdisjoint(pair)],
        SUPPORTED_PAIRS,
    ),
)
properties = examples(20)
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
    kind = UNLEARNERS[unlearner]
    with pytest.raises(UnsupportedError) as refusal:
        SIMPLE.release(kind(), learner_of(learner), BUDGETS[0])
    sentence = rf"{unlearner} needs a learner .*, such as (.*); got '{learner}', for which use (.*)"
    found = re.fullmatch(sentence, str(refusal.value))
    assert found
    learners, unlearners = (re.split(", | or ", part) for part in found.groups())
    for other in learners:
        SIMPLE.release(kind(), learner_of(other.strip("'")), BUDGETS[0])
    assert "rollback" in unlearners
    for other in unlearners:
        SIMPLE.release(UNLEARNERS[other](), learner_of(learner), BUDGETS[0])
        assert Level.weakest(UNLEARNERS[other].level, kind.level) is kind.level


@pytest.mark.parametrize("name", UNLEARNERS)
def test_the_default_learner_is_supported(name: str) -> None:
    kind = UNLEARNERS[name]
    assert (name, kind.default_learner.name) in SUPPORTED_PAIRS


@each_supported_pair
def test_a_reference_depends_on_what_its_level_sees_and_nothing_else(unlearner: str, learner: str) -> None:
    kind, chosen = UNLEARNERS[unlearner](), learner_of(learner)
    statistics, request = SIMPLE.statistics(), SIMPLE.request()
    retained, shape, decision = statistics.without(request), request.counts, chosen.decide(statistics)
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
    assert release.actions == tuple(range(len(instance.arms)))
    check_distribution(release, len(instance.arms))


def check_distribution(release: Release, m: int) -> None:
    assert release.probabilities.shape == (m,)
    assert (release.probabilities >= 0).all()
    assert release.probabilities.sum() == pytest.approx(1.0, abs=2e-12)


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS), confidences)
def test_the_audit_holds_at_the_claimed_level(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget, confidence: float
) -> None:
    check_audit(data.draw(instances(unlearner)), unlearner, learner_of(learner, confidence), budget)


@pytest.mark.slow
@pytest.mark.parametrize(("unlearner", "learner"), SUPPORTED_PAIRS)
@examples(300)
@given(st.data(), st.sampled_from(BUDGETS), confidences)
def test_the_audit_holds_on_many_more_examples(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget, confidence: float
) -> None:
    check_audit(data.draw(instances(unlearner)), unlearner, learner_of(learner, confidence), budget)


def check_audit(instance: Instance, unlearner: str, learner: Learner, budget: Budget) -> None:
    result = audit(UNLEARNERS[unlearner](), learner, instance.statistics(), instance.request(), budget)
    check_distribution(result.release, len(instance.arms))
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
    drawn, chosen = data.draw(instances(unlearner)), learner_of(learner)
    instance = Instance([(kept, total, 0, 0) for kept, total, _, _ in drawn.arms], drawn.binary)
    decision = chosen.decide(instance.statistics())
    release = instance.release(UNLEARNERS[unlearner](), chosen, budget)
    expected = [float(arm == decision.index) for arm in range(len(instance.arms))]
    np.testing.assert_array_equal(release.probabilities, expected)
    no_data = not any(kept for kept, *_ in instance.arms)
    assert release.branch == (Branch.NO_DATA_LEFT if no_data else Branch.UNCHANGED)


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS))
def test_renaming_the_arms_renames_the_answer(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget
) -> None:
    """Where no two scores tie, or may have tied; ties go to the first arm, which renaming changes."""
    instance, chosen = data.draw(instances(unlearner)), learner_of(learner)
    statistics, request = instance.statistics(), instance.request()
    for world in (statistics, statistics.without(request)):
        scores = np.sort(chosen.unit_scores(world))
        assume(world.total == 0 or np.all(np.diff(scores) > 1e-9))
    order = data.draw(st.permutations(range(len(instance.arms))))

    def reordered(records: ArmStatistics) -> ArmStatistics:
        return records.selected(lambda values: values[order], tuple(order))

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
    assert renamed.branch == plain.branch


@each_supported_pair
@properties
@given(st.data(), st.sampled_from(BUDGETS))
def test_the_scale_of_the_rewards_does_not_matter(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget
) -> None:
    instance, chosen = data.draw(instances(unlearner)), learner_of(learner)
    plain = instance.release(UNLEARNERS[unlearner](), chosen, budget)
    scaled = instance.release(UNLEARNERS[unlearner](), chosen, budget, reward_range=(1.0, 5.0))
    np.testing.assert_array_equal(scaled.probabilities, plain.probabilities)
    assert scaled.branch == plain.branch


@each_supported_pair
@examples(12)
@given(st.data(), st.sampled_from(BUDGETS), st.integers(1, 5))
def test_a_batch_is_its_data_sets_one_by_one(
    unlearner: str, learner: str, data: st.DataObject, budget: Budget, m: int
) -> None:
    rows = data.draw(st.lists(instances(unlearner, m), min_size=2, max_size=5))
    chosen = learner_of(learner)

    def stack(items: list[ArmStatistics]) -> ArmStatistics:
        parts = zip(*((i.counts, i.sums, i.products) for i in items), strict=True)
        counts, sums, products = (np.stack(part) for part in parts)
        return ArmStatistics(items[0].actions, counts, sums, products=products)

    request = DeletionRequest(stack([row.request().records for row in rows]), all(row.binary for row in rows))
    statistics = stack([row.statistics() for row in rows])
    batch = UNLEARNERS[unlearner]().release(chosen, statistics, request, budget)
    single = [row.release(UNLEARNERS[unlearner](), chosen, budget) for row in rows]
    np.testing.assert_allclose(batch.probabilities, [one.probabilities for one in single], rtol=0, atol=1e-14)
    assert list(batch.branch) == [one.branch for one in single]
    checked = audit(UNLEARNERS[unlearner](), chosen, statistics, request, budget)
    each = [audit(UNLEARNERS[unlearner](), chosen, row.statistics(), row.request(), budget) for row in rows]
    np.testing.assert_allclose(checked.delta, [one.delta for one in each], rtol=0, atol=1e-12)
