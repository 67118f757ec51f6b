"""Which learners the registered unlearners take, what refusals say, and what references see."""

import re
from typing import Any

import numpy as np
import pytest

from armnesia import (
    KLLCB,
    LCB,
    LEARNERS,
    UCB,
    UNLEARNERS,
    EmpiricalBernsteinLCB,
    Greedy,
    Imitation,
    Level,
)
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.learners import CountsOnlyLearner, MeanAndCountLearner, PenaltyLearner
from armnesia.testing.check import ready
from armnesia.testing.unlearners import BUDGETS, SIMPLE, supports

BY_KIND: dict[Any, set[Any]] = {
    CountsOnlyLearner: {Imitation},
    MeanAndCountLearner: {LCB, KLLCB, Greedy, UCB},
    PenaltyLearner: {LCB, Greedy, UCB},
}
NOISY = ("gaussian", "centred_gaussian", "adaptive", "mixing", "multi_source", "strict_adaptive")
SUPPORTED: dict[str, set[Any]] = {
    "rollback": {LCB, KLLCB, EmpiricalBernsteinLCB, Greedy, UCB, Imitation},
    "imitation_rollback": {Imitation},
    **dict.fromkeys(("frozen_rollback", "tilt"), BY_KIND[MeanAndCountLearner]),
    **dict.fromkeys(NOISY, BY_KIND[PenaltyLearner]),
}
REFUSED = [
    (unlearner, learner)
    for unlearner, kind in UNLEARNERS.items()
    for learner, of_learner in LEARNERS.items()
    if not supports(kind(), of_learner())
]


def test_names_are_those_of_the_registry() -> None:
    assert all(kind.name == name for name, kind in (UNLEARNERS | LEARNERS).items())


@pytest.mark.parametrize("name", SUPPORTED)
def test_exactly_the_expected_learners_are_supported(name: str) -> None:
    for learner in SUPPORTED["rollback"]:
        assert supports(UNLEARNERS[name](), learner()) == (learner in SUPPORTED[name])
        for kind, of_kind in BY_KIND.items():
            assert learner().supports(kind) == (learner in of_kind)


@pytest.mark.parametrize(("unlearner", "learner"), REFUSED)
def test_a_refusal_names_alternatives_that_work(unlearner: str, learner: str) -> None:
    """Learners for this unlearner, and unlearners for this learner at a level that is not weaker."""
    kind, bound, (statistics, request) = UNLEARNERS[unlearner], ready(LEARNERS[learner]()), SIMPLE.instance()
    with pytest.raises(UnsupportedError) as refusal:
        kind().release(bound, statistics, request, BUDGETS[0])
    with pytest.raises(UnsupportedError, match=re.escape(str(refusal.value))):
        kind().reference(bound, statistics.without(request), BUDGETS[0], shape=request.counts)
    sentence = rf"{unlearner} needs a learner .*, such as (.*); got '{learner}', for which use (.*)"
    found = re.fullmatch(sentence, str(refusal.value))
    assert found
    learners, unlearners = (re.split(", | or ", part) for part in found.groups())
    assert all(supports(kind(), LEARNERS[other.strip("'")]()) for other in learners)
    assert "rollback" in unlearners
    for other in unlearners:
        assert supports(UNLEARNERS[other](), LEARNERS[learner]())
        assert Level.weakest(UNLEARNERS[other].level, kind.level) is kind.level


@pytest.mark.parametrize("name", UNLEARNERS)
def test_a_reference_depends_on_what_its_level_sees_and_nothing_else(name: str) -> None:
    unlearner = UNLEARNERS[name]()
    learner, (statistics, request) = ready(unlearner.default_learner()), SIMPLE.instance()
    retained, level = statistics.without(request), unlearner.level
    everything: dict[str, Any] = {"shape": request.counts, "original_decision": learner.decide(statistics)}
    full = unlearner.reference(learner, retained, BUDGETS[0], **everything)
    for seen, is_seen in (("shape", level.sees_shape), ("original_decision", level.sees_decision)):
        missing = {**everything, seen: None}
        if is_seen:
            with pytest.raises(InvalidInputError, match=f"the reference of {name} needs {seen}"):
                unlearner.reference(learner, retained, BUDGETS[0], **missing)
        else:
            found = unlearner.reference(learner, retained, BUDGETS[0], **missing)
            np.testing.assert_array_equal(found, full)
