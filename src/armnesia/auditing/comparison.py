"""All unlearners on one request: what each would release, guarantee and lose."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import ArmnesiaError, InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import Learner
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import UNLEARNERS, Unlearner
from armnesia.unlearners.base import check_arguments


@dataclass(frozen=True, eq=False)
class Comparison:
    """What one unlearner would do with a request, or why it refuses it."""

    name: str
    """The unlearner's label: its name, with the level if its parameters have selected another one."""
    actions: tuple[Hashable, ...]
    guarantee: Guarantee | None
    probabilities: FloatArray | None
    change: float
    """The probability that an arm other than π(D) is released."""
    expected_loss: float
    """The expected loss of reward, on the scale of the rewards, judged by the records left."""
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it; an unlearner that refuses has only its name and the reason.

        >>> Comparison("tilt", ("A", "B"), None, None, math.nan, math.nan, "too many arms").to_dict()
        {'name': 'tilt', 'guarantee': None, 'probabilities': None, 'change': None, 'expected_loss': None,
        'refused': 'too many arms'}
        """
        probabilities = None
        if self.probabilities is not None:
            probabilities = dict(zip(self.actions, self.probabilities.tolist(), strict=True))
        return {
            "name": self.name,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "probabilities": probabilities,
            "change": None if self.refused else self.change,
            "expected_loss": None if self.refused else self.expected_loss,
            "refused": self.refused or None,
        }


def compare(
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    budget: Budget,
    *,
    unlearners: Iterable[str | Unlearner] | None = None,
    variants: Iterable[Unlearner] = (),
) -> list[Comparison]:
    """Compare unlearners on a request: strictest level first, then the smallest expected loss.

    `unlearners` are names, or instances, also of a class of your own; by default all that armnesia has. Each
    name stands for its default options, unless `variants` holds another instance of that name. A variant at
    another level than its class's, such as `Tilt(assumed_share=0.95)`, stands beside it: "tilt (retained)".

    The loss is judged by the posterior of each arm's mean given D∖U and a uniform prior, whose mean is
    (1 + S′)/(2 + N′) on the [0, 1] scale: it is the best such mean less the average over the release. It is
    an estimate for the operator and must not be published.

    >>> from armnesia import LCB
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> for found in compare(LCB().bind(statistics), statistics, request, budget)[:3]:
    ...     print(found.name, found.guarantee.level, round(found.change, 3), round(found.expected_loss, 4))
    rollback retained 0.0 0.0
    frozen_rollback request_shape 0.0 0.0
    strict_adaptive request_shape 0.0 0.0
    """
    check_arguments(learner, statistics, request, budget)
    old = learner.decide(statistics)
    retained = statistics.without(request)
    low, high = statistics.reward_range
    posterior = posterior_means(retained)
    found = []
    for unlearner in _instances(unlearners, variants):
        name = unlearner.label
        try:
            release = unlearner.release(learner, statistics, request, budget)
        except ArmnesiaError as reason:
            found.append(Comparison(name, statistics.actions, None, None, math.nan, math.nan, str(reason)))
            continue
        p = release.probabilities
        change = float(1 - p[int(old.index)])
        loss = float((high - low) * (posterior.max() - p @ posterior))
        found.append(
            Comparison(name, release.actions, release.guarantee, p, max(change, 0.0), max(loss, 0.0))
        )
    return sorted(found, key=lambda each: strictest_and_best_first(each.guarantee, each.expected_loss))


def _instances(
    unlearners: Iterable[str | Unlearner] | None, variants: Iterable[Unlearner]
) -> list[Unlearner]:
    """The unlearners to compare, in order; each name and each variant once."""
    by_name = {name: kind() for name, kind in UNLEARNERS.items()} | {each.label: each for each in variants}
    if unlearners is None:
        return list(by_name.values())
    asked = [unlearners] if isinstance(unlearners, str | Unlearner) else list(unlearners)
    for each in asked:
        if not isinstance(each, Unlearner) and each not in by_name:
            raise InvalidInputError(
                f"unlearners must be instances of Unlearner, or names: {', '.join(by_name)}; got {each!r}"
            )
    return [each if isinstance(each, Unlearner) else by_name[each] for each in asked]


def posterior_means(retained: ArmStatistics) -> FloatArray:
    """The mean (1 + S)/(2 + N) of each arm's posterior given a uniform prior, on the [0, 1] scale.

    >>> posterior_means(ArmStatistics.from_rewards({"A": [1, 1, 0], "B": []}))
    array([0.6, 0.5])
    """
    sums = np.asarray(retained.sums / UNIT, dtype=np.float64)
    return np.asarray((1 + sums) / (2 + retained.counts))


def strictest_and_best_first(guarantee: Guarantee | None, loss: float) -> tuple[int, float]:
    """The key to sort comparisons by: level, then loss; what has no guarantee is last."""
    levels = list(Level)
    return (len(levels), 0.0) if guarantee is None else (levels.index(guarantee.level), loss)
