"""Which parameters of a test the quick run takes."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def quick_only(quick: Sequence[Any], parameters: Iterable[Any]) -> list[Any]:
    """The parameters, marked as slow except for the quick ones.

    >>> [len(parameter.marks) for parameter in quick_only([1], [1, 9])]
    [0, 1]
    """
    return [
        pytest.param(
            *(one if isinstance(one, tuple) else (one,)), marks=[] if one in quick else [pytest.mark.slow]
        )
        for one in parameters
    ]
