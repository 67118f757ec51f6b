"""A bound: its value, and the conditions under which it is proved."""

import math
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from armnesia.core.errors import InvalidInputError

Form = Literal["printed", "derived", "exact"]
"""The version of a bound.

`printed`: the last line of the paper's proof. `derived`: the same argument with every step checked and its
constants counted; this is the default. `exact`: the same argument with its tails, expectations and
divergences computed, not bounded.
"""

LowerForm = Literal["printed", "derived", "exact", "tv"]
"""The version of a lower bound. `tv`: the exact total variation, at the gap where the bound is largest."""

Kind = Literal["upper", "lower"]


@dataclass(frozen=True)
class BoundCondition:
    """A condition of a bound, as text with its numbers, and whether it holds.

    >>> BoundCondition("k <= 100: 80 <= 100", holds=True)
    BoundCondition(text='k <= 100: 80 <= 100', holds=True)
    """

    text: str
    holds: bool


@dataclass(frozen=True)
class Bound:
    """A bound on the expected sub-optimality E[μ(a*) − μ(â′)] of rewards in [0, 1].

    The value is always computed; it is proved only if `holds`. `note` states what cannot be checked.

    >>> bound = Bound("LCB", 0.3, (BoundCondition("m >= 2: m = 5", holds=True),), "Lemma 3.1", "upper")
    >>> bound.holds, bound.vacuous(largest_gap=0.08), bound.vacuous(largest_gap=0.9)
    (True, True, False)
    """

    name: str
    value: float
    conditions: tuple[BoundCondition, ...]
    reference: str
    kind: Kind
    form: LowerForm = "derived"
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether every condition is met."""
        return all(condition.holds for condition in self.conditions)

    @property
    def unmet(self) -> tuple[BoundCondition, ...]:
        """The conditions that are not met."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    def vacuous(self, largest_gap: float = 1.0) -> bool:
        """Whether the bound is trivial: an upper bound of at least the largest gap, a lower bound of 0."""
        return self.value >= largest_gap if self.kind == "upper" else self.value <= 0

    def to_dict(self) -> dict[str, Any]:
        """All fields and `holds` as plain values, for JSON or a table."""
        return {**asdict(self), "conditions": [asdict(each) for each in self.conditions], "holds": self.holds}


def check_form(form: str, forms: Any = Form) -> None:
    """Check the version of a bound."""
    accepted = get_args(forms)
    if form not in accepted:
        raise InvalidInputError(f"form must be one of {', '.join(accepted)}; got {form!r}")


def check_count(name: str, value: int, *, least: int, most: int | None = None) -> None:
    """Check a number of records or arms."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInputError(f"{name} must be a whole number, at least {least}; got {value!r}")
    if value < least or (most is not None and value > most):
        accepted = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InvalidInputError(f"{name} must be {accepted}; got {value!r}")


def check_fraction(name: str, value: float) -> None:
    """Check a number from 0 to 1."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 <= value <= 1):
        raise InvalidInputError(f"{name} must be a number between 0 and 1; got {value!r}")


def check_number(name: str, value: float) -> None:
    """Check a finite number."""
    if isinstance(value, bool) or not (isinstance(value, Real) and math.isfinite(value)):
        raise InvalidInputError(f"{name} must be a finite number; got {value!r}")


def check_noise(gamma: float) -> None:
    """Check the noise multiplier."""
    if not gamma >= 0:
        raise InvalidInputError(f"gamma must be 0 or more; got {gamma!r}")


def check_coverage(c_star: float) -> None:
    """Check the coverage C*."""
    if not 1 < c_star < math.inf:
        raise InvalidInputError(f"c_star must be finite and above 1; got {c_star!r}")


def at_least_two_arms(m: int) -> BoundCondition:
    """m ≥ 2, which the proofs use as 2τ/m ≤ τ."""
    return BoundCondition(f"m >= 2: m = {m}", m >= 2)
