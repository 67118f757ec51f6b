"""The cases that every kind of source has: types of values, names, missing values, conditions, keys."""

import datetime as dt
import math
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from tests.logs.conformance.expected import Key, Range, Where, number_of, text_of
from tests.logs.conformance.sources import KINDS, PARQUET, Column, Place, Rows, Stored, lacking

BIG = 2**53 + 1
NAN, INFINITY = float("nan"), float("inf")


class Outcome(NamedTuple):
    """What a cell says: right, refused by a sentence with one of the words, or not applicable."""

    status: str
    words: tuple[str, ...] = ()


RIGHT, NOT_APPLICABLE = Outcome("right"), Outcome("n.a.")


def refused(*words: str) -> Outcome:
    return Outcome("refused", words)


@dataclass(frozen=True, eq=False)
class Case:
    """A row of the table: what is written, how it is read, and what comes of it."""

    name: str
    rows: Rows = field(default_factory=dict)
    outcome: Outcome = RIGHT
    cells: Mapping[str, Outcome] = field(default_factory=dict)
    writers: Mapping[str, Callable[[Place], Stored]] = field(default_factory=dict)
    """What only some kinds of sources can hold."""
    roles: tuple[str, str, str | None] = ("action", "reward", "user")
    actions: Sequence[Any] | None = ("A", "B", "C")
    reward_range: Range = (0.0, 1.0)
    where: tuple[Where, ...] = ()
    by: tuple[Key, ...] = ()
    by_default: bool = False
    """Whether the user column is not named: it is the one named `user`, if there is one."""
    vault: dict[str, Any] | None = None
    """How a vault takes the rows, where only a vault knows what the case is about: ids and names."""
    added: int = 0
    """How many rows are new to the vault."""

    def outcome_in(self, kind: str) -> Outcome:
        if self.writers and kind not in self.writers:
            return NOT_APPLICABLE
        return self.cells.get(kind, NOT_APPLICABLE if lacking(kind, self.rows) else self.outcome)

    def stored(self, kind: str, place: Place) -> Stored:
        """The source; rows that several cases share are written once."""
        if self.writers:
            return self.writers[kind](place)
        key = kind, id(self.rows)
        if key not in place.made:
            place.made[key] = KINDS[kind](self.rows, place)
        return place.made[key]


def each(kinds: Sequence[str], value: Any) -> dict[str, Any]:
    return dict.fromkeys(kinds, value)


def texts(*values: Any) -> Column:
    return Column(list(values), pa.string())


def integers(*values: Any, postgres: str | None = None) -> Column:
    return Column(list(values), pa.int64(), postgres)


def floats(*values: Any) -> Column:
    return Column(list(values), pa.float64())


def decimals(precision: int, scale: int, *values: Any, postgres: str | None = None) -> Column:
    type_ = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return Column([None if v is None else Decimal(v) for v in values], type_, postgres)


def table(**columns: Column) -> Rows:
    """Columns of one length, and those of them that a log needs: actions, rewards and users in turn."""
    length = max(len(column.values) for column in columns.values())

    def repeat(values: Sequence[Any]) -> list[Any]:
        return [values[place % len(values)] for place in range(length)]

    needed = {
        "action": texts(*repeat(["A", "B", "A", "C"])),
        "reward": floats(*repeat([1.0, 0.25, 0.1, 0.30000000000000004, 0.0])),
        "user": texts(*repeat(["ann", "bob", None])),
    }
    return {**{name: column for name, column in needed.items() if name not in columns}, **columns}


MOMENT = dt.datetime(2026, 3, 1, 23, 59, 59, 120_000)
BERLIN = dt.timezone(dt.timedelta(hours=2))


def _near_ties(low: float, high: float) -> list[float]:
    """Rewards on, just above and just below what is rounded either way."""
    draw = random.Random(7)
    ties = [low + (draw.randrange(10**9) + 0.5) / 1e9 * (high - low) for _ in range(600)]
    return [math.nextafter(tie, way) for tie in ties for way in (low, tie, high)]


