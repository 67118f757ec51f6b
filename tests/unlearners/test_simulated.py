"""Release and reference of every unlearner against a million literal runs of the paper's pseudo-code.

An agreement is |wins − n·p| ≤ 5·√(n·p·(1−p)) + 10 for every arm; the 10 covers the Poisson tail of
arms that hardly ever win. A comparison raises a false alarm with probability below 6·10⁻⁷; a test makes at
most 20 instances · 5 arms · 2 distributions of them: below 1.5·10⁻⁴ a test, and the seeds are fixed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from armnesia import (
    LCB,
    Adaptive,
    ArmStatistics,
    Budget,
    DeletionRequest,
    Gaussian,
    Imitation,
    ImitationRollback,
    Learner,
    Mixing,
    MultiSource,
    Rollback,
    Unlearner,
)
from tests.quick import quick_only
from tests.unlearners import paper_algorithms as paper
from tests.unlearners.paper_algorithms import Rewards, Runs, Setting

N_RUNS = 1_000_000
N_INSTANCES = 12


@dataclass(frozen=True)
class Instance:
    data: Rewards
    deleted: Rewards
    setting: Setting

    @property
    def m(self) -> int:
        return len(self.data)

    @property
    def k(self) -> list[int]:
        return [len(rewards) for rewards in self.deleted]

    @property
    def left(self) -> Rewards:
        return paper.difference(self.data, self.deleted)

    @property
    def served(self) -> int:
        return paper.first_best(paper.lcb(self.data, self.setting.tau))


def random_instances(
    seed: int, *, sources: int, binary: bool, paper_variants: bool = False
) -> list[Instance]:
    """Arms of like quality, and mostly requests for the served arm, so that noise is drawn and matters."""
    rng = np.random.default_rng(seed)
    instances = []
    for _ in range(N_INSTANCES):
        m = int(rng.integers(max(2, sources), 6))
        tau = float(10 ** rng.uniform(-4, -1))
        counts = rng.integers(30, 90, size=m)
        data: Rewards = [
            (rng.random(n) < p).astype(float).tolist() if binary else rng.beta(6 * p, 6 * (1 - p), n).tolist()
            for n, p in zip(counts, rng.uniform(0.5, 0.65, m), strict=True)
        ]
        setting = Setting(
            tau,
            gamma=float(rng.uniform(0.1, 0.6)),
            n=N_RUNS,
            rng=np.random.default_rng(rng.integers(2**32)),
            paper_sensitivity=paper_variants,
            paper_threshold=paper_variants,
            threshold_scale=1.3 if paper_variants else 1.0,
        )
        served = paper.first_best(paper.lcb(data, tau))
        arms = rng.permutation(m)[:sources].tolist()
        if rng.random() < 0.85 and served not in arms:
            arms[0] = served
        deleted: Rewards = [data[a][: int(rng.integers(4, 16))] if a in arms else [] for a in range(m)]
        instances.append(Instance(data, deleted, setting))
    return instances


def statistics_of(rewards: Rewards) -> ArmStatistics:
    return ArmStatistics.from_rewards(dict(enumerate(rewards)))


def agree(probabilities: NDArray[np.float64], runs: Runs) -> bool:
    """The check that every test here makes; see the module's docstring for its false-alarm rate."""
    n = runs.wins.sum()
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    allowed = 5 * np.sqrt(n * probabilities * np.maximum(1 - probabilities, 0)) + 10
    return bool((np.abs(runs.wins - n * probabilities) <= allowed).all())


Simulation = Callable[[Instance], Runs]


