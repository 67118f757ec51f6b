"""The dict form of statistics, through JSON, loads in this version and in every later one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT

# Frozen: never edit this file. A later schema gets a file of its own beside it.
FROZEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "statistics_v1.json").read_text("utf-8")
)

json_labels = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False)),
    lambda label: st.lists(label, max_size=3).map(tuple),
    max_leaves=4,
)


@given(st.lists(json_labels, min_size=1, max_size=4, unique=True), st.data())
def test_statistics_survive_json_bit_for_bit(labels: list[Any], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(0, 2 * 10**10)) for _ in labels]
    sums = [data.draw(st.integers(0, count * UNIT)) for count in counts]
    written = ArmStatistics(tuple(labels), np.array(counts), np.array(sums, dtype=object), (-1.5, 1e300))
    read = ArmStatistics.from_dict(json.loads(json.dumps(written.to_dict())))
    assert read == written
    assert read.sums.dtype == written.sums.dtype
    assert repr(read.actions) == repr(written.actions)  # True is not 1 and 1.0 is not 1 here


def test_the_frozen_ratings_load() -> None:
    ratings = ArmStatistics.from_dict(FROZEN["ratings"])
    assert ratings.actions == ("red", ("blue", 2), 7)
    assert ratings.reward_range == (1.0, 5.0)
    assert ratings.counts.tolist() == [3, 2, 0]
    assert ratings.sums.tolist() == [2250000000, 333333333, 0]
    assert ratings.means[:2].tolist() == [4.0, pytest.approx(5 / 3, abs=4e-9)]


def test_the_frozen_sums_beyond_int64_load() -> None:
    clicks = ArmStatistics.from_dict(FROZEN["beyond_int64"])
    assert clicks.sums.tolist() == [12345678901234567890, 999999999]
    assert clicks.counts.tolist() == [20_000_000_000, 1]


def test_the_frozen_batch_loads() -> None:
    batch = ArmStatistics.from_dict(FROZEN["batch"])
    assert batch.counts.tolist() == [[1, 2], [0, 4]]
    assert batch.sums.tolist() == [[1000000000, 500000000], [0, 4000000000]]


@pytest.mark.parametrize("case", sorted(FROZEN))
def test_this_version_still_writes_the_frozen_layout(case: str) -> None:
    """While the schema is version 1 the bytes are too; a new schema removes this test, not the ones above."""
    assert json.loads(json.dumps(ArmStatistics.from_dict(FROZEN[case]).to_dict())) == FROZEN[case]


@pytest.mark.parametrize("missing", ["actions", "counts", "sums", "reward_range"])
def test_a_missing_key_is_named(missing: str) -> None:
    incomplete = {key: value for key, value in FROZEN["ratings"].items() if key != missing}
    with pytest.raises(InvalidInputError, match=f"statistics need the key '{missing}'"):
        ArmStatistics.from_dict(incomplete)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "armnesia.statistics/2"}, "got 'armnesia.statistics/2' with unit 1000000000"),
        ({"schema": None}, "schema must be 'armnesia.statistics/1' with unit 1000000000; got None"),
        ({"unit": 10**6}, "with unit 1000000$"),
        ({"counts": [3.0, 2.0, 0.0]}, "counts must be whole numbers"),
        ({"counts": [3, 2]}, "one for each of the 3 actions"),
        ({"sums": [2250000000, 333333333.5, 0]}, "sums must be whole numbers"),
        ({"sums": [2250000000, 333333333, 1]}, "statistics of action 7 are impossible"),
        ({"actions": ["red", "red", 7]}, "'red' is there more than once"),
        ({"reward_range": [5, 1]}, "low < high"),
    ],
)
def test_a_file_that_was_tampered_with_or_is_newer_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ArmStatistics.from_dict({**FROZEN["ratings"], **change})
