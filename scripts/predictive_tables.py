"""Print the tables of docs/theory.md on what did not help tilt: sub-optimality ×10⁵, δ = 10⁻⁵.

They are those under "The predictive", without insurance, and the one at the end of "Insured tilt". The first
are sampled: every requested arm has the same number of data sets, which are the same for all methods; the
largest standard error of a difference from tilt with the predictive "flat" stands last. The last table is
exact. `python -m scripts.predictive_tables` takes a few minutes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np

from armnesia import Tilt, Unlearner
from armnesia.core.arrays import FloatArray, IntArray, one_hot
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, MeanAndCountLearner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.believed_decision import decision_under, reward_sums
from armnesia.unlearners.beta_binomial import Belief, likely_numbers_of_ones
from armnesia.unlearners.contenders import contenders
from armnesia.unlearners.predictive import (
    Predictive,
    empirical_bayes,
    empirical_bayes_belief,
    flat,
    flat_belief,
)
from armnesia.unlearners.tilt_reference import (
    among_contenders,
    best_reference,
    highest_allowed,
    knee,
)
from scripts.insurance_tables import budget_of, shown, table
from scripts.unlike_requests import MEANS, loss_of_each_data_set, losses

DATA_SETS = 10_000
"""Of each requested arm."""
ARMS = tuple(range(len(MEANS)))
BeliefOf = Callable[[FloatArray, IntArray], Belief]


@dataclass(frozen=True)
class Outcomes:
    """What one requested arm may have scored: its score by the number of ones, beside the best other arm."""

    arm: IntArray
    rival: IntArray
    scores: FloatArray
    to_beat: FloatArray
    chances: FloatArray

    @classmethod
    def under(
        cls, belief: Belief, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
    ) -> "Outcomes":
        """By the number of ones, on the first axis, and data set."""
        data_sets, arm = np.arange(len(retained.counts)), np.argmax(shape > 0, axis=-1)
        others = np.where(shape > 0, -np.inf, learner.unit_scores(retained))
        k, before = shape[data_sets, arm], (retained.counts + shape)[data_sets, arm]
        first, chances = likely_numbers_of_ones(
            k, (belief[0][data_sets, arm], belief[1][data_sets, arm]), 1e-15
        )
        ones = np.arange(first, first + len(chances))[:, None]
        means = (reward_sums(retained)[data_sets, arm] + ones) / before
        scores = learner.lower_bounds(means, before, retained.n_actions)
        return cls(arm, np.argmax(others, axis=-1), scores, others.max(axis=-1), chances)

    def weights(self, of_arm: FloatArray, of_rival: FloatArray) -> FloatArray:
        """A vector over the arms that is positive for the two only."""
        m = len(MEANS)
        return one_hot(self.arm, m) * of_arm[:, None] + one_hot(self.rival, m) * of_rival[:, None]


def by_value(belief_of: BeliefOf) -> Predictive:
    """E[|f − c|·1{π(D) = a}] in place of q: the best reference then has the highest expected score on D."""

    def weights(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
        found = Outcomes.under(belief_of(reward_sums(retained), retained.counts), learner, retained, shape)
        gain = found.scores - found.to_beat
        above, below = (found.chances * np.maximum(each, 0.0) for each in (gain, -gain))
        # A small number keeps the weights from being all 0.
        return found.weights(above.sum(axis=0) + 1e-300, below.sum(axis=0))

    return weights


def average(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """The average of "flat" and "empirical_bayes"."""
    return (flat(learner, retained, shape) + empirical_bayes(learner, retained, shape)) / 2


def between_penalties(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """As "flat", with the penalty of the requested arm half-way between b(N) and b(N−k)."""
    found = Outcomes.under(flat_belief(reward_sums(retained), retained.counts), learner, retained, shape)
    zero = np.zeros(len(retained.counts))
    left, before = (
        learner.lower_bounds(zero, np.take_along_axis(n, found.arm[:, None], -1)[:, 0], len(MEANS))
        for n in (retained.counts, retained.counts + shape)
    )
    ahead = np.where(found.scores + (left - before) / 2 > found.to_beat, found.chances, 0.0).sum(axis=0)
    return found.weights(ahead, np.maximum(found.chances.sum(axis=0) - ahead, 0.0))


def with_prior_times(factor: float) -> Predictive:
    """As "empirical_bayes", with a prior of this many times the records."""

    def judge(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
        sums = reward_sums(retained)
        ones, zeros = empirical_bayes_belief(sums, retained.counts)
        prior = factor * (ones - sums), factor * (zeros - (retained.counts - sums))
        belief = prior[0] + sums, prior[1] + (retained.counts - sums)
        return decision_under(belief, learner, retained, shape)

    return judge


def knowing_the_means(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q if the five means are known, but not which arm has which: all assignments are alike before."""
    hits = reward_sums(retained)
    likelihood = hits[..., None] * np.log(MEANS) + (retained.counts - hits)[..., None] * np.log1p(-MEANS)
    by_assignment = np.stack(
        [likelihood[:, ARMS, order].sum(axis=-1) for order in permutations(ARMS)], axis=-1
    )
    posterior = np.exp(by_assignment - by_assignment.max(axis=-1, keepdims=True))
    posterior /= posterior.sum(axis=-1, keepdims=True)
    arm = np.argmax(shape > 0, axis=-1)
    q = np.zeros(retained.counts.shape)
    for place, mean in enumerate(MEANS):
        # So many records in the belief that the mean is certain.
        certain = np.full(q.shape, mean * 1e9), np.full(q.shape, (1 - mean) * 1e9)
        has_it = np.array([[order[each] == place for order in permutations(ARMS)] for each in ARMS])
        chance = (posterior * has_it[arm]).sum(axis=-1)
        q += chance[:, None] * decision_under(certain, learner, retained, shape)
    return q


