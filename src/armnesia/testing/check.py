"""A check: a named part of the contract, about one learner or unlearner."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.statistics import ArmStatistics


@dataclass(frozen=True)
class Check:
    """One part of the contract; calling it raises an AssertionError that says what was broken."""

    name: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]

    def __call__(self) -> None:
        """Run the check."""
        try:
            self.function(*self.arguments)
        except Exception as error:
            error.add_note(f"in the check {self}")
            raise

    def __str__(self) -> str:
        return self.name


def expect(holds: object, message: str) -> None:
    """Raise an AssertionError unless it holds, with any optimisation of Python."""
    if not holds:
        raise AssertionError(message)


def expect_equal(found: ArrayLike, expected: ArrayLike, what: str, within: float = 0.0) -> None:
    """Expect numbers that differ by at most `within`."""
    given, right = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    same = given.shape == right.shape and np.all(np.abs(given - right) <= within)
    expect(same, f"{what}: got {given.tolist()} where {right.tolist()} was expected")


def ready(learner: Any, records: int = 5, default_action: int = 0) -> Any:
    """The learner, bound to a log of so many records; the default action is an arm of the checks' worlds."""
    log = ArmStatistics.from_rewards({0: [1.0] * records, 1: []})
    return replace(learner.bind(log), default_action=default_action)


def it_is_a_value(subject: Any) -> None:
    """A frozen dataclass with a name, equal to its copies."""
    kind = type(subject)
    expect(isinstance(getattr(kind, "name", None), str), f"{kind.__name__} has no name")
    parameters = getattr(kind, "__dataclass_params__", None)
    expect(parameters is not None and parameters.frozen, f"{kind.__name__} is no frozen dataclass")
    try:
        copy = pickle.loads(pickle.dumps(subject))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"{subject!r} cannot be pickled: {error}") from None
    expect(copy == subject and hash(copy) == hash(subject), f"{subject!r} is not equal to its pickled copy")
