"""One request in many decisions: the joint guarantee, audited exactly, and faults that the audit finds."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import armnesia as am
from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Gaussian,
    ImitationRollback,
    JointAudit,
    Level,
    Mixing,
    Rollback,
    StrictAdaptive,
    Tilt,
    Unlearner,
    audit,
    audit_jointly,
    compare,
    compare_jointly,
    hockey_stick,
    release_jointly,
)
from armnesia.auditing import joint
from armnesia.auditing.joint import audited
from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.privacy import composed_delta, joint_loss, split_budget
from armnesia.unlearners.joint import answers_jointly, reference_jointly, request_of, rows_of

UNIT = 10**9
LEARNER = LCB(confidence=0.01)
BUDGET = Budget(epsilon=1.0, delta=1e-5)
COMPOSITIONS: list[Any] = ["best", "even", "optimal"]
METHODS = [Rollback(), Gaussian(), Mixing(), ImitationRollback(), StrictAdaptive(), Tilt()]
"""With a budget and without, split and composed, at every level; `armnesia.testing` has all the others."""
each_method = pytest.mark.parametrize("unlearner", METHODS, ids=lambda one: one.name)


def decisions(
    n: int, seed: int, *, touched: int, arms: int = 3, one_arm: bool = False
) -> tuple[ArmStatistics, DeletionRequest]:
    """Close races, in some of which records of one arm or of several are deleted."""
    random = np.random.default_rng(seed)
    counts = random.integers(60, 300, (n, arms))
    sums = random.binomial(counts, 0.5)
    deleted = np.where(np.arange(n)[:, None] < touched, random.integers(0, 40, (n, arms)), 0)
    deleted[:touched, 0] += 1
    if one_arm:
        deleted[:, 1:] = 0
    ones = random.hypergeometric(sums, counts - sums, deleted)
    actions = tuple("ABCDEFGHIJ"[:arms])
    statistics = ArmStatistics(actions, counts, sums * UNIT)
    return statistics, DeletionRequest(ArmStatistics(actions, deleted, ones * UNIT), binary=True)


def product(tables: FloatArray) -> FloatArray:
    return np.array([math.prod(outcome) for outcome in itertools.product(*tables.tolist())])


def learner_of(unlearner: Unlearner) -> Any:
    return LEARNER if unlearner.default_learner is LCB else unlearner.default_learner()


@pytest.mark.sampled(4)
@each_method
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_the_audit_is_that_of_the_product(unlearner: Unlearner, composition: Any) -> None:
    for seed, epsilon in itertools.product(range(4), (0.3, 1.0, 30.0)):
        budget = Budget(epsilon=epsilon, delta=1e-3)
        statistics, request = decisions(6, seed, touched=4, one_arm=not unlearner.several_arms)
        learner = learner_of(unlearner)
        found = audit_jointly(unlearner, learner, statistics, request, budget, composition=composition)
        p, r = product(found.release.probabilities), product(found.reference)
        assert found.delta_forward == pytest.approx(float(hockey_stick(p, r, epsilon)), abs=1e-12)
        assert found.delta_backward == pytest.approx(float(hockey_stick(r, p, epsilon)), abs=1e-12)
        assert found.delta_error == 0
        assert found.is_exact
        assert found.holds
        assert found.guarantee.level is unlearner.level
        assert ("in each" in str(found.guarantee)) == unlearner.level.sees_shape
        assert (found.guarantee.epsilon, found.guarantee.delta) in ((epsilon, 1e-3), (0.0, 0.0))


@each_method
def test_each_decision_is_released_as_if_it_were_alone_with_its_share(unlearner: Unlearner) -> None:
    learner = learner_of(unlearner)
    statistics, request = decisions(5, 3, touched=3, one_arm=not unlearner.several_arms)
    found = release_jointly(unlearner, learner, statistics, request, BUDGET)
    reference = reference_jointly(unlearner, learner, statistics, request, found)
    assert found.touched.tolist() == [True, True, True, False, False]
    for row in range(5):
        alone = audit(unlearner, learner, rows_of(statistics, row), request_of(request, row), found.each)
        assert found.probabilities[row] == pytest.approx(alone.release.probabilities, abs=1e-15)
        assert reference[row] == pytest.approx(alone.reference, abs=1e-15)
        assert found.release.branch[row] == alone.release.branch
    assert np.array_equal(found.probabilities[3:], reference[3:])
    assert len(found.draw()) == 5


@each_method
def test_an_empty_request_changes_nothing(unlearner: Unlearner) -> None:
    learner = learner_of(unlearner)
    statistics, request = decisions(4, 5, touched=0)
    found = audit_jointly(unlearner, learner, statistics, request, BUDGET)
    assert found.release.draw() == learner.decide(statistics).action
    assert (found.delta, found.smallest_epsilon, found.holds) == (0.0, 0.0, True)
    assert found.release.n_sharing == 0


@dataclass(frozen=True)
class WholeBudgetForEach(Tilt):
    """The planted fault: every decision gets all of ε and δ."""

    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Budget) -> Any:
        return super().answer(learner, statistics, request, retained, BUDGET)

    def reference_probabilities(
        self, learner: Any, retained: Any, shape: Any, original_decision: Any, budget: Budget
    ) -> FloatArray:
        return super().reference_probabilities(learner, retained, shape, original_decision, BUDGET)

    def reference(self, learner: Any, retained: Any, budget: Budget, **seen: Any) -> FloatArray:
        return super().reference(learner, retained, BUDGET, **seen)


@dataclass(frozen=True)
class NearlyRollback(Rollback):
    """The planted fault: it claims (0, 0), but each release differs a little from its reference."""

    difference: float = 2e-4

    def release(self, learner: Any, statistics: Any, request: Any, budget: Budget) -> Any:
        found = super().release(learner, statistics, request, budget)
        one = np.array([0.5 + self.difference, 0.5 - self.difference])
        return replace(found, probabilities=np.broadcast_to(one, found.probabilities.shape))

    def reference(self, learner: Any, retained: Any, budget: Budget, **seen: Any) -> FloatArray:
        return np.full(retained.counts.shape, 0.5)


@pytest.mark.parametrize("number", [1000, 2500])  # convolved, and enclosed by composition
def test_a_false_claim_below_the_budget_is_caught_in_many_decisions(number: int) -> None:
    statistics, request = decisions(number, 6, touched=number, arms=2)
    budget = Budget(epsilon=5.0, delta=0.0)
    found = audit_jointly(NearlyRollback(), LEARNER, statistics, request, budget)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (0.0, 0.0)
    # The sum of all outcomes is sufficient, so at ε = 0 the joint δ is the distance of two binomials.
    arms = np.arange(number + 1)
    distance = np.abs(binom.pmf(arms, number, 0.5002) - binom.pmf(arms, number, 0.5)).sum() / 2
    assert distance > 0.004
    least, most = found.delta_at_claim
    assert least - 1e-12 <= distance <= most + 1e-12
    assert found.is_refuted
    assert not found.holds
    assert found.delta == 0.0  # at the budget's ε all of them together are indistinguishable
    assert audit_jointly(NearlyRollback(difference=0.0), LEARNER, statistics, request, budget).holds


def two_close_races() -> tuple[ArmStatistics, DeletionRequest]:
    counts, sums = np.array([[900, 800]] * 2), np.array([[410, 365]] * 2)
    deleted, ones = np.array([[90, 0]] * 2), np.array([[45, 0], [41, 0]])
    statistics = ArmStatistics(("A", "B"), counts, sums * UNIT)
    return statistics, DeletionRequest(ArmStatistics(("A", "B"), deleted, ones * UNIT), binary=True)


def test_a_whole_budget_for_each_decision_is_caught() -> None:
    statistics, request = two_close_races()
    right = audit_jointly(Tilt(), LEARNER, statistics, request, BUDGET)
    wrong = audit_jointly(WholeBudgetForEach(), LEARNER, statistics, request, BUDGET)
    assert right.holds
    assert not wrong.holds
    assert wrong.delta > 0.1
    assert wrong.smallest_epsilon > 1.5
    for row in range(2):  # each decision alone keeps the budget, so only the joint audit can see it
        assert audit(
            WholeBudgetForEach(), LEARNER, rows_of(statistics, row), request_of(request, row), BUDGET
        ).holds


@dataclass(frozen=True)
class TooLittleNoise(Gaussian):
    """The planted fault: the noise of the whole budget in every decision."""

    def plan(self, learner: Any, counts: Any, deleted: Any, decision: Any, budget: Budget) -> Any:
        plan = super().plan(learner, counts, deleted, decision, budget)
        return replace(plan, sigma=plan.sigma * BUDGET.gamma / budget.gamma)


def worst_noise(number: int, epsilon: float, gamma: float) -> tuple[ArmStatistics, DeletionRequest]:
    """The score falls by all of Δ, and the rival stands where noise of γ is used up at ε."""
    n, k, tau = 1000, 20, 0.01
    before, after = (
        mean - math.sqrt(math.log(2 / tau) / (2 * left)) for mean, left in ((k / n, n), (0.0, n - k))
    )
    rival = (before + after) / 2 + epsilon * gamma**2 * (before - after)
    mean = rival + math.sqrt(math.log(2 / tau) / (2 * n))
    counts, sums = np.array([[n, n]]), np.array([[k * UNIT, round(mean * n * UNIT)]])
    rows = np.zeros(number, dtype=int)
    statistics = ArmStatistics((0, 1), counts[rows], sums[rows])
    deleted = ArmStatistics((0, 1), np.array([[k, 0]])[rows], np.array([[k * UNIT, 0]])[rows])
    return statistics, DeletionRequest(deleted, binary=True)


def test_noise_that_is_not_composed_is_caught() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    # The whole outcome is one binary digit per decision; each is placed so that its own event is far out.
    statistics, request = worst_noise(60, 0.1, budget.gamma)
    assert audit_jointly(Gaussian(), LEARNER, statistics, request, budget).holds
    assert not audit_jointly(TooLittleNoise(), LEARNER, statistics, request, budget).holds


def test_gaussian_noise_is_composed_as_gaussian_noise() -> None:
    statistics, request = decisions(20, 1, touched=20)
    for composition in COMPOSITIONS:
        found = release_jointly(Gaussian(), LEARNER, statistics, request, BUDGET, composition=composition)
        ratio = found.each.gamma / BUDGET.gamma
        assert ratio == pytest.approx(math.sqrt(20)) if composition == "best" else ratio > 10
        assert found.guarantee.delta == BUDGET.delta
    loose = release_jointly(Gaussian(joint=False), LEARNER, statistics, request, BUDGET)
    assert loose.guarantee.delta > BUDGET.delta
    also = release_jointly(Gaussian(joint=False), LEARNER, statistics, request, BUDGET, composition="even")
    assert also.guarantee.delta > BUDGET.delta


@pytest.mark.slow
@each_method
def test_all_small_worlds_with_two_decisions(unlearner: Unlearner) -> None:
    """Every pair of small data sets and every request in them, in both directions, at the joint budget."""
    learner = learner_of(unlearner)
    budget = Budget(epsilon=2.0, delta=0.05)
    worlds = [
        (n, ones, k, gone)
        for n in itertools.product((1, 2, 3), (2,))
        for ones in itertools.product(*(range(each + 1) for each in n))
        for k in itertools.product(*(range(each + 1) for each in n))
        if unlearner.several_arms or 0 in k
        for gone in itertools.product(*(range(each + 1) for each in k))
        if all(g <= o and k_ - g <= n_ - o for n_, o, k_, g in zip(n, ones, k, gone, strict=True))
    ]
    counts, sums, deleted, ones = (np.array([world[part] for world in worlds]) for part in range(4))
    statistics = ArmStatistics(("A", "B"), counts, sums * UNIT)
    request = DeletionRequest(ArmStatistics(("A", "B"), deleted, ones * UNIT), binary=True)
    rows = np.flatnonzero(~request.is_empty)
    # Two decisions that share a budget get the same share of it, whatever they are.
    two = rows[[0, 0]]
    of_two = rows_of(statistics, two), request_of(request, two)
    each = release_jointly(unlearner, learner, *of_two, budget).each
    shared = audit(unlearner, learner, rows_of(statistics, rows), request_of(request, rows), each)
    p, r = shared.release.probabilities, shared.reference
    worst = 0.0
    for first in range(len(rows)):
        both_p = (p[first][:, None] * p[:, None, :]).reshape(len(rows), -1)
        both_r = (r[first][:, None] * r[:, None, :]).reshape(len(rows), -1)
        for left, right in ((both_p, both_r), (both_r, both_p)):
            worst = max(worst, float(hockey_stick(left, right, budget.epsilon).max()))
    assert len(worlds) > 100
    assert worst <= budget.delta + 1e-12


def test_at_retained_rollback_does_not_depend_on_what_was_touched() -> None:
    """Two requests that leave the same records in all decisions, one of which touches more of them."""
    statistics, request = decisions(6, 9, touched=2)
    retained = statistics.without(request)
    more_records = ArmStatistics(("A", "B", "C"), np.full((6, 3), 7), np.full((6, 3), 3 * UNIT))
    more = DeletionRequest(more_records, binary=True)
    few = release_jointly(Rollback(), LEARNER, statistics, request, BUDGET)
    many = release_jointly(Rollback(), LEARNER, retained.merge(more), more, BUDGET)
    assert np.array_equal(few.probabilities, many.probabilities)
    assert few.guarantee == many.guarantee
    assert few.guarantee.level is Level.RETAINED


def test_a_budget_at_retained_is_refused_or_split_over_all_decisions() -> None:
    statistics, request = decisions(6, 9, touched=2)
    tilt = Tilt(assumed_share=0.1)
    expected = (
        "tilt at level retained cannot split its budget over the decisions that a request touches, because"
        " that level conceals how many there are; use rollback, an unlearner at level request_shape, or"
        " over='all'"
    )
    with pytest.raises(UnsupportedError, match=expected):
        release_jointly(tilt, LEARNER, statistics, request, BUDGET)
    (refused,) = (
        c
        for c in compare_jointly(LEARNER, statistics, request, BUDGET, variants=[tilt])
        if c.refused and c.name == "tilt (retained)"
    )
    assert refused.refused.startswith("tilt at level retained cannot split")
    (compared,) = (
        c
        for c in compare_jointly(
            LEARNER, statistics, request, BUDGET, variants=[tilt], over="all", composition="even"
        )
        if c.name == "tilt (retained)"
    )
    found = audit_jointly(tilt, LEARNER, statistics, request, BUDGET, over="all", composition="even")
    assert found.holds
    assert found.release.n_sharing == 6
    assert found.release.each == Budget(epsilon=1 / 6, delta=1e-5 / 6)
    served = LEARNER.decide(statistics).index
    assert compared.guarantee == found.guarantee
    assert compared.changes == pytest.approx(6 - found.release.probabilities[range(6), served].sum())
    assert found.guarantee.level is Level.RETAINED
    with pytest.raises(InvalidInputError, match="over must be 'touched' or 'all'; got 'some'"):
        release_jointly(tilt, LEARNER, statistics, request, BUDGET, over="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="over must be 'touched' or 'all'; got 'some'"):
        compare_jointly(LEARNER, statistics, request, BUDGET, over="some")  # type: ignore[arg-type]


def test_many_decisions_are_enclosed_and_settled_by_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics, request = decisions(40, 2, touched=30)
    exact = audit_jointly(Tilt(), LEARNER, statistics, request, BUDGET)
    monkeypatch.setattr(joint, "MOST_CONVOLVED", 5)

    def check(found: JointAudit) -> None:
        assert found.holds
        assert found.delta >= exact.delta - 1e-15
        assert found.delta - found.delta_error <= exact.delta + 1e-15
        assert found.smallest_epsilon >= exact.smallest_epsilon - 1e-12

    check(audit_jointly(Tilt(), LEARNER, statistics, request, BUDGET))
    # Where composition settles nothing, the losses are convolved after all.
    gaussian = audit_jointly(Gaussian(), LEARNER, statistics, request, Budget(epsilon=1.0, delta=1e-3))
    assert gaussian.holds
    two, asked = two_close_races()
    monkeypatch.setattr(joint, "MOST_CONVOLVED", 1)
    assert not audit_jointly(WholeBudgetForEach(), LEARNER, two, asked, BUDGET).holds


def test_a_claim_within_the_enclosure_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics, request = decisions(8, 2, touched=8)
    monkeypatch.setattr(joint_loss, "MOST_OUTCOMES", 16)  # so few that δ is only enclosed
    found = audit_jointly(Gaussian(), LEARNER, statistics, request, BUDGET)
    assert not found.is_exact

    def claiming(delta: float) -> JointAudit:
        """The audit of the same releases with a claim at ε = 0."""
        claim = replace(found.guarantee, epsilon=0.0, delta=delta)
        return audited(replace(found.release, guarantee=claim), found.reference, BUDGET)

    least, most = claiming(1e-5).delta_at_claim
    p, r = product(found.release.probabilities), product(found.reference)
    assert least < max(float(hockey_stick(*both, 0.0)) for both in ((p, r), (r, p))) < most
    for delta, verdict in ((most, "holds"), ((least + most) / 2, "not shown"), (least / 2, "does not hold")):
        each = claiming(delta)
        assert (each.verdict, each.holds, each.is_refuted) == (
            verdict,
            verdict == "holds",
            verdict == "does not hold",
        )


def test_the_comparison_adds_up_the_decisions() -> None:
    statistics, request = decisions(7, 4, touched=3)
    found = compare_jointly(LEARNER, statistics, request, BUDGET, composition="even")
    each = Budget(epsilon=1 / 3, delta=1e-5 / 3)
    levels = [list(Level).index(c.guarantee.level) for c in found if c.guarantee is not None]
    assert levels == sorted(levels)
    for name in ("rollback", "frozen_rollback", "tilt"):
        (one,) = (c for c in found if c.name == name)
        alone = [
            next(
                c
                for c in compare(LEARNER, rows_of(statistics, row), request_of(request, row), each)
                if c.name == name
            )
            for row in range(7)
        ]
        assert one.changes == pytest.approx(sum(c.change for c in alone), abs=1e-9)
        assert one.expected_loss == pytest.approx(sum(c.expected_loss for c in alone), abs=1e-9)


def test_what_is_not_decisions_is_refused() -> None:
    statistics, request = decisions(3, 1, touched=1)
    with pytest.raises(
        InvalidInputError, match=r"decisions on the first axis .* got shapes \(3,\) and \(3,\)"
    ):
        release_jointly(FrozenRollback(), LEARNER, rows_of(statistics, 0), request_of(request, 0), BUDGET)
    with pytest.raises(InvalidInputError, match=r"got shapes \(3, 3\) and \(2, 3\)"):
        release_jointly(FrozenRollback(), LEARNER, statistics, request_of(request, slice(2)), BUDGET)
    several, asked = decisions(2, 1, touched=2)
    with pytest.raises(UnsupportedError, match="mixing takes requests of one arm"):
        release_jointly(Mixing(), LEARNER, several, asked, BUDGET)


def test_one_touched_decision_is_the_plain_release() -> None:
    statistics, request = decisions(4, 6, touched=1)
    found = release_jointly(Tilt(), LEARNER, statistics, request, BUDGET)
    assert found.each is BUDGET
    alone = Tilt().release(LEARNER, rows_of(statistics, 0), request_of(request, 0), BUDGET)
    assert np.array_equal(found.probabilities[0], alone.probabilities)


def test_what_is_printed_of_a_result_is_one_line_however_many_decisions() -> None:
    counts, ones = np.full((500, 2), 90), np.full((500, 2), 40)
    statistics = am.ArmStatistics(("A", "B"), counts, ones * 10**9)
    request = am.DeletionRequest(am.ArmStatistics(("A", "B"), counts // 90, ones * 0), binary=True)
    arguments = am.LCB(confidence=0.01), statistics, request, am.Budget(epsilon=1.0, delta=1e-5)
    found = am.audit_jointly(am.Rollback(), *arguments)
    assert repr(found).startswith(
        "JointAudit(verdict='holds', delta=0, delta_error=0, smallest_epsilon=0, guar"
    )
    assert repr(found).endswith(", decisions=500)")
    assert repr(found.release).startswith("JointRelease(guarantee='(ε = 0, δ = 0) at level retained: ")
    single = am.audit(am.Rollback(), *arguments)
    assert repr(single).startswith(
        "Audit(holds=True, delta=0, delta_at_claim=0, smallest_epsilon=0, guarantee='(ε = 0, δ = 0) at"
    )
    assert max(len(repr(each)) for each in (found, found.release, single)) < 400


def five_close_races() -> tuple[ArmStatistics, DeletionRequest]:
    """Five decisions of counts (60, 60), in each of which 20 records of A are deleted."""
    statistics = ArmStatistics(("A", "B"), np.full((5, 2), 60), np.tile([52, 54], (5, 1)) * UNIT)
    deleted = ArmStatistics(("A", "B"), np.tile([20, 0], (5, 1)), np.tile([16, 0], (5, 1)) * UNIT)
    return statistics, DeletionRequest(deleted, binary=True)


@pytest.mark.parametrize("n_sharing", [-3, 0, 1, 4])
def test_a_budget_is_not_shared_by_fewer_decisions_than_are_answered(n_sharing: int) -> None:
    arguments = Tilt(), LEARNER, *five_close_races(), BUDGET
    with pytest.raises(InvalidInputError, match=f"answered, 5; got {n_sharing}"):
        answers_jointly(*arguments, n_sharing=n_sharing)
    assert answers_jointly(*arguments, n_sharing=5).each == release_jointly(*arguments).each
    assert answers_jointly(*arguments, n_sharing=7).each == split_budget(BUDGET, 7)


def test_the_audit_sees_a_budget_that_was_shared_by_too_few() -> None:
    """Each of five decisions has the whole of (1, 1e-5); δ is nearly the most of five such releases."""
    statistics, request = five_close_races()
    alone = Tilt().release(LEARNER, statistics, request, BUDGET)
    found = replace(
        release_jointly(Tilt(), LEARNER, statistics, request, BUDGET), release=alone, n_sharing=1, each=BUDGET
    )
    reference = reference_jointly(Tilt(), LEARNER, statistics, request, found)
    wrong = audited(found, reference, BUDGET)
    assert wrong.is_refuted
    assert wrong.delta == pytest.approx(0.537, abs=5e-4)
    most = composed_delta(epsilon_each=1.0, delta_each=1e-5, number=5, epsilon=1.0)
    assert wrong.delta < most < wrong.delta + 1e-4
    assert audit_jointly(Tilt(), LEARNER, statistics, request, BUDGET).holds


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unlearner", [each for each in METHODS if LEARNER.supports(each.needs)], ids=repr)
def test_frozen_penalties_are_those_of_the_touched_decisions(unlearner: Unlearner) -> None:
    """Every decision has lost other counts before; one decision, or some of them, lose records now."""
    for touched in (1, 2, 4):
        statistics, request = decisions(4, touched, touched=touched, one_arm=not unlearner.several_arms)
        last = slice(None, None, -1)  # the decisions that lose records are the last ones
        statistics, request = rows_of(statistics, last), request_of(request, last)
        gone = np.array([[1, 0, 0], [9, 9, 200], [0, 60, 0], [40, 0, 5]])
        stream = am.Stream(LEARNER, statistics, "frozen", gone)
        released, _ = stream.forget_jointly(unlearner, request, BUDGET)
        found = audit_jointly(unlearner, stream.current_learner, statistics, request, BUDGET)
        assert found.holds
        changes: Any = 0.0
        for row in range(4):
            own = LEARNER.with_frozen_penalty(gone[row])
            one = rows_of(statistics, row), request_of(request, row)
            alone = audit(unlearner, own, *one, found.release.each)
            assert released.probabilities[row] == pytest.approx(alone.release.probabilities, abs=1e-15)
            assert found.release.probabilities[row] == pytest.approx(alone.release.probabilities, abs=1e-15)
            assert found.reference[row] == pytest.approx(alone.reference, abs=1e-15)
            changes += 1 - alone.release.probabilities[own.decide(one[0]).index]
        compared = compare_jointly(stream.current_learner, statistics, request, BUDGET)
        (one_of_them,) = (each for each in compared if each.name == unlearner.name)
        assert one_of_them.changes == pytest.approx(changes, abs=1e-12)
