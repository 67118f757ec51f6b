"""The contract of learners and unlearners, run over a class of one's own.

Nothing has to be registered, and no test runner is needed. `checks_for` gives the parts of the contract, to
parametrise tests with: `@pytest.mark.parametrize("check", checks_for(MyUnlearner()), ids=str)`.
"""

from collections.abc import Callable, Iterable

from armnesia.learners import LEARNERS, Learner
from armnesia.testing import learners as of_learners
from armnesia.testing import unlearners as of_unlearners
from armnesia.testing.check import Check, it_is_a_value
from armnesia.unlearners import UNLEARNERS, Unlearner

__all__ = ["Check", "check_learner", "check_unlearner", "checks_for"]


def checks_for(subject: Unlearner | Learner, learners: Iterable[Learner] | None = None) -> list[Check]:
    """The parts of the contract of an unlearner or a learner, each a function with a name.

    An unlearner is checked with these learners; with all of the package if none are given. A learner is
    checked alone, and the audit of every unlearner of the package that takes it.

    >>> from armnesia import LCB, Rollback
    >>> print(*checks_for(Rollback(), [LCB()])[:3])
    it_is_a_value refuses_what_it_does_not_take[lcb] releases_a_distribution[lcb]
    """
    made = [Check(it_is_a_value.__name__, it_is_a_value, (subject,))]

    def add(name: str, unlearner: Unlearner, learner: Learner, *functions: Callable[..., None]) -> None:
        taken = functions if of_unlearners.supports(unlearner, learner) else ()
        for each in (of_unlearners.refuses_what_it_does_not_take, *taken):
            made.append(Check(f"{each.__name__}[{name}]", each, (unlearner, learner)))

    if isinstance(subject, Unlearner):
        for learner in [kind() for kind in LEARNERS.values()] if learners is None else learners:
            add(learner.name, subject, learner, *of_unlearners.CONTRACT)
        return made
    for kind, functions in of_learners.CONTRACT.items():
        made += [Check(each.__name__, each, (subject,)) for each in functions if subject.supports(kind)]
    for name, unlearner in UNLEARNERS.items():
        add(name, unlearner(), subject, of_unlearners.the_audit_holds)
    return made


def check_unlearner(unlearner: Unlearner, learners: Iterable[Learner] | None = None) -> None:
    """Check the whole contract of an unlearner; an AssertionError says what was broken, in which check.

    >>> from armnesia import LCB, Rollback
    >>> check_unlearner(Rollback(), [LCB()])
    """
    for check in checks_for(unlearner, learners):
        check()


def check_learner(learner: Learner) -> None:
    """Check the whole contract of a learner; an AssertionError says what was broken, in which check.

    >>> from armnesia import Imitation
    >>> check_learner(Imitation())
    """
    for check in checks_for(learner):
        check()
