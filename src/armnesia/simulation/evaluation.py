"""Expected sub-optimality of the released arm, exact or sampled."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.parameters import parameter_names
from armnesia.core.randomness import generator, generators
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import LCB, LEARNERS, Learner
from armnesia.privacy import Budget
from armnesia.simulation.drawing import Drawn, draw_data_sets
from armnesia.simulation.environment import Environment
from armnesia.simulation.estimates import Evaluation, Summary, gathered, summarised
from armnesia.simulation.exact import exact_release, takes_seconds
from armnesia.simulation.models import DataModel, FixedSample
from armnesia.simulation.parallel import workers
from armnesia.simulation.requests import RequestModel, SeveralArms
from armnesia.unlearners import Unlearner
from armnesia.unlearners.base import decision_distribution

EvaluationProtocol = Literal["auto", "exact", "sampled"]
ACCURATE = 0.01
"""The relative standard error at which `"auto"` stops drawing."""
_BLOCK = 10_000
_COUNT_VECTORS_PER_BLOCK = 20
_FEWEST_BLOCKS, _MOST_BLOCKS = 10, 200
_DEFAULT_DATASETS = {"sampled": 100_000, "exact given the counts": 400}


def evaluate(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    unlearner: Unlearner | None,
    budget: Budget,
    *,
    learner: Learner | str | None = None,
    confidence: float | None = None,
    protocol: EvaluationProtocol = "auto",
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> Evaluation:
    """Evaluate one unlearner with a learner; None is the oracle: no deletion, same learner.

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
        learner=learner,
        confidence=confidence,
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
    learner: Learner | str | None = None,
    confidence: float | None = None,
    protocol: EvaluationProtocol = "auto",
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Evaluation]:
    """Evaluate several unlearners on the same data sets (common random numbers).

    `learner` is an instance or a registered name; None is the default learner of each unlearner. `confidence`
    is its τ; without one it is bound as 1/N. The oracle decides with the same learner.

    `"exact"` sums over all binomial outcomes: fixed counts, Bernoulli rewards, requests of given sizes. In
    the distribution model it does so given the counts, and averages over `datasets` drawn count vectors.
    `"sampled"` draws `datasets` data sets; release probabilities, not draws, are averaged. `"auto"` is exact
    where that is known for all the unlearners and sampled otherwise; if `datasets` is not given, it draws
    until every standard error is at most 1 % of its value (at most 2 million data sets). The result names
    the protocol that was used; it depends on the seed and not on `n_jobs`, the number of processes, nor on
    the backend of joblib: if one is active (`joblib.parallel_config("dask")`), the blocks are drawn there.
    """
    model.check(environment)
    if datasets is not None and (not isinstance(datasets, Integral) or datasets < 1):
        raise InvalidInputError(f"datasets must be a whole number, 1 or more; got {datasets!r}")
    if protocol not in get_args(EvaluationProtocol):
        raise InvalidInputError(f"protocol must be 'auto', 'exact' or 'sampled'; got {protocol!r}")
    methods = _methods(unlearners, learner, confidence, model)
    case = environment, model, request, methods, budget
    draw = partial(
        _drawn,
        datasets=datasets,
        until_accurate=protocol == "auto",
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )
    if protocol != "sampled":
        try:
            if not isinstance(request, SeveralArms) or request.choice != "random":
                raise UnsupportedError(
                    "exact evaluation needs fixed numbers of randomly chosen records;"
                    " use the sampled protocol"
                )
            if isinstance(model, FixedSample):
                return _exact(environment, model, request, methods, budget)
            n_arms = len(request.deletions)
            if protocol == "auto" and any(takes_seconds(each, n_arms) for each in unlearners.values()):
                raise UnsupportedError("exact evaluation for each count vector would take long")
            return draw(case, _exact_block, "exact given the counts", _COUNT_VECTORS_PER_BLOCK)
        except UnsupportedError:
            if protocol == "exact":
                raise
    return draw(case, _sampled_block, "sampled", _BLOCK)


_Method = tuple[Unlearner | None, Learner]
"""An unlearner, or None for the oracle, and its learner, bound."""
_Methods = dict[str, _Method]


def _methods(
    unlearners: Mapping[str, Unlearner | None],
    learner: Learner | str | None,
    confidence: float | None,
    model: DataModel,
) -> _Methods:
    """Each unlearner with its learner; one that does not support it is refused by its key."""
    methods = {}
    for key, unlearner in unlearners.items():
        bound = bound_learner(unlearner, model.n, learner, confidence)
        if unlearner is not None:
            try:
                unlearner.check_supported(bound, np.zeros(1, dtype=np.int64))
            except UnsupportedError as error:
                if str(error).startswith(key):  # it names this one already
                    raise
                raise UnsupportedError(f"{key}: {error}") from None
        methods[key] = unlearner, bound
    return methods


def bound_learner(
    unlearner: Unlearner | None,
    n: int,
    learner: Learner | str | None = None,
    confidence: float | None = None,
) -> Learner:
    """The learner of a simulation with N records, bound: τ = 1/N, unless it has another confidence.

    >>> bound_learner(None, 100, "kl_lcb"), bound_learner(None, 100, confidence=0.05)
    (KLLCB(default_action=None, confidence=0.01), LCB(default_action=None, confidence=0.05))
    """
    if learner is None:
        learner = (LCB if unlearner is None else unlearner.default_learner)()
    elif isinstance(learner, str):
        if learner not in LEARNERS:
            raise InvalidInputError(f"learner must be one of {', '.join(LEARNERS)}; got {learner!r}")
        learner = LEARNERS[learner]()
    elif not isinstance(learner, Learner):
        raise InvalidInputError(
            f"learner must be a Learner, such as LCB(), or the name of one; got {type(learner).__name__}"
        )
    if confidence is not None:
        if "confidence" not in parameter_names(type(learner)):
            raise InvalidInputError(f"the learner {learner.name!r} takes no confidence; got {confidence!r}")
        learner = replace(learner, confidence=confidence)  # type: ignore[call-arg]
    return learner.bind(ArmStatistics((0,), np.array([n]), np.array([0])))


