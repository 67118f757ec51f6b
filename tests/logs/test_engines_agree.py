"""Every engine rounds rewards to the same units, bit for bit, and refuses the same values in the same words.

Each row has an action of its own, so that the statistics show the units of every single reward. What they
must be is computed with fractions: each operation of `to_units` is the exact result, rounded once.
"""

import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidLogError
from armnesia.core.units import UNIT, to_units
from armnesia.logs import Log, open_source, read_log
from tests.logs.conftest import Schema, write_csv, write_sqlite
from tests.logs.lakes.tables import write_delta, write_iceberg
from tests.logs.spark import OF_SPARK, spark

RANGES = [(0.0, 1.0), (-3.0, 7.0), (0.0, 1e-9), (0.0, 1e15)]
POSTGRES_TYPES = {
    pa.float64(): "FLOAT8",
    pa.float32(): "FLOAT4",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.decimal128(38, 24): "NUMERIC",
}


def rounded(number: Fraction) -> Fraction:
    """The nearest float: Python's division of integers is correctly rounded."""
    return Fraction(number.numerator / number.denominator)


def expected_units(reward: Any, reward_range: tuple[float, float]) -> int:
    low, high = map(Fraction, reward_range)
    share = rounded(rounded(rounded(Fraction(reward)) - low) / rounded(high - low))
    return round(rounded(share * UNIT))


class Place(NamedTuple):
    """Where tables are made."""

    folder: Path
    request: pytest.FixtureRequest

    @property
    def schema(self) -> Schema:
        found: Schema = self.request.getfixturevalue("schema")
        return found

    def file(self, ending: str = "") -> Path:
        return self.folder / f"log{len(list(self.folder.iterdir()))}{ending}"


Range = tuple[float, float]
Read = Callable[[Range], Log]


def actions_of(table: pa.Table) -> list[str]:
    names: list[str] = table["action"].to_pylist()
    return names


def reader(table: pa.Table, source: Any, name: str | None = None) -> Read:
    actions = actions_of(table)
    return lambda span: read_log(source, table=name, user=None, actions=actions, reward_range=span)


def adding_up(table: pa.Table, source: Any, name: str | None = None) -> Read:
    """The group-by of a database, whose log is read row by row otherwise."""
    opened: Any = open_source(source, table=name, action="action", reward="reward", whole_rows=False)
    actions = tuple(actions_of(table))
    return lambda span: opened.tallied_log(actions, span)


def parquet(table: pa.Table, place: Place) -> Path:
    path = place.file(".parquet")
    pq.write_table(table, path)
    return path


def sqlite(table: pa.Table, place: Place) -> str:
    """SQLite has integers and floats of 64 bits only."""
    rewards = [float(v) if isinstance(v, Decimal) else v for v in table["reward"].to_pylist()]
    return write_sqlite(place.file(".db"), {"action": actions_of(table), "reward": rewards})


def postgres(table: pa.Table, place: Place) -> tuple[str, str]:
    schema, rows = place.schema, list(zip(*table.to_pydict().values(), strict=True))
    types = {"action": "TEXT", "reward": POSTGRES_TYPES[table.schema.field("reward").type]}
    return schema.url, schema.create(f"log_{uuid.uuid4().hex}", types, rows)


def in_spark(table: pa.Table, place: Place) -> str:
    spark()
    return f"spark:parquet.`{parquet(table, place)}`"


ENGINES: dict[str, Callable[[pa.Table, Place], Read]] = {
    "python": lambda table, place: reader(table, table.to_pydict()),
    "pandas": lambda table, place: reader(table, table.to_pandas()),
    "csv": lambda table, place: reader(table, write_csv(place.file(".csv"), table.to_pydict())),
    "parquet": lambda table, place: reader(table, parquet(table, place)),
    "delta": lambda table, place: reader(table, write_delta(place.file(), table)),
    "iceberg": lambda table, place: reader(table, write_iceberg(place.file(), table)),
    "sqlite": lambda table, place: reader(table, sqlite(table, place), "log"),
    "sqlite adding up": lambda table, place: adding_up(table, sqlite(table, place), "log"),
    "postgresql": lambda table, place: reader(table, *postgres(table, place)),
    "postgresql adding up": lambda table, place: adding_up(table, *postgres(table, place)),
    "spark": lambda table, place: reader(table, in_spark(table, place)),
}
EVERY_ENGINE = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=OF_SPARK) if name == "spark" else name for name in ENGINES]
)


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, request)


