"""Expected sub-optimality of the released arm, exact or sampled."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np

from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.parameters import parameter_names
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB, LEARNERS, Learner
from armnesia.privacy import Budget
from armnesia.simulation.case import Case, Methods
from armnesia.simulation.draws import Draws
from armnesia.simulation.environment import Environment
from armnesia.simulation.estimates import Evaluation
from armnesia.simulation.models import DataModel
from armnesia.simulation.parallel import workers
from armnesia.simulation.requests import RequestModel
from armnesia.unlearners import Unlearner

EvaluationProtocol = Literal["auto", "exact", "sampled"]
_MOST_WORK: dict[str, float] = {"auto": 5e5, "exact": 2e6}
"""For a sum over all count vectors, in the time of so many data sets: one second, and four."""


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
    accuracy: float = 0.01,
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> Evaluation:
    """Evaluate one unlearner with a learner; None is the oracle: no deletion, same learner.

    >>> from armnesia.simulation import FixedSample, OneArm
    >>> from armnesia.unlearners import Adaptive
    >>> environment = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])
    >>> result = evaluate(
    ...     environment, FixedSample.round_robin(1000, 5), OneArm(0, 80), Adaptive.as_in_the_paper(),
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
        accuracy=accuracy,
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
    accuracy: float = 0.01,
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Evaluation]:
    """Evaluate several unlearners on the same data sets (common random numbers).

    `learner` is an instance or a registered name; None is the default learner of each unlearner. `confidence`
    is its τ; without one it is bound as 1/N. The oracle decides with the same learner.

    `"exact"` sums over all binomial outcomes: Bernoulli rewards, requests of given sizes. In the distribution
    model it does so for every count vector, if these are few; for imitation, by the law of the counts; and
    else it is exact given the counts, which are drawn. `"sampled"` draws data sets; release probabilities,
    not draws, are averaged. `"auto"` is exact where that takes about a second, and else takes the cheaper of
    the two ways of drawing. A pilot, whose draws are not used, decides how many are drawn, so that the
    standard error is about `accuracy` times the value (at most 2 million data sets, or 1,024 to 4,096 count
    vectors). With `datasets`, so many data sets are drawn; by `"exact"`, count vectors, but at least 1,024.

    The result names the protocol that was used. It depends on the seed, on `datasets` and, if a pilot
    decides, on the other unlearners of the call that are drawn. It does not depend on `n_jobs`, the number of
    processes, nor on the backend of joblib: if one is active, the blocks are drawn there.
    """
    model.check(environment)
    if datasets is not None and (not isinstance(datasets, Integral) or datasets < 1):
        raise InvalidInputError(f"datasets must be a whole number, 1 or more; got {datasets!r}")
    if not (isinstance(accuracy, Real) and 0 < accuracy < 1):
        raise InvalidInputError(f"accuracy must be between 0 and 1, such as 0.01; got {accuracy!r}")
    if protocol not in get_args(EvaluationProtocol):
        raise InvalidInputError(f"protocol must be 'auto', 'exact' or 'sampled'; got {protocol!r}")
    methods = _methods(unlearners, learner, confidence, model)
    case = Case(environment, model, request, methods, budget)
    known: dict[str, Evaluation] = {}
    if protocol != "sampled":
        for key in methods:
            try:
                known[key] = case.exact(key, _MOST_WORK[protocol])
            except UnsupportedError:
                if protocol == "exact" and not case.has_vectors:
                    raise
    unknown = [key for key in methods if key not in known]
    if unknown:
        with workers(n_jobs) as those:
            draws = Draws(case.of(unknown), those, seed, accuracy, progress)
            known |= draws.evaluations(protocol, None if datasets is None else int(datasets))
    return {key: known[key] for key in methods}


def _methods(
    unlearners: Mapping[str, Unlearner | None],
    learner: Learner | str | None,
    confidence: float | None,
    model: DataModel,
) -> Methods:
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
            raise UnsupportedError(f"the learner {learner.name!r} takes no confidence; got {confidence!r}")
        learner = replace(learner, confidence=confidence)  # type: ignore[call-arg]
    return learner.bind(ArmStatistics((0,), np.array([n]), np.array([0])))
