"""The options that several commands share, and how they become values of the library."""

import importlib
import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from armnesia import datasets
from armnesia.cli.interrupts import import_before_work
from armnesia.cli.parameters import check_owners, of_kind
from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import checked_reward_range
from armnesia.learners import LCB, LEARNERS, Learner
from armnesia.logs import IF_PRESENT, Log, open_source, read_opened
from armnesia.logs.keys import checked_keys
from armnesia.logs.source import Source
from armnesia.privacy import Budget
from armnesia.unlearners import UNLEARNERS, Unlearner

Kind = TypeVar("Kind")
BUNDLED = "flights"
LOG_HELP = (
    "CSV or Parquet files (a path, folder or glob), delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE, the URL of a"
    f" database with --table, or '{BUNDLED}' for the bundled log."
)
_LAKE_LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg.catalog"}

LogArgument = Annotated[str, typer.Argument(metavar="LOG", help=LOG_HELP)]
Table = Annotated[str | None, typer.Option("--table", help="The table, if LOG is the URL of a database.")]
ActionColumn = Annotated[str, typer.Option(help="Column of the action.")]
RewardColumn = Annotated[str, typer.Option(help="Column of the reward.")]
UserColumn = Annotated[
    str | None, typer.Option(help="Column of the user; if not given, 'user' if there is one.")
]
Actions = Annotated[str | None, typer.Option(help="The whole action set, in order: A,B,C.")]
ActionsFile = Annotated[
    Path | None, typer.Option(help="A UTF-8 file of the whole action set, one label per line.")
]
RewardRange = Annotated[
    str | None, typer.Option(help="Lowest and highest possible reward; 0,1 if not given.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Read only rows such as 'country = DE', 'age >= 18' (repeatable).",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="What separates the fields of CSV files; if not given, the header tells."),
]
LearnerName = Annotated[
    str | None,
    typer.Option(
        "--learner",
        metavar="|".join(LEARNERS),
        help="Or MODULE:CLASS; by default lcb, or what the unlearner needs.",
    ),
]
UnlearnerName = Annotated[
    str, typer.Option("--unlearner", metavar="NAME", help=f"One of {', '.join(UNLEARNERS)}, or MODULE:CLASS.")
]
Users = Annotated[list[str] | None, typer.Option("--user", help="A user, by their id (repeatable).")]
Epsilon = Annotated[float | None, typer.Option(help="Privacy ε.")]
Delta = Annotated[float | None, typer.Option(help="Privacy δ.")]
Gamma = Annotated[float | None, typer.Option(help="Noise γ = σ/Δ instead of ε.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is sampled.")]
Picture = Annotated[Path | None, typer.Option(help="Save a picture to this file (.png, .svg or .pdf).")]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", help="A key of decisions: a column, or one of numbers with edges, age:18,30 (repeatable)."
    ),
]
Over = Annotated[
    str,
    typer.Option(
        "--over", metavar="touched|all", help="With --by: the decisions that the budget is split over."
    ),
]
MemoryLimit = Annotated[str, typer.Option(help="How much memory DuckDB uses.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


@dataclass(frozen=True)
class LogOptions:
    """The options of a command that reads a log."""

    table: Table = None
    action_column: ActionColumn = "action"
    reward_column: RewardColumn = "reward"
    user_column: UserColumn = None
    actions: Actions = None
    actions_file: ActionsFile = None
    reward_range: RewardRange = None
    where: Where = None
    delimiter: Delimiter = None

    def read(self, log: str, *, with_users: bool, by: Sequence[str] | None = None) -> Log:
        """Read the log that a command names, which `by` will part."""
        own = (
            "columns, actions and rewards: leave --table, --action-column, --reward-column, --user-column,"
            " --actions, --actions-file, --reward-range, --where and --delimiter out"
        )
        if is_bundled(log, by_default=self == LogOptions(), own=own):
            return datasets.flights()
        declared = self.declared_actions()
        reward_range = self.declared_range() or (0.0, 1.0)
        return read_opened(
            self.open(log, with_users=with_users), declared, reward_range, by=checked_keys(by) if by else ()
        )

    @property
    def columns(self) -> "LogOptions":
        """Without what declares actions and rewards."""
        return replace(self, actions=None, actions_file=None, reward_range=None)

    def declared_actions(self) -> tuple[Hashable, ...] | None:
        """The actions that were given."""
        actions = declared_actions(self.actions, self.actions_file)
        return None if actions is None else checked_actions(actions)

    def declared_range(self) -> tuple[float, float] | None:
        """The range of rewards that was given."""
        return None if self.reward_range is None else checked_reward_range(two_numbers(self.reward_range))

    def open(self, log: str, *, with_users: bool) -> Source:
        """Open the log that a command names, and read no row of it."""
        import_engine(log)
        return open_source(
            log,
            action=self.action_column,
            reward=self.reward_column,
            user=self.user_column or (IF_PRESENT if with_users else None),
            table=self.table,
            where=self.where,
            delimiter=self.delimiter,
        )


def is_bundled(log: str, *, by_default: bool, own: str) -> bool:
    """Whether a command names the bundled log; if so, its options about columns must be the default ones.

    `own` completes the message: what the bundled log has of its own, and which options to leave out.

    >>> is_bundled("flights", by_default=True, own="columns"), is_bundled("log.csv", by_default=False, own="")
    (True, False)
    """
    if log != BUNDLED or Path(log).exists():
        return False
    if not by_default:
        raise InvalidInputError(f"the bundled log {BUNDLED!r} has its own {own}")
    return True


def import_engine(log: str) -> None:
    """Import what reads files and tables of lakes before work that Ctrl-C must be able to end."""
    word = log.partition(":")[0]
    if word in _LAKE_LIBRARIES:
        import_before_work(_LAKE_LIBRARIES[word])
    if word in _LAKE_LIBRARIES or "://" not in log:
        import_before_work("duckdb")


def declared_actions(actions: str | None, file: Path | None) -> tuple[str, ...] | None:
    """The action set that --actions or --actions-file declares; None if neither is given.

    >>> declared_actions("A, B", None)
    ('A', 'B')
    """
    if file is not None:
        if actions is not None:
            raise InvalidInputError("--actions and --actions-file both declare the action set; give one")
        return _labels_in(file)
    if actions is None:
        return None
    labels = tuple(label.strip() for label in actions.split(","))
    if "" in labels:
        raise InvalidInputError(
            f"--actions must be labels such as A,B,C, none of them empty; got {actions!r}"
        )
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


def unlearner_kind(name: str) -> type[Unlearner]:
    """The class of the unlearner that --unlearner names."""
    return _named("--unlearner", name, UNLEARNERS, Unlearner)


def learner_kind(name: str | None, default: type[Learner] = LCB) -> type[Learner]:
    """The class of the learner that --learner names."""
    return default if name is None else _named("--learner", name, LEARNERS, Learner)


def _named(option: str, name: str, registry: Mapping[str, type[Kind]], base: Any) -> type[Kind]:
    """A class of the registry, or one of a module that is installed or in the working folder."""
    if name in registry:
        return registry[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InvalidInputError(
            f"{option} must be one of {', '.join(registry)}, or MODULE:CLASS; got {name!r}"
        )
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise InvalidInputError(f"{option} {name} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise InvalidInputError(f"{option} must name a class that derives from {base.__name__}; got {name}")
    return found


def chosen_kinds(
    unlearner: str, learner: str | None, parameters: Mapping[str, Any]
) -> tuple[type[Unlearner], type[Learner]]:
    """The classes that --unlearner and --learner name; a parameter that neither of them has is refused."""
    kind = unlearner_kind(unlearner)
    of_learner = learner_kind(learner, kind.default_learner)
    check_owners(parameters, (UNLEARNERS, [unlearner]), (LEARNERS, [of_learner.name]))
    return kind, of_learner


def make_unlearner(kind: type[Unlearner], parameters: Mapping[str, Any]) -> Unlearner:
    """The unlearner with those of the given parameters that it has."""
    return kind(**of_kind(parameters, kind))


def make_learner(kind: type[Learner], parameters: Mapping[str, Any], statistics: ArmStatistics) -> Learner:
    """The learner with those of the given parameters that it has, bound to the statistics of D."""
    return kind(**of_kind(parameters, kind)).bind(statistics)


def make_budget(
    epsilon: float | None, delta: float | None, gamma: float | None, *, needed: bool = True
) -> Budget:
    """The budget of --epsilon and --delta, or of --gamma and --delta; (0, 0) if none is given or needed."""
    match epsilon, delta, gamma:
        case None, None, None if not needed:
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


def revealed(learner: Learner) -> list[str]:
    """One line about what the learner took from the log and so makes public, if anything."""
    return [f"Public: {learner.reveals} (--confidence fixes τ beforehand)."] if learner.reveals else []


def _labels_in(file: Path) -> tuple[str, ...]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"--actions-file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"--actions-file must be text in UTF-8; {file} is not") from None
    labels = tuple(text.removesuffix("\n").split("\n"))
    if "" in labels:
        raise InvalidInputError(
            f"--actions-file {file} must have one label per line; line {labels.index('') + 1} is empty"
        )
    return labels
