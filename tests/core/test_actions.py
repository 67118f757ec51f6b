"""Declared action sets: what is kept, and what is refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError


def test_labels_keep_their_order_and_numpy_scalars_become_python_values() -> None:
    assert checked_actions(iter(["b", "a", ("c", 1), 2, 2.5, True, frozenset()])) == (
        "b",
        "a",
        ("c", 1),
        2,
        2.5,
        True,
        frozenset(),
    )
    assert [type(label) for label in checked_actions(np.array([3, 1, 2]))] == [int, int, int]
    assert [type(label) for label in checked_actions([np.str_("A"), np.float64(0.5)])] == [str, float]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ("AB", "actions must be a list of labels, in order, such as .*; got 'AB'"),
        (b"AB", "actions must be a list of labels"),
        (3, "actions must be a list of labels, .*; got 3"),
        ([], "actions must name at least one action; got none"),
        (["A", "B", "A"], "actions must be distinct; 'A' is there more than once"),
        ([1, True], "actions must be distinct; 1 is there more than once"),
        (["A", None], "not None and not NaN; got None"),
        ([float("nan")], "not None and not NaN; got nan"),
        (np.array([1.0, np.nan]), "not None and not NaN; got nan"),
        (["A", ["B"]], r"an action must be a hashable label, .*; got \['B'\]"),
        (np.eye(2), "an action must be a hashable label"),
    ],
)
def test_what_is_not_an_action_set_is_refused(actions: Iterable[Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        checked_actions(actions)
