"""The users of a source in one spelling per person, whatever kind of source it is."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source, open_source, read_log
from armnesia.logs.user_names import UserNames, first_user_type, with_users
from armnesia.logs.values import joined_texts
from tests.databases import fresh_schema, postgres_url
from tests.logs.conftest import write_sqlite

INTEGERS = [
    "1",
    "1.0",
    "01",
    " 1 ",
    "+1",
    "2",
    "10",
    "-1",
    "-01.0",
    "\t1",
    "0",
    "-0",
    "1.",
    None,
    "11",
    "\u00a01",
]
TEXTS = ["ann", " ann", "ann ", "Ann", "e\u0301va", "\u00e9va", "\u00e9va\n", "an n", "1", "1.0", "01", None]
TEXTS += [
    "n\x00e\u0301",
    "n\x00\u00e9",
    "\u2126",
    "\u03a9",
    "\u212b",
    "a\u030a",
    "'ann'",
    "ann\x00",
    "x\u2000",
    "",
    " ",
]
SPELLINGS = {UserType.INTEGER: INTEGERS, UserType.TEXT: TEXTS, UserType.EXACT: TEXTS}
NAMES: dict[str, Any] = {"action": "arm", "reward": "won", "user": "who"}


def frame(users: list[Any]) -> dict[str, list[Any]]:
    return {"arm": ["A"] * len(users), "won": [1] * len(users), "who": users, "zone": ["1.0"] * len(users)}


def in_memory(path: Path, users: list[Any]) -> Source:
    return open_source(frame(users), **NAMES)


def in_csv(path: Path, users: list[Any]) -> Source:
    pl.DataFrame(frame(users), strict=False).write_csv(path / "log.csv", quote_style="non_numeric")
    return open_source(str(path / "log.csv"), **NAMES)


def in_parquet(path: Path, users: list[Any]) -> Source:
    pl.DataFrame(frame(users), strict=False).write_parquet(path / "log.parquet")
    return open_source(str(path / "log.parquet"), **NAMES)


def in_sqlite(path: Path, users: list[Any]) -> Source:
    return open_source(write_sqlite(path / "log.db", frame(users)), table="log", **NAMES)


def without_nul(users: list[str | None]) -> list[str | None]:
    """As PostgreSQL takes them: it has no text with this character."""
    return [user and user.replace("\0", "") for user in users]


def in_postgres(path: Path, users: list[Any]) -> Source:
    schema = fresh_schema()
    users = without_nul(users)
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.log (arm text, won float8, who text, zone text)")
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {schema}.log VALUES (%s, %s, %s, %s)",
                list(zip(*frame(users).values(), strict=True)),
            )
    return open_source(postgres_url(), table=f"{schema}.log", **NAMES)


KINDS = [in_memory, in_csv, in_parquet, in_sqlite, in_postgres]


def users_of(source: Source, user_type: UserType, **chosen: Any) -> list[str | None]:
    names = UserNames(user_type)
    rows = source.rows(["A"], (0, 1), user_names=names, chunk=5, **chosen)
    return [user for chunk in rows for user in chunk.users]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("user_type", UserType)
def test_a_person_is_found_in_every_spelling(
    kind: Callable[[Path, list[Any]], Source], user_type: UserType, tmp_path: Path
) -> None:
    source = kind(tmp_path, SPELLINGS[user_type])
    everyone = users_of(source, user_type)
    spellings = SPELLINGS[user_type] if kind is not in_postgres else without_nul(SPELLINGS[user_type])
    expected = [None if raw is None else user_type.normalised(raw) for raw in spellings]
    assert [user or None for user in everyone] == [user or None for user in expected]
    for name in {*everyone, "nobody"} - {None, ""}:
        assert name is not None
        assert users_of(source, user_type, users={name}) == [user for user in everyone if user == name]
    some = sorted({user for user in everyone if user})[:3]
    assert users_of(source, user_type, users=some) == [user for user in everyone if user in some]


@pytest.mark.parametrize("kind", KINDS)
def test_one_spelling_alone_may_be_looked_up(
    kind: Callable[[Path, list[Any]], Source], tmp_path: Path
) -> None:
    source = kind(tmp_path, INTEGERS)
    assert users_of(source, UserType.INTEGER, users={"1"}, every_spelling=False) == ["1"]
    assert len(users_of(source, UserType.INTEGER, users={"1"})) == 8


def test_the_same_rows_have_the_same_content_in_every_spelling(tmp_path: Path) -> None:
    spelled: list[list[Any]] = [[1, 2, None], ["1.0", "02", None], [" 1", "+2", ""], [1.0, 2.0, None]]
    contents = []
    for number, users in enumerate(spelled):
        for kind in KINDS:
            if kind is in_postgres and not all(isinstance(user, str | None) for user in users):
                continue
            folder = tmp_path / f"{number}-{kind.__name__}"
            folder.mkdir()
            source = kind(folder, users)
            (rows,) = source.rows(["A"], (0, 1), user_names=UserNames(UserType.INTEGER))
            contents.append((rows.contents, rows.ordinals))
    assert len(contents) == 18
    assert all(each == contents[0] for each in contents)
    assert "3:1.0" in (contents[0][0] or [""])[0]  # the other column that holds 1.0 stays


@given(
    st.lists(
        st.tuples(st.text(max_size=4), st.none() | st.text(max_size=4), st.none() | st.text(max_size=4)),
        min_size=1,
        max_size=4,
    ),
    st.none() | st.text(max_size=4),
    st.integers(0, 2),
)
def test_a_part_of_a_text_is_replaced_and_no_other(
    rows: list[tuple[str, str | None, str | None]], name: str | None, place: int
) -> None:
    before: list[list[str | None]] = [list(column) for column in zip(*rows, strict=True)]
    after = [[name] * len(rows) if at == place else column for at, column in enumerate(before)]
    found = with_users(joined_texts(before), place, before[place], after[place])
    assert found == joined_texts(after)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_integer_is_refused_with_its_row(
    kind: Callable[[Path, list[Any]], Source], tmp_path: Path
) -> None:
    source = kind(tmp_path, ["1", "2", "ann", "9007199254740993.0"])
    with pytest.raises(
        InvalidLogError,
        match=r"user column 'who' must hold integers.*got a value of type str at row 2, a val.* at row 3$",
    ):
        users_of(source, UserType.INTEGER)
    assert users_of(source, UserType.INTEGER, users={"2"}) == ["2"]  # others are no concern of a look-up


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_refused_where_they_stand_for_several(dtype: Any, tmp_path: Path) -> None:
    bits = {np.float16: 11, np.float32: 24, np.float64: 53}[dtype]
    good, bad = np.array([2**bits - 1], dtype), np.array([2**bits], dtype)
    assert dtype(2**bits) == dtype(2**bits + 1)
    for make in (
        lambda users: {**frame([0]), "who": users},
        lambda users: pd.DataFrame({**frame([0]), "who": users}),
    ):
        assert users_of(open_source(make(good), **NAMES), UserType.INTEGER) == [str(2**bits - 1)]
        with pytest.raises(InvalidLogError, match="must hold integers"):
            users_of(open_source(make(bad), **NAMES), UserType.INTEGER)
    if dtype is not np.float16:
        file = str(tmp_path / "log.parquet")
        pd.DataFrame({**frame([0]), "who": bad}).to_parquet(file)
        with pytest.raises(InvalidLogError, match="must hold integers"):
            users_of(open_source(file, **NAMES), UserType.INTEGER)
        pd.DataFrame({**frame([0]), "who": good}).to_parquet(file)
        assert users_of(open_source(file, **NAMES), UserType.INTEGER) == [str(2**bits - 1)]


def test_short_floats_of_postgresql_are_refused_where_they_stand_for_several() -> None:
    schema = fresh_schema()
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.log AS SELECT 'A' AS arm, 1 AS won, 16777215::real AS who")
        source = open_source(postgres_url(), table=f"{schema}.log", **NAMES)
        assert users_of(source, UserType.INTEGER) == ["16777215"]
        connection.execute(f"UPDATE {schema}.log SET who = 16777216")
        with pytest.raises(InvalidLogError, match="floats only below 16777216, from where"):
            users_of(source, UserType.INTEGER)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (["1", "-20", None, "0", "9" * 38], UserType.INTEGER),
        (["1", "1.0"], UserType.TEXT),
        (["1", "01"], UserType.TEXT),
        (["1", "9" * 39], UserType.TEXT),
        (["1", "9" * 80], UserType.TEXT),
        (["ann", "1"], UserType.TEXT),
        ([None, None], None),
    ],
)
def test_the_first_source_shows_how_people_are_named(
    kind: Callable[[Path, list[Any]], Source], users: list[Any], expected: UserType | None, tmp_path: Path
) -> None:
    source = kind(tmp_path, users)
    assert source.user_type() == expected


def test_whole_floats_of_a_column_of_floats_are_integers(tmp_path: Path) -> None:
    users = pd.Series([1.0, None, 3.0])
    pd.DataFrame({**frame([0] * 3), "who": users}).to_parquet(tmp_path / "log.parquet")
    for source in (
        open_source(pd.DataFrame({**frame([0] * 3), "who": users}), **NAMES),
        open_source(str(tmp_path / "log.parquet"), **NAMES),
        in_sqlite(tmp_path, [1.0, None, 3]),
    ):
        assert source.user_type() == UserType.INTEGER
        assert users_of(source, UserType.INTEGER) == ["1", None, "3"]


def test_remarkable_names_are_noted_where_they_matter(tmp_path: Path) -> None:
    def noted(user_type: UserType, users: list[str | None]) -> tuple[int | None, int | None]:
        names = UserNames(user_type)
        for _ in in_memory(tmp_path, users).rows(["A"], (0, 1), user_names=names, chunk=2):
            pass
        return names.float_row, names.spaced_row

    users = ["a", None, "b", "7.0", "c ", "8.0", " d"]
    assert noted(UserType.TEXT, users) == (3, 4)
    assert noted(UserType.EXACT, users) == (3, None)
    assert noted(UserType.TEXT, ["a", "7", None]) == (None, None)
    assert noted(UserType.INTEGER, ["7.0", " 8"]) == (None, None)


def chunks_of(*texts: str | None) -> Iterator[list[str | None]]:
    yield from ([text] for text in texts)


def test_the_first_name_that_is_no_integer_ends_the_search() -> None:
    remaining = chunks_of("1", "ann", "2")
    assert first_user_type(remaining) == UserType.TEXT
    assert next(remaining) == ["2"]
    assert first_user_type(chunks_of("", " ", None)) is None


def test_a_request_names_the_same_integer_in_another_spelling() -> None:
    log = read_log(action=["A", "A"], reward=[1, 0], user=[116, 7], actions=["A"])
    with pytest.raises(
        InvalidInputError, match=r"^the log has no rows of user '116'; it has the integer 116$"
    ):
        log.request(user="116")
    with pytest.raises(InvalidInputError, match=r"^the log has no rows of user '117'$"):
        log.request(user="117")
