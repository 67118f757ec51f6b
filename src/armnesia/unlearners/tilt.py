"""Tilt: keep the old decision with the highest probability that (ε, δ) allows.

The reference is any vector r computed from D∖U and the request's shape. Given π(D) = X, the release raises
r_X as far as (ε, δ) permits; the rest goes to the other arms, the best of them first. This is private by
construction for every r; r is chosen so that the old decision is kept as often as possible, under a model of
the old decision.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, one_hot, sums_of_arms
from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, MeanAndCountLearner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.base import Branch, Unlearner
from armnesia.unlearners.contenders import can_win, contenders_up_to, highest_scores, lowest_scores
from armnesia.unlearners.predictive import PREDICTIVES, Predictive, checked_probabilities
from armnesia.unlearners.tilt_reference import (
    among_contenders,
    best_reference,
    factors,
    highest_allowed,
    insured_arms,
    insured_reference,
    insured_text,
)

_MOST_RECORDS = 10**18
"""Counts are 64-bit integers."""


def lowest_rest(kept: FloatArray, rest: FloatArray, budget: Budget) -> FloatArray:
    """1 − `highest_allowed`: the probability left for the other arms, whose reference probability is `rest`.

    It is computed directly: for large ε it is tiny, and 1 minus nearly 1 would lose the digits that privacy
    needs.

    >>> lowest_rest(np.array([0.5]), np.array([0.5]), Budget(epsilon=30.0, delta=0.0))
    array([4.6788...e-14])
    """
    up, down = factors(budget)
    needed = np.maximum(down * (rest - budget.delta), 1 - budget.delta - up * kept)
    return np.clip(needed, 0.0, rest)


def share_out(left_over: FloatArray, reference: FloatArray, scores: FloatArray, budget: Budget) -> FloatArray:
    """Share the rest among the other arms: between e^{−ε}·r_a and e^ε·r_a each, the best scores first.

    If it is not enough for e^{−ε}·r_a each, all are scaled down equally. At the old decision the reference
    is 0.

    >>> left_over, reference = np.array([0.5]), np.array([0.0, 0.4, 0.4])
    >>> share_out(left_over, reference, np.array([0.9, 0.2, 0.3]), Budget(epsilon=1.0, delta=0.0)).round(4)
    array([0.    , 0.1472, 0.3528])
    """
    up, down = factors(budget)
    rest = sums_of_arms(reference)[..., None]
    alike = left_over / np.where(rest > 0, rest, 1.0)
    least = np.minimum(alike, down)
    shared = least * reference
    has_more = np.broadcast_to(alike > least, reference.shape)[..., 0]
    if has_more.any():  # often in few data sets, and sorting takes long
        to_share = np.broadcast_to((alike - least) * rest, shared.shape)[has_more][..., :1]
        room, scores = (up - least) * reference, np.broadcast_to(scores, shared.shape)
        shared[has_more] += _best_first(to_share, room[has_more], scores[has_more])
    return shared


def _best_first(to_share: FloatArray, room: FloatArray, scores: FloatArray) -> FloatArray:
    """Fill the rooms of the arms in falling order of their scores, until all is shared out."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    # An arm's room is cut at the amount to share: in a sum with huge rooms small ones would lose digits.
    room = np.minimum(np.take_along_axis(room, order, -1), to_share)
    more = np.clip(to_share - (np.cumsum(room, axis=-1) - room), 0.0, room)
    shared = np.zeros_like(room)
    np.put_along_axis(shared, order, more, axis=-1)
    return shared


def tilted(reference: FloatArray, old: FloatArray, scores: FloatArray, budget: Budget) -> FloatArray:
    """The release for a reference: the old decision (one-hot) raised, the rest shared by the scores on D.

    >>> reference, old = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 0.0])
    >>> tilted(reference, old, np.array([0.1, 0.3, 0.2]), Budget(epsilon=1.0, delta=0.0)).round(4)
    array([0.1839, 0.7425, 0.0736])
    """
    of_old, of_others = old * reference, (1 - old) * reference
    kept, rest = sums_of_arms(of_old)[..., None], sums_of_arms(of_others)[..., None]
    left_over = lowest_rest(kept, rest, budget)
    others = share_out(left_over, of_others, scores, budget)
    # 1 − left_over can exceed the allowed value by rounding, also where 0 is allowed.
    raised = np.minimum(1 - left_over, highest_allowed(kept, budget))
    return np.where(old > 0, raised, others)


