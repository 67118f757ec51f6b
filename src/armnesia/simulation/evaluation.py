"""How much reward a decision gives up: expected sub-optimality, exact or sampled."""

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Literal

import numpy as np

from armnesia.arrays import FloatArray, IntArray
from armnesia.errors import InvalidInputError, UnsupportedError
from armnesia.learners import LCB, Imitation, Learner
from armnesia.privacy import Budget
from armnesia.randomness import generator, generators
from armnesia.request import DeletionRequest
from armnesia.scale import UNIT
from armnesia.simulation.drawing import Drawn, draw_data_sets
from armnesia.simulation.environment import Environment
from armnesia.simulation.exact import exact_release
from armnesia.simulation.models import DataModel, FixedSample
from armnesia.simulation.parallel import worker_pool
from armnesia.simulation.requests import RequestModel, SeveralArms
from armnesia.statistics import ArmStatistics
from armnesia.unlearners import ImitationRollback, Mixing, Unlearner
from armnesia.unlearners.base import served

Protocol = Literal["exact", "sampled"]
_BLOCK = 10_000
_COUNT_VECTORS_A_BLOCK = 20
_DEFAULT_DATASETS = {"sampled": 100_000, "exact given the counts": 400}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Expected sub-optimality μ(a*) − E[μ(released arm)], with the standard error of whatever was sampled.

    `blocks` holds the means of independent blocks that share their data sets with every other unlearner
    evaluated in the same call, so that ratios and differences can be given an error too.
    """

    suboptimality: float
    standard_error: float
    protocol: str
    probabilities: FloatArray
    datasets: int
    short_share: float
    blocks: FloatArray


def evaluate(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    unlearner: Unlearner | None,
    budget: Budget,
    *,
    protocol: Protocol = "exact",
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> Evaluation:
    """Evaluate one unlearner; None is the oracle, which deletes nothing.

    >>> from armnesia.unlearners import Adaptive
    >>> environment = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])
    >>> result = evaluate(
    ...     environment, FixedSample.round_robin(1000, 5), SeveralArms({0: 80}), Adaptive.as_in_the_paper(),
    ...     Budget.from_gamma(0.5, delta=1e-5),
    ... )
    >>> round(result.suboptimality, 6), result.standard_error
    (0.014173, 0.0)
    """
    results = evaluate_all(
        environment,
        model,
        request,
        {"": unlearner},
        budget,
        protocol=protocol,
        datasets=datasets,
        seed=seed,
        n_jobs=n_jobs,
    )
    return results[""]


def evaluate_all(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    unlearners: Mapping[str, Unlearner | None],
    budget: Budget,
    *,
    protocol: Protocol = "exact",
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Evaluation]:
    """Evaluate several unlearners on the same data sets (common random numbers).

    `"exact"` sums over all binomial outcomes: fixed counts, Bernoulli rewards, requests of given sizes. In
    the distribution model it does so given the counts, and averages over `datasets` drawn count vectors.
    `"sampled"` draws `datasets` data sets; release probabilities, not draws, are averaged. The result
    depends on the seed and not on `n_jobs`.
    """
    model.check(environment)
    if datasets is not None and (not isinstance(datasets, Integral) or datasets < 1):
        raise InvalidInputError(f"datasets must be a whole number, 1 or more; got {datasets!r}")
    if protocol == "exact":
        if not isinstance(request, SeveralArms) or request.choice != "random":
            raise UnsupportedError(
                "exact evaluation needs fixed numbers of randomly chosen records; use the sampled protocol"
            )
        if isinstance(model, FixedSample):
            return _exact(environment, model, request, unlearners, budget)
        work, size, name = _exact_block, _COUNT_VECTORS_A_BLOCK, "exact given the counts"
    elif protocol == "sampled":
        work, size, name = _sampled_block, _BLOCK, "sampled"
    else:
        raise InvalidInputError(f"protocol must be 'exact' or 'sampled'; got {protocol!r}")
    datasets = _DEFAULT_DATASETS[name] if datasets is None else int(datasets)
    n_blocks = max(2, math.ceil(datasets / size))
    size = math.ceil(datasets / n_blocks)
    run = partial(work, environment, model, request, dict(unlearners), budget, size)
    found: list[_Block] = []
    with ExitStack() as stack:
        run_all = stack.enter_context(worker_pool(n_jobs)).map if n_jobs > 1 else map
        for block in run_all(run, generators(seed, n_blocks)):
            found.append(block)
            if progress is not None:
                progress(len(found), n_blocks)
    return {key: _gathered([block[key] for block in found], environment, name, size) for key in unlearners}


def bound_learner(unlearner: Unlearner | None, n: int) -> Learner:
    """The learner that an unlearner is made for, with τ = 1/N."""
    return Imitation() if isinstance(unlearner, ImitationRollback) else LCB(confidence=1 / n)


_Block = dict[str, tuple[FloatArray, float, float]]
"""Of each unlearner in a block: mean release probabilities, variance of the loss, share of short requests."""


def _exact(
    environment: Environment,
    model: FixedSample,
    request: SeveralArms,
    unlearners: Mapping[str, Unlearner | None],
    budget: Budget,
) -> dict[str, Evaluation]:
    counts = np.array(model.counts, dtype=np.int64)
    results = {}
    for key, unlearner in unlearners.items():
        p, short = _exact_given(environment, counts, request, unlearner, budget, model.n)
        loss = float(p @ environment.gaps)
        results[key] = Evaluation(loss, 0.0, "exact", p, 0, short, np.array([loss]))
    return results


def _exact_given(
    environment: Environment,
    counts: IntArray,
    request: RequestModel,
    unlearner: Unlearner | None,
    budget: Budget,
    n: int,
) -> tuple[FloatArray, float]:
    """Release probabilities given the counts; the request of fixed size needs no randomness."""
    deleted, short = request.draw_deleted(generator(0), counts[None])
    learner = bound_learner(unlearner, n)
    return exact_release(environment, counts, deleted[0], unlearner, learner, budget), short


def _exact_block(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    unlearners: dict[str, Unlearner | None],
    budget: Budget,
    size: int,
    rng: np.random.Generator,
) -> _Block:
    vectors = model.draw_counts(rng, size)
    block: _Block = {}
    for key, unlearner in unlearners.items():
        found = [_exact_given(environment, counts, request, unlearner, budget, model.n) for counts in vectors]
        p = np.array([probabilities for probabilities, _ in found])
        block[key] = _summary(p, environment, float(np.mean([short for _, short in found])))
    return block


def _sampled_block(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    unlearners: dict[str, Unlearner | None],
    budget: Budget,
    size: int,
    rng: np.random.Generator,
) -> _Block:
    drawn = draw_data_sets(environment, model, request, rng, size)
    part_seed = int(rng.integers(2**63))  # the same choice of U′ for every mixing, whatever else is evaluated
    block: _Block = {}
    for key, unlearner in unlearners.items():
        learner = bound_learner(unlearner, model.n)
        if unlearner is None:
            p = served(learner, drawn.statistics)
        else:
            method = unlearner
            if isinstance(unlearner, Mixing) and (drawn.request.binary or drawn.gone_one_by_one):
                method = _with_drawn_part(unlearner, drawn, generator(part_seed))
            p = method.release(learner, drawn.statistics, drawn.request, budget).probabilities
        block[key] = _summary(p, environment, drawn.short_share)
    return block


def _with_drawn_part(mixing: Mixing, drawn: Drawn, rng: np.random.Generator) -> Mixing:
    """Draw the part U′ that mixing rolls back first: cheaper than integrating it out for every data set."""
    records = drawn.request.records
    first = mixing.rolled_back_first(records.counts)
    if drawn.request.binary:
        ones = records.sums // UNIT
        part = rng.hypergeometric(ones, records.counts - ones, first) * UNIT
    else:  # the deleted records are in random order: the first of them are as good a choice as any
        part = np.zeros_like(first)
        for arm, sums in drawn.gone_one_by_one.items():
            part[:, arm] = np.take_along_axis(sums, first[:, arm, None], axis=1)[:, 0]
    chosen = DeletionRequest(ArmStatistics(records.actions, first, part), drawn.request.binary)
    return replace(mixing, ratio=None, rolled_back=chosen)


def _summary(p: FloatArray, environment: Environment, short: float) -> tuple[FloatArray, float, float]:
    return p.mean(axis=0), float((p @ environment.gaps).var()), short


def _gathered(
    blocks: list[tuple[FloatArray, float, float]], environment: Environment, protocol: str, size: int
) -> Evaluation:
    """Put equal blocks together; the variance is that within and between them."""
    means = np.array([p for p, _, _ in blocks])
    losses = means @ environment.gaps
    variance = float(np.mean([within for _, within, _ in blocks]) + losses.var())
    datasets = size * len(blocks)
    return Evaluation(
        suboptimality=float(losses.mean()),
        standard_error=math.sqrt(variance / datasets),
        protocol=protocol,
        probabilities=means.mean(axis=0),
        datasets=datasets,
        short_share=float(np.mean([short for *_, short in blocks])),
        blocks=losses,
    )
