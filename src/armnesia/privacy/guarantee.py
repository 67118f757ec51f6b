"""Guarantees: (ε, δ) against a reference, and the level that says what the reference sees."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.privacy.curve import check_delta, check_epsilon


class Level(StrEnum):
    """What the reference of a guarantee is computed from, strictest level first.

    At every level it also sees the public configuration: the actions, the reward range, the confidence τ.
    """

    RETAINED = "retained"
    REQUEST_SHAPE = "request_shape"
    ORIGINAL_DECISION = "original_decision"

    @classmethod
    def named(cls, name: str) -> "Level":
        """The level of this name.

        >>> Level.named("retained")
        <Level.RETAINED: 'retained'>
        """
        if name not in list(cls):
            raise InvalidInputError(f"level must be one of {', '.join(cls)}; got {name!r}")
        return cls(name)

    @classmethod
    def weakest(cls, *levels: "Level") -> "Level":
        """The weakest of these levels: what can be claimed of all of them together.

        >>> Level.weakest(Level.REQUEST_SHAPE, Level.RETAINED)
        <Level.REQUEST_SHAPE: 'request_shape'>
        """
        return max(levels, key=list(cls).index)

    @property
    def sees_shape(self) -> bool:
        """Whether the reference sees how many records of each arm were deleted."""
        return self is not Level.RETAINED

    @property
    def sees_decision(self) -> bool:
        """Whether the reference sees π(D)."""
        return self is Level.ORIGINAL_DECISION

    @property
    def meaning(self) -> str:
        """What the level forgets, in words.

        >>> Level.RETAINED.meaning
        'the deleted records are forgotten, their number too; records that exist because of an earlier
        decision stay'
        """
        return _MEANINGS[self]


_MEANINGS = {
    Level.RETAINED: (
        "the deleted records are forgotten, their number too;"
        " records that exist because of an earlier decision stay"
    ),
    Level.REQUEST_SHAPE: "the rewards are forgotten; how many records of each arm were deleted is not",
    Level.ORIGINAL_DECISION: (
        "the rewards are forgotten only up to the decision made with them;"
        " that decision and the number of records deleted are not"
    ),
}
_JOINT_MEANINGS = {  # in which decisions records were deleted is part of a request's shape
    Level.REQUEST_SHAPE: (
        "the rewards are forgotten; how many records of each arm in each decision were deleted is not"
    ),
    Level.ORIGINAL_DECISION: (
        "the rewards are forgotten only up to the decisions made with them;"
        " those decisions and the number of records deleted in each of them are not"
    ),
}


@dataclass(frozen=True)
class Guarantee:
    """The release is (ε, δ)-indistinguishable from a reference that sees only what `level` allows.

    The reference is computed from the other records, so nobody can tell what the deleted ones were. It is not
    what retraining on the other records would serve; only rollback guarantees that. Records that were
    collected while a decision was served that had seen the deleted ones stay, and which arms they are of may
    depend on the deleted ones.

    >>> print(Guarantee(0.0, 0.0, Level.RETAINED))
    (ε = 0, δ = 0) at level retained: the deleted records are forgotten, their number too; records that exist
    because of an earlier decision stay
    >>> print(Guarantee(1.0, 1e-5, Level.REQUEST_SHAPE))
    (ε = 1, δ = 1e-05) at level request_shape: up to (ε, δ), the rewards are forgotten; how many records of
    each arm were deleted is not; two possible contents of the request differ by at most (ε = 2, δ = 3.72e-05)
    """

    epsilon: float
    delta: float
    level: Level
    reveals: str = ""
    """What the learner took from the log and so makes public, at every level; see `Learner.reveals`."""
    is_joint: bool = False
    """Whether it is that of the releases of several decisions together."""

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if not isinstance(self.level, Level):
            object.__setattr__(self, "level", Level.named(self.level))

    @property
    def meaning(self) -> str:
        """What is forgotten, in words: the level's, or what it is for several decisions together.

        >>> Guarantee(0.0, 0.0, Level.REQUEST_SHAPE, is_joint=True).meaning
        'the rewards are forgotten; how many records of each arm in each decision were deleted is not'
        >>> Guarantee(3.0, 0.0, Level.REQUEST_SHAPE).meaning
        'up to (ε, δ), the rewards are forgotten; how many records of each arm were deleted is not'
        """
        meaning = self.level.meaning
        if self.is_joint:
            meaning = _JOINT_MEANINGS.get(self.level, meaning)
        return meaning if self.epsilon == self.delta == 0 else f"up to (ε, δ), {meaning}"

    @property
    def between_contents(self) -> tuple[float, float]:
        """(2ε, (1 + e^ε)·δ): how far the releases for two possible contents of the request may lie apart.

        Both lie within (ε, δ) of one reference, since the level sees no difference between them. So whoever
        holds them for equally likely is at most e^{2ε}/(1 + e^{2ε}) sure after the release, except with
        probability δ: 88 % at ε = 1. This is attained while δ ≤ 1/(2 + e^ε).

        >>> Guarantee(1.0, 1e-5, Level.REQUEST_SHAPE).between_contents
        (2.0, 3.718...e-05)
        """
        factor = math.exp(min(self.epsilon, 700.0))
        return 2 * self.epsilon, min(1.0, (1 + factor) * self.delta)

    @property
    def is_vacuous(self) -> bool:
        """Whether every release satisfies it."""
        return math.isinf(self.epsilon) or self.delta == 1

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it.

        >>> Guarantee(0.0, 0.0, Level.REQUEST_SHAPE).to_dict()["meaning"]
        'the rewards are forgotten; how many records of each arm were deleted is not'
        """
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "level": str(self.level),
            "meaning": self.meaning,
            "between_contents": dict(zip(("epsilon", "delta"), self.between_contents, strict=True)),
            "reveals": self.reveals or None,
        }

    def __str__(self) -> str:
        level = f"{_numbers(self.epsilon, self.delta)} at level {self.level}"
        if self.is_vacuous:
            return f"{level}: promises nothing"
        parts = [f"{level}: {self.meaning}"]
        if self.epsilon or self.delta:
            parts.append(
                f"two possible contents of the request differ by at most {_numbers(*self.between_contents)}"
            )
        return "; ".join([*parts, *([self.reveals] if self.reveals else [])])


def _numbers(epsilon: float, delta: float) -> str:
    return f"(ε = {epsilon:.6g}, δ = {delta:.3g})"