def table_of(rewards: list[Any], type_: Any = None) -> pa.Table:
    actions = [f"a{row:05}" for row in range(len(rewards))]
    return pa.table({"action": actions, "reward": pa.array(rewards, type_ or pa.float64())})


def around(value: float) -> list[float]:
    return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]


def adversarial(reward_range: Range) -> list[float]:
    """Ties and their neighbours, ends of the range, sums that are not what they seem, and tiny numbers."""
    low, high = reward_range
    width = high - low
    ties = [low + (k + 0.5) / UNIT * width for k in (0, 1, 2, 3, 7, 499_999_999, 500_000_000, 999_999_998)]
    wholes = [low + k / UNIT * width for k in (0, 1, 2, 333_333_333, 500_000_000, 999_999_999, UNIT)]
    shares = [low + share * width for share in (0.1, 0.2, 0.1 + 0.2, 0.3, 1 / 3, 2 / 3, 0.7, 1e-12, 1e-10)]
    tiny = [-0.0, 0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-20, 0.5e-9, 2.5e-18, 1e-9]
    every = [near for value in (*ties, *wholes, *shares, *tiny, low, high) for near in around(value)]
    return [value for value in every if low <= value <= high]


def assert_units(read: Read, rewards: list[Any], reward_range: Range) -> None:
    found = read(reward_range).statistics()
    assert found.counts.tolist() == [1] * len(rewards)
    assert found.sums.tolist() == [expected_units(reward, reward_range) for reward in rewards]


def test_the_expectation_has_ties_in_both_directions() -> None:
    """The fractions know what ties to even are, and the adversarial values have some."""
    assert [expected_units(value, (0.0, 1.0)) for value in (0.5e-9, 1.5e-9, 2.5e-9)] == [0, 2, 2]
    values = adversarial((0.0, 1.0))
    scaled = [Fraction(value / 1.0 * UNIT) for value in values]
    assert sum(value.denominator == 2 for value in scaled) >= 5
    assert to_units(values, (0.0, 1.0)).tolist() == [expected_units(value, (0.0, 1.0)) for value in values]


@EVERY_ENGINE
def test_floats_become_the_same_units(engine: str, place: Place) -> None:
    for reward_range in RANGES:
        rewards = adversarial(reward_range)
        assert_units(ENGINES[engine](table_of(rewards), place), rewards, reward_range)


@EVERY_ENGINE
def test_short_floats_become_the_units_of_their_exact_value(engine: str, place: Place) -> None:
    for reward_range in RANGES:
        low, high = reward_range
        short = [float(np.float32(value)) for value in adversarial(reward_range)]
        rewards = [value for value in short if low <= value <= high]
        assert_units(ENGINES[engine](table_of(rewards, pa.float32()), place), rewards, reward_range)


