"""Counts and reward sums per arm, as exact integers: all that a decision needs of a log.

The rounding rule: a reward r of the declared range [low, high] is held as the integer
nearest to (r − low) / (high − low) · 10⁹, ties to even. Rounding makes a *mean* accurate to 10⁻⁹ of the
range; a *deletion* is exact, because integers are added and subtracted: after any order of additions
and deletions the statistics are bit for bit those of the rows that are left.

The second moment Σu² of the units u is held by Σu·(10⁹ − u), the products of the distances of each reward
from both ends of the range. These are 0 for binary rewards, so a million simulated data sets stay in int64.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armnesia.core.actions import checked_actions
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import ImpossibleDeletionError, InvalidInputError
from armnesia.core.messages import listed
from armnesia.core.units import UNIT, checked_reward_range, from_unit_scale, to_units

SCHEMA = "armnesia.statistics/1"
"""Names the layout of `ArmStatistics.to_dict`; every later version must load this one."""


LARGEST_INT64_COUNT = np.iinfo(np.int64).max // UNIT
"""Of records of an arm: every possible sum of their reward units fits into 64 bits."""

_WHOLE = (int, np.integer)


class Records(Protocol):
    """Counts and sums per arm: statistics, or a deletion request."""

    @property
    def actions(self) -> tuple[Hashable, ...]: ...  # noqa: D102
    @property
    def counts(self) -> IntArray: ...  # noqa: D102
    @property
    def sums(self) -> NDArray[Any]: ...  # noqa: D102
    @property
    def products(self) -> NDArray[Any] | None: ...  # noqa: D102
    @property
    def reward_range(self) -> tuple[float, float]: ...  # noqa: D102


class HasStatistics(Protocol):
    """A log of any kind."""

    def statistics(self) -> "ArmStatistics": ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class ArmStatistics:
    """Counts and reward sums per arm, over a declared and ordered action set.

    `counts` and `sums` have the arms on their last axis. Leading axes, if any, are data sets: one value
    holds one log or a million simulated ones. Sums are int64 where every possible sum fits, and Python
    integers otherwise (from 9.2·10⁹ rows per arm on). `products` holds the second moment (see `squares`), as
    Python integers where a value does not fit into int64; None where it was not counted.

    >>> statistics = ArmStatistics.from_rewards({"A": [1, 0, 1], "B": [0.5]})
    >>> statistics.counts, statistics.means, statistics.products
    (array([3, 1]), array([0.66666667, 0.5       ]), array([                 0, 250000000000000000]))
    >>> statistics.add("B", 1).merge(statistics).counts
    array([6, 3])
    """

    actions: tuple[Hashable, ...]
    counts: IntArray
    sums: NDArray[Any]
    reward_range: tuple[float, float] = (0.0, 1.0)
    products: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        actions = checked_actions(self.actions)
        counts = np.asarray(self.counts)
        if counts.dtype.kind not in "iu" or counts.ndim == 0 or counts.shape[-1] != len(actions):
            raise InvalidInputError(
                f"counts must be whole numbers, one for each of the {len(actions)} actions;"
                f" got {counts.dtype} of shape {counts.shape}"
            )
        counts = counts.astype(np.int64)
        sums = exact_sums(self.sums, counts)
        if sums.shape != counts.shape:
            raise InvalidInputError(f"sums must have the shape of counts, {counts.shape}; got {sums.shape}")
        arm = _first_impossible_arm(counts, sums)
        if arm is not None:
            raise _impossible(actions[arm])
        products = None if self.products is None else exact_integers(self.products)
        arm = None if products is None else _first_impossible_product(counts, sums, products)
        if arm is not None:
            raise InvalidInputError(
                f"statistics of action {actions[arm]!r} are impossible: no rewards with this count and sum"
                " have this sum of squares"
            )
        self._set(actions, counts, sums, checked_reward_range(self.reward_range), products)

    def _set(
        self,
        actions: tuple[Hashable, ...],
        counts: IntArray,
        sums: NDArray[Any],
        reward_range: tuple[float, float],
        products: NDArray[Any] | None = None,
    ) -> Self:
        """Keep values that were checked; the arrays are new, and nobody changes them from now on."""
        counts.flags.writeable = sums.flags.writeable = False
        if products is not None:
            products.flags.writeable = False
        self.__dict__.update(
            actions=actions, counts=counts, sums=sums, reward_range=reward_range, products=products
        )
        return self

    @classmethod
    def empty(cls, actions: Iterable[Hashable], reward_range: tuple[float, float] = (0.0, 1.0)) -> Self:
        """Statistics without records.

        >>> ArmStatistics.empty(["A", "B"]).total
        array(0)
        """
        labels = checked_actions(actions)
        zeros = np.zeros(len(labels), dtype=np.int64)
        return cls(labels, zeros, zeros, reward_range, zeros)

    @classmethod
    def from_rewards(
        cls, rewards: Mapping[Any, ArrayLike], reward_range: tuple[float, float] = (0.0, 1.0)
    ) -> Self:
        """Count the rewards per arm; the keys, in their order, are the action set.

        >>> ArmStatistics.from_rewards({"A": [4.5], "B": [1, 5]}, reward_range=(1, 5)).means
        array([4.5, 3. ])
        """
        units = [to_units(np.ravel(np.asarray(values)), reward_range) for values in rewards.values()]
        counts = np.array([len(arm) for arm in units], dtype=np.int64)
        sums = np.array([int(arm.sum()) for arm in units], dtype=np.int64)
        products = np.array([sum(products_of(arm).tolist()) for arm in units], dtype=object)
        return cls(tuple(rewards), counts, sums, reward_range, products)

    @classmethod
    def from_log(cls, log: HasStatistics) -> "ArmStatistics":
        """Reduce a log (see `read_log`) to its statistics."""
        return log.statistics()

    def add(self, action: Hashable, reward: float) -> Self:
        """Add one record.

        >>> ArmStatistics.empty(["A", "B"]).add("B", 0.25).means
        array([ nan, 0.25])
        """
        arm = self.actions[self.index_of(action)]
        one = {label: [reward] if label is arm else [] for label in self.actions}
        return self.merge(type(self).from_rewards(one, self.reward_range))

    def merge(self, other: Records) -> Self:
        """Add all records of other statistics over the same actions and reward range."""
        self._check_same_arms(other)
        counts = self.counts + other.counts
        sums, products = add_sums(self.sums, other.sums, counts), add_products(self.products, other.products)
        return type(self)(self.actions, counts, sums, self.reward_range, products)

    def without(self, records: Records) -> Self:
        """Delete records. The result is, bit for bit, the statistics of D∖U.

        Records that the statistics cannot contain (a count, a sum or a second moment would become impossible)
        are refused.

        >>> log = ArmStatistics.from_rewards({"A": [1, 0, 1], "B": [0]})
        >>> log.without(ArmStatistics.from_rewards({"A": [1], "B": []}))
        ArmStatistics(actions=('A', 'B'), counts=[2, 1], sums=[1000000000, 0], reward_range=(0.0, 1.0))
        >>> log.without(ArmStatistics.from_rewards({"A": [0.5], "B": []}))
        Traceback (most recent call last):
        armnesia.core.errors.ImpossibleDeletionError: action 'A' does not contain these records: ...
        """
        self._check_same_arms(records)
        counts = self.counts - records.counts
        sums = self.sums - records.sums
        arm = _first_impossible_arm(counts, sums)
        if arm is not None:
            raise ImpossibleDeletionError(
                f"action {self.actions[arm]!r} has count {_shown(self.counts, arm)} and sum"
                f" {_shown(self.sums, arm)}, in reward units; deleting count {_shown(records.counts, arm)}"
                f" and sum {_shown(records.sums, arm)} would remove records that it does not contain"
            )
        products = add_products(self.products, None if records.products is None else -records.products)
        arm = None if products is None else _first_impossible_product(counts, sums, products)
        if arm is not None:
            raise ImpossibleDeletionError(
                f"action {self.actions[arm]!r} does not contain these records: the rewards left would have"
                " a sum of squares that is impossible"
            )
        if sums.dtype == object:  # fewer records may need no Python integers
            sums = exact_sums(sums, counts)
        # To check all of it again would be most of the work.
        return object.__new__(type(self))._set(self.actions, counts, sums, self.reward_range, products)

    def selected(
        self, select: Callable[[NDArray[Any]], NDArray[Any]], actions: tuple[Hashable, ...] | None = None
    ) -> Self:
        """Counts, sums and products after a selection of data sets or arms, which is made of each of them.

        >>> batch = ArmStatistics(("A", "B"), np.array([[1, 2], [3, 4]]), np.zeros((2, 2), dtype=int))
        >>> batch.selected(lambda values: values[..., [1]], ("B",)).counts.tolist()
        [[2], [4]]
        """
        products = None if self.products is None else select(self.products)
        labels = self.actions if actions is None else actions
        return type(self)(labels, select(self.counts), select(self.sums), self.reward_range, products)

    @property
    def n_actions(self) -> int:
        """The number of arms, m."""
        return len(self.actions)

    @cached_property
    def total(self) -> IntArray:
        """N: the number of records of all arms, one number per data set."""
        total = np.asarray(np.add.reduce(self.counts, axis=-1))
        total.flags.writeable = False
        return total

    @property
    def unit_means(self) -> FloatArray:
        """Empirical means on the [0, 1] scale of the theory; 0 for an arm without records."""
        if self.sums.dtype == object:
            safe = np.maximum(self.counts, 1).astype(object) * UNIT
            return np.asarray(self.sums / safe, dtype=np.float64)
        return np.asarray(self.sums / (np.maximum(self.counts, 1) * np.float64(UNIT)))

    @property
    def squares(self) -> NDArray[Any] | None:
        """The second moment Σu² of the reward units, as Python integers; None where it was not counted.

        >>> ArmStatistics.from_rewards({"A": [1, 0.5], "B": []}).squares
        array([1250000000000000000, 0], dtype=object)
        """
        return None if self.products is None else self.sums.astype(object) * UNIT - self.products

    @property
    def unit_variances(self) -> FloatArray | None:
        """Sample variances on the [0, 1] scale, by N − 1; 0 for fewer than two records, None if not counted.

        >>> ArmStatistics.from_rewards({"A": [1, 0.5, 0], "B": [1]}).unit_variances
        array([0.25, 0.  ])
        """
        if self.products is None:
            return None
        counts, means = self.counts, self.unit_means
        variances = means * (1 - means) * (counts / np.maximum(counts - 1, 1))
        inside = np.flatnonzero(self.products)  # exact integers where not all rewards are 0 or 1
        n, total, products = (each.flat[inside].astype(object) for each in (counts, self.sums, self.products))
        exact = (total * (n * UNIT - total) - n * products) / (n * np.maximum(n - 1, 1) * UNIT**2)
        variances.flat[inside] = exact.astype(np.float64)
        return np.asarray(np.where(counts > 1, variances, 0.0))

    @property
    def means(self) -> FloatArray:
        """Empirical means on the scale of the rewards; NaN for an arm without records."""
        means = from_unit_scale(self.unit_means, self.reward_range)
        return np.where(self.counts > 0, means, np.nan)

    @property
    def gaps(self) -> FloatArray:
        """The difference between the best mean and each arm's, on the scale of the rewards."""
        best = np.where(self.counts > 0, self.means, -np.inf).max(axis=-1, keepdims=True)
        return np.where(self.counts > 0, best - self.means, np.nan)

    def index_of(self, action: Hashable) -> int:
        """The position of an action in the declared order."""
        try:
            return self.actions.index(action)
        except ValueError:
            raise InvalidInputError(f"action {action!r} is not one of {listed(self.actions)}") from None

    def to_dict(self) -> dict[str, Any]:
        """The statistics as a dict of lists and numbers, which JSON can hold if it can hold the labels.

        >>> ArmStatistics.from_rewards({"A": [1], "B": []}).to_dict()
        {'schema': 'armnesia.statistics/1', 'actions': ['A', 'B'], 'reward_range': [0.0, 1.0],
         'unit': 1000000000, 'counts': [1, 0], 'sums': [1000000000, 0], 'squares': [1000000000000000000, 0]}
        """
        squares = self.squares
        return {
            "schema": SCHEMA,
            "actions": list(self.actions),
            "reward_range": list(self.reward_range),
            "unit": UNIT,
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
            **({} if squares is None else {"squares": squares.tolist()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned; one without `squares` has no second moment."""
        if data.get("schema") != SCHEMA or data.get("unit") != UNIT:
            raise InvalidInputError(
                f"schema must be {SCHEMA!r} with unit {UNIT};"
                f" got {data.get('schema')!r} with unit {data.get('unit')!r}"
            )
        missing = [key for key in ("actions", "counts", "sums", "reward_range") if key not in data]
        if missing:
            raise InvalidInputError(f"statistics need the key {missing[0]!r}; got {sorted(data)}")
        try:
            counts, sums = np.array(data["counts"]), np.array(data["sums"], dtype=object)
            squares = exact_integers(np.array(data["squares"], dtype=object)) if "squares" in data else None
            products = None if squares is None else sums * UNIT - squares
        except (ValueError, TypeError):
            raise InvalidInputError(
                "counts, sums and squares must have one whole number per action, in every data set"
            ) from None
        actions = data["actions"]
        labels = tuple(map(_as_label, actions)) if isinstance(actions, list | tuple) else actions
        return cls(labels, counts, sums, data["reward_range"], products)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArmStatistics) and (
            (self.actions, self.reward_range) == (other.actions, other.reward_range)
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.sums, other.sums)
            and (self.products is None) == (other.products is None)
            and (self.products is None or np.array_equal(self.products, other.products))  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        return hash((self.actions, self.reward_range, tuple(self.counts.flat), tuple(self.sums.flat)))

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructor runs again when unpickled or copied: arrays are checked and read-only again.
        return type(self), (self.actions, self.counts, self.sums, self.reward_range, self.products)

    def __repr__(self) -> str:
        return (
            f"ArmStatistics(actions={self.actions!r}, counts={self.counts.tolist()},"
            f" sums={self.sums.tolist()}, reward_range={self.reward_range})"
        )

    def _check_same_arms(self, other: Records) -> None:
        if self.actions != other.actions:
            raise InvalidInputError(
                f"actions differ: {listed(self.actions)} here, {listed(other.actions)} given"
            )
        if self.reward_range != other.reward_range:
            raise InvalidInputError(
                f"reward_range differs: {self.reward_range} here, {other.reward_range} given"
            )
        if self.counts.shape == other.counts.shape:
            return
        try:
            np.broadcast_shapes(self.counts.shape, other.counts.shape)
        except ValueError:
            raise InvalidInputError(
                f"the data sets do not match: shape {self.counts.shape} here, {other.counts.shape} given"
            ) from None


def _first_impossible_arm(counts: IntArray, sums: NDArray[Any]) -> int | None:
    """Find an arm with a negative count or sum, or a sum above its count; None if there is none."""
    if counts.ndim == 1:  # of few numbers, plain ones are compared faster
        for arm, (count, total) in enumerate(zip(counts.tolist(), sums.tolist(), strict=True)):
            if not 0 <= total <= count * UNIT:
                return arm
        return None
    ceiling = counts.astype(sums.dtype, copy=False) * UNIT
    impossible = (counts < 0) | (sums < 0) | (sums > ceiling)
    return int(np.argwhere(impossible)[0][-1]) if np.count_nonzero(impossible) else None


def _first_impossible_product(counts: IntArray, sums: NDArray[Any], products: NDArray[Any]) -> int | None:
    """Find an arm whose products no rewards with this count and sum have; None if there is none.

    They are least where all rewards but one are 0 or 1, and largest where all are equal (Cauchy–Schwarz).
    """
    if products.shape != counts.shape:
        raise InvalidInputError(
            f"products must have the shape of counts, {counts.shape}; got {products.shape}"
        )
    rest = sums % UNIT
    impossible = products < rest * (UNIT - rest)
    some = np.flatnonzero(products)  # the others need no long integers
    n, total, product = (each.flat[some].astype(object) for each in (counts, sums, products))
    impossible.flat[some] |= np.asarray(n * product > total * (n * UNIT - total), dtype=np.bool_)
    return int(np.argwhere(impossible)[0][-1]) if np.count_nonzero(impossible) else None


def _impossible(action: Hashable) -> InvalidInputError:
    return InvalidInputError(
        f"statistics of action {action!r} are impossible: a count is never negative and a sum lies between 0"
        " and its count"
    )


def _shown(values: NDArray[Any], arm: int) -> str:
    column = values[..., arm]
    return str(column) if column.ndim == 0 else "(several data sets)"


def _as_label(label: Any) -> Hashable:
    """Restore a tuple that JSON turned into a list; labels are hashable, so a list was a tuple."""
    return tuple(map(_as_label, label)) if isinstance(label, list) else label


def exact_sums(sums: ArrayLike, counts: IntArray) -> NDArray[Any]:
    """Convert sums to int64 if every possible sum of these counts fits, to Python integers otherwise."""
    given = exact_integers(sums, "sums must be whole numbers of reward units")
    if counts.size and int(counts.max()) > LARGEST_INT64_COUNT:
        return given.astype(object)
    if given.dtype == object:
        raise InvalidInputError(f"sums must lie between 0 and count · {UNIT}; got {given.tolist()}")
    return given


def exact_integers(values: ArrayLike, accepted: str = "products must be whole numbers") -> NDArray[Any]:
    """Whole numbers as int64 if all of them fit, and as Python integers otherwise.

    >>> exact_integers([2**70, 1]), exact_integers(np.array([3, 1], dtype=object))
    (array([1180591620717411303424, 1], dtype=object), array([3, 1]))
    """
    given = np.asarray(values)
    if given.dtype.kind not in "iuO":
        raise InvalidInputError(f"{accepted}; got {given.dtype}")
    if given.dtype == object and not all(is_whole(value) for value in given.flat):
        raise InvalidInputError(f"{accepted}; got {given.tolist()}")
    try:
        return given.astype(np.int64)
    except OverflowError:
        return np.array([int(value) for value in given.flat], dtype=object).reshape(given.shape)


def products_of(units: IntArray) -> IntArray:
    """u·(10⁹ − u) of each reward of u units: at most 2.5·10¹⁷, and 0 for the lowest and the highest."""
    return units * (UNIT - units)


def exact_sums_at(shape: tuple[int, ...], places: Any, products: NDArray[Any]) -> NDArray[Any]:
    """The sums of products by place; int64 is added in two parts, because sums of 37 products can exceed it.

    >>> exact_sums_at((2,), np.array([1, 1]), np.array([2**62, 2**62])).tolist()
    [0, 9223372036854775808]
    """
    high, low = np.zeros((2, *shape), dtype=products.dtype)
    np.add.at(high, places, products >> 30)
    np.add.at(low, places, products & (2**30 - 1))
    return _of_two_parts(high, low)


def exact_row_sums(products: IntArray) -> NDArray[Any]:
    """The sums of products over the last axis, in two parts as `exact_sums_at` adds them."""
    return _of_two_parts((products >> 30).sum(axis=-1), (products & (2**30 - 1)).sum(axis=-1))


def _of_two_parts(high: IntArray, low: IntArray) -> NDArray[Any]:
    return np.asarray(high.astype(object) * 2**30 + low if high.any() else low)


def add_products(left: NDArray[Any] | None, right: NDArray[Any] | None) -> NDArray[Any] | None:
    """Add products, which are known if both are; Python integers where int64 could overflow."""
    if left is None or right is None:
        return None
    if left.dtype == right.dtype == np.int64 and max(_largest(left), _largest(right)) < 2**62:
        return np.asarray(left + right)
    return exact_integers(left.astype(object) + right.astype(object))


def _largest(values: NDArray[Any]) -> int:
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy, and not a truth value.

    >>> is_whole(np.int64(2)), is_whole(2.0), is_whole(True)
    (True, False, False)
    """
    return type(value) is int or (isinstance(value, _WHOLE) and not isinstance(value, bool))


def add_sums(left: NDArray[Any], right: NDArray[Any], counts: IntArray) -> NDArray[Any]:
    """Add sums, as Python integers where int64 could overflow."""
    if counts.size and int(counts.max()) > LARGEST_INT64_COUNT:
        left = left.astype(object)
    return np.asarray(left + right)
