"""The command `research evaluate`."""

from typing import Annotated, Any, cast

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, progress_bar, table
from armnesia.cli.parameters import check_owners, of_kind, with_options_of, with_parameters
from armnesia.cli.research.setting import (
    PAPER_MEANS,
    Accuracy,
    Backend,
    Datasets,
    Means,
    Protocol,
    SettingOptions,
    as_in_the_paper,
    numbers,
    setting_options,
)
from armnesia.learners import LCB, LEARNERS
from armnesia.simulation import (
    DataModel,
    Environment,
    Evaluation,
    FixedSample,
    SeveralArms,
    evaluate_all,
)
from armnesia.simulation.parallel import backend_of_joblib
from armnesia.simulation.sweep import ORACLE, data_model
from armnesia.unlearners import UNLEARNERS


@with_parameters(UNLEARNERS, LEARNERS, without={"default_action"})
@with_options_of(setting_options, "setting")
def evaluate(
    setting: SettingOptions,
    unlearner: Annotated[
        str, typer.Option(metavar="NAME", help=f"{ORACLE}, one of {', '.join(UNLEARNERS)}, or MODULE:CLASS.")
    ] = "adaptive",
    learner: opt.LearnerName = None,
    means: Means = PAPER_MEANS,
    parameters: Any = None,
    protocol: Protocol = "auto",
    accuracy: Accuracy = 0.01,
    datasets: Datasets = None,
    seed: opt.Seed = 0,
    n_jobs: Annotated[int, typer.Option(min=1, help="Processes, where sampled.")] = 1,
    backend: Backend = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compute the expected sub-optimality of an unlearner.

    In a simulated setting, by default the paper's.
    """
    kind = None if unlearner == ORACLE else opt.unlearner_kind(unlearner)
    of_learner = opt.learner_kind(learner, LCB if kind is None else kind.default_learner)
    check_owners(parameters, (UNLEARNERS, [unlearner]), (LEARNERS, [of_learner.name]))
    method = None if kind is None else as_in_the_paper(kind, parameters)
    environment = Environment.bernoulli(numbers("--means", means))
    if setting.counts is not None:
        model: DataModel = FixedSample(setting.counts)
    else:
        model = data_model(setting.model, setting.size, environment, setting.c_star)
    with backend_of_joblib(backend), progress_bar(quiet=as_json) as bar:
        task = bar.add_task("evaluating", total=None)
        result = evaluate_all(
            environment,
            model,
            SeveralArms(setting.deletions),
            {unlearner: method},
            setting.budget,
            learner=of_learner(**of_kind(parameters, of_learner)),
            protocol=cast(Any, protocol),  # any text; evaluate_all refuses an unknown one
            accuracy=accuracy,
            datasets=datasets,
            seed=seed,
            n_jobs=n_jobs,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )[unlearner]
    rows = [
        [arm, mean, p]
        for arm, (mean, p) in enumerate(zip(environment.means, result.probabilities, strict=True))
    ]
    print_result(
        {"unlearner": unlearner, "learner": of_learner.name, **result.to_dict()},
        as_json,
        table(f"{unlearner}: the released arm, over all data sets", ["arm", "mean", "probability"], rows),
        f"Sub-optimality {_shown(result.suboptimality)} ± {result.standard_error:.2g} ({_protocol(result)})",
        *_interval_lines(result),
        *_short_lines(result),
    )


def _shown(value: float) -> str:
    """Six places, or three digits of a value that they would hide."""
    return f"{value:.3g}" if 0 < value < 1e-4 else f"{value:.6f}"


def _interval_lines(result: Evaluation) -> list[str]:
    """The interval of what was drawn, with three digits: a rare loss is not printed as 0."""
    low, high = result.interval
    return [] if low == high else [f"95 % interval: {low:.3g} to {high:.3g}"]


def _short_lines(result: Evaluation) -> list[str]:
    """How often the request was for more records than there were."""
    if not result.short_share:
        return []
    return [f"{result.short_share:.0%} of the data sets have fewer records than requested; all are deleted"]


def _protocol(result: Evaluation) -> str:
    """The protocol that was used, with the number of draws."""
    drawn = {"sampled": "data sets", "exact given the counts": "vectors of counts"}.get(result.protocol)
    return result.protocol if drawn is None else f"{result.protocol}: {result.datasets:,} {drawn}"