USERS: dict[str, Column] = {
    "integers": integers(7, 8, 7, None, 7, 0, -3),
    "integers around 2^53": integers(2**53 - 1, 2**53, 2**53 + 1, 2**53 + 1, -(2**53) - 1),
    "integers around 2^63": integers(2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1),
    "integers beyond 2^63": Column([2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2, 1], pa.uint64()),
    "numeric without a scale, around 2^53": decimals(
        38, 0, 2**53 - 1, 2**53, 2**53 + 1, 10**20 + 1, 10**20 + 2, postgres="numeric"
    ),
    "decimals": decimals(10, 2, "1.50", "1.5", "2.00", "-0.01", "0.00", "-0.50", None),
    "decimals below 1": decimals(2, 2, "0.25", "0.00", "-0.50", "0.10", None),
    "decimals of more than 38 digits": decimals(
        50, 2, 10**40 + 1, 10**40 + 2, "0.5", None, postgres="numeric"
    ),
    "text": texts("ann", "Ann", "ANN", "007", "7", "NULL", "NA", "é", "e\u0301", "🦆", "x" * 300, None),
    "text with blanks": texts(" 7", "7", "7 ", "\t7", "7\u00a0", "\u00a0", " ", "a\tb", "a b", "'7'"),
    "text with quotes, commas and line ends": texts('a"b', "a,b", "a\nb", "a\r\nb", '"', "it's", "a;b", "#x"),
    "empty text": texts("", "ann", "", None),
    "text of numbers": texts("7", "7.0", "7.6", "1e3", "0x7", "1_000", "+7"),
    "whole floats": floats(7.0, 7.0, 8.0, -0.0, 2.0**53 - 1),
    "floats": floats(8.5, 0.1, 0.1 + 0.2, 1e-7, -2.25, 8.5),
    "floats from 2^53 on": floats(2.0**53, 2.0**53 + 2, 1e16, 1e300),
    "floats with NaN": floats(7.0, NAN, 8.5, NAN),
    "UUIDs": Column([uuid.UUID(int=1), uuid.UUID(int=2**127 + 5), uuid.UUID(int=1), None], pa.uuid()),
    "booleans": Column([True, False, True, None], pa.bool_()),
    "dates": Column([dt.date(2026, 1, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31), None], pa.date32()),
    "moments": Column([MOMENT, MOMENT.replace(microsecond=0), dt.datetime(1900, 6, 1)], pa.timestamp("us")),
    "moments with a zone": Column([MOMENT.replace(tzinfo=BERLIN)], pa.timestamp("us", "UTC")),
    "bytes": Column([b"ann", b"\x00\xff'\"\\ ~", b"", None], pa.binary()),
    "nobody": texts(None, None, None),
}
_USER_CELLS: dict[str, dict[str, Outcome]] = {
    "decimals of more than 38 digits": {
        **each(PARQUET, refused("decimals of at most 38 digits")),
        "Arrow": refused("decimals of more than 38 digits"),
    },
    "bytes": {"CSV": NOT_APPLICABLE},
    "floats from 2^53 on": {
        **each(tuple(KINDS), refused("no floats from 2**53")),
        **each(("CSV", "SQLite table"), RIGHT),  # values by their text
    },
}

REWARDS: dict[str, tuple[Column, Range]] = {
    "booleans": (Column([True, False, True, True], pa.bool_()), (0.0, 1.0)),
    "integers": (integers(1, 5, 3, 4, 1), (1.0, 5.0)),
    "integers above 2^53": (integers(2**53 + 1, 2**53 - 1, 2**62 + 1, 3), (0.0, 1e19)),
    "floats at ties of rounding": (
        floats(0.5e-9, 1.5e-9, 2.5e-9, 3.5e-9, 1 - 0.5e-9, 1 - 1.5e-9, 5e-324, -0.0, 1 - 2**-53),
        (0.0, 1.0),
    ),
    "floats in another range": (
        floats(-3.0, 7.0, 0.1, 0.2, 0.30000000000000004, 6.999999999999999),
        (-3.0, 7.0),
    ),
    "floats near ties of rounding": (floats(*_near_ties(-3.7, 11.2)), (-3.7, 11.2)),
    "floats in a range of a billionth": (floats(0.0, 0.5e-18, 1.5e-18, 1e-9, 3.3e-10), (0.0, 1e-9)),
    "floats in a wide range": (floats(-1e-3, 1e17, 500_000_000.0, 3.5, 0.1), (-1e-3, 1e17)),
    "short floats": (Column([0.1, 0.7, 1 / 3, 1.0], pa.float32()), (0.0, 1.0)),
    "decimals at ties of rounding": (
        decimals(12, 10, "0.0000000005", "0.0000000015", "0.0000000025", "0.3", "0.9999999995"),
        (0.0, 1.0),
    ),
    "decimals of 38 digits": (
        decimals(38, 37, "0.1234567890123456789012345678901234567", "0.0000000005", "0.3", "1"),
        (0.0, 1.0),
    ),
    "sums beyond 2^63 (second moment)": (floats(*[1.0] * 40, *[0.5] * 40), (0.0, 1.0)),
}

