"""The contract finds planted faults, in the check that is named after what is broken."""

import pytest

from armnesia import LCB, Imitation, Learner, Unlearner
from armnesia.testing import check_learner, check_unlearner, checks_for
from tests.testing import faulty_learners, faulty_unlearners

LEARNERS = [LCB(), Imitation()]


@pytest.mark.parametrize(("kind", "name"), faulty_unlearners.FAULTS.items())
def test_a_faulty_unlearner_is_found(kind: type[Unlearner], name: str) -> None:
    (check,) = (check for check in checks_for(kind(), LEARNERS) if check.name == name)
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize(("kind", "name"), faulty_learners.FAULTS)
def test_a_faulty_learner_is_found(kind: type[Learner], name: str) -> None:
    (check,) = (check for check in checks_for(kind()) if check.name == name)
    with pytest.raises(AssertionError):
        check()


def test_what_the_faults_derive_from_is_sound() -> None:
    check_unlearner(faulty_unlearners.Same(), LEARNERS)


def test_the_message_says_what_was_broken_and_where() -> None:
    with pytest.raises(
        AssertionError, match=r"^δ at ε = 0 is 1e-05, .* claimed: \(ε = 0, δ = 0\) at level"
    ) as caught:
        check_unlearner(faulty_unlearners.ClaimsNothing(), LEARNERS)
    assert caught.value.__notes__ == ["in the check the_audit_holds[lcb]"]
    with pytest.raises(AssertionError, match="the served arm: got") as caught:
        check_learner(faulty_learners.ServesTheLast())
    assert caught.value.__notes__ == ["in the check the_first_of_the_highest_scores_is_served"]
