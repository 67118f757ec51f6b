"""evaluate and evaluate_all: seeds, jobs, common random numbers, standard errors, progress, refusals."""

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from armnesia import (
    LCB,
    Adaptive,
    Budget,
    Gaussian,
    Imitation,
    Learner,
    Mixing,
    MultiSource,
    Release,
    Rollback,
)
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.simulation import (
    AcrossArms,
    DataModel,
    DistributionModel,
    Environment,
    Evaluation,
    FixedSample,
    OneArm,
    case,
    draws,
    evaluate,
    evaluate_all,
    exact_release,
)
from armnesia.unlearners import Unlearner
from armnesia.unlearners.noise_based import NoisePlan
from tests.quick import quick_only

ENVIRONMENT = Environment.bernoulli([0.5, 0.45, 0.4])
FIXED = FixedSample((60, 50, 40))
BY_CHANCE = DistributionModel(150, (0.4, 0.3, 0.3))
REQUEST = OneArm(0, 15)
BUDGET = Budget.from_gamma(0.4, delta=1e-5)
METHODS: dict[str, Unlearner | None] = {
    "oracle": None,
    "rollback": Rollback(),
    "gaussian": Gaussian(),
    "adaptive": Adaptive(threshold_scale=20.0),
}


def sampled(
    methods: dict[str, Unlearner | None] = METHODS, model: DataModel = FIXED, **options: Any
) -> dict[str, Evaluation]:
    chosen: dict[str, Any] = {"protocol": "sampled", "datasets": 2000, "seed": 5} | options
    return evaluate_all(ENVIRONMENT, model, REQUEST, methods, BUDGET, **chosen)


def same(a: Evaluation, b: Evaluation) -> bool:
    """Bit for bit."""
    numbers = ("suboptimality", "standard_error", "datasets", "short_share", "protocol")
    arrays_equal = (a.blocks == b.blocks).all() and (a.probabilities == b.probabilities).all()
    return bool(arrays_equal) and all(getattr(a, name) == getattr(b, name) for name in numbers)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "_BLOCK", 500)


@pytest.mark.slow
@pytest.mark.parametrize("model", quick_only([FIXED], [FIXED, BY_CHANCE]))
def test_the_same_seed_gives_the_same_numbers_whatever_n_jobs(model: DataModel) -> None:
    with_mixing = METHODS | {"mixing": Mixing()}
    one = sampled(with_mixing, model, datasets=25_000)
    two = sampled(with_mixing, model, datasets=25_000, n_jobs=2)
    assert all(same(one[name], two[name]) for name in with_mixing)
    assert len(one["oracle"].blocks) == 3
    other = sampled(with_mixing, model, datasets=25_000, seed=6)
    assert not any(same(one[name], other[name]) for name in with_mixing)


