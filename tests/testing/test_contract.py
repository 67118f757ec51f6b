"""The contract over all that is registered: a new entry is tested here."""

from typing import Any

import pytest

from armnesia import (
    LEARNERS,
    UNLEARNERS,
    Adaptive,
    Gaussian,
    Mixing,
    Tilt,
)
from armnesia.testing import checks_for


def cases(registry: dict[str, Any]) -> list[Any]:
    """Every check; of pairs, those of an unlearner with its default learner are quick, and those of UCB."""
    found = []
    for name, kind in registry.items():
        quick = kind.default_learner.name if name in UNLEARNERS else None
        for check in checks_for(kind()):
            _, of_a_pair, other = check.name.removesuffix("]").partition("[")
            marks = [pytest.mark.slow] if of_a_pair and other != quick and name != "ucb" else []
            found.append(pytest.param(check, id=f"{name}-{check}", marks=marks))
    return found


@pytest.mark.sampled(24)
@pytest.mark.parametrize("check", cases(UNLEARNERS))
def test_every_unlearner_keeps_the_contract(check: Any) -> None:
    check()


@pytest.mark.sampled(9)
@pytest.mark.parametrize("check", cases(LEARNERS))
def test_every_learner_keeps_the_contract(check: Any) -> None:
    check()


VARIANTS = (
    Gaussian(sensitivity="paper"),
    Adaptive.as_in_the_paper(),
    Mixing(ratio=0.0),
    Mixing(rolled_back=1),
    Tilt(assumed_share=0.3),
)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{variant!r}-{check}")
        for variant in VARIANTS
        for check in checks_for(variant, [variant.default_learner()])
    ],
)
def test_every_variant_keeps_the_contract(check: Any) -> None:
    check()
