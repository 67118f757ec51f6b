"""The paper's own protocol: its mean against the exact value, its prefixes, its requests, its error."""

import math
from dataclasses import replace

import numpy as np
import pytest

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.units import UNIT
from armnesia.paper.protocol import (
    BLOCKS,
    REQUESTS,
    RUNS,
    TRAJECTORIES,
    _one_run,
    paper_protocol,
    paper_protocol_shared,
)
from armnesia.paper.settings import DELTA, ENVIRONMENT, METHODS, Plan
from armnesia.privacy import Budget
from armnesia.simulation import (
    DataModel,
    DistributionModel,
    Environment,
    FixedSample,
    SeveralArms,
    evaluate_all,
)

pytestmark = pytest.mark.slow

SEEDS = range(3)
CELLS: dict[str, tuple[DataModel, dict[int, int], float]] = {
    "hard": (FixedSample.round_robin(1000, 5), {0: 80}, 0.5),
    "easy": (FixedSample.round_robin(1500, 5), {2: 80}, 0.5),
    "little noise": (FixedSample.round_robin(1000, 5), {0: 40}, 0.1),
    "two arms": (FixedSample.round_robin(1000, 5), {0: 40, 1: 40}, 0.3),
}


def exact_values(
    model: DataModel, deletions: dict[int, int], gamma: float, names: tuple[str, ...]
) -> dict[str, float]:
    results = evaluate_all(
        ENVIRONMENT,
        model,
        SeveralArms(deletions),
        {name: METHODS[name] for name in names},
        Budget.from_gamma(gamma, delta=DELTA),
    )
    return {name: result.suboptimality for name, result in results.items()}


def errors_off(runs: FloatArray, truth: float) -> float:
    """How many standard errors the mean of the runs lies from the truth."""
    return float(abs(runs.mean() - truth) / (runs.std(ddof=1) / math.sqrt(runs.size)))


