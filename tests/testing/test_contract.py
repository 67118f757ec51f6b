"""The contract over all that is registered: a new entry is tested here."""

from typing import Any

import pytest

from armnesia import LEARNERS, UNLEARNERS
from armnesia.testing import checks_for


def cases(registry: dict[str, Any]) -> list[Any]:
    """Every check, slow where KL-LCB or a learner that is not the default of an unlearner is involved."""
    found = []
    for name, kind in registry.items():
        quick = getattr(kind, "default_learner", kind).name
        for check in checks_for(kind()):
            other = check.name.partition("[")[2][:-1]
            is_slow = name == "kl_lcb" if other in UNLEARNERS else other not in ("", quick)
            marks = [pytest.mark.slow] if is_slow else []
            found.append(pytest.param(check, id=f"{name}-{check}", marks=marks))
    return found


@pytest.mark.parametrize("check", cases(UNLEARNERS))
def test_every_unlearner_keeps_the_contract(check: Any) -> None:
    check()


@pytest.mark.parametrize("check", cases(LEARNERS))
def test_every_learner_keeps_the_contract(check: Any) -> None:
    check()
