"""Declared parameters: how the type of a field becomes the type of an option, and what is refused."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import Parameter, build, parameter, parameter_names, parameters_of


@dataclass(frozen=True)
class Everything:
    """One field of every kind."""

    truth: bool = parameter(True, help="A truth value.")
    number: float | None = parameter(None, help="A number.")
    whole: int | list[int] | None = parameter(None, help="A whole number; the Python API takes a list too.")
    variant: Literal["paper", "exact"] = parameter("exact", help="One of two texts.")
    named: str | Callable[[], int] = parameter("a", help="A text.", choices=lambda: ["a", "b"])
    label: Hashable | None = parameter(None, help="An action label.")
    hidden: int = 3


def test_the_names_are_those_of_the_parameters() -> None:
    assert parameter_names(Everything) == tuple(each.name for each in parameters_of(Everything))
    assert (parameter_names(int), parameters_of(int)) == ((), ())


def test_every_kind_of_field_has_the_type_of_its_option() -> None:
    assert parameters_of(Everything) == (
        Parameter("truth", bool, True, "A truth value."),
        Parameter("number", float, None, "A number."),
        Parameter("whole", int, None, "A whole number; the Python API takes a list too."),
        Parameter("variant", str, "exact", "One of two texts.", ("paper", "exact")),
        Parameter("named", str, "a", "A text.", ("a", "b")),
        Parameter("label", str, None, "An action label."),
    )


def test_parameters_are_inherited_and_a_plain_class_has_none() -> None:
    @dataclass(frozen=True)
    class More(Everything):
        extra: int = parameter(1, help="One more.")

    assert [each.name for each in parameters_of(More)][-2:] == ["label", "extra"]
    assert parameters_of(int) == ()


def test_a_field_that_no_option_can_hold_is_refused_when_it_is_listed() -> None:
    @dataclass(frozen=True)
    class Wrong:
        values: list[int] | None = parameter(None, help="A list.")

    with pytest.raises(
        TypeError, match="parameter values must be a number, a truth value, a text or a label"
    ):
        parameters_of(Wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ratio": 1}, "Everything has no option 'ratio'; it has 'truth', 'number', 'whole'"),
        ({"hidden": 1}, "Everything has no option 'hidden'"),
    ],
)
def test_build_takes_declared_options_only(options: dict[str, Any], words: str) -> None:
    assert build(Everything, {"whole": 2, "truth": False}) == Everything(whole=2, truth=False)
    with pytest.raises(InvalidInputError, match=words):
        build(Everything, options)
