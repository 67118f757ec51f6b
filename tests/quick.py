"""Which parameters of a test the quick run takes, and how many examples of a property."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings


def examples(number: int) -> settings:
    """So many examples in a search for new ones; a fifth, 10 at least, in a run that always has the same.

    >>> examples(300).max_examples in (60, 300)
    True
    """
    searching = os.environ.get("HYPOTHESIS_PROFILE") == "search"
    return settings(max_examples=number if searching else min(number, max(number // 5, 10)))


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