WRONG_REWARDS: dict[str, tuple[Column, tuple[str, ...]]] = {
    "missing": (floats(1.0, None, 0.5), ("reward",)),
    "NaN": (floats(1.0, NAN, 0.5), ("reward",)),
    "Infinity": (floats(1.0, INFINITY, 0.5), ("inf",)),
    "-Infinity": (floats(1.0, -INFINITY, 0.5), ("inf",)),
    "above the range": (floats(1.0, 1.0000000000000002, 0.5), ("1.0000000000000002",)),
    "below the range": (floats(1.0, -5e-324, 0.5), ("-5e-324",)),
    "text that is no number": (texts("1", "x", "0"), ("reward",)),
}

OLD_ENOUGH = Key(
    "key:18,30", "key", lambda v: "<18" if number_of(v) < 18 else "18..30" if number_of(v) < 30 else ">=30"
)
KEYS = ("text", "integers around 2^53", "booleans", "decimals", "dates", "moments with a zone")
"""The columns of users that are keys too, where they have a value."""

VISITS = table(
    country=texts("DE", "FR", "DE", None, "de", "x, y", "it's"),
    age=integers(17, 30, 44, 18, None, 18, 30),
    score=floats(0.5, NAN, 7.0, -1.0, 30.0, 1e300, 0.1),
    new=Column([True, False, None, True, False, True, False], pa.bool_()),
    day=texts("2026-01-31", "2026-02-01", "2025-12-31", "2026-01-31", None, "2026-03-01", "2026-02-01"),
    price=decimals(6, 2, "1.50", "1.5", "2.00", "0.10", None, "30.00", "2.00"),
)
_PLAIN_VISITS = {name: column for name, column in VISITS.items() if name != "price"}
CONDITIONS: dict[str, Where] = {
    "= text": Where("country = DE", "country", lambda v: v == "DE"),
    "!= text": Where("country != DE", "country", lambda v: v != "DE"),
    "< text": Where("day < 2026-02-01", "day", lambda v: v < "2026-02-01"),
    "<= text": Where("day <= '2026-02-01'", "day", lambda v: v <= "2026-02-01"),
    "> text": Where("day > 2026-01-31", "day", lambda v: v > "2026-01-31"),
    ">= text": Where("day >= 2026-01-31", "day", lambda v: v >= "2026-01-31"),
    "in texts": Where("country in (DE, 'x, y', 'it''s')", "country", lambda v: v in ("DE", "x, y", "it's")),
    "= number": Where("age = 30", "age", lambda v: number_of(v) == 30),
    "!= number": Where("age != 30", "age", lambda v: number_of(v) != 30),
    "< number": Where("score < 7", "score", lambda v: number_of(v) < 7),
    "<= number": Where("score <= 7", "score", lambda v: number_of(v) <= 7),
    "> number": Where("score > 0.1", "score", lambda v: number_of(v) > 0.1),
    ">= number": Where("age >= 18", "age", lambda v: number_of(v) >= 18),
    "in numbers": Where("age in (17, 30)", "age", lambda v: number_of(v) in (17, 30)),
    "= true": Where("new = true", "new", lambda v: number_of(v) == 1),
    "text of a number": Where("age = '30'", "age", lambda v: text_of(v) == "30"),
    "decimal": Where("price >= 1.5", "price", lambda v: number_of(v) >= 1.5),
}
MARKS = [
    "DE",
    "FR",
    None,
    "O'Brien",
    "a; DROP TABLE log; --",
    '"q"',
    "1",
    "1.0",
    "é",
    "\U0001f600",
    "\uffff",
    "NULL",
]
ODD_VALUES = table(
    user=texts(*(f"u{row}" for row in range(12))),
    text=texts(*MARKS),
    number=floats(1.0, -2.5, None, NAN, 0.1, 30.0, 1e15, INFINITY, 0.0, -0.0, 29.999, 2.0),
    whole=integers(1, 0, -7, 30, 29, 31, BIG - 2, -BIG + 2, 5, 6, 7, 8),
    flag=Column([True, False] * 6, pa.bool_()),
)


