"""Guarantees: their levels, their text, and what is refused."""

import math
from dataclasses import FrozenInstanceError

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Guarantee, Level


def test_levels_run_from_the_strictest_to_the_emptiest() -> None:
    assert [str(level) for level in Level] == ["retained", "request_shape", "original_decision"]


def test_a_level_says_what_is_not_forgotten() -> None:
    assert Level.RETAINED.meaning.startswith("the deleted records are forgotten, their number too; ")
    assert Level.RETAINED.meaning.endswith("records that exist because of an earlier decision stay")
    assert "how many records of each arm were deleted is not" in Level.REQUEST_SHAPE.meaning
    assert "only up to the decision made with them" in Level.ORIGINAL_DECISION.meaning
    assert len({level.meaning for level in Level}) == len(Level)


@pytest.mark.parametrize("level", list(Level))
def test_a_guarantee_in_words(level: Level) -> None:
    """At ε = 3 it said the same as at (0, 0)."""
    guarantee = Guarantee(1.0, 1e-5, level)
    assert str(guarantee) == (
        f"(ε = 1, δ = 1e-05) at level {level.value}: up to (ε, δ), {level.meaning};"
        " two possible contents of the request differ by at most (ε = 2, δ = 3.72e-05)"
    )
    for epsilon, delta in ((3.0, 0.0), (0.0, 1e-9)):
        assert Guarantee(epsilon, delta, level).meaning == f"up to (ε, δ), {level.meaning}"
    assert Guarantee(0.0, 0.0, level).meaning == level.meaning
    assert not guarantee.is_vacuous
    assert guarantee.to_dict()["reveals"] is None


def test_a_guarantee_of_several_decisions_says_that_their_keys_are_not_concealed() -> None:
    shape, decision, retained = (
        Guarantee(1.0, 1e-5, level, is_joint=True)
        for level in (Level.REQUEST_SHAPE, Level.ORIGINAL_DECISION, Level.RETAINED)
    )
    assert shape.meaning.endswith("how many records of each arm in each decision were deleted is not")
    assert shape.to_dict()["meaning"] == shape.meaning
    assert decision.meaning.endswith("and the number of records deleted in each of them are not")
    assert retained.meaning == f"up to (ε, δ), {Level.RETAINED.meaning}"


def test_a_guarantee_says_what_the_learner_took_from_the_log() -> None:
    """Bound as 1/N, τ makes N public at every level; a printed guarantee did not say so."""
    guarantee = Guarantee(0.0, 0.0, Level.RETAINED, reveals="τ = 1/4 was taken from the log")
    plain = Guarantee(0.0, 0.0, Level.RETAINED)
    assert str(guarantee) == f"{plain}; τ = 1/4 was taken from the log"
    assert guarantee.to_dict() == {**plain.to_dict(), "reveals": "τ = 1/4 was taken from the log"}
    assert guarantee != plain


@pytest.mark.parametrize(("epsilon", "delta"), [(math.inf, 0.0), (math.inf, 1e-5), (0.0, 1.0), (1.0, 1.0)])
def test_a_guarantee_that_anything_satisfies_says_so(epsilon: float, delta: float) -> None:
    guarantee = Guarantee(epsilon, delta, Level.RETAINED)
    assert guarantee.is_vacuous
    assert str(guarantee).endswith("at level retained: promises nothing")
    assert Level.RETAINED.meaning not in str(guarantee)


def test_a_weak_guarantee_is_not_a_vacuous_one() -> None:
    assert not Guarantee(700.0, 0.999, Level.RETAINED).is_vacuous
    assert not Guarantee(0.0, 0.0, Level.RETAINED).is_vacuous


def test_a_level_may_be_given_by_its_name() -> None:
    assert Guarantee(1.0, 0.0, "request_shape").level is Level.REQUEST_SHAPE  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="forgotten"):
        Guarantee(1.0, 0.0, "forgotten")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (-1.0, 0.0, "epsilon must be 0 or more; got -1.0"),
        (math.nan, 0.0, "epsilon must be 0 or more; got nan"),
        (1.0, -0.1, "delta must be a probability between 0 and 1; got -0.1"),
        (1.0, math.nan, "delta must be a probability between 0 and 1; got nan"),
    ],
)
def test_impossible_numbers_are_refused(epsilon: float, delta: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Guarantee(epsilon, delta, Level.RETAINED)


def test_guarantees_are_values() -> None:
    guarantee = Guarantee(1.0, 1e-5, Level.RETAINED)
    assert guarantee == Guarantee(1.0, 1e-5, Level.RETAINED)
    assert guarantee != Guarantee(1.0, 1e-5, Level.REQUEST_SHAPE)
    with pytest.raises(FrozenInstanceError):
        guarantee.level = Level.RETAINED  # type: ignore[misc]