def most_deleted(counts: IntArray, share: float) -> IntArray:
    """The most records that were deleted per arm, if at most this share of it was: k ≤ share·(count + k).

    >>> most_deleted(np.array([0, 9, 100]), share=0.1)
    array([ 0,  1, 11])
    """
    # The factor makes up for rounding: where k is a whole number, it must not be missed.
    most = np.floor(counts * (share / (1 - share) * (1 + 1e-12)))
    if not most.max(initial=0) + counts.max(initial=0) <= _MOST_RECORDS:
        raise InvalidInputError(
            f"assumed_share must be so small that an arm had at most {_MOST_RECORDS:.0e} records before the"
            f" deletion; got {share!r}, where {int(counts.max())} are left"
        )
    return np.asarray(most, dtype=np.int64)


@dataclass(frozen=True)
class Tilt(Unlearner):
    """Raise the old decision as far as (ε, δ) allows: level `request_shape`, for any number of arms.

    It needs no sensitivity and no condition on k: a bad predictive costs decision quality, never privacy. At
    ε = δ = 0 it releases the likeliest old decision, unless `insurance` is 0.5 or more. `predictive`
    estimates how likely each arm was the old decision: "flat" (the default), "empirical_bayes" (see
    `armnesia.unlearners.predictive`), or a function of the same arguments.

    `insurance` is the most keep probability that may be paid, if the predictive is right, so that no
    contender is lost if it is wrong. Where c contenders cost no more (`insurance_price`), each gets at least
    h = (1−δ)/(1+e^ε) in the reference, and for requests that leave a record the old decision is kept with
    probability 1 − h or more, however the deleted records were chosen. Where they cost more, those with the
    highest possible scores are insured (`insured_arms`). 0 insures nothing.

    With `assumed_share` ρ the reference does not use the shape of the request. Then the level is `retained`:
    not even the number of deleted records is revealed. An empty request is answered like any other and may
    change the decision too. The predictive judges D∖U as if a share ρ of every arm had been deleted, or up to
    it; "by_counts" is made for this and is then the default. Contenders are the arms that can have been the
    old decision if at most a share ρ of each arm was deleted: insurance holds for these requests, privacy for
    all. They are insured all or none.

    >>> from armnesia.learners import LCB
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> Tilt().release(LCB().bind(statistics), statistics, request, budget).probabilities.round(4)
    array([1., 0.])
    """

    assumed_share: float | None = parameter(
        None,
        help="The most that is deleted of any arm, instead of the request's shape: the level is retained.",
    )
    predictive: str | Predictive | None = parameter(
        None,
        help="How the old decision is estimated. Default: flat; with --assumed-share, by_counts.",
        choices=lambda: PREDICTIVES,
    )
    insurance: float = parameter(
        0.02,
        help="The most keep probability to pay so that the old decision is kept if the estimate is wrong.",
    )

    name: ClassVar[str] = "tilt"
    level: ClassVar[Level] = Level.REQUEST_SHAPE
    needs: ClassVar[type[Any]] = MeanAndCountLearner

    def __post_init__(self) -> None:
        named = isinstance(self.predictive, str) and self.predictive in PREDICTIVES
        if self.predictive is not None and not callable(self.predictive) and not named:
            names = ", ".join(PREDICTIVES)
            raise InvalidInputError(
                f"predictive must be one of {names}, or a function; got {self.predictive!r}"
            )
        if not (isinstance(self.insurance, Real) and 0 <= self.insurance <= 1):
            raise InvalidInputError(f"insurance must lie in [0, 1]; got {self.insurance!r}")
        if self.assumed_share is not None:
            if not (isinstance(self.assumed_share, Real) and 0 < self.assumed_share < 1):
                raise InvalidInputError(f"assumed_share must lie in (0, 1); got {self.assumed_share!r}")
            object.__setattr__(self, "level", Level.RETAINED)  # of this instance
            object.__setattr__(self, "conceals_empty_requests", True)

    def resolved(self) -> Self:
        """The same with the predictive that is used where none is named.

        >>> Tilt(assumed_share=0.95).resolved().predictive
        'by_counts'
        """
        if self.predictive is not None:
            return self
        return replace(self, predictive="flat" if self.assumed_share is None else "by_counts")

    def answer(
        self,
        learner: MeanAndCountLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str]:
        """π(D) raised as far as allowed; the rest goes to the best of the others, as far as allowed."""
        reference = self.reference(learner, retained, budget, shape=request.counts)
        old = one_hot(learner.decide(statistics).index, statistics.n_actions)
        return tilted(reference, old, learner.unit_scores(statistics), budget), Branch.TILT

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The best reference for the predictive; as many contenders are insured as the price allows."""
        if self.assumed_share is not None:
            shape = most_deleted(retained.counts, self.assumed_share)
        q = self._predicted(learner, retained, shape)
        if self.insurance == 0:
            return best_reference(q, budget)
        is_contender, highest = self._contenders(learner, retained, shape)
        return insured_reference(q, is_contender, highest, budget, self.insurance)

    def remark(
        self,
        learner: MeanAndCountLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        budget: Budget,
    ) -> str:
        """How many contenders are insured, by D∖U and what the level sees of the request.

        >>> from armnesia.learners import LCB
        >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
        >>> request, learner = DeletionRequest.from_rewards({"A": [1], "B": []}), LCB().bind(statistics)
        >>> for epsilon in (1.0, 2.0):
        ...     budget = Budget(epsilon=epsilon, delta=0.0)
        ...     Tilt(assumed_share=0.95).remark(learner, statistics, request, budget)
        'Insured: 0 of 2 contenders'
        'Insured: 2 of 2 contenders'
        """
        counts = self.insured(learner, statistics, request, budget)
        if counts is not None:
            return insured_text(*counts)
        return "Insured: nothing, because insurance is 0" if statistics.without(request).total.any() else ""

    def insured(
        self,
        learner: MeanAndCountLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        budget: Budget,
    ) -> tuple[IntArray, IntArray] | None:
        """How many contenders are insured in each data set, of how many; none where no records are left."""
        if self.insurance == 0:
            return None
        retained, shape = statistics.without(request), request.counts
        if self.assumed_share is not None:
            shape = most_deleted(retained.counts, self.assumed_share)
        is_contender, highest = self._contenders(learner, retained, shape)
        contenders = np.where(retained.total == 0, 0, is_contender.sum(axis=-1))
        q = among_contenders(self._predicted(learner, retained, shape), is_contender)
        insured = insured_arms(q, is_contender, highest, budget, self.insurance).sum(axis=-1)
        return np.minimum(insured, contenders), contenders

    def _contenders(
        self, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
    ) -> tuple[BoolArray, FloatArray | None]:
        """The arms to insure, and the highest scores they can have had, if these say which matter most."""
        if self.assumed_share is not None:
            # With a share of every arm, the highest possible scores of all arms are high and tell little.
            return contenders_up_to(learner, retained, shape), None
        highest = highest_scores(learner, retained, shape)
        return can_win(lowest_scores(learner, retained, shape), highest), highest

    def _predicted(
        self, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
    ) -> FloatArray:
        """q by the predictive; where nothing was deleted, π(D) is known."""
        predictive = self.resolved().predictive
        if not callable(predictive):
            return PREDICTIVES[str(predictive)](learner, retained, shape)
        q = checked_probabilities(
            "predictive",
            predictive(learner, retained, shape),
            retained.counts.shape,
            unused=np.asarray(retained.total == 0),
        )
        if self.assumed_share is not None:
            return q
        unchanged = one_hot(learner.decide(retained).index, retained.n_actions)
        return np.where((shape > 0).any(axis=-1, keepdims=True), q, unchanged)
