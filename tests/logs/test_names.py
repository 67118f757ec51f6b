"""The names of people in SQL are those of `UserType`, for any text."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armnesia.core.identifiers import UserType, is_plain_integer
from armnesia.logs.engine import connected
from armnesia.logs.sql import Column
from tests.quick import examples

PIECES = [
    *"0179.+-e \t\n\r\x00\x1c\x85\u00a0\u2003\u3000aZé'\"\\",
    "e\u0301",
    "\u0663",
    "9007199254740992",
    "1e+16",
]
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), min_size=1, max_size=20)


def selected(texts: list[str], *expressions: str) -> list[Any]:
    """What expressions over a column `t` give for texts, with a missing value at the end."""
    with connected("names") as connection:
        connection.register("given", {"t": _objects([*texts, None])})
        return connection.rows(f"SELECT {', '.join(expressions)} FROM given")


def _objects(values: list[Any]) -> Any:
    import numpy as np

    return np.array([*values, ""], dtype=object)[:-1]


@pytest.mark.parametrize("user_type", UserType)
@examples(150)
@given(texts=TEXTS)
@example(texts=["9007199254740993", "9007199254740993.0", "-0", "+007.", " 12 ", "1" * 60, "", " "])
@example(texts=["\u212b", "a\u030a", "Ann ", "\x1fann", "ann\x00", "x\u2000"])
def test_names_are_normalised_alike(user_type: UserType, texts: list[str]) -> None:
    stored = Column("t", "VARCHAR")
    column = stored.as_name(user_type)
    found = selected(texts, column.text(), column.is_wrong(), stored.is_usual_integer())
    for text, (name, is_wrong, is_usual) in zip(texts, found[:-1], strict=True):
        normal = user_type.normalised(text)
        assert name == (normal or None), text
        assert is_wrong == (normal is None), text
        assert is_usual == is_plain_integer(text), text
    assert found[-1][:2] == (None, False)


@given(texts=TEXTS)
@examples(100)
@pytest.mark.parametrize("user_type", UserType)
def test_people_are_found_by_their_normal_form(user_type: UserType, texts: list[str]) -> None:
    column = Column("t", "VARCHAR").as_name(user_type)
    wanted = {name for text in texts[::2] if (name := user_type.normalised(text))}
    condition, names = column.among("names", wanted)
    with connected("names") as connection:
        connection.register("given", {"t": _objects(texts)})
        found = connection.rows(f"SELECT coalesce({condition}, false) FROM given", {"names": names})
    assert [one for (one,) in found] == [user_type.normalised(text) in wanted for text in texts]