@pytest.fixture
def few_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are told how many vectors to draw: they need not be patched."""
    monkeypatch.setattr(draws, "_FEWEST_VECTORS", 1)
    monkeypatch.setattr(case, "likely_vectors", lambda *_: None)


@pytest.mark.slow
@pytest.mark.usefixtures("few_vectors")
def test_exact_given_the_counts_does_not_depend_on_n_jobs_either() -> None:
    one = sampled(METHODS, BY_CHANCE, protocol="exact", datasets=60)
    two = sampled(METHODS, BY_CHANCE, protocol="exact", datasets=60, n_jobs=2)
    assert all(same(one[name], two[name]) for name in METHODS)


@pytest.mark.usefixtures("few_vectors")
@pytest.mark.parametrize("protocol", ["sampled", "exact"])
def test_two_names_of_one_unlearner_see_the_same_data(protocol: str) -> None:
    twins: dict[str, Unlearner | None] = {"a": Adaptive(), "between": Gaussian(), "b": Adaptive()}
    results = sampled(twins, BY_CHANCE, protocol=protocol, datasets=60)
    assert same(results["a"], results["b"])
    assert not same(results["a"], results["between"])


@pytest.mark.parametrize("model", [FIXED, BY_CHANCE])
def test_another_method_in_the_call_changes_nothing(model: DataModel) -> None:
    """Mixing draws which records it rolls back first; that must not touch the data sets of the others."""
    alone = sampled(METHODS, model)
    with_mixing = sampled({"mixing": Mixing(), **METHODS}, model)
    reversed_order = sampled(dict(reversed(METHODS.items())), model)
    for name, unlearner in METHODS.items():
        assert same(alone[name], with_mixing[name])
        assert same(alone[name], reversed_order[name])
        assert same(alone[name], sampled({name: unlearner}, model)[name])


@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_the_parts_of_the_result() -> None:
    results = sampled(datasets=3000)
    for result in results.values():
        assert result.blocks.shape == (6,)
        assert result.datasets == 3000
        assert result.blocks.mean() == pytest.approx(result.suboptimality, rel=1e-12)
        assert result.probabilities @ ENVIRONMENT.gaps == pytest.approx(result.suboptimality, rel=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_common_random_numbers_make_differences_sharper() -> None:
    """Noise and rollback see the same data: their difference varies less than that of separate runs.

    The ratio of the variances is 0.25 ± 0.05 over seeds: a false alarm for fewer than 10⁻³ of them.
    """
    together = sampled(datasets=30_000)
    apart = sampled(datasets=30_000, seed=7)
    shared = (together["adaptive"].blocks - together["rollback"].blocks).var()
    separate = (together["adaptive"].blocks - apart["rollback"].blocks).var()
    assert shared < 0.6 * separate


@pytest.mark.slow
@pytest.mark.usefixtures("few_vectors")
@pytest.mark.parametrize("protocol", ["sampled", "exact"])
def test_the_standard_error_is_the_spread_over_seeds(protocol: str) -> None:
    """A spread of 200 estimates has a relative error of 5 %; 25 % off is a false alarm in 6·10⁻⁷ per method.

    The planted fault: an error stated twice too large is rejected. Exact is exact given the counts here.
    """
    size = 300 if protocol == "sampled" else 40
    methods = {name: METHODS[name] for name in ("oracle", "rollback", "adaptive")}
    if protocol == "exact":
        methods = {"rollback": Rollback()}
    runs = [sampled(methods, BY_CHANCE, datasets=size, seed=seed, protocol=protocol) for seed in range(200)]
    for name in methods:
        spread = np.std([run[name].suboptimality for run in runs], ddof=1)
        stated = math.sqrt(np.mean([run[name].standard_error ** 2 for run in runs]))
        assert abs(spread / stated - 1) < 0.25
        assert abs(spread / (2 * stated) - 1) > 0.25


def test_the_standard_error_counts_the_spread_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of one data set there is no other spread: the losses themselves are the blocks."""
    monkeypatch.setattr(draws, "_BLOCK", 1)
    for result in sampled(datasets=60).values():
        assert result.blocks.shape == (60,)
        assert result.standard_error == pytest.approx(result.blocks.std() / math.sqrt(60), rel=1e-12)
        assert result.standard_error > 0


@pytest.mark.slow
def test_continuous_rewards_against_a_plain_simulation() -> None:
    """Beta rewards, rollback: record by record, one data set at a time; 5 standard errors of both.

    A false alarm in fewer than 6·10⁻⁷ of seeds, which are fixed.
    """
    environment = Environment.beta([(5, 5), (4.5, 5.5)])
    result = evaluate(
        environment,
        FixedSample((30, 20)),
        OneArm(0, 10),
        Rollback(),
        BUDGET,
        protocol="sampled",
        datasets=20_000,
    )
    rng = np.random.default_rng(8)
    penalties = [math.sqrt(math.log(2 * 50) / (2 * 20))] * 2
    losses = []
    for _ in range(5000):
        kept = rng.permutation(rng.beta(5, 5, 30))[10:], rng.beta(4.5, 5.5, 20)
        scores = [rewards.mean() - penalty for rewards, penalty in zip(kept, penalties, strict=True)]
        losses.append(float(environment.gaps[int(np.argmax(scores))]))
    error = math.hypot(result.standard_error, np.std(losses) / math.sqrt(len(losses)))
    assert abs(result.suboptimality - np.mean(losses)) < 5 * error
    assert 0 < result.suboptimality < environment.gaps[1]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_jobs", quick_only([1], [1, 2]))
