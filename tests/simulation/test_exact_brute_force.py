"""The exact engine against every data set there is: all rewards, all choices of U, the release on each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import (
    LCB,
    Adaptive,
    Budget,
    DeletionRequest,
    Gaussian,
    Imitation,
    ImitationRollback,
    Mixing,
    MultiSource,
    Rollback,
    Unlearner,
)
from armnesia.core.arrays import BoolArray, FloatArray
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.simulation import Environment, exact_release
from tests.quick import examples, quick_only
from tests.simulation.all_data_sets import AllDataSets

LOOSE = LCB(confidence=0.8)
"""So few records need a small penalty, or the counts alone would decide."""
BUDGET = Budget.from_gamma(0.3, delta=1e-3)
EAGER = 60.0
"""A threshold scale at which noise is preferred whenever it is allowed."""

ONE_ARM: dict[str, Unlearner | None] = {
    "oracle": None,
    "rollback": Rollback(),
    "gaussian": Gaussian(),
    "gaussian, paper": Gaussian(sensitivity="paper", joint=False),
    "adaptive, eager": Adaptive(threshold_scale=EAGER),
    "adaptive, paper's threshold": Adaptive(threshold="paper", threshold_scale=EAGER),
    "adaptive, never": Adaptive(threshold_scale=0.0),
    "adaptive, paper": Adaptive.as_in_the_paper(),
    "mixing 0": Mixing(ratio=0.0),
    "mixing 1/4": Mixing(ratio=0.25),
    "mixing 1/2": Mixing(ratio=0.5),
    "mixing 3/4": Mixing(ratio=0.75),
    "mixing 1": Mixing(ratio=1.0),
    "mixing, paper": Mixing(ratio=0.5, sensitivity="paper"),
    "mixing, one": Mixing(rolled_back=1),
}
SEVERAL_ARMS: dict[str, Unlearner | None] = {
    "oracle": None,
    "rollback": Rollback(),
    "gaussian, joint": Gaussian(),
    "gaussian, not joint": Gaussian(joint=False),
    "multi_source, eager": MultiSource(threshold_scale=EAGER),
    "multi_source": MultiSource(),
    "multi_source, paper": MultiSource.as_in_the_paper(),
}
NOISY = {"gaussian", "adaptive, eager", "adaptive, paper's threshold", "mixing 0", "mixing 1/2", "mixing 3/4"}
NOISY |= {"mixing 1/4", "gaussian, joint", "gaussian, not joint", "multi_source, eager"}

# means, counts, deleted; of one arm
Case = tuple[list[float], list[int], list[int]]
SINGLE: dict[str, Case] = {
    "two arms": ([0.7, 0.4], [4, 4], [2, 0]),
    "the worse arm": ([0.7, 0.4], [4, 4], [0, 2]),
    "equal arms": ([0.5, 0.5, 0.5], [3, 3, 3], [0, 2, 0]),
    "unequal counts": ([0.6, 0.5, 0.4], [4, 2, 3], [3, 0, 0]),
    "the last arm": ([0.3, 0.5, 0.6], [3, 3, 4], [0, 0, 3]),
    "an arm without records": ([0.6, 0.5, 0.4], [4, 0, 3], [2, 0, 0]),
    "sure rewards": ([1.0, 0.5, 0.0], [3, 3, 3], [2, 0, 0]),
}
EMPTIED: dict[str, Case] = {
    "emptied": ([0.7, 0.5], [4, 4], [4, 0]),
    "emptied of three": ([0.6, 0.5, 0.5], [2, 3, 3], [2, 0, 0]),
    "everything there is": ([0.6, 0.5], [3, 0], [3, 0]),
}
MULTI: dict[str, Case] = {
    "two of three": ([0.6, 0.5, 0.4], [3, 3, 3], [1, 2, 0]),
    "last two": ([0.6, 0.5, 0.5], [3, 3, 3], [0, 2, 1]),
    "all of them": ([0.6, 0.6, 0.6], [3, 3, 3], [1, 1, 1]),
    "two of two": ([0.5, 0.7], [4, 4], [2, 1]),
    "one of them emptied": ([0.6, 0.5, 0.4], [3, 2, 3], [1, 2, 0]),
    "all emptied": ([0.5, 0.6], [2, 3], [2, 3]),
}


def exact(
    means: list[float], counts: list[int], deleted: list[int], unlearner: Unlearner | None, learner: LCB
) -> FloatArray:
    environment = Environment.bernoulli(means)
    return exact_release(environment, np.array(counts), np.array(deleted), unlearner, learner, BUDGET)


def check(case: Case, unlearner: Unlearner | None, learner: LCB = LOOSE) -> AllDataSets:
    """Compare, and hand back the enumeration.

    Noise on two arms or more is integrated numerically, in panels of one σ: 10⁻¹⁰ instead of 10⁻¹².
    """
    everything = AllDataSets(*case)
    several_noised = isinstance(unlearner, Gaussian) and sum(k > 0 for k in case[2]) > 1
    error = 1e-10 if several_noised else 1e-12
    assert everything.weights.sum() == pytest.approx(1.0, abs=1e-12)
    found = exact(*case, unlearner, learner)
    assert found.sum() == pytest.approx(1.0, abs=error)
    assert found == pytest.approx(everything.released(unlearner, learner, BUDGET), abs=error)
    return everything


@pytest.mark.parametrize("name", ONE_ARM)
@pytest.mark.parametrize("case", quick_only(["equal arms", "emptied"], [*SINGLE, *EMPTIED]))
def test_requests_of_one_arm(case: str, name: str) -> None:
    unlearner = ONE_ARM[name]
    everything = check((SINGLE | EMPTIED)[case], unlearner)
    if case in SINGLE and name in NOISY and unlearner is not None:
        assert everything.noise_share(unlearner, LOOSE, BUDGET) > 0.1


@pytest.mark.parametrize("name", SEVERAL_ARMS)
@pytest.mark.parametrize("case", quick_only(["two of two", "one of them emptied"], MULTI))
def test_requests_of_several_arms(case: str, name: str) -> None:
    unlearner = SEVERAL_ARMS[name]
    everything = check(MULTI[case], unlearner)
    if "emptied" not in case and name in NOISY and unlearner is not None:
        assert everything.noise_share(unlearner, LOOSE, BUDGET) > 0.1


def test_noise_is_where_the_engines_would_differ() -> None:
    """The planted fault: neither rollback's probabilities nor those of k + 1 are those of the eager noise."""
    case = SINGLE["two arms"]
    truth = AllDataSets(*case).released(ONE_ARM["adaptive, eager"], LOOSE, BUDGET)
    assert abs(exact(*case, Rollback(), LOOSE) - truth).max() > 1e-3
    assert abs(exact([0.7, 0.4], [4, 4], [3, 0], ONE_ARM["adaptive, eager"], LOOSE) - truth).max() > 1e-3


