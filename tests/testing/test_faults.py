"""The contract finds planted faults, in the check that is named after what is broken."""

import pytest

from armnesia import LCB, Imitation, Learner, Unlearner
from armnesia.testing import check_learner, check_unlearner, checks_for
from examples.lottery import Lottery
from tests.testing import faulty_learners, faulty_unlearners


def failed(subject: Unlearner | Learner) -> set[str]:
    found = set()
    for check in checks_for(subject, [LCB(), Imitation()]):
        try:
            check()
        except Exception:
            found.add(check.name)
    return found


@pytest.mark.parametrize("kind", faulty_unlearners.FAULTS)
def test_a_faulty_unlearner_is_found(kind: type[Unlearner]) -> None:
    assert faulty_unlearners.FAULTS[kind] in failed(kind())


@pytest.mark.parametrize("kind", faulty_learners.FAULTS)
def test_a_faulty_learner_is_found(kind: type[Learner]) -> None:
    assert failed(kind()) >= set(faulty_learners.FAULTS[kind])


def test_what_the_faults_derive_from_is_sound() -> None:
    assert not failed(faulty_unlearners.Same())
    assert not failed(Lottery())


def test_the_message_says_what_was_broken_and_where() -> None:
    with pytest.raises(AssertionError, match=r"\(ε = 0, δ = 0\) at level retained.* is false") as caught:
        check_unlearner(faulty_unlearners.ClaimsNothing())
    assert caught.value.__notes__ == ["in the check the_audit_holds[lcb]"]
    with pytest.raises(AssertionError, match="the served arm: got") as caught:
        check_learner(faulty_learners.ServesTheLast())
    assert caught.value.__notes__ == ["in the check the_first_of_the_highest_scores_is_served"]
