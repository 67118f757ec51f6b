"""What `research evaluate` and `bounds` share: a data model, a request and a budget, as in the paper."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, cast

import typer

from armnesia.cli import options as opt
from armnesia.cli.parameters import of_kind
from armnesia.core.errors import InvalidInputError
from armnesia.paper.settings import BASE_GAMMA, BASE_K, C_STAR, DELTA, MEANS
from armnesia.privacy import Budget
from armnesia.simulation.parallel import BACKENDS
from armnesia.unlearners import Unlearner

U = TypeVar("U", bound=Unlearner)

Model = Annotated[str, typer.Option(metavar="fixed|distribution", help="The data model.")]
N = Annotated[int | None, typer.Option("--n", help="Number of records.")]
Counts = Annotated[str | None, typer.Option(help="Records of each arm, instead of --n: 200,300,….")]
Arms = Annotated[str, typer.Option(help="Arm or arms whose records are deleted: 0 or 0,1.")]
Deletions = Annotated[
    str, typer.Option(help="Deleted records of each listed arm: 80 for all of them, or 80,20.")
]
Means = Annotated[str, typer.Option(help="Means of the Bernoulli arms.")]
PAPER_MEANS = ",".join(f"{mean:.2f}" for mean in MEANS)
CStar = Annotated[float, typer.Option(help="Coverage C* of the distribution model.")]

Protocol = Annotated[
    str,
    typer.Option(
        metavar="auto|exact|sampled", help="auto: exact in a second, or the cheaper way of drawing."
    ),
]
Accuracy = Annotated[
    float, typer.Option(help="Relative standard error to draw for, if --datasets is not given.")
]
Datasets = Annotated[
    int | None, typer.Option(help="Draw so many data sets; with exact, count vectors, 1024 or more.")
]
Backend = Annotated[
    str | None,
    typer.Option(metavar="|".join(BACKENDS), help="Backend of joblib; processes of its own if not given."),
]


@dataclass(frozen=True)
class SettingOptions:
    """A setting as the options name it."""

    model: str
    n: int | None
    counts: tuple[int, ...] | None
    deletions: Mapping[int, int]
    budget: Budget
    c_star: float

    def __post_init__(self) -> None:
        if self.model not in ("fixed", "distribution"):
            raise InvalidInputError(f"--model must be fixed or distribution; got {self.model!r}")
        if self.counts is not None and (self.n is not None or self.model == "distribution"):
            raise InvalidInputError("--counts belongs to the fixed-sample model, without --n")

    @property
    def size(self) -> int:
        """The number of records."""
        if self.n is None:
            raise InvalidInputError("give the number of records: --n 3000, or --counts with --model fixed")
        return self.n


def setting_options(
    model: Model = "fixed",
    n: N = None,
    counts: Counts = None,
    arms: Arms = "0",
    deletions: Deletions = str(BASE_K),
    gamma: opt.Gamma = None,
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = DELTA,
    c_star: CStar = C_STAR,
) -> SettingOptions:
    """The options of a simulated setting."""
    if gamma is None and epsilon is None:
        gamma = BASE_GAMMA
    return SettingOptions(
        model,
        n,
        None if counts is None else tuple(whole_numbers("--counts", counts)),
        _deletions(arms, deletions),
        opt.make_budget(epsilon, delta, gamma),
        c_star,
    )


def as_in_the_paper(kind: type[U], parameters: Mapping[str, Any]) -> U:
    """The unlearner of the paper's experiments, with the given parameters instead of its own.

    >>> from armnesia import Adaptive
    >>> as_in_the_paper(Adaptive, {"threshold_scale": 2.0})
    Adaptive(threshold='paper', threshold_scale=2.0, sensitivity='paper')
    """
    unlearner: Any = kind.as_in_the_paper()
    return cast(U, replace(unlearner, **of_kind(parameters, kind)))


def numbers(option: str, given: str) -> list[float]:
    """The numbers that an option lists.

    >>> numbers("--means", "0.1,0.2")
    [0.1, 0.2]
    """
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} must be numbers such as 0.1,0.2; got {given!r}") from None


def _deletions(arms: str, deletions: str) -> dict[int, int]:
    which, counts = whole_numbers("--arms", arms), whole_numbers("--deletions", deletions)
    if len(counts) == 1:
        counts *= len(which)
    if len(counts) != len(which) or len(set(which)) != len(which):
        raise InvalidInputError(
            f"--deletions needs one number, or one for each of --arms {arms}; got {deletions}"
        )
    return dict(zip(which, counts, strict=True))


def whole_numbers(option: str, given: str) -> list[int]:
    """The whole numbers that an option lists.

    >>> whole_numbers("--n", "1000,2000")
    [1000, 2000]
    """
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} must be whole numbers such as 3,17; got {given!r}") from None