@runtime_checkable
class ChoosesPart(Protocol):
    """An unlearner that rolls back a random part U′ of the request first, as mixing does."""

    def rolled_back_first(self, deleted: IntArray) -> IntArray:
        """The size of U′ per arm."""

    def with_rolled_back(self, part: DeletionRequest) -> Unlearner:
        """The unlearner with U′ chosen."""


_Block = dict[str, Summary]
_Case = tuple[Environment, DataModel, RequestModel, _Methods, Budget]


def _drawn(
    case: _Case,
    work: Callable[..., _Block],
    name: str,
    size: int,
    *,
    datasets: int | None,
    until_accurate: bool,
    seed: int,
    n_jobs: int,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Evaluation]:
    """Blocks of data sets: the given number, or until the errors are small."""
    growing = until_accurate and datasets is None
    if growing:
        n_blocks = _FEWEST_BLOCKS
    else:
        needed = _DEFAULT_DATASETS[name] if datasets is None else int(datasets)
        n_blocks = max(2, math.ceil(needed / size))
        size = math.ceil(needed / n_blocks)
    run = partial(work, *case, size)
    found: list[_Block] = []
    with workers(n_jobs) as those:
        while True:
            for block in those.map(run, generators(seed, n_blocks)[len(found) :]):
                found.append(block)
                if progress is not None:
                    progress(len(found), n_blocks)
            results = {key: gathered([block[key] for block in found], case[0], name, size) for key in case[3]}
            missing = max((result.relative_error / ACCURATE for result in results.values()), default=0.0)
            if not growing or missing <= 1 or n_blocks == _MOST_BLOCKS:
                return results
            # A tenth more than the error seems to need, so that a further round is rarely needed.
            n_blocks = min(_MOST_BLOCKS, math.ceil(1.1 * missing**2 * n_blocks))


def _exact(
    environment: Environment,
    model: FixedSample,
    request: SeveralArms,
    methods: _Methods,
    budget: Budget,
) -> dict[str, Evaluation]:
    counts = np.array(model.counts, dtype=np.int64)
    results = {}
    for key, method in methods.items():
        p, short = _exact_given(environment, counts, request, method, budget)
        loss = float(p @ environment.gaps)
        results[key] = Evaluation(loss, 0.0, "exact", p, 0, short, np.array([loss]))
    return results


def _exact_given(
    environment: Environment,
    counts: IntArray,
    request: RequestModel,
    method: _Method,
    budget: Budget,
) -> tuple[FloatArray, float]:
    """Release probabilities given the counts; a request of fixed size needs no randomness."""
    deleted, short = request.draw_deleted(generator(0), counts[None])
    return exact_release(environment, counts, deleted[0], *method, budget), short


def _exact_block(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    methods: _Methods,
    budget: Budget,
    size: int,
    rng: np.random.Generator,
) -> _Block:
    vectors = model.draw_counts(rng, size)
    block: _Block = {}
    for key, method in methods.items():
        found = [_exact_given(environment, counts, request, method, budget) for counts in vectors]
        p = np.array([probabilities for probabilities, _ in found])
        block[key] = summarised(p, environment, float(np.mean([short for _, short in found])))
    return block


def _sampled_block(
    environment: Environment,
    model: DataModel,
    request: RequestModel,
    methods: _Methods,
    budget: Budget,
    size: int,
    rng: np.random.Generator,
) -> _Block:
    drawn = draw_data_sets(environment, model, request, rng, size)
    part_seed = int(rng.integers(2**63))  # every mixing gets the same U′, whatever else is evaluated
    block: _Block = {}
    for key, (unlearner, learner) in methods.items():
        if unlearner is None:
            p = decision_distribution(learner, drawn.statistics)
        else:
            method = unlearner
            if isinstance(unlearner, ChoosesPart) and (drawn.request.binary or drawn.deleted_prefix_sums):
                method = _with_drawn_part(unlearner, drawn, generator(part_seed))
            p = method.release(learner, drawn.statistics, drawn.request, budget).probabilities
        block[key] = summarised(p, environment, drawn.short_share)
    return block


def _with_drawn_part(unlearner: ChoosesPart, drawn: Drawn, rng: np.random.Generator) -> Unlearner:
    """Draw the part U′ that is rolled back first, which is cheaper than to integrate over it."""
    records = drawn.request.records
    first = unlearner.rolled_back_first(records.counts)
    if drawn.request.binary:
        ones = records.sums // UNIT
        part = rng.hypergeometric(ones, records.counts - ones, first) * UNIT
    else:  # the deleted records are in random order, so the first of them are a uniform choice
        part = np.zeros_like(first)
        for arm, sums in drawn.deleted_prefix_sums.items():
            part[:, arm] = np.take_along_axis(sums, first[:, arm, None], axis=1)[:, 0]
    chosen = DeletionRequest(ArmStatistics(records.actions, first, part), drawn.request.binary)
    return unlearner.with_rolled_back(chosen)