@EVERY_ENGINE
def test_integers_become_the_same_units(engine: str, place: Place) -> None:
    for reward_range, rewards in (
        ((-3.0, 7.0), list(range(-3, 8))),
        ((0.0, 1e15), [0, 1, 10**6, 10**15 // 3, 10**15 - 1, 10**15]),
        ((0.0, 2.0**53), [2**53, 2**53 + 1, 2**53 - 1]),  # 2⁵³ + 1 is no float, and rounds to the end
        ((0.0, 2.0**62), [2**62 + 255, 2**62 - 129, 2**61 + 3]),
    ):
        assert_units(ENGINES[engine](table_of(rewards, pa.int64()), place), rewards, reward_range)


@EVERY_ENGINE
def test_booleans_become_the_same_units(engine: str, place: Place) -> None:
    for reward_range in ((0.0, 1.0), (-3.0, 7.0)):
        read = ENGINES[engine](table_of([True, False, True], pa.bool_()), place)
        assert_units(read, [1, 0, 1], reward_range)


@EVERY_ENGINE
def test_decimals_become_the_units_of_the_nearest_float(engine: str, place: Place) -> None:
    texts = {
        (0.0, 1.0): ["0.3", "0.1", "0.0000000005", "0.0000000015", "0.123456789012345678901234"],
        (-3.0, 7.0): ["-3", "7", "-2.999999995", "6.999999994999999999999999", "0.000000000000000000000001"],
        (0.0, 1e-9): ["0.0000000005", "0.000000000000000000000001", "0.000000001"],
        (0.0, 1e13): ["9999999999999.999999999999999999999999", "5000.000005", "10000000000000"],
    }
    texts[0.0, 1.0] += ["1.000000000000000000000001", "0.999999999999999944488849"]  # beside the end
    for reward_range, written in texts.items():
        rewards = list(map(Decimal, written))
        read = ENGINES[engine](table_of(rewards, pa.decimal128(38, 24)), place)
        assert_units(read, rewards, reward_range)


def refusal(read: Read, reward_range: Range) -> str:
    with pytest.raises(InvalidLogError) as refused:
        read(reward_range)
    return str(refused.value)


@EVERY_ENGINE
@pytest.mark.parametrize(
    "wrong",
    [math.nan, math.inf, -math.inf, None, "below", "above"],
    ids=["nan", "inf", "-inf", "null", "<", ">"],
)
def test_the_same_values_are_refused_in_the_same_words(engine: str, wrong: Any, place: Place) -> None:
    for low, high in RANGES[1:3] if engine == "spark" else RANGES:
        outside = {"below": math.nextafter(low, -math.inf), "above": math.nextafter(high, math.inf)}
        table = table_of([low, outside.get(wrong, wrong) if isinstance(wrong, str) else wrong, high])
        found = refusal(ENGINES[engine](table, place), (low, high))
        assert found == refusal(ENGINES["python"](table, place), (low, high))
        assert "at row 1" in found


TYPED = {"parquet", "delta", "iceberg", "spark"}


@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=OF_SPARK) if name == "spark" else name for name in sorted(TYPED)]
)
def test_a_column_of_text_holds_no_rewards_where_types_are_known(engine: str, place: Place) -> None:
    table = table_of(["0.5", "1"], pa.string())
    with pytest.raises(InvalidLogError, match="reward column 'reward' must hold numbers; it holds"):
        ENGINES[engine](table, place)((0.0, 1.0))


@st.composite
def rewards_of_a_range(draw: st.DrawFn) -> tuple[Range, list[float]]:
    low, high = sorted(draw(st.lists(st.floats(-1e18, 1e18), min_size=2, max_size=2, unique=True)))
    shares = st.integers(0, 2 * UNIT).map(lambda half: low + half / (2 * UNIT) * (high - low))
    values = draw(st.lists(st.one_of(st.floats(low, high), shares), min_size=1, max_size=60))
    return (low, high), [min(max(value, low), high) for value in values]


ANY_REWARDS = rewards_of_a_range()
SAME_PLACE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.parametrize("engine", ["python", "parquet", "sqlite adding up"])
@settings(suppress_health_check=SAME_PLACE, max_examples=40)
@given(drawn=ANY_REWARDS)
def test_any_rewards_become_the_same_units(
    engine: str, drawn: tuple[Range, list[float]], place: Place
) -> None:
    reward_range, rewards = drawn
    assert_units(ENGINES[engine](table_of(rewards), place), rewards, reward_range)


@pytest.mark.parametrize(
    "engine", ["csv", "delta", "iceberg", "postgresql adding up", pytest.param("spark", marks=OF_SPARK)]
)
@settings(suppress_health_check=SAME_PLACE, max_examples=10)
@given(drawn=ANY_REWARDS)
def test_any_rewards_become_the_same_units_in_slower_places(
    engine: str, drawn: tuple[Range, list[float]], place: Place
) -> None:
    reward_range, rewards = drawn
    assert_units(ENGINES[engine](table_of(rewards), place), rewards, reward_range)
