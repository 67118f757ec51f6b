"""Columns of text with collations, to which different texts may be equal: to the package they never are."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.identifiers import UserType
from armnesia.logs import open_source, read_log
from armnesia.vault import Configuration
from tests.databases import fresh_place
from tests.logs.conftest import Schema

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

Write = Callable[[list[tuple[Any, ...]]], dict[str, Any]]

TEXTS = ("action", "user", "id", "country", "experiment")
ROWS = [
    ("A", "Ann", "x1", "de", "one", 1.0, 0.5, 1),
    ("a", "ann", "X1", "DE", "ONE", 0.0, 0.25, 2),
    ("A", "bob", "x2", "de", "one", 0.0, 0.5, 3),
    ("a", "ann ", "x3", "DE", "ONE", 1.0, 0.25, 4),
]
ARMS = ("A", "a")


def in_sqlite(path: Path, collation: str) -> Write:
    def write(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        texts = ", ".join(f"{name} TEXT COLLATE {collation}" for name in TEXTS)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"CREATE TABLE log ({texts}, reward REAL, propensity REAL, number INTEGER)")
            database.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        return {"source": f"sqlite:///{path}", "table": "log"}

    return write


def in_postgres(schema: Schema, type_: str, collation: str) -> Write:
    if collation == "any_case":
        made = f"CREATE COLLATION {schema.name}.any_case (provider = icu, locale = 'und-u-ks-level2',"
        try:
            schema.connection.execute(f"{made} deterministic = false)")
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this PostgreSQL server was built without ICU")
        collation = f"{schema.name}.any_case"

    def write(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        others = {"reward": "float8", "propensity": "float8", "number": "int"}
        columns = {**dict.fromkeys(TEXTS, f"{type_} COLLATE {collation}"), **others}
        return {"source": schema.url, "table": schema.create("log", columns, list(rows))}

    return write


@pytest.fixture(
    params=["NOCASE", "RTRIM", 'text "POSIX"', "text any_case", "varchar(20) any_case"],
)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The rows in a table of SQLite, or of PostgreSQL where a type is named."""
    type_, _, collation = request.param.rpartition(" ")
    if type_:
        return in_postgres(request.getfixturevalue("schema"), type_, collation)(ROWS)
    return in_sqlite(tmp_path / "log.db", collation)(ROWS)


def test_conditions_keys_and_actions(log: dict[str, Any]) -> None:
    def counts(**options: Any) -> Any:
        return read_log(**log, user="user", actions=ARMS, **options).statistics().counts.tolist()

    assert counts() == [2, 2]
    assert counts(where="country = DE") == counts(where="country in (DE, FR)") == [0, 2]
    assert counts(where="country = de") == counts(where="country != DE") == [2, 0]
    assert counts(where="action = A") == [2, 0]
    assert counts(where="user = 'ann '") == [0, 1]
    decisions = read_log(**log, user="user", actions=ARMS).by("country")
    assert {key for (key,) in decisions.keys} == {"de", "DE"}


@pytest.mark.parametrize(
    ("where", "keys", "expected"),
    [
        (None, (), {(0.25, 0.25), (0.5, 0.5)}),
        ("country = DE", (), {(0.25, 0.25)}),
        ("country = de", ("country",), {(0.5, 0.5)}),
    ],
)
def test_propensities_are_those_of_each_action(
    log: dict[str, Any], where: str | None, keys: tuple[str, ...], expected: set[tuple[float, float]]
) -> None:
    source = open_source(**log, action="action", reward="reward", user="user", where=where).with_keys(keys)
    assert set(source.propensity_ranges("propensity")) == expected


def test_experiments_are_told_apart(log: dict[str, Any]) -> None:
    assert open_source(**log, action="action", reward="reward", user="user").mixes_experiments()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("user_type", "forgotten"), [(UserType.TEXT, {"ann", "ann "}), (UserType.EXACT, {"ann"})]
)
@pytest.mark.parametrize("where", [None, "country = DE"])
def test_an_external_vault_forgets_who_is_named(
    log: dict[str, Any], user_type: UserType, forgotten: set[str], where: str | None, tmp_path: Path
) -> None:
    rows = [row for row in ROWS if where is None or row[3] == "DE"]
    left = [row for row in rows if row[1] not in forgotten]
    configuration = Configuration(actions=ARMS, mode="external", user_type=user_type, by=("country",))
    with fresh_place("sqlite", tmp_path).create(configuration) as vault:
        vault.ingest(**log, user="user", id="id", ordered_by="number", where=where)
        assert vault.n_records == len(rows)
        assert vault.forget(users=["ann"], exactly=True).records == len(rows) - len(left)
        assert vault.verify().holds
        vault.rebuild()
        assert vault.n_records == len(left)
        held = [row for row in left if row[2] == "x1"]
        assert vault.forget(records=["x1"], exactly=True).records == len(held)
        assert vault.verify().holds
        assert vault.n_records == len(left) - len(held)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("request_", [{"users": ["ann"]}, {"records": ["X1"]}], ids=["user", "record"])