def test_mixing_with_every_choice_of_what_is_rolled_back_first() -> None:
    """Here U′ is enumerated too: P(j ones among the first k′ of U) by counting, one release for each j."""
    means, counts, deleted = [0.6, 0.5], [4, 3], [3, 0]
    everything = AllDataSets(means, counts, deleted)
    for ratio, k_first in ((0.4, 1), (0.7, 2)):
        total = np.zeros(2)
        for j in range(k_first + 1):
            shares = [
                _ways(int(one), 3 - int(one), j, k_first - j) / 3 for one in everything.deleted_sums[:, 0]
            ]
            ways = np.array(shares)  # of the 3 subsets of 1 or of 2 among 3 records
            feasible = ways > 0
            first = np.zeros_like(everything.deleted)
            first[:, 0] = k_first
            sums = np.zeros_like(first)
            sums[:, 0] = j
            some = _restricted(everything, feasible)
            part = ArmStatistics((0, 1), first[feasible], sums[feasible] * UNIT)
            mixing = Mixing(rolled_back=DeletionRequest(part, binary=True))
            release = mixing.release(LOOSE, some[0], some[1], BUDGET)
            total += (everything.weights * ways)[feasible] @ release.probabilities
        assert exact(means, counts, deleted, Mixing(ratio=ratio), LOOSE) == pytest.approx(total, abs=1e-12)


def _ways(ones: int, zeros: int, chosen_ones: int, chosen_zeros: int) -> int:
    """How many subsets hold so many ones and zeros, by listing them."""
    from itertools import combinations

    records = [1] * ones + [0] * zeros
    subsets = combinations(range(len(records)), chosen_ones + chosen_zeros)
    return sum(sum(records[i] for i in subset) == chosen_ones for subset in subsets)


def _restricted(everything: AllDataSets, rows: BoolArray) -> tuple[ArmStatistics, DeletionRequest]:
    labels = everything.labels
    records = ArmStatistics(labels, everything.deleted[rows], everything.deleted_sums[rows] * UNIT)
    whole = ArmStatistics(labels, everything.counts[rows], everything.sums[rows] * UNIT)
    return whole, DeletionRequest(records, binary=True)


@pytest.mark.parametrize(("counts", "deleted"), [([4, 3], [2, 0]), ([3, 3, 2], [0, 0, 1]), ([2, 2], [2, 0])])
def test_imitation(counts: list[int], deleted: list[int]) -> None:
    environment = Environment.bernoulli([0.5] * len(counts))
    everything = AllDataSets([0.5] * len(counts), counts, deleted)
    for unlearner in (None, ImitationRollback()):
        found = exact_release(
            environment, np.array(counts), np.array(deleted), unlearner, Imitation(), BUDGET
        )
        assert found == pytest.approx(everything.released(unlearner, Imitation(), BUDGET), abs=1e-12)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    m = draw(st.integers(2, 3))
    mean = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.05, 0.95))
    counts = draw(st.lists(st.integers(0, 4), min_size=m, max_size=m).filter(lambda n: 0 < sum(n) <= 9))
    deleted = [draw(st.integers(0, n)) for n in counts]
    return draw(st.lists(mean, min_size=m, max_size=m)), counts, deleted


@examples(80)
@given(cases(), st.sampled_from([0.05, 0.4, 0.8, 1.0]), st.sampled_from(sorted(SEVERAL_ARMS)))
def test_any_small_case(case: Case, tau: float, name: str) -> None:
    check(case, SEVERAL_ARMS[name], LCB(confidence=tau))


@examples(80)
@given(cases(), st.sampled_from([0.05, 0.4, 0.8, 1.0]), st.sampled_from(sorted(ONE_ARM)), st.data())
def test_any_small_case_of_one_arm(case: Case, tau: float, name: str, data: st.DataObject) -> None:
    means, counts, _ = case
    arm = data.draw(st.sampled_from([a for a, n in enumerate(counts) if n]))
    k = data.draw(st.integers(1, counts[arm]))
    deleted = [k if a == arm else 0 for a in range(len(means))]
    check((means, counts, deleted), ONE_ARM[name], LCB(confidence=tau))
