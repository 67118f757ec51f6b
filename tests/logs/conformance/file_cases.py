"""What only files can hold: the marks of CSV, several files, folders with names, and tables in folders."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.logs.conformance.cases import RIGHT, Case, Outcome, refused
from tests.logs.conformance.expected import Key, Where
from tests.logs.conformance.sources import PARQUET, Held, Place, Stored, write_csv, write_parquet

HELD: Held = {"action": ["A", "B", "A"], "reward": ["1", "0", "0.5"], "user": ["ann", "bob", "ann"]}
HEADER = b"action,reward,user\n"


def csv_case(
    name: str, content: bytes, becomes: Held | Outcome, ending: str = ".csv", **options: Any
) -> Case:
    held = becomes if isinstance(becomes, dict) else {}

    def write(place: Place) -> Stored:
        path = place.path(ending)
        path.write_bytes(content)
        return Stored(path, held)

    outcome = RIGHT if isinstance(becomes, dict) else becomes
    return Case(f"CSV: {name}", outcome=outcome, writers={"CSV": write}, **options)


def users(*names: str | None) -> Held:
    """Rows of action A with reward 1."""
    return {"action": ["A"] * len(names), "reward": ["1"] * len(names), "user": list(names)}


PLAIN = HEADER + b"A,1,ann\nB,0,bob\nA,0.5,ann\n"
CSV_CASES = [
    csv_case(
        "lines that begin with #",
        HEADER + b"A,1,ann\n#A,1,bob\n",
        {**users("ann", "bob"), "action": ["A", "#A"]},
        actions=("A", "#A"),
    ),
    csv_case("semicolons", PLAIN.replace(b",", b";"), HELD),
    csv_case("blanks between fields", PLAIN.replace(b",", b" "), refused("--delimiter")),
    csv_case("tabs", PLAIN.replace(b",", b"\t"), HELD, ".tsv"),
    csv_case("compressed", gzip.compress(PLAIN), HELD, ".csv.gz"),
    csv_case("compressed and cut", gzip.compress(PLAIN)[:-4], refused("log.csv.gz"), ".csv.gz"),
    csv_case("a blank before an opening quote", HEADER + b'A,1, "ann"\n', refused("line 2")),
    csv_case("text after a closing quote", HEADER + b'A,1,"ann"x\n', refused("line 2")),
    csv_case("a blank after a closing quote", HEADER + b'A,1,"ann" \n', refused("line 2")),
    csv_case("a quote inside a plain field", HEADER + b'A,1,ann\nA,1,5" pipe\n', refused("line 3")),
    csv_case("quotes inside a field in quotes", HEADER + b'A,1,"5"" pipe"\n', users('5" pipe')),
    csv_case("an open quote", HEADER + b'A,1,"ann\nA,1,bob\n', refused("not closed")),
    csv_case("short rows", HEADER + b"A,1,ann\nA,1\n", refused("line 3")),
    csv_case("long rows", HEADER + b"A,1,ann\nA,1,bob,x\n", refused("line 3")),
    csv_case("empty fields after the last column", HEADER + b"A,1,ann,,\nA,1,bob\n", users("ann", "bob")),
    csv_case("empty lines", HEADER + b"\nA,1,ann\n\n\nA,1,bob\n\n", users("ann", "bob")),
    csv_case("CR LF", PLAIN.replace(b"\n", b"\r\n"), HELD),
    csv_case("a carriage return alone", HEADER + b"A,1,ann\rA,1,bob\n", refused("lines end in")),
    csv_case("a byte order mark", b"\xef\xbb\xbf" + PLAIN, HELD),
    csv_case("a byte order mark and a quoted header", b'\xef\xbb\xbf"action"' + PLAIN[6:], HELD),
    csv_case("text that is not UTF-8", HEADER + "A,1,é\n".encode("latin-1"), refused("UTF-8")),
    csv_case("nothing", b"", refused("first line")),
    csv_case("an empty line before the header", b"\n" + PLAIN, refused("first line")),
    csv_case(
        "a long reward is rounded once",
        HEADER + b"A,0.30000000000000001665334536937734810635447502136230469,ann\n",
        {**users("ann"), "reward": ["0.30000000000000001665334536937734810635447502136230469"]},
    ),
    csv_case(
        "a record of more than a megabyte",
        HEADER + b"A,1," + b"x" * 1_100_000 + b"\n",
        users("x" * 1_100_000),
    ),
    csv_case(
        "a record of more than two megabytes",
        HEADER + b"A,1," + b"x" * 2_100_000 + b"\n",
        refused("1,048,576"),
    ),
    csv_case("a header that is not UTF-8", "é,reward\nA,1\n".encode("latin-1"), refused("UTF-8")),
    csv_case("a spreadsheet", b"PK", refused("log.xlsx"), ".xlsx"),
    csv_case("columns in another order", b"user,x,reward,action\nann,?,1,A\n", users("ann")),
]


def rows_of(folder: Path, parts: dict[str, pa.Table | Held]) -> Held:
    """Write a file for each name; the columns that all of them have, as they are held."""
    held: Held = {}
    for name, part in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(part, dict):
            write_csv(folder / name, part)
        else:
            write_parquet(folder / name, part)
        for column, values in (part if isinstance(part, dict) else part.to_pydict()).items():
            held.setdefault(column, []).extend(values)
    return {name: values for name, values in held.items() if name in ("action", "reward", "user")}


def part(**columns: Any) -> pa.Table:
    return pa.table({"action": ["A"], "reward": [0.7], "user": ["ann"], **columns})


def folder_case(
    name: str,
    parts: dict[str, Any],
    outcome: Outcome = RIGHT,
    *,
    read: str = "",
    holds: Callable[[Held], Held] | None = None,
    kind: str = "Parquet folder",
    **options: Any,
) -> Case:
    """Files by their paths in a folder; `read` is what of it is read, `holds` what that is if not all."""

    def write(place: Place) -> Stored:
        folder = place.directory()
        held = rows_of(folder, parts)
        return Stored(str(folder / read) if read else str(folder), holds(held) if holds else held)

    return Case(name, outcome=outcome, writers={kind: write}, **options)


def broken_case(name: str, content: bytes) -> Case:
    """A Parquet file that is none."""

    def write(place: Place) -> Stored:
        path = place.path(".parquet")
        path.write_bytes(content)
        return Stored(path, {})

    return Case(f"Parquet: {name}", outcome=refused("no Parquet file"), writers={"Parquet file": write})


def whole_file() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(part(), sink)
    return bytes(sink.getvalue())


def with_column(name: str, *values: Any) -> Callable[[Held], Held]:
    return lambda held: {**held, name: list(values)}


def first(number: int) -> Callable[[Held], Held]:
    return lambda held: {name: values[:number] for name, values in held.items()}


DAY = Key("day", "day")
TWO_DAYS = {"day=2026-01-31/a.parquet": part(), "day=2026-02-01/a.parquet": part(user=["bob"])}
OTHER_ORDER = pa.table({"user": ["bob"], "reward": [0.25], "action": ["B"]})
INTEGER_REWARD = part(reward=pa.array([1], pa.int64()))
FOLDER_CASES = [
    folder_case("files: columns in another order", {"a.parquet": part(), "b.parquet": OTHER_ORDER}),
    folder_case(
        "files: integers in the first, floats in the second",
        {"a.parquet": INTEGER_REWARD, "b.parquet": part()},
        refused("reward"),
    ),
    folder_case(
        "files: floats in the first, integers in the second",
        {"a.parquet": part(), "b.parquet": INTEGER_REWARD},
        refused("reward"),
    ),
    folder_case(
        "files: integers and text as users",
        {"a.parquet": part(user=[7]), "b.parquet": part()},
        refused("user"),
    ),
    folder_case(
        "files: other types in columns that are not read",
        {"a.parquet": part(x=[1]), "b.parquet": part(x=["y"])},
    ),
    folder_case(
        "files: no user column in one",
        {"a.parquet": part(), "b.parquet": part().drop_columns(["user"])},
        refused("user"),
    ),
    folder_case(
        "files: CSV and Parquet", {"a.parquet": part(), "b.csv": users("bob")}, refused("a.parquet", "b.csv")
    ),
    folder_case(
        "files: dot files, _temporary and others are left out",
        {
            "a.parquet": part(),
            ".b.parquet": part(),
            "_temporary/0/c.parquet": part(),
            "_SUCCESS.parquet": part(),
            ".x/d.parquet": part(),
        },
        holds=first(1),
    ),
    folder_case(
        "files: CSV with columns in another order",
        {"a.csv": users("ann"), "b.csv": {"user": ["bob"], "reward": ["1"], "action": ["A"]}},
        refused("a.csv", "b.csv"),
        kind="CSV",
    ),
    folder_case(
        "files: several CSV files", {"a.csv": users("ann"), "x/b.csv": users("bob", None)}, kind="CSV"
    ),
    folder_case(
        "paths: a file with brackets",
        {"a[1].parquet": part(), "a1.parquet": part(user=["bob"])},
        read="a[1].parquet",
        holds=first(1),
        kind="Parquet file",
    ),
    folder_case(
        "paths: a folder with brackets",
        {"a[1]/x.parquet": part(), "a1/x.parquet": part(user=["bob"])},
        read="a[1]",
        holds=first(1),
    ),
    folder_case(
        "paths: quotes, blanks and marks",
        {'it\'s a "b" {c};--%s.parquet': part()},
        read='it\'s a "b" {c};--%s.parquet',
        kind="Parquet file",
    ),
    folder_case(
        "paths: a glob takes what it matches only",
        {"a1.parquet": part(), "a2.parquet": part(), "b1.parquet": part()},
        read="a*.parquet",
        holds=first(2),
        kind="glob",
    ),
    folder_case(
        "paths: no such file",
        {"a.parquet": part()},
        refused("none.parquet"),
        read="none.parquet",
        kind="Parquet file",
    ),
    folder_case(
        "partitions: a condition",
        TWO_DAYS,
        holds=with_column("day", "2026-01-31", "2026-02-01"),
        where=(Where("day >= 2026-02-01", "day", lambda v: v >= "2026-02-01"),),
        kind="partitioned folder",
    ),
    *(
        folder_case(
            f"partitions: the {role} alone tells rows apart",
            {f"{name}={value}/a.parquet": part() for value in ("A", "B")},
            holds=with_column(name, "A", "B"),
            roles=roles,
            by=by,
            vault={"forget": "B", "held": 1} if role == "user" else {},
            added=2,
            kind="partitioned folder",
        )
        for role, name, roles, by in (
            ("user", "who", ("action", "reward", "who"), ()),
            ("action", "arm", ("arm", "reward", "user"), ()),
            ("key", "k", ("action", "reward", "user"), (Key("k", "k"),)),
        )
    ),
    folder_case(
        "partitions: marks in names",
        {"k=a%2Fb/a.parquet": part(), "k=50%25 ü/b.parquet": part(user=["bob"])},
        holds=with_column("k", "a/b", "50% ü"),
        by=(Key("k", "k"),),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: a missing value as user",
        {"k=__HIVE_DEFAULT_PARTITION__/a.parquet": part(), "k=x/b.parquet": part()},
        holds=with_column("k", None, "x"),
        roles=("action", "reward", "k"),
        kind="partitioned folder",
    ),
    *(
        folder_case(
            f"partitions: {value!r} as a value",
            {f"who={value}/a.parquet": part(), "who=bob/a.parquet": part()},
            refused("partition 'who'"),
            roles=("action", "reward", "who"),
            kind="partitioned folder",
        )
        for value in ("null", "NULL", "a=b", "a?b", "a\\b", "a\nb")
    ),
    folder_case(
        "partitions: odd values that are not read",
        {"user=null/x=a=b/a.parquet": part().drop_columns(["user"])},
        roles=("action", "reward", None),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: a column of the files too, read",
        {"user=bob/a.parquet": part()},
        refused("user"),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: a column of the files too, not read",
        {"x=2/a.parquet": part(x=["1"])},
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: one that differs in case from a column",
        {"User=bob/a.parquet": part()},
        refused("partition 'User'"),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: one twice",
        {"day=1/day=2/a.parquet": part()},
        refused("partition 'day'"),
        by=(DAY,),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: two that differ in case",
        {"day=1/DAY=2/a.parquet": part()},
        refused("partition 'day'"),
        by=(DAY,),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: names that a reader may give to the columns of CSV files",
        {"c0=B/C2=bob/column0=B/a.csv": users("ann")},
        kind="CSV",
    ),
    folder_case(
        "partitions: only in some paths",
        {"day=1/a.parquet": part(), "b.parquet": part()},
        refused("'day'"),
        by=(DAY,),
        kind="partitioned folder",
    ),
    folder_case(
        "partitions: CSV files",
        {"day=1/a.csv": users("ann"), "day=2/b.csv": users("bob")},
        holds=with_column("day", "1", "2"),
        by=(DAY,),
        kind="CSV",
    ),
]


def _alike(*names: str) -> pa.Table:
    """Two rows, and columns of these names whose first values tell them apart."""
    arrays = [
        pa.array(["A", "B"]),
        pa.array([1.0, 0.5]),
        *(pa.array([f"{at}-ann", "bob"]) for at in range(len(names))),
    ]
    return pa.Table.from_arrays(arrays, names=["action", "reward", *names])


def _named(source: Callable[[Place, pa.Table], Any], *names: str) -> Callable[[Place], Stored]:
    def write(place: Place) -> Stored:
        table = _alike(*names)
        held = {name: table.column(at).to_pylist() for at, name in enumerate(table.column_names)}
        return Stored(source(place, table), held)

    return write


def _csv(place: Place, table: pa.Table) -> Path:
    path = place.path(".csv")
    lines = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return path


NAMED: dict[str, Callable[[Place, pa.Table], Any]] = {
    "pandas": lambda _, table: pd.concat(
        [table.column(i).to_pandas().rename(n) for i, n in enumerate(table.column_names)], axis=1
    ),
    "Arrow": lambda _, table: table,
    "CSV": _csv,
    "Parquet file": lambda place, table: write_parquet(place.path(".parquet"), table),
    "Parquet folder": lambda place, table: write_parquet(place.path() / "a.parquet", table).parent,
}


def named_case(name: str, names: tuple[str, ...], outcome: Outcome = RIGHT, **options: Any) -> Case:
    writers = {kind: _named(write, *names) for kind, write in NAMED.items()}
    return Case(name, outcome=outcome, writers=writers, **options)


NAME_CASES = [
    named_case("columns: the user column twice", ("user", "user"), refused("'user'")),
    named_case("columns: one twice that is not read", ("user", "x", "x"), cells={"Arrow": refused("'x'")}),
    named_case(
        "columns: differ in case, the first is read",
        ("user", "User"),
        cells={kind: refused("'user'") for kind in PARQUET},
    ),
    named_case(
        "columns: differ in case, the second is read",
        ("User", "user"),
        cells={kind: refused("'user'") for kind in PARQUET},
    ),
]
LISTS = pa.array([["ann"], ["bob"]])


def objects(_: Place) -> Stored:
    return Stored(pl.DataFrame({**HELD, "user": pl.Series([object()] * 3, dtype=pl.Object)}), {})


def hidden_repetition(place: Place) -> Stored:
    """A column twice, and a nested one of the name that DuckDB gives to the second."""
    inner = pa.array([{"user_1": "x"}] * 2)
    return Stored(write_parquet(place.path(".parquet"), _alike("user", "user").append_column("x", inner)), {})


def read_once(_: Place) -> Stored:
    table = _alike("user")
    return Stored(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), table.to_pydict())


def backwards(_: Place) -> Stored:
    frame = pd.DataFrame({"action": ["A", "B"], "reward": [1.0, 0.5], "user": [7, 8]})
    return Stored(frame[::-1], {name: values[::-1] for name, values in frame.to_dict("list").items()})


def one_name(_: Place) -> Stored:
    return Stored({**HELD, 1: HELD["user"], "1": HELD["user"]}, {})


def nested_case(name: str, column: str, values: pa.Array) -> Case:
    table = _alike("user")
    table = table.set_column(table.column_names.index(column), column, values)
    writers: dict[str, Callable[[Place], Stored]] = {
        "Parquet file": lambda place: Stored(write_parquet(place.path(".parquet"), table), {}),
        "Arrow": lambda _: Stored(table, {}),
    }
    return Case(f"types: {name}", outcome=refused(f"'{column}'"), writers=writers)


NESTED_CASES = [
    nested_case("lists as users", "user", LISTS),
    nested_case("structures as users", "user", pa.array([{"a": 1}, {"a": 2}])),
    nested_case("lists as actions", "action", LISTS),
    nested_case("lists as rewards", "reward", pa.array([[1.0], [0.5]])),
]
BROKEN_CASES = [
    broken_case("text", PLAIN * 9),
    broken_case("nothing", b""),
    broken_case("cut", whole_file()[:-20]),
]
ODD_CASES = [
    Case("types: objects", outcome=refused("other objects"), writers={"polars": objects}),
    Case(
        "columns: the user column twice, and a nested one",
        outcome=refused("'user'"),
        writers={"Parquet file": hidden_repetition},
    ),
    Case("columns: 1 and '1'", outcome=refused("'1'"), writers={"mapping": one_name}),
    Case("a stream that can be read once", writers={"Arrow": read_once}),
    Case("rows in reverse order", writers={"pandas": backwards}),
]
FILE_CASES = [*ODD_CASES, *BROKEN_CASES, *CSV_CASES, *FOLDER_CASES, *NAME_CASES, *NESTED_CASES]
