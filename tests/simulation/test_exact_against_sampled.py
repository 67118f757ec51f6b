"""The exact engine against the paper's known values, and against sampling on 50 random instances."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from armnesia import Adaptive, Budget, Gaussian, Mixing, MultiSource, Rollback, Unlearner
from armnesia.simulation import Environment, Evaluation, FixedSample, SeveralArms, evaluate, evaluate_all
from tests.quick import quick_only

DATA_SETS = 10_000
N_INSTANCES = 50
EAGER = 20.0
"""A threshold scale at which noise is preferred whenever it is allowed."""


@pytest.mark.parametrize(
    ("n", "values"),
    [
        (1000, (0.005409, 0.019004, 0.011602, 0.014173)),
        (2000, (0.003194, 0.008367, 0.010079, 0.011572)),
        (3000, (0.002139, 0.004599, 0.009102, 0.004599)),
    ],
)
def test_the_known_values_of_the_hard_case(n: int, values: tuple[float, ...]) -> None:
    """Computed once by another program, to six places: 80 records of the best arm, γ = 0.5."""
    environment = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])
    methods: dict[str, Unlearner | None] = {
        "oracle": None,
        "rollback": Rollback(),
        "gaussian": Gaussian(sensitivity="paper", joint=False),
        "adaptive": Adaptive.as_in_the_paper(),
    }
    budget = Budget.from_gamma(0.5, delta=1e-5)
    results = evaluate_all(environment, FixedSample.round_robin(n, 5), SeveralArms({0: 80}), methods, budget)
    assert [result.suboptimality for result in results.values()] == pytest.approx(list(values), abs=1e-6)
    for result in results.values():
        assert result.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        assert result.suboptimality == pytest.approx(float(result.probabilities @ environment.gaps))
        assert (result.standard_error, result.protocol, result.datasets) == (0.0, "exact", 0)


@dataclass(frozen=True)
class Instance:
    environment: Environment
    model: FixedSample
    request: SeveralArms
    methods: dict[str, Unlearner | None]
    budget: Budget

    def results(self, protocol: str, seed: int = 0) -> dict[str, Evaluation]:
        return evaluate_all(
            self.environment,
            self.model,
            self.request,
            self.methods,
            self.budget,
            protocol="exact" if protocol == "exact" else "sampled",
            datasets=DATA_SETS,
            seed=seed,
        )


def random_instance(seed: int) -> Instance:
    """Random means, unequal counts, any arms, any k up to all the arm has."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    counts = rng.integers(5, 120, m)
    arms = rng.permutation(m)[: 1 if seed % 2 else rng.integers(2, min(m, 3) + 1)]
    methods: dict[str, Unlearner | None] = {
        "oracle": None,
        "rollback": Rollback(),
        "gaussian": Gaussian(joint=bool(rng.integers(2))),
        "multi_source": MultiSource(threshold_scale=EAGER),
        "multi_source, paper": MultiSource.as_in_the_paper(),
    }
    if len(arms) == 1:
        methods["adaptive"] = Adaptive(threshold_scale=EAGER)
        methods["mixing"] = Mixing(ratio=float(rng.uniform(0, 1)))
    return Instance(
        Environment.bernoulli(rng.uniform(0.3, 0.6, m).tolist()),
        FixedSample(tuple(counts.tolist())),
        SeveralArms({int(arm): int(rng.integers(1, counts[arm] + 1)) for arm in arms}),
        methods,
        Budget.from_gamma(float(rng.uniform(0.1, 0.8)), delta=1e-5),
    )


def disagreements(exact: dict[str, Evaluation], sampled: dict[str, Evaluation]) -> list[tuple[str, float]]:
    """The methods that lie more than 4 standard errors apart.

    Where every sampled data set gave the same loss the error is 0 and cannot be trusted; the two must then
    agree to 10⁻⁴.
    """
    found = []
    for name, truth in exact.items():
        difference = abs(sampled[name].suboptimality - truth.suboptimality)
        error = sampled[name].standard_error
        if (error == 0 and difference > 1e-4) or (error > 0 and difference > 4 * error + 1e-12):
            found.append((name, difference / error if error else np.inf))
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", quick_only(range(4), range(N_INSTANCES)))
def test_exact_and_sampled_agree(seed: int) -> None:
    """A comparison at 4 errors is a false alarm with probability 6·10⁻⁵, up to 7 of them in 4·10⁻⁴.

    Over all 50 instances that is below 2 %; the seeds are fixed.
    """
    instance = random_instance(seed)
    exact, sampled = instance.results("exact"), instance.results("sampled", seed=1000 + seed)
    for result in exact.values():
        assert result.probabilities.sum() == pytest.approx(1.0, abs=1e-10)
        assert result.probabilities.min() > -1e-12
    assert disagreements(exact, sampled) == []


@pytest.mark.slow
def test_one_deleted_record_more_would_be_seen() -> None:
    """The planted fault: the exact values of k + 1 (k − 1 where that is all) disagree with samples of k."""
    seen: set[str] = set()
    for seed in range(1, N_INSTANCES, 2):
        instance = random_instance(seed)
        ((arm, k),) = instance.request.deletions.items()
        other = k + 1 if k < instance.model.counts[arm] else k - 1
        exact = replace(instance, request=SeveralArms({arm: other})).results("exact")
        sampled = instance.results("sampled", seed=1000 + seed)
        seen |= {name for name, _ in disagreements(exact, sampled)}
    assert {"rollback", "gaussian", "adaptive", "mixing"} <= seen
    assert "oracle" not in seen  # deletes nothing


@pytest.mark.slow
def test_the_random_instances_do_add_noise() -> None:
    """Were the decision-dependent noise never on, the comparison would only test rollback."""
    moved = 0
    for seed in range(N_INSTANCES):
        exact = random_instance(seed).results("exact")
        rollback, noised = exact["rollback"].suboptimality, exact["multi_source"].suboptimality
        moved += abs(rollback - noised) > 1e-4
    assert moved > N_INSTANCES / 3


def test_an_emptied_best_arm() -> None:
    """By hand: the emptied arm scores −1 and the other, of 50 sure zeros, −√(ln(2·100)/100) = −0.23."""
    environment = Environment.bernoulli([1.0, 0.0])
    budget = Budget.from_gamma(0.5, delta=1e-5)
    result = evaluate(environment, FixedSample((50, 50)), SeveralArms({0: 50}), Rollback(), budget)
    assert result.probabilities.tolist() == [0.0, 1.0]
    assert result.suboptimality == 1.0
    assert result.short_share == 0.0
    asked_too_much = evaluate(environment, FixedSample((50, 50)), SeveralArms({0: 60}), Rollback(), budget)
    assert asked_too_much.probabilities.tolist() == [0.0, 1.0]
    assert asked_too_much.short_share == 1.0
    adaptive = evaluate(environment, FixedSample((50, 50)), SeveralArms({0: 50}), Adaptive(), budget)
    assert adaptive.probabilities == pytest.approx([0.0, 1.0], abs=1e-14)