def _texts(condition: str, *chosen: str) -> Where:
    return Where(condition, "text", lambda v: v in chosen)


ODD_CONDITIONS = (
    _texts("text = 'O''Brien'", "O'Brien"),
    _texts("text = 'a; DROP TABLE log; --'", "a; DROP TABLE log; --"),
    _texts("text = '\"q\"'", '"q"'),
    _texts("text = '1.0'", "1.0"),
    _texts("text = 'NULL'", "NULL"),
    _texts("text >= 'é'", "é", "\U0001f600", "\uffff"),
    _texts("text > '\uffff'", "\U0001f600"),
    Where("number = 0.1", "number", lambda v: number_of(v) == 0.1),
    Where("number in (30, -2.5, 99)", "number", lambda v: number_of(v) in (30, -2.5)),
    Where("whole in ('31', '5', x)", "whole", lambda v: text_of(v) in ("31", "5")),
    Where("whole in ('1.0', '30')", "whole", lambda v: text_of(v) == "30"),
    Where("whole = 9007199254740991", "whole", lambda v: number_of(v) == 2**53 - 1),
    Where("flag > 0", "flag", lambda v: number_of(v) > 0),
    Where("user = u3", "user", lambda v: v == "u3"),
    Where("action = B", "action", lambda v: v == "B"),
    Where("reward = 1", "reward", lambda v: number_of(v) == 1),
)
ODD = ("it's", 'a "b"', "select", "Ж;--", "{x}", "$files", " outer blanks ", "c1", "a.b", "filename", "rowid")


def _of_columns(name: str, names: Sequence[str], **options: Any) -> Case:
    """Users, rewards, a key and a condition in columns of odd names."""
    arm, won, who, key, condition = names
    rows: Rows = {
        arm: texts("A", "B", "A"),
        won: floats(1.0, 0.5, 0.25),
        who: texts("ann", "bob", "ann"),
        key: texts("x", "y", "x"),
        condition: integers(1, 1, 0),
    }
    quoted = condition.replace('"', '""')
    where = (Where(f'"{quoted}" = 1', condition, lambda v: number_of(v) == 1),)
    return Case(name, rows, roles=(arm, won, who), where=where, by=(Key(key, key),), **options)


IDS: dict[str, tuple[Column, Outcome]] = {
    "integers around 2^53 and 2^63": (
        integers(2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, -(2**63)),
        RIGHT,
    ),
    "text with blanks and cases": (texts("x1", "X1", " x1", "x1 ", "\tx1", "x1\u00a0"), RIGHT),
    "decimals without a scale": (
        decimals(38, 0, BIG, BIG + 1, 10**20 + 1, 10**20 + 2, postgres="numeric"),
        RIGHT,
    ),
    "missing": (integers(1, None, 3), refused("id column 'key'")),
    "NaN": (floats(1.0, NAN, 3.0), refused("id column 'key'")),
    "one of two decisions": (integers(1, 2, 1), refused("id column 'key'")),
}
SPELLINGS = texts(" 7", "7", "\t7", "7\u00a0", "007", "7.0", "+7", "8")