def uninsured(predictive: str | Predictive) -> Tilt:
    """Tilt without insurance."""
    return Tilt(predictive=predictive, insurance=0)


VALUED: dict[str, Unlearner | None] = {
    "no deletion": None,
    "flat": uninsured("flat"),
    "flat, value": uninsured(by_value(flat_belief)),
    "empirical Bayes": uninsured("empirical_bayes"),
    "empirical Bayes, value": uninsured(by_value(empirical_bayes_belief)),
}
VARIANTS: dict[str, Unlearner | None] = {
    "no deletion": None,
    "flat": uninsured("flat"),
    "flat, value": uninsured(by_value(flat_belief)),
    "flat, a penalty half-way between b(N) and b(N−k)": uninsured(between_penalties),
    "empirical Bayes": uninsured("empirical_bayes"),
    "empirical Bayes, value": uninsured(by_value(empirical_bayes_belief)),
    "the average of flat and empirical Bayes": uninsured(average),
    "empirical Bayes, a quarter of the prior's records": uninsured(with_prior_times(0.25)),
    "empirical Bayes, four times the prior's records": uninsured(with_prior_times(4.0)),
    "the five means known, not which arm has which": uninsured(knowing_the_means),
}
CELLS: list[tuple[int, int, float]] = [
    # N of all arms, k, ε
    (1000, 80, 1.0),
    (3000, 80, 1.0),
    (3000, 300, 1.0),
    (3000, 500, 1.0),
    (3000, 500, 3.0),
]


def by_requested_arm(
    n: int, k: int, methods: Mapping[str, Unlearner | None], budget: Budget
) -> dict[str, FloatArray]:
    """The losses of all data sets, by method; the requested arm is the first axis."""
    each = [
        loss_of_each_data_set(
            n // len(MEANS), {arm: (k, MEANS[arm])}, methods, budget, DATA_SETS, seed=[k, n, arm]
        )
        for arm in ARMS
    ]
    return {name: np.stack([loss[name] for loss in each]) for name in methods}


def standard_error(loss: FloatArray) -> float:
    """That of the mean over arms and data sets; every arm has equally many."""
    return float(np.sqrt((loss.var(axis=-1, ddof=1) / loss.shape[-1]).sum()) / len(loss))


