"""The options that several commands share, and how they become values of the library."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia import datasets
from armnesia.cli.main import load_beforehand
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LEARNERS, ConfidenceLearner, Learner
from armnesia.logs import Log, read_log
from armnesia.privacy import Budget
from armnesia.unlearners import UNLEARNERS, ImitationRollback, Unlearner
from armnesia.unlearners.predictive import PREDICTIVES

BUNDLED = "flights"

LogArgument = Annotated[
    str, typer.Argument(metavar="LOG", help=f"A CSV or Parquet file, or '{BUNDLED}' for the bundled log.")
]
LogOrVault = Annotated[
    str | None, typer.Argument(metavar="LOG", help="A log, as in other commands; without it, the vault.")
]
ActionColumn = Annotated[str, typer.Option("--action", help="Column of the action.")]
RewardColumn = Annotated[str, typer.Option("--reward", help="Column of the reward.")]
UserColumn = Annotated[str, typer.Option("--user-column", help="Column of the user.")]
Actions = Annotated[str | None, typer.Option(help="The whole action set, in order: A,B,C.")]
RewardRange = Annotated[str, typer.Option(help="Lowest and highest possible reward: 0,1.")]
LearnerName = Annotated[str | None, typer.Option("--learner", help=f"One of {', '.join(LEARNERS)}.")]
Confidence = Annotated[float | None, typer.Option(help="The LCB level τ; 1/N if not given.")]
Users = Annotated[list[str] | None, typer.Option("--user", help="Whose records to forget (repeatable).")]
Rows = Annotated[str | None, typer.Option(help="Which rows to forget, from 0: 3,17,20.")]
UnlearnerName = Annotated[str, typer.Option("--unlearner", help=f"One of {', '.join(UNLEARNERS)}.")]
Epsilon = Annotated[float | None, typer.Option(help="Privacy ε.")]
Delta = Annotated[float | None, typer.Option(help="Privacy δ.")]
Gamma = Annotated[float | None, typer.Option(help="Noise γ = σ/Δ instead of ε.")]
ThresholdOption = Annotated[str | None, typer.Option("--threshold", help="γ₀: paper or exact.")]
ThresholdScale = Annotated[float | None, typer.Option(help="Factor on γ₀ (1.3 in the paper).")]
SensitivityOption = Annotated[str | None, typer.Option("--sensitivity", help="Δ: paper or exact.")]
Ratio = Annotated[float | None, typer.Option(help="Mixing: share of the request that is rolled back.")]
AssumedShare = Annotated[
    float | None, typer.Option(help="Tilt: judge as if this share of every arm had been deleted.")
]
PredictiveName = Annotated[
    str | None, typer.Option("--predictive", help=f"Tilt: {' or '.join(PREDICTIVES)}, its guess of π(D).")
]
Joint = Annotated[bool | None, typer.Option("--joint/--no-joint", help="Gaussian: calibrate arms jointly.")]
Picture = Annotated[Path | None, typer.Option(help="Save a picture here (.png, .svg or .pdf).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


def open_log(
    source: str, action: str, reward: str, user: str | None, actions: str | None, reward_range: str
) -> Log:
    """Read the log that a command names."""
    if source == BUNDLED and not Path(source).exists():
        if (action, reward, actions, reward_range) != ("action", "reward", None, "0,1"):
            raise InvalidInputError(
                f"the bundled log {BUNDLED!r} has its own columns, actions and rewards:"
                " leave --action, --reward, --actions and --reward-range out"
            )
        return datasets.flights()
    load_beforehand("duckdb")
    return read_log(
        source,
        action=action,
        reward=reward,
        user=user,
        actions=action_labels(actions),
        reward_range=two_numbers(reward_range),
    )


def make_learner(
    name: str | None, confidence: float | None, statistics: ArmStatistics, unlearner: str | None = None
) -> Learner:
    """The named learner, bound to the statistics of D."""
    if name is None:
        name = "imitation" if unlearner == ImitationRollback.name else "lcb"
    learner = _named("--learner", LEARNERS, name)
    if confidence is not None and not issubclass(learner, ConfidenceLearner):
        raise InvalidInputError(f"--confidence belongs to lcb and kl_lcb; got it with {name}")
    made: Learner = learner() if confidence is None else learner(confidence=confidence)
    return made.bind(statistics)


@dataclass(frozen=True)
class WhatToForget:
    """The records that a command names: users, or rows."""

    users: list[str] | None
    rows: str | None

    def __post_init__(self) -> None:
        if bool(self.users) == (self.rows is not None):
            raise InvalidInputError("say what to forget: either --user (repeatable) or --rows, not both")

    def request(self, log: Log) -> DeletionRequest:
        """Look the records up in the log."""
        if self.users:
            return log.request(users=self.users)
        try:
            numbers = [int(number) for number in (self.rows or "").split(",")]
        except ValueError:
            raise InvalidInputError(
                f"--rows must be whole numbers such as 3,17,20; got {self.rows!r}"
            ) from None
        return log.request(rows=numbers)


def make_unlearner(name: str, **options: Any) -> Unlearner:
    """The named unlearner with the options given; an option it does not have is refused."""
    cls = _named("--unlearner", UNLEARNERS, name)
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in option_names(cls):
            owners = [other for other, kind in UNLEARNERS.items() if key in option_names(kind)]
            raise InvalidInputError(f"{name} has no option {key}; it belongs to {', '.join(owners)}")
    made: Unlearner = cls(**given)
    return made


def make_budget(
    epsilon: float | None, delta: float | None, gamma: float | None, unlearner: type[Unlearner]
) -> Budget:
    """The budget from --epsilon and --delta, or --gamma and --delta; (0, 0) where none is needed."""
    match epsilon, delta, gamma:
        case None, None, None if not unlearner.needs_budget:
            return Budget(epsilon=0.0, delta=0.0)
        case float(), float(), None:
            return Budget(epsilon=epsilon, delta=delta)
        case None, float(), float():
            return Budget.from_gamma(gamma, delta=delta)
    given = {"--epsilon": epsilon, "--delta": delta, "--gamma": gamma}
    got = ", ".join(f"{option} {value:g}" for option, value in given.items() if value is not None)
    raise InvalidInputError(
        f"a budget is --epsilon with --delta, or --gamma with --delta; got {got or 'none'}"
    )


def action_labels(given: str | None) -> tuple[str, ...] | None:
    """The labels that --actions names; an empty one would be an arm that nobody can serve.

    >>> action_labels("A, B")
    ('A', 'B')
    """
    if given is None:
        return None
    labels = tuple(label.strip() for label in given.split(","))
    if "" in labels:
        raise InvalidInputError(f"--actions must be labels such as A,B,C, none of them empty; got {given!r}")
    return labels


def two_numbers(given: str) -> tuple[float, float]:
    """The range of rewards that --reward-range names.

    >>> two_numbers("0,1")
    (0.0, 1.0)
    """
    try:
        low, high = (float(number) for number in given.split(","))
    except ValueError:
        raise InvalidInputError(f"--reward-range must be two numbers such as 0,1; got {given!r}") from None
    return low, high


def _named(option: str, registry: dict[str, Any], name: str) -> Any:
    if name not in registry:
        raise InvalidInputError(f"{option} must be one of {', '.join(registry)}; got {name!r}")
    return registry[name]


def option_names(cls: type[Unlearner]) -> list[str]:
    """The options that an unlearner has: its fields."""
    return [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
