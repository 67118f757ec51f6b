"""Refusals as values, where one refused request must not stop the others."""

from collections.abc import Callable
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError, DatabaseError, VaultBusyError

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def or_refusal(function: Callable[..., _Made], *arguments: Any) -> _Made | ArmnesiaError:
    """What a function returns, or why it refuses; what the database refuses is no matter of one request."""
    try:
        return function(*arguments)
    except (DatabaseError, VaultBusyError):
        raise
    except ArmnesiaError as error:
        return error.with_traceback(None)  # which would keep the rows that its frames have seen


def unless_refused(
    each: _Given | ArmnesiaError, function: Callable[..., _Made], *arguments: Any
) -> _Made | ArmnesiaError:
    """Go on with a request, unless it was refused before."""
    return each if isinstance(each, ArmnesiaError) else or_refusal(function, *arguments, each)