def test_progress_counts_the_blocks(n_jobs: int) -> None:
    seen: list[tuple[int, int]] = []
    sampled(datasets=1500, n_jobs=n_jobs, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_evaluate_is_evaluate_all_of_one() -> None:
    alone = evaluate(
        ENVIRONMENT, FIXED, REQUEST, Rollback(), BUDGET, protocol="sampled", datasets=2000, seed=5
    )
    assert same(alone, sampled()["rollback"])


def test_what_exact_evaluation_cannot_do() -> None:
    continuous = Environment.uniform([(0, 1), (0, 0.9), (0, 0.8)])
    with pytest.raises(UnsupportedError, match="Bernoulli rewards"):
        evaluate(continuous, FIXED, REQUEST, Rollback(), BUDGET, protocol="exact")
    with pytest.raises(UnsupportedError, match="Bernoulli rewards"):
        evaluate(continuous, BY_CHANCE, REQUEST, Rollback(), BUDGET, datasets=2, protocol="exact")
    with pytest.raises(UnsupportedError, match="fixed numbers of randomly chosen records"):
        evaluate(ENVIRONMENT, FIXED, AcrossArms(5), Rollback(), BUDGET, protocol="exact")
    with pytest.raises(UnsupportedError, match="fixed numbers of randomly chosen records"):
        evaluate(ENVIRONMENT, FIXED, OneArm(0, 5, "lowest"), Rollback(), BUDGET, protocol="exact")


def test_auto_is_exact_where_that_is_known() -> None:
    methods = {"rollback": Rollback(), "oracle": None}
    chosen = evaluate_all(ENVIRONMENT, FIXED, REQUEST, methods, BUDGET)
    exact = evaluate_all(ENVIRONMENT, FIXED, REQUEST, methods, BUDGET, protocol="exact")
    assert all(same(chosen[name], exact[name]) for name in methods)
    for result in chosen.values():
        assert result.interval == (result.suboptimality, result.suboptimality)


def test_auto_is_exact_for_each_unlearner_that_has_a_formula() -> None:
    """And the others are sampled as they would be alone."""

    class Mine(Rollback):
        """Overrides release, although it inherits the answer of rollback."""

        name: ClassVar[str] = "mine"

        def release(self, *arguments: Any) -> Release:
            return super().release(*arguments)

    found = evaluate_all(ENVIRONMENT, FIXED, REQUEST, {"a": Mine(), "b": Rollback()}, BUDGET)
    assert [result.protocol for result in found.values()] == ["sampled", "exact"]
    assert same(found["a"], evaluate(ENVIRONMENT, FIXED, REQUEST, Mine(), BUDGET))
    assert found["a"].interval[0] < found["b"].suboptimality < found["a"].interval[1]


@pytest.mark.parametrize("n_jobs", quick_only([1], [1, 2]))
def test_a_pilot_decides_how_many_are_sampled(n_jobs: int) -> None:
    """The draws themselves are those of any run with as many data sets: the pilot's are not among them."""
    seen: list[tuple[int, int]] = []
    result = evaluate_all(
        *(ENVIRONMENT, FIXED, AcrossArms(5), {"": Rollback()}, BUDGET),
        accuracy=0.02,
        n_jobs=n_jobs,
        progress=lambda done, total: seen.append((done, total)),
    )[""]
    assert result.protocol == "sampled"
    assert 0.014 < result.relative_error < 0.023
    assert seen[-1] == (len(result.blocks),) * 2
    again = evaluate(
        *(ENVIRONMENT, FIXED, AcrossArms(5), Rollback(), BUDGET),
        protocol="sampled",
        datasets=result.datasets,
    )
    assert same(result, again)


def test_an_accuracy_out_of_reach_ends_at_the_most_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "_MOST_DATASETS", 150)
    result = evaluate(ENVIRONMENT, FIXED, AcrossArms(5), Rollback(), BUDGET, accuracy=1e-6)
    assert result.datasets == 150
    certain = Environment.bernoulli([1.0, 0.0, 0.0])
    nothing = evaluate(certain, FIXED, AcrossArms(5), Rollback(), BUDGET)
    assert nothing.relative_error == 0  # none was lost
    assert nothing.interval == pytest.approx((0.0, 3.69 / 150), rel=1e-3)