def row_of_values(n: int, k: int, epsilon: float) -> str:
    """One row of the table of values."""
    found = by_requested_arm(n, k, VALUED, budget_of(epsilon))
    error = max(standard_error(loss - found["flat"]) for name, loss in found.items() if name != "no deletion")
    cells = [f"{n}, {k}, {epsilon:g}", *(shown(1e5 * float(loss.mean())) for loss in found.values())]
    return table([*cells, f"{1e5 * error:.1f}"], [])[0]


def value_table() -> list[str]:
    """Value instead of keeping, the requested arm drawn at random."""
    return [*table(["N, k, ε", *VALUED, "±"], []), *(row_of_values(*cell) for cell in CELLS)]


def variant_table() -> list[str]:
    """What else was tried, at N = 3000, k = 500, ε = 1: the best arm, another one, or any is requested."""
    found = by_requested_arm(3000, 500, VARIANTS, budget_of(1.0))
    rows = []
    for name, loss in found.items():
        parts = _parts(loss)
        errors = [
            standard_error(part - base) for part, base in zip(parts, _parts(found["flat"]), strict=True)
        ]
        means = (1e5 * float(part.mean()) for part in parts)
        rows.append([name, *(f"{mean:.0f}" for mean in means), f"{1e5 * max(errors):.1f}"])
    return table(["method", "the best arm", "another arm", "any arm", "±"], rows)


def _parts(loss: FloatArray) -> list[FloatArray]:
    """The best arm, the others, all."""
    return [loss[:1], loss[1:], loss]


@dataclass(frozen=True)
class ByActualPrice(Tilt):
    """Tilt that insures all contenders where that costs at most `insurance` under q; or as far as it pays."""

    partly: bool = False
    name: ClassVar[str] = "tilt, insured by the actual price"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """Between the best reference and the insured one."""
        is_contender = contenders(learner, retained, shape)
        q = among_contenders(flat(learner, retained, shape), is_contender)
        plain, insured = best_reference(q, budget), best_reference(q, budget, is_contender)
        kept, kept_insured = (
            (q * highest_allowed(each, budget)).sum(axis=-1, keepdims=True) for each in (plain, insured)
        )
        price = np.maximum(kept - kept_insured, 1e-300)
        share = np.minimum(self.insurance / price, 1.0)
        share = np.where(is_contender.sum(axis=-1, keepdims=True) * knee(budget) <= 1, share, 0.0)
        share = share if self.partly else np.floor(share)
        return share * insured + (1 - share) * plain


PRICED: dict[str, Unlearner | None] = {
    "no deletion": None,
    "`insurance=0`": Tilt(insurance=0),
    "by the actual price": ByActualPrice(),
    "as far as 0.02 pays": ByActualPrice(partly=True),
}
PRICED_CELLS: list[tuple[str, int, int, int, float, float]] = [
    # name, N per arm, requested arm, k, deleted mean, kept mean
    ("200, 80 of arm 0, 0.15 / 0.0667", 200, 0, 80, 0.15, 0.2 / 3),
    ("200, 80 of arm 0, 0.10 / 0.10", 200, 0, 80, 0.1, 0.1),
    ("200, 80 of arm 2, 0.06 / 0.06", 200, 2, 80, 0.06, 0.06),
    ("600, 80 of arm 4, 0.02 / 0.02", 600, 4, 80, 0.02, 0.02),
]


def row_of_prices(name: str, n: int, arm: int, k: int, deleted_mean: float, kept_mean: float) -> str:
    """One row of the table of prices, exactly."""
    found = losses(n, k, deleted_mean, kept_mean, PRICED, budget_of(1.0), arm)
    return table([name, *(shown(1e5 * loss) for loss in found.values())], [])[0]


def price_table() -> list[str]:
    """Other prices of insurance at ε = 1, where the default insures nothing."""
    header = table(["N, request, mean deleted / kept", *PRICED], [])
    return [*header, *(row_of_prices(*cell) for cell in PRICED_CELLS)]


def main() -> None:
    for make in (value_table, variant_table, price_table):
        print(*make(), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
