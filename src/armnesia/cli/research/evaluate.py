"""Commands for single values of simulated worlds: evaluate, bounds."""

from typing import Annotated, Any, cast

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import emit, progress_bar, table
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
from armnesia.simulation import (
    DataModel,
    DistributionModel,
    Environment,
    Evaluation,
    FixedSample,
    SeveralArms,
    evaluate_all,
)
from armnesia.theory import Setting
from armnesia.theory import bounds as all_bounds
from armnesia.unlearners import UNLEARNERS, Unlearner

AS_IN_THE_PAPER = {"threshold": "paper", "threshold_scale": 1.3, "sensitivity": "paper", "joint": False}
"""What these commands assume where nothing else is said, because they reproduce the paper."""

Model = Annotated[str, typer.Option(help="fixed or distribution.")]
N = Annotated[int | None, typer.Option("--n", help="Number of records.")]
Counts = Annotated[str | None, typer.Option(help="Records of each arm, instead of --n: 200,300,….")]
Means = Annotated[str, typer.Option(help="Means of the Bernoulli arms.")]
Arms = Annotated[
    str, typer.Option("--arms", "--arm", help="Arm or arms whose records are deleted: 0 or 0,1.")
]
Deletions = Annotated[str, typer.Option(help="Records deleted, in all listed arms or of each: 80 or 80,20.")]
CStar = Annotated[float, typer.Option(help="Coverage C* of the distribution model.")]
DeltaOrDefault = Annotated[float, typer.Option(help="Privacy δ.")]