def test_exact_evaluation_refuses_algorithms_it_does_not_know() -> None:
    class Mine(Rollback):
        """Overrides release, although it inherits the answer of rollback."""

        name: ClassVar[str] = "mine"

        def release(self, *arguments: Any) -> Release:
            return replace(super().release(*arguments), probabilities=np.full(3, 1 / 3))

    class NoisesOthers(MultiSource):
        name: ClassVar[str] = "noises_others"

        def plan(self, *arguments: Any) -> NoisePlan:
            plan = super().plan(*arguments)
            noised = arguments[2] > 0  # every requested arm, served or not
            return NoisePlan(noised, noised * 0.1, plan.branch)

    class Other(Learner):
        name: ClassVar[str] = "other"
        unit_scores = Imitation.unit_scores

    counts, deleted = np.array([20, 20, 20]), np.array([5, 0, 0])
    lcb = LCB(confidence=0.1)
    with pytest.raises(UnsupportedError, match="does not know 'mine'"):
        exact_release(ENVIRONMENT, counts, deleted, Mine(), lcb, BUDGET)
    with pytest.raises(UnsupportedError, match="needs noise on the served arm only"):
        exact_release(ENVIRONMENT, counts, deleted, NoisesOthers(), lcb, BUDGET)
    with pytest.raises(UnsupportedError, match="by mean and count, or decides by counts alone; got 'other'"):
        exact_release(ENVIRONMENT, counts, deleted, Rollback(), Other(), BUDGET)


@pytest.mark.parametrize("request_model", [AcrossArms(5), OneArm(0, 5, "lowest"), OneArm(2, 5, "highest")])
def test_sampling_can(request_model: Any) -> None:
    continuous = Environment.uniform([(0, 1), (0, 0.9), (0, 0.8)])
    result = evaluate(continuous, FIXED, request_model, Rollback(), BUDGET, protocol="sampled", datasets=200)
    assert 0 <= result.suboptimality <= 0.1
    assert result.datasets == 200


def test_refusals() -> None:
    for accuracy in (0, 1.0, float("nan"), "high"):
        with pytest.raises(InvalidInputError, match=r"accuracy must be between 0 and 1, such as 0.01; got"):
            evaluate(ENVIRONMENT, FIXED, REQUEST, None, BUDGET, accuracy=accuracy)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="datasets must be a whole number, 1 or more; got 0"):
        sampled(datasets=0)
    with pytest.raises(InvalidInputError, match="must be 'auto', 'exact' or 'sampled'; got 'paper'"):
        sampled(protocol="paper")
    with pytest.raises(InvalidInputError, match="same arms; got 2 and 3"):
        sampled(model=FixedSample((5, 5)))
    for model in (FIXED, BY_CHANCE):
        with pytest.raises(InvalidInputError, match="below the number of arms, 3; got 3"):
            evaluate_all(ENVIRONMENT, model, OneArm(3, 1), METHODS, BUDGET, datasets=2)
        with pytest.raises(InvalidInputError, match="below the number of arms, 3; got 3"):
            evaluate_all(ENVIRONMENT, model, OneArm(3, 1), METHODS, BUDGET, protocol="sampled", datasets=2)


def test_with_no_data_left_the_default_arm_is_served() -> None:
    learner = LCB(confidence=0.1, default_action=2)
    everything = np.array([2, 2, 2])
    for unlearner in (Rollback(), Gaussian(), MultiSource()):
        p = exact_release(ENVIRONMENT, everything, everything, unlearner, learner, BUDGET)
        assert p.tolist() == [0.0, 0.0, 1.0]


def test_every_mixing_sees_the_same_part() -> None:
    """Whatever else is evaluated, and in whichever order."""
    mixing = Mixing(ratio=0.5)
    both = evaluate_all(
        ENVIRONMENT, FIXED, REQUEST, {"a": mixing, "b": mixing}, BUDGET, protocol="sampled", datasets=2000
    )
    alone = evaluate(ENVIRONMENT, FIXED, REQUEST, mixing, BUDGET, protocol="sampled", datasets=2000)
    assert both["a"].blocks.tolist() == both["b"].blocks.tolist() == alone.blocks.tolist()


def test_a_loss_that_was_never_seen_is_not_said_to_be_known() -> None:
    """Arms that are hardly ever confused: 200 data sets show that this happens in fewer than one of 200."""
    apart = Environment.bernoulli([0.8, 0.4])
    model, request = FixedSample((40, 40)), OneArm(0, 2)
    found = evaluate(apart, model, request, Rollback(), BUDGET, protocol="sampled", datasets=200, seed=1)
    assert found.suboptimality == 0
    assert found.standard_error == pytest.approx(0.4 / found.datasets)
    exact = evaluate(apart, model, request, Rollback(), BUDGET, protocol="exact")
    assert 0 < exact.suboptimality < found.standard_error < found.interval[1]
