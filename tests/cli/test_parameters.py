"""The parameters of learners and unlearners are options of every command that takes one."""

import dataclasses
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import typer
from typer.main import get_command

from armnesia.cli.parameters import check_owners, of_kind, option_name, with_parameters
from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter, parameters_of
from armnesia.learners import LEARNERS
from armnesia.unlearners import UNLEARNERS, Adaptive
from armnesia.vault import Configuration
from tests.cli.commands import options


@dataclass(frozen=True)
class Lottery:
    keep: float = parameter(0.5, help="Probability of the old decision.")
    is_fair: bool = parameter(True, help="Give every arm the same chance.")
    hidden: str = "not a parameter"


@dataclass(frozen=True)
class Raffle:
    keep: float | None = parameter(None, help="Probability of the old decision.")
    paper_colour: Literal["red", "blue"] = parameter("red", help="Colour of the tickets.")


@dataclass(frozen=True)
class Draw:
    keep: float = parameter(0.1, help="Share that is kept.")


@dataclass(frozen=True)
class Misfit:
    keep: str = parameter("all", help="What is kept.")


GAMES = {"lottery": Lottery, "raffle": Raffle}
OTHERS = {"draw": Draw}


def given(*arguments: str) -> Any:
    """The parameters that a command with the parameters of all these classes gets."""

    @with_parameters(GAMES, OTHERS, notes={"keep": "In a vault 1."}, without=["paper_colour"])
    def play(parameters: Any, seed: int = 0) -> Any:
        assert seed == 7
        return parameters

    app = typer.Typer(add_completion=False)
    app.command()(play)
    command: Any = get_command(app)
    return command.main(["--seed", "7", *arguments], standalone_mode=False)


def test_only_what_is_given_reaches_the_command() -> None:
    assert given() == {}
    assert given("--keep", "0.25", "--no-is-fair") == {"keep": 0.25, "is_fair": False}
    assert given("--is-fair") == {"is_fair": True}


def test_the_help_names_the_owners_and_the_choices() -> None:
    @with_parameters(GAMES, OTHERS, notes={"keep": "In a vault 1."})
    def play(parameters: Any) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(play)
    made: dict[str, Any] = {str(param.name): param for param in get_command(app).params}
    assert set(made) == {"keep", "is_fair", "paper_colour"}
    assert made["keep"].help == (
        "lottery, raffle: Probability of the old decision. draw: Share that is kept. In a vault 1."
    )
    assert (made["is_fair"].opts, made["is_fair"].secondary_opts) == (["--is-fair"], ["--no-is-fair"])
    assert made["paper_colour"].metavar == "red|blue"
    assert all(param.default is None for param in made.values())


def test_one_name_has_one_type() -> None:
    with pytest.raises(TypeError, match="parameter keep must have one type; lottery, misfit declare several"):
        with_parameters({"lottery": Lottery, "misfit": Misfit})


def test_parameters_go_to_those_who_have_them() -> None:
    parameters = {"keep": 0.25, "paper_colour": "blue"}
    assert of_kind(parameters, Raffle) == parameters
    assert of_kind(parameters, Lottery) == {"keep": 0.25}
    check_owners(parameters, (GAMES, ["raffle"]), (OTHERS, ["draw"]))
    check_owners({"keep": 1}, (GAMES, ["raffle"]))
    check_owners(parameters, (GAMES, GAMES), (OTHERS, []))


def test_a_parameter_of_others_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"^--paper-colour belongs to raffle; got it with lottery$"):
        check_owners({"paper_colour": "red"}, (GAMES, ["lottery"]), (OTHERS, ["draw"]))
    with pytest.raises(InvalidInputError, match=r"^--keep belongs to lottery and raffle; got it with none$"):
        check_owners({"keep": 1}, (GAMES, ["none"]))


def declared(*kinds: type) -> set[str]:
    return {option_name(each.name) for kind in kinds for each in parameters_of(kind)}


OF_UNLEARNERS = declared(*UNLEARNERS.values())
OF_LEARNERS = declared(*LEARNERS.values())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("decide", OF_LEARNERS),
        *(
            (command, OF_UNLEARNERS | OF_LEARNERS)
            for command in ("unlearn", "audit", "compare", "research levels")
        ),
        ("research evaluate", (OF_UNLEARNERS | OF_LEARNERS) - {"--default-action"}),
        ("forget", OF_UNLEARNERS),
        ("research bounds", declared(Adaptive)),
        ("init", OF_UNLEARNERS | OF_LEARNERS),
    ],
)
def test_every_command_has_the_parameters_of_what_it_takes(command: str, expected: set[str]) -> None:
    found = {name for name, option in options(command).items() if option.rich_help_panel == "Parameters"}
    assert {name for name in found if not name.startswith("--no-")} == expected
    assert expected


def test_a_vault_keeps_the_parameters_of_its_learner() -> None:
    kept = {option_name(field.name) for field in dataclasses.fields(Configuration)}
    assert OF_LEARNERS - {"--default-action"} <= kept  # that one is in learner_options


NEW_UNLEARNER = """
import sys
from dataclasses import dataclass
from typing import ClassVar
import armnesia as am
from armnesia.cli.main import main
from armnesia.core.parameters import parameter

@dataclass(frozen=True)
class Lottery(am.Rollback):
    keep: float = parameter(0.5, help="Probability of the old decision.")
    name: ClassVar[str] = "lottery"

    def release(self, learner, statistics, request, budget):
        assert self.keep == 0.25
        return super().release(learner, statistics, request, budget)

am.UNLEARNERS["lottery"] = Lottery
main(sys.argv[1:])
"""


def test_a_new_unlearner_is_offered_with_its_parameters() -> None:
    arguments = (
        "unlearn",
        "flights",
        "--user",
        "N711ZX",
        "--unlearner",
        "lottery",
        "--keep",
        "0.25",
        "--json",
    )
    done = subprocess.run(
        [sys.executable, "-c", NEW_UNLEARNER, *arguments], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["unlearner"] == "lottery"