def evaluate(
    unlearner: Annotated[str, typer.Option(help=f"oracle, or one of {', '.join(UNLEARNERS)}.")] = "adaptive",
    model: Model = "fixed",
    n: N = None,
    counts: Counts = None,
    means: Means = "0.10,0.08,0.06,0.04,0.02",
    arms: Arms = "0",
    deletions: Deletions = "80",
    gamma: opt.Gamma = None,
    epsilon: opt.Epsilon = None,
    delta: DeltaOrDefault = 1e-5,
    c_star: CStar = 5.0,
    threshold: opt.ThresholdOption = None,
    threshold_scale: opt.ThresholdScale = None,
    sensitivity: opt.SensitivityOption = None,
    ratio: opt.Ratio = None,
    joint: opt.Joint = None,
    assumed_share: opt.AssumedShare = None,
    predictive: opt.PredictiveName = None,
    protocol: Annotated[
        str, typer.Option(help="exact, sampled, or auto: exact where that is known, else to 1 %.")
    ] = "auto",
    datasets: Annotated[int | None, typer.Option(help="Data sets (or count vectors) drawn.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is sampled.")] = 0,
    n_jobs: Annotated[int, typer.Option(min=1, help="Processes, where sampled.")] = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Expected sub-optimality of an unlearner in a simulated world, by default as in the paper."""
    environment = Environment.bernoulli(_numbers("--means", means))
    check_seed(seed)
    variants = {
        "threshold": threshold,
        "threshold_scale": threshold_scale,
        "sensitivity": sensitivity,
        "ratio": ratio,
        "joint": joint,
        "assumed_share": assumed_share,
        "predictive": predictive,
    }
    with progress_bar(quiet=as_json) as bar:
        task = bar.add_task("evaluating", total=None)
        result = evaluate_all(
            environment,
            _model(model, n, counts, c_star, environment),
            SeveralArms(_deletions(arms, deletions)),
            {unlearner: _unlearner(unlearner, variants)},
            _budget(epsilon, delta, gamma),
            protocol=cast(Any, protocol),  # any text comes in; what is not known is refused there
            datasets=datasets,
            seed=seed,
            n_jobs=n_jobs,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )[unlearner]
    facts = {
        "unlearner": unlearner,
        "suboptimality": result.suboptimality,
        "standard_error": result.standard_error,
        "protocol": result.protocol,
        "datasets": result.datasets,
        "short_share": result.short_share,
        "probabilities": result.probabilities,
    }
    rows = [
        [arm, mean, p]
        for arm, (mean, p) in enumerate(zip(environment.means, result.probabilities, strict=True))
    ]
    emit(
        facts,
        as_json,
        table(f"{unlearner}: the arm released, over all data sets", ["arm", "mean", "probability"], rows),
        f"Sub-optimality {result.suboptimality:.6f} ± {result.standard_error:.2g} ({_how(result)})",
        *(
            [f"In {result.short_share:.0%} of the data sets there was less to delete."]
            if result.short_share
            else []
        ),
    )


def _how(result: Evaluation) -> str:
    """The protocol that was used, with how much was drawn."""
    drawn = {"sampled": "data sets", "exact given the counts": "vectors of counts"}.get(result.protocol)
    return result.protocol if drawn is None else f"{result.protocol}: {result.datasets:,} {drawn}"


def bounds(
    model: Model = "fixed",
    n: N = None,
    counts: Counts = None,
    n_actions: Annotated[int, typer.Option(help="Number of arms, with --n.")] = 5,
    arms: Arms = "0",
    deletions: Deletions = "80",
    gamma: opt.Gamma = None,
    epsilon: opt.Epsilon = None,
    delta: DeltaOrDefault = 1e-5,
    c_star: CStar = 5.0,
    best: Annotated[int | None, typer.Option(help="The best arm, if known.")] = None,
    threshold: opt.ThresholdOption = None,
    threshold_scale: opt.ThresholdScale = None,
    sensitivity: opt.SensitivityOption = None,
    form: Annotated[str, typer.Option(help="printed, derived or exact constants.")] = "derived",
    as_json: opt.AsJson = False,
) -> None:
    """Every bound of the paper for a setting, with the conditions that it needs."""
    budget = _budget(epsilon, delta, gamma)
    variants: dict[str, Any] = {
        "threshold": threshold or AS_IN_THE_PAPER["threshold"],
        "threshold_scale": AS_IN_THE_PAPER["threshold_scale"] if threshold_scale is None else threshold_scale,
        "sensitivity": sensitivity or AS_IN_THE_PAPER["sensitivity"],
    }
    asked = _deletions(arms, deletions)
    _check_sizes(model, n, counts)
    if model == "fixed":
        if counts is None:
            sizes = FixedSample.round_robin(_required_n(n), n_actions).counts
        else:
            sizes = tuple(_whole_numbers("--counts", counts))
        setting = Setting.fixed(counts=sizes, deletions=asked, budget=budget, best=best, **variants)
    elif model == "distribution":
        setting = Setting.distribution(
            n=_required_n(n),
            n_actions=n_actions,
            c_star=c_star,
            deletions=asked,
            budget=budget,
            best=best,
            **variants,
        )
    else:
        raise InvalidInputError(f"--model must be fixed or distribution; got {model!r}")
    found = all_bounds(setting, form=cast(Any, form))
    facts = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "gamma": budget.gamma,
        "bounds": [bound.to_dict() for bound in found],
    }
    rows = [
        [
            bound.kind,
            bound.name,
            bound.value,
            bound.holds,
            "; ".join(condition.text for condition in bound.unmet),
        ]
        for bound in found
    ]
    emit(facts, as_json, table("Bounds", ["", "bound", "value", "proved here", "what is missing"], rows))


def _budget(epsilon: float | None, delta: float, gamma: float | None) -> Budget:
    if epsilon is not None and gamma is not None:
        raise InvalidInputError("give --epsilon or --gamma, not both")
    if epsilon is not None:
        return Budget(epsilon=epsilon, delta=delta)
    return Budget.from_gamma(0.5 if gamma is None else gamma, delta=delta)


def _unlearner(name: str, given: dict[str, Any]) -> Unlearner | None:
    if name == "oracle":
        return None
    known = UNLEARNERS.get(name)
    fields = [] if known is None else opt.option_names(known)
    assumed = {key: value for key, value in AS_IN_THE_PAPER.items() if key in fields}
    return opt.make_unlearner(
        name, **(assumed | {key: value for key, value in given.items() if value is not None})
    )


def _model(
    name: str, n: int | None, counts: str | None, c_star: float, environment: Environment
) -> DataModel:
    _check_sizes(name, n, counts)
    if name == "fixed":
        if counts is not None:
            return FixedSample(tuple(_whole_numbers("--counts", counts)))
        return FixedSample.round_robin(_required_n(n), environment.n_actions)
    if name != "distribution":
        raise InvalidInputError(f"--model must be fixed or distribution; got {name!r}")
    return DistributionModel.with_coverage(
        _required_n(n), n_actions=environment.n_actions, best=environment.best, c_star=c_star
    )


def check_seed(seed: int) -> None:
    """Refuse what cannot seed a generator."""
    if seed < 0:
        raise InvalidInputError(f"--seed must be 0 or more; got {seed}")


def _check_sizes(model: str, n: int | None, counts: str | None) -> None:
    if counts is not None and (n is not None or model == "distribution"):
        raise InvalidInputError("--counts belongs to the fixed-sample model, without --n")


def _required_n(n: int | None) -> int:
    if n is None:
        raise InvalidInputError(
            "say how many records there are: --n 3000, or --counts in the fixed-sample model"
        )
    return n


def _deletions(arms: str, deletions: str) -> dict[int, int]:
    which, ks = _whole_numbers("--arms", arms), _whole_numbers("--deletions", deletions)
    if len(ks) == 1:
        ks *= len(which)
    if len(ks) != len(which) or len(set(which)) != len(which):
        raise InvalidInputError(
            f"--deletions needs one number, or one for each of --arms {arms}; got {deletions}"
        )
    return dict(zip(which, ks, strict=True))


def _numbers(option: str, given: str) -> list[float]:
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} must be numbers such as 0.1,0.2; got {given!r}") from None


def _whole_numbers(option: str, given: str) -> list[int]:
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} must be whole numbers such as 3,17; got {given!r}") from None