def test_rows_of_who_was_named_are_erased_at_the_source(
    log: dict[str, Any], request_: dict[str, Any], tmp_path: Path
) -> None:
    configuration = Configuration(
        actions=ARMS, mode="external", user_type=UserType.EXACT, may_erase_at_source=True
    )
    with fresh_place("sqlite", tmp_path).create(configuration) as vault:
        vault.ingest(**log, user="user", id="id", ordered_by="number")
        forgotten = vault.forget(**request_, exactly=True, erase_at_source=True, purge=True)
        assert forgotten.certificate.body["source"]["state"] == "purged"
        assert vault.verify().holds
    source = open_source(**log, action="action", reward="reward", user="user", id="id")
    left = [id_ for raw in source.raw_rows(10, None) for id_ in raw.ids or []]
    assert sorted(map(str, left)) == ["x1", "x2", "x3"]


CITEXT = """
CREATE TYPE {schema}.citext;
CREATE FUNCTION {schema}.citextin(cstring) RETURNS {schema}.citext
    AS 'textin' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION {schema}.citextout({schema}.citext) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE {schema}.citext (
    INPUT = {schema}.citextin, OUTPUT = {schema}.citextout, INTERNALLENGTH = VARIABLE, STORAGE = extended,
    CATEGORY = 'S', PREFERRED = false, COLLATABLE = true
);
CREATE CAST ({schema}.citext AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION {schema}.cmp({schema}.citext, {schema}.citext) RETURNS int
    AS $$SELECT bttextcmp(lower($1::text), lower($2::text))$$ LANGUAGE sql IMMUTABLE STRICT;
{operators}
CREATE OPERATOR CLASS {schema}.citext_ops DEFAULT FOR TYPE {schema}.citext USING btree
    AS {strategies}, FUNCTION 1 {schema}.cmp({schema}.citext, {schema}.citext);
"""
"""The equality of citext, which a server without the contributed extensions lacks."""


def make_citext(schema: Schema) -> str:
    """Make the type in the schema; its name."""
    type_, signs = f"{schema.name}.citext", ("<", "<=", "=", ">=", ">")
    operators = "".join(
        f"CREATE FUNCTION {schema.name}.compared{number}({type_}, {type_}) RETURNS bool AS"
        f" $$SELECT lower($1::text) {sign} lower($2::text)$$ LANGUAGE sql IMMUTABLE STRICT;"
        f"CREATE OPERATOR {schema.name}.{sign} (LEFTARG = {type_}, RIGHTARG = {type_},"
        f" FUNCTION = {schema.name}.compared{number});"
        for number, sign in enumerate(signs)
    )
    strategies = ", ".join(f"OPERATOR {at} {schema.name}.{sign}" for at, sign in enumerate(signs, start=1))
    schema.connection.execute(CITEXT.format(schema=schema.name, operators=operators, strategies=strategies))
    return type_


@pytest.mark.parametrize(
    ("type_", "values", "where"),
    [
        ("citext", ("DE", "de", "De", "FR"), "what = de"),
        ("citext", ("DE", "de", "De", "FR"), "what != DE"),
        ("numrange", ("[1,2)", "[1.0,2.00)", "[1,2)", "[3,4)"), "what = '[1, 2)'"),
    ],
)
def test_conditions_on_types_to_which_different_texts_are_equal(
    schema: Schema, type_: str, values: tuple[str, ...], where: str, tmp_path: Path
) -> None:
    if type_ == "citext":
        type_ = make_citext(schema)
    columns = {"n": "int", "action": "text", "reward": "float8", "who": "text", "what": type_}
    rows = [(at, "A", 1.0, f"u{at}", value) for at, value in enumerate(values)]
    named: dict[str, Any] = {"table": schema.create("log", columns, list(rows)), "user": "who"}
    log = read_log(schema.url, **named, actions=("A", "B"), where=where)  # its rows are read
    with fresh_place("sqlite", tmp_path).create(Configuration(actions=ARMS, mode="external")) as vault:
        assert vault.ingest(schema.url, **named, ordered_by="n", where=where).added == len(log) > 0
        assert vault.verify().holds
        for user in map(str, log.users()):
            assert vault.forget(users=[user]).records == 1
        assert vault.n_records == 0