@dataclass(frozen=True)
class Algorithm:
    """An unlearner with its literal release and reference."""

    unlearner: Unlearner
    release: Simulation
    reference: Simulation
    learner: Callable[[float], Learner] = lambda tau: LCB(confidence=tau)

    def exact(self, i: Instance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        learner = self.learner(i.setting.tau)
        budget = Budget.from_gamma(i.setting.gamma, delta=1e-5)
        statistics, request = statistics_of(i.data), DeletionRequest.from_rewards(dict(enumerate(i.deleted)))
        release = self.unlearner.release(learner, statistics, request, budget)
        reference = self.unlearner.reference(
            learner,
            statistics.without(request),
            budget,
            shape=request.counts,
            original_decision=learner.decide(statistics),
        )
        return release.probabilities, reference


def gaussian(unlearner: Gaussian) -> Algorithm:
    joint = unlearner.joint
    return Algorithm(
        unlearner,
        lambda i: paper.gaussian(i.data, i.deleted, i.setting, joint=joint),
        lambda i: paper.gaussian_reference(i.left, i.k, i.setting, joint=joint),
    )


def on_the_served_arm(unlearner: MultiSource) -> Algorithm:
    return Algorithm(
        unlearner,
        lambda i: paper.multi_source(i.data, i.deleted, i.setting),
        lambda i: paper.multi_source_reference(i.left, i.k, i.served, i.setting),
    )


def mixing(unlearner: Mixing, k_first: Callable[[int], int]) -> Algorithm:
    return Algorithm(
        unlearner,
        lambda i: paper.mixing(i.data, i.deleted, i.setting, k_first=k_first(sum(i.k))),
        lambda i: paper.mixing_reference(i.left, i.k, i.served, i.setting, k_first=k_first(sum(i.k))),
    )


ROLLBACK = Algorithm(
    Rollback(),
    lambda i: paper.rollback(i.data, i.deleted, i.setting),
    lambda i: paper.tally(paper.lcb(i.left, i.setting.tau), {}, i.setting),
)
IMITATION = Algorithm(
    ImitationRollback(),
    lambda i: paper.imitation_rollback(i.data, i.deleted, i.setting),
    lambda i: paper.tally([float(len(rewards)) for rewards in i.left], {}, i.setting),
    learner=lambda tau: Imitation(),
)
# name: (algorithm, arguments of random_instances, the least share of instances that must draw noise)
ALGORITHMS: dict[str, tuple[Algorithm, dict[str, int | bool], float]] = {
    "rollback": (ROLLBACK, {"sources": 2, "binary": False}, 0.0),
    "imitation_rollback": (IMITATION, {"sources": 2, "binary": True}, 0.0),
    "gaussian": (gaussian(Gaussian()), {"sources": 1, "binary": False}, 1.0),
    "gaussian, three arms": (gaussian(Gaussian()), {"sources": 3, "binary": False}, 1.0),
    "gaussian, not joint": (gaussian(Gaussian(joint=False)), {"sources": 3, "binary": True}, 1.0),
    "gaussian, paper": (
        gaussian(Gaussian(sensitivity="paper", joint=False)),
        {"sources": 2, "binary": True, "paper_variants": True},
        1.0,
    ),
    "adaptive": (on_the_served_arm(Adaptive()), {"sources": 1, "binary": False}, 0.5),
    "adaptive, paper": (
        on_the_served_arm(Adaptive.as_in_the_paper()),
        {"sources": 1, "binary": True, "paper_variants": True},
        0.5,
    ),
    "multi_source": (on_the_served_arm(MultiSource()), {"sources": 2, "binary": False}, 0.5),
    "multi_source, paper": (
        on_the_served_arm(MultiSource.as_in_the_paper()),
        {"sources": 3, "binary": True, "paper_variants": True},
        0.5,
    ),
    "mixing, half": (mixing(Mixing(), lambda k: k // 2), {"sources": 1, "binary": True}, 0.5),
    "mixing, three quarters": (
        mixing(Mixing(ratio=0.75), lambda k: 3 * k // 4),
        {"sources": 1, "binary": True},
        0.5,
    ),
    "mixing, three": (mixing(Mixing(rolled_back=3), lambda k: 3), {"sources": 1, "binary": True}, 0.5),
    "mixing, paper": (
        mixing(Mixing(sensitivity="paper"), lambda k: k // 2),
        {"sources": 1, "binary": True, "paper_variants": True},
        0.5,
    ),
}

QUICK = ["rollback", "imitation_rollback"]
FAULTY_QUICK = ["adaptive, paper"]


def instances_of(name: str) -> list[Instance]:
    kind = ALGORITHMS[name][1]
    return random_instances(
        20_000 + list(ALGORITHMS).index(name),
        sources=int(kind["sources"]),
        binary=bool(kind["binary"]),
        paper_variants=bool(kind.get("paper_variants", False)),
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", quick_only(QUICK, ALGORITHMS))
def test_release_and_reference_are_those_of_the_pseudo_code(name: str) -> None:
    algorithm, _, share = ALGORITHMS[name]
    with_noise = interesting = 0
    for number, instance in enumerate(instances_of(name)):
        release, reference = algorithm.exact(instance)
        runs = algorithm.release(instance)
        assert agree(release, runs), (number, release, runs.wins / N_RUNS)
        assert agree(reference, algorithm.reference(instance)), (number, reference)
        with_noise += runs.noise
        interesting += bool(runs.noise and 0.01 < release.max() < 0.99)
    assert with_noise >= share * N_INSTANCES
    assert interesting >= share * N_INSTANCES / 2  # noise that decides nothing would test nothing


@pytest.mark.parametrize(
    "name", quick_only(FAULTY_QUICK, [name for name, kind in ALGORITHMS.items() if kind[2] > 0])
)
def test_five_percent_more_noise_would_be_seen(name: str) -> None:
    """The planted fault: the same check rejects σ·1.05 on some of the first instances."""
    algorithm = ALGORITHMS[name][0]
    faulty = [replace(i, setting=replace(i.setting, wrong_sigma=1.05)) for i in instances_of(name)[:8]]
    assert any(not agree(algorithm.exact(i)[0], algorithm.release(i)) for i in faulty)


@pytest.mark.slow
def test_the_printed_multi_source_pseudo_code_is_another_algorithm() -> None:
    """Printed, a served arm with γ ≥ γ₀ is not unlearned; the package follows the proof."""
    algorithm = on_the_served_arm(MultiSource())
    strict = [
        replace(i, setting=replace(i.setting, gamma=3.0))
        for seed in range(8)
        for i in random_instances(seed, sources=2, binary=True)
    ]
    short = [replace(i, setting=replace(i.setting, n=1000)) for i in strict]
    served = [i for i in short if i.deleted[i.served]]
    assert len(served) > 60
    for i in served:
        assert agree(algorithm.exact(i)[0], algorithm.release(i))
    printed = [
        agree(algorithm.exact(i)[0], paper.multi_source(i.data, i.deleted, i.setting, printed=True))
        for i in served
    ]
    assert printed.count(False) > 10


@pytest.mark.slow
def test_mixing_with_given_records_of_any_reward() -> None:
    """U′ is passed in where rewards are not 0 or 1."""
    noise = 0
    for instance in random_instances(77, sources=1, binary=False):
        arm = next(a for a, rewards in enumerate(instance.deleted) if rewards)
        chosen = instance.deleted[arm][::2]
        part: Rewards = [chosen if a == arm else [] for a in range(instance.m)]
        unlearner = Mixing(rolled_back=DeletionRequest.from_rewards(dict(enumerate(part))))
        release, reference = mixing(unlearner, lambda k: 0).exact(instance)
        runs = paper.mixing(
            instance.data, instance.deleted, instance.setting, k_first=len(chosen), chosen=chosen
        )
        without = paper.mixing_reference(
            instance.left, instance.k, instance.served, instance.setting, k_first=len(chosen)
        )
        assert agree(release, runs)
        assert agree(reference, without)
        noise += runs.noise
    assert noise >= N_INSTANCES / 2
