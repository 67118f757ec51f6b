"""The parameters of learners and unlearners, declared once as dataclass fields with one line of help each.

The command line derives its options from them and the vault checks its configuration by them, so a new
learner or unlearner needs no change in either.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed

T = TypeVar("T")

# The type of an option's value, by the type of its field. An action label is given as text.
_OPTION_TYPES: dict[Any, "type[bool] | type[int] | type[float] | type[str]"] = {
    bool: bool,
    int: int,
    float: float,
    str: str,
    Hashable: str,
}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, the type of its values, its default, and one line of help."""

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    """The accepted values of a text parameter; empty if every text is accepted."""


def parameter(default: Any, *, help: str, choices: Callable[[], Iterable[str]] | None = None) -> Any:  # noqa: A002
    """Declare a dataclass field as a parameter that users can set.

    The field's type is a number, a truth value, a text, `Hashable` (an action label) or a `Literal` of
    texts, possibly with `None` or with further types that only the Python API accepts. `choices` lists the
    accepted texts where the type does not.

    >>> @dataclass(frozen=True)
    ... class Lottery:
    ...     keep: float = parameter(0.5, help="Probability of the old decision.")
    >>> Lottery().keep
    0.5
    """
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices})


def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """List the declared parameters of a dataclass in order; plain fields are left out.

    >>> @dataclass(frozen=True)
    ... class Lottery:
    ...     keep: float | None = parameter(None, help="Probability of the old decision.")
    >>> parameters_of(Lottery)
    (Parameter(name='keep', type=<class 'float'>, default=None, help='Probability of the old decision.',
    choices=()),)
    """
    if not dataclasses.is_dataclass(kind):
        return ()
    declared = [field for field in dataclasses.fields(kind) if "help" in field.metadata]
    hints = typing.get_type_hints(kind) if declared else {}
    return tuple(_parameter(field, hints[field.name]) for field in declared)


def parameter_names(kind: type) -> tuple[str, ...]:
    """The names of the declared parameters of a dataclass in order.

    >>> @dataclass(frozen=True)
    ... class Lottery:
    ...     keep: float = parameter(0.5, help="Probability of the old decision.")
    >>> parameter_names(Lottery)
    ('keep',)
    """
    declared = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return tuple(field.name for field in declared if "help" in field.metadata)


def build(kind: type[T], options: Mapping[str, Any]) -> T:
    """Make an instance with these options; an option that is not a parameter is refused.

    >>> @dataclass(frozen=True)
    ... class Lottery:
    ...     name = "lottery"
    ...     keep: float = parameter(0.5, help="Probability of the old decision.")
    >>> build(Lottery, {"keep": 0.1})
    Lottery(keep=0.1)
    >>> build(Lottery, {"ratio": 0.1})
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: lottery has no option 'ratio'; it has 'keep'
    """
    for option in options:
        if option not in (known := parameter_names(kind)):
            name = getattr(kind, "name", kind.__name__)
            raise InvalidInputError(f"{name} has no option {option!r}; it has {listed(known) or 'none'}")
    return kind(**options)


def _parameter(field: "dataclasses.Field[Any]", hint: Any) -> Parameter:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    parts = typing.get_args(hint) if is_union else (hint,)
    literals = [
        value
        for part in parts
        if typing.get_origin(part) is typing.Literal
        for value in typing.get_args(part)
    ]
    found = str if literals else next((_OPTION_TYPES[part] for part in parts if part in _OPTION_TYPES), None)
    if found is None:
        raise TypeError(
            f"parameter {field.name} must be a number, a truth value, a text or a label; it is {hint!r}"
        )
    choices = field.metadata["choices"]
    accepted = tuple(literals) if choices is None else tuple(choices())
    return Parameter(field.name, found, field.default, field.metadata["help"], accepted)