@pytest.mark.parametrize("name", CELLS)
def test_the_mean_is_the_exact_value(name: str) -> None:
    """30 runs, within 4 standard errors: by Student's law a false alarm in 4·10⁻⁴ of comparisons, 16 made.

    The planted fault: the exact values of half as many deleted records are rejected.
    """
    model, deletions, gamma = CELLS[name]
    last = "adaptive" if len(deletions) == 1 else "multi_source"
    names = ("oracle", "rollback", "gaussian", last)
    methods = {method: METHODS[method] for method in names}
    case = ENVIRONMENT, model, SeveralArms(deletions), methods, Budget.from_gamma(gamma, delta=DELTA)
    runs = [paper_protocol(*case, seed=seed) for seed in SEEDS]
    truth = exact_values(model, deletions, gamma, names)
    half = exact_values(model, {arm: k // 2 for arm, k in deletions.items()}, gamma, names)
    for method in names:
        together = np.concatenate([run[method].blocks for run in runs])
        assert together.size == BLOCKS * len(SEEDS)
        assert errors_off(together, truth[method]) < 4
        if name == "hard" and method in ("rollback", "gaussian"):
            assert errors_off(together, half[method]) > 4


def statistics(n: int, seed: int, c_star: float | None = None) -> tuple[IntArray, IntArray]:
    """Counts and sums of the trajectories of one run."""
    model: DataModel = FixedSample.round_robin(n, 5)
    if c_star is not None:
        model = DistributionModel.with_coverage(n, n_actions=5, best=0, c_star=c_star)
    whole, _ = _one_run(ENVIRONMENT, model, {0: 20}, np.random.default_rng(seed))
    return whole.counts[:, 0], whole.sums[:, 0] // UNIT


def second_part_spread(short: IntArray, long: IntArray, counts: IntArray) -> float:
    """Σ (S₂ − S₁ − 200·μ)² / (200·μ(1−μ)), a χ² with 200 · 5 degrees of freedom if S₁ is a part of S₂."""
    means = ENVIRONMENT.means
    expected = counts * means
    return float((((long - short - expected) ** 2) / (counts * means * (1 - means))).sum())


def test_longer_trajectories_begin_with_the_shorter() -> None:
    """χ² of 1000 degrees has a standard deviation of 45: 1000 ± 225 is 5 of them.

    Separate trajectories, the planted fault, have three times the variance.
    """
    (counts, short), (more, long) = statistics(1000, seed=3), statistics(2000, seed=3)
    assert ((long - short >= 0) & (long - short <= more - counts)).all()
    assert abs(second_part_spread(short, long, more - counts) - 1000) < 225
    separate = statistics(2000, seed=4)[1]
    assert second_part_spread(short, separate, more - counts) > 2000


def test_prefixes_under_the_distribution_model() -> None:
    (counts, short), (more, long) = statistics(400, 5, c_star=2.0), statistics(700, 5, c_star=2.0)
    assert (counts.sum(axis=1) == 400).all()
    assert (counts <= more).all()
    assert ((long - short >= 0) & (long - short <= more - counts)).all()
    share = counts[:, 0].mean() / 400  # 200 trajectories of 400: an error of 0.0018
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(400 * TRAJECTORIES)


def test_requests_take_k_records_and_differ() -> None:
    model = FixedSample.round_robin(1000, 5)
    whole, request = _one_run(ENVIRONMENT, model, {0: 80, 3: 40}, np.random.default_rng(6))
    assert request.counts.shape == (TRAJECTORIES, REQUESTS, 5)
    assert (request.counts == [80, 0, 0, 40, 0]).all()
    left = whole.without(request)
    assert (left.counts == [120, 200, 200, 160, 200]).all()
    assert (request.sums.std(axis=1)[:, 0] > 0).mean() > 0.9  # the five requests of a trajectory
    assert (whole.sums == whole.sums[:, :1]).all()  # of the same data


def test_more_than_the_arm_has_takes_everything() -> None:
    model = DistributionModel(60, (0.2,) * 5)
    whole, request = _one_run(ENVIRONMENT, model, {0: 20}, np.random.default_rng(7))
    assert (request.counts[..., 0] == np.minimum(whole.counts[..., 0], 20)).all()
    everything = whole.counts[..., 0] <= 20
    assert everything.any()
    assert (request.sums[..., 0] == whole.sums[..., 0])[everything].all()


def test_standard_errors_are_those_of_the_trajectories() -> None:
    """The oracle ignores the requests: its error is √(Var/2000) with the variance of the exact loss.

    If the ten runs share their 200 trajectories, it is √(Var/200). The stated variance has 99 degrees of
    freedom: by the law of χ² a factor below 0.6 or above 1.6 is a false alarm in 2·10⁻⁴. Rollback uses each
    trajectory several times, which is worth more than once. The planted fault: the variance of as many
    independent requests is rejected for the oracle.
    """
    model = FixedSample.round_robin(1000, 5)
    methods = {name: METHODS[name] for name in ("oracle", "rollback")}
    case = ENVIRONMENT, model, SeveralArms({0: 80}), methods, Budget.from_gamma(0.5, delta=DELTA)
    exact = evaluate_all(*case)
    protocols = ((paper_protocol, RUNS * TRAJECTORIES), (paper_protocol_shared, TRAJECTORIES))
    for protocol, trajectories in protocols:
        found = protocol(*case, seed=20)
        ratios = {}
        for name, result in exact.items():
            variance = float(result.probabilities @ ENVIRONMENT.gaps**2 - result.suboptimality**2)
            ratios[name] = found[name].standard_error ** 2 / (variance / trajectories)
            assert errors_off(found[name].blocks, result.suboptimality) < 5
        assert 0.6 < ratios["oracle"] < 1.6
        assert not 0.6 < ratios["oracle"] * REQUESTS < 1.6
        assert 0.05 < ratios["rollback"] < 1.6


def test_a_cell_runs_by_the_papers_protocol() -> None:
    at = (("1", "M_f hard", "N", 1000.0), 1000, {0: 80}, ("oracle",))
    one, other = (Plan(seed=seed).cell(*at, protocol="paper") for seed in (1, 2))
    (row,) = one.rows()
    direct = paper_protocol(
        ENVIRONMENT, one.model, SeveralArms({0: 80}), {"oracle": None}, one.budget, seed=1
    )
    assert row["suboptimality"] == direct["oracle"].suboptimality
    assert (row["protocol"], row["datasets"], len(row["blocks"])) == ("paper", RUNS * TRAJECTORIES, BLOCKS)
    assert other.rows()[0]["suboptimality"] != row["suboptimality"]
    # No loss in 2000 trajectories: by Poisson, up to 3.689 of them might have the largest, 1.
    never = replace(one, environment=Environment.bernoulli((1.0, 0.0)), model=FixedSample((100, 100)))
    (row,) = never.rows()
    assert (row["suboptimality"], row["high"]) == (0.0, pytest.approx(3.689 / 2000, rel=1e-3))
