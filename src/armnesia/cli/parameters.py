"""Options that commands share: those of a function, and the parameters of learners and unlearners.

A learner or unlearner declares its parameters as fields (`armnesia.core.parameters`). Every command that
takes one has an option per parameter, so that a new one is offered without a change here.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any

import typer

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import all_of
from armnesia.core.parameters import Parameter, parameters_of

Registry = Mapping[str, type]
_PANEL = "Parameters"


def with_options_of(
    read: Callable[..., Any], argument: str, without: Collection[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace an argument of a command by the options of `read`, whose result the command gets for it."""
    shared = {name: p for name, p in inspect.signature(read).parameters.items() if name not in without}

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command).parameters
        parameters = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name in own
            for p in (shared.values() if name == argument else [own[name]])
        ]

        def run(**given: Any) -> Any:
            value = read(**{name: given.pop(name) for name in shared if name in given})
            return command(**{argument: value}, **given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorated


def with_parameters(
    *registries: Registry, without: Collection[str] = (), notes: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace the argument `parameters` of a command by an option per declared parameter.

    The command gets a dict of those that were given. `notes` adds a sentence to the help of a parameter.
    """

    def read(**given: Any) -> dict[str, Any]:
        return {name: value for name, value in given.items() if value is not None}

    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_option(name, declared, (notes or {}).get(name, "")),
        )
        for name, declared in _declared(registries).items()
    ]
    read.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return with_options_of(read, "parameters", without)


def of_kind(parameters: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Choose the given parameters that a learner or unlearner has."""
    known = {parameter.name for parameter in parameters_of(kind)}
    return {name: value for name, value in parameters.items() if name in known}


def check_owners(parameters: Mapping[str, Any], *choices: tuple[Registry, Collection[str]]) -> None:
    """Refuse a parameter that none of those chosen from the registries has."""
    for name in parameters:
        concerned = [(registry, chosen) for registry, chosen in choices if name in _declared([registry])]
        owners = [owner for registry, _ in concerned for owner in _declared([registry])[name]]
        given_to = [each for _, chosen in concerned for each in chosen]
        if not set(owners) & set(given_to):
            raise InvalidInputError(
                f"{option_name(name)} belongs to {all_of(owners)}; got it with {all_of(given_to)}"
            )


def option_name(parameter: str) -> str:
    """Write a parameter as an option.

    >>> option_name("threshold_scale")
    '--threshold-scale'
    """
    return f"--{parameter.replace('_', '-')}"


def _declared(registries: Iterable[Registry]) -> dict[str, dict[str, Parameter]]:
    """The declared parameters by name, each with those who have it."""
    found: dict[str, dict[str, Parameter]] = {}
    for registry in registries:
        for owner, kind in registry.items():
            for parameter in parameters_of(kind):
                found.setdefault(parameter.name, {})[owner] = parameter
    return found


def _option(name: str, declared: Mapping[str, Parameter], note: str) -> Any:
    """The annotation of an option: its help says who has the parameter."""
    kinds = {parameter.type for parameter in declared.values()}
    if len(kinds) > 1:
        raise TypeError(f"parameter {name} must have one type; {', '.join(declared)} declare several")
    owners: dict[str, list[str]] = {}
    for owner, parameter in declared.items():
        owners.setdefault(parameter.help, []).append(owner)
    sentences = [f"{', '.join(who)}: {text}" for text, who in owners.items()]
    (kind,) = kinds
    long = option_name(name)
    choices = dict.fromkeys(choice for parameter in declared.values() for choice in parameter.choices)
    return Annotated[
        kind | None,
        typer.Option(
            f"{long}/--no-{long[2:]}" if kind is bool else long,
            help=" ".join([*sentences, note]).strip(),
            metavar="|".join(choices) or None,
            rich_help_panel=_PANEL,
        ),
    ]