def _cases() -> list[Case]:
    found = [
        Case(f"users: {name}", table(user=column), cells=_USER_CELLS.get(name, {}))
        for name, column in USERS.items()
    ]
    found += [
        Case("actions: integers", table(action=integers(2, 1, 2, 10)), actions=(1, 2, 10, 3)),
        Case("actions: taken from the log", table(action=texts("b", "a", "b")), actions=None),
        Case("actions: missing", table(action=texts("A", None, "B")), refused("action")),
        Case("actions: not declared", table(action=texts("A", "D", "B")), refused("'D'")),
        Case("actions: one differs in case", table(action=texts("A", "a", "B")), refused("'a'")),
    ]
    for name, (column, span) in REWARDS.items():
        found.append(Case(f"rewards: {name}", table(reward=column), reward_range=span))
    for name, (column, words) in WRONG_REWARDS.items():
        found.append(Case(f"rewards: {name}", table(reward=column), refused(*words)))
    found.append(
        Case(
            "rewards: numbers stored as text",
            table(reward=texts("1", "0.5", "1e-3")),
        )
    )
    for name in KEYS:
        column = USERS[name]._replace(values=[each for each in USERS[name].values if each is not None])
        found.append(Case(f"keys: {name}", table(key=column), by=(Key("key", "key"),)))
    found += [
        Case(
            "keys: numbers with edges",
            table(key=floats(17.0, 18.0, 29.999999999999996, 30.0, -4.5, 1e300)),
            by=(OLD_ENOUGH,),
        ),
        Case(
            "keys: two",
            table(key=texts("x", "y", "x"), hour=integers(9, 9, 10)),
            by=(Key("key", "key"), Key("hour", "hour")),
        ),
        Case(
            "keys: a missing value", table(key=texts("x", None, "y")), refused("key"), by=(Key("key", "key"),)
        ),
        Case(
            "keys: a missing number with edges",
            table(key=floats(17.0, NAN, 30.0)),
            refused("key"),
            by=(Key("key:18", "key"),),
        ),
        Case(
            "keys: text with edges", table(key=texts("17", "old")), refused("key"), by=(Key("key:18", "key"),)
        ),
    ]
    for name, where in CONDITIONS.items():
        rows = VISITS if where.column == "price" else _PLAIN_VISITS
        found.append(Case(f"where: {name}", rows, where=(where,)))
    found += [Case(f"where: {where.text}", ODD_VALUES, where=(where,)) for where in ODD_CONDITIONS]
    both = (CONDITIONS["= text"], CONDITIONS["< number"])
    found += [
        Case("where: several", _PLAIN_VISITS, where=both),
        Case(
            "where: a text that is no number",
            table(age=texts("17", "old", "30")),
            refused("age"),
            where=(CONDITIONS["= number"],),
        ),
        Case(
            "where: wrong rewards in other rows",
            table(reward=floats(1.0, 7.5, NAN, None), ok=integers(1, 0, 0, 0)),
            where=(Where("ok = 1", "ok", lambda v: number_of(v) == 1),),
        ),
        *(
            Case(f"where: {text}", _PLAIN_VISITS, refused(word), where=(Where(text, "country", bool),))
            for text, word in (("country = XX", "country"), ("nowhere = 1", "'nowhere'"))
        ),
        Case("no rows", {"action": texts(), "reward": floats(), "user": texts()}, refused("no rows")),
        Case(
            "no such column",
            table(user=texts("ann")),
            refused("'won'"),
            roles=("action", "won", "user"),
        ),
        Case(
            "a column of another case",
            table(User=texts("ann", "bob"), user=texts(None, None)),
            refused("'USER'"),
            {
                **each(("SQLite table", "Delta"), NOT_APPLICABLE),
                "Spark": refused("spark.sql.caseSensitive"),
            },
            roles=("action", "reward", "USER"),
        ),
        Case(
            "users: found by the name user",
            table(user=texts("ann", None), other=texts("x", "y")),
            by_default=True,
        ),
        Case(
            "users: no column named user",
            {name: column for name, column in table(x=texts("ann", "bob")).items() if name != "user"},
            roles=("action", "reward", None),
            by_default=True,
        ),
        Case("without users", table(user=texts("ann", "bob")), roles=("action", "reward", None)),
        _of_columns("odd names of columns", names=ODD[:5]),
        _of_columns("more odd names of columns", names=ODD[5:10]),
        _of_columns(
            "names that engines use",
            names=("file_index", "position", "file_row_number", "units", "rowid"),
        ),
    ]
    for name, (column, outcome) in IDS.items():
        found.append(
            Case(
                f"ids: {name}",
                table(key=column),
                outcome,
                vault={"id": "key"},
                added=len(column.values),
            )
        )
    found += [
        Case(
            "ids: floats from 2^53 on",
            table(key=floats(2.0**53, 1.0)),
            refused("no floats from 2**53", "became floats"),  # as text: CSV, SQLite
            vault={"id": "key"},
        ),
        Case("rows without ids come in once", VISITS, vault={}, added=7),
        Case(
            "names: integers with blanks, tabs and zeros are one",
            table(user=SPELLINGS),
            vault={"user_type": "integer", "forget": "7", "held": 7},
            added=len(SPELLINGS.values),
        ),
        Case(
            "names: 7.6 is no integer",
            table(user=texts("7", "7.6")),
            refused("user column 'user'"),
            vault={"user_type": "integer"},
        ),
    ]
    return found


CASES = _cases()
