"""Names within texts: in paths, in metadata and in descriptions, wherever they stand and of several words."""

import json
from collections.abc import Callable
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.identifiers import UserType
from armnesia.logs import open_source
from armnesia.logs.erasing import People, SourceState, open_eraser
from armnesia.logs.erasing.names_in_texts import named_in
from tests.logs.erasing.test_parquet_files import eraser_of

UUID = "550e8400-e29b-41d4-a716-446655440000"
ROWS = pa.table({"action": ["A", "B"], "reward": [1, 0], "user": ["bob", "eve"]})

FOUND = [
    ("ann-7000", "8;ann-70008;bob-7001"),
    ("bob-7001", "8;ann-70008;bob-7001"),
    ("j\u00fcrgen9", "8;ann-70009;j\u00fcrgen9"),
    ("u-1047", "export-2026-03-01-12-30-00-part-0001-of-0010-u-1047.parquet"),
    ("u-1047", "u-1047-export-2026-03-01-12-30-00-part-0001-of-0010.parquet"),
    (f"user-{UUID}", f"export-user-{UUID}.parquet"),
    (f"user-{UUID}", f"clicks-of-user-{UUID}-and-{UUID}"),
    (UUID, f"part-00000-{UUID}-c000.snappy.parquet"),
    ("alice77x", "clicks+alice77x.parquet"),
    ("+491701234567", "clicks-+491701234567.parquet"),
    ("u-10477", "s3://exports/u-10477/clicks.csv"),
    ("u-10477", "exported for u-10477."),
    ("u-10477", "exported for u-10477, at night!"),
    ("Anna Leeson", "exported for Anna Leeson on request"),
    ("Anna Leeson", "clicks, 'Anna Leeson'; others"),
    ("Lee, Anna", "all of Lee, Anna and others"),
    ("Sammy Davis Jr.", "exported for Sammy Davis Jr. on request"),
    ("Anna Leeson", json.dumps({"for": ["clicks of Anna Leeson."]})),
    ("j\u00fcrgen m\u00fcller", json.dumps({"for": "clicks of j\u00fcrgen m\u00fcller"})),
    ("u-10477", json.dumps({"inner": json.dumps({"path": "s3://exports/u-10477/a"})})),
    ("12345.0", json.dumps({"most": 12345.0})),
    ("ann.lee@ex.org", "mailto:ann.lee@ex.org?subject=clicks"),
    ("Anna Leeson", "day=1/of=Anna%2520Leeson/a.parquet"),
]


@pytest.mark.parametrize(("name", "text"), FOUND)
@pytest.mark.parametrize("type_", [UserType.TEXT, UserType.EXACT])
def test_a_name_is_found_in_a_text(name: str, text: str, type_: UserType) -> None:
    assert named_in([text], People.named([name], type_))
    assert not named_in([text], People.named([f"{name}x", f"x{name}"], type_))


WORDS = st.text("abcdefgh\u00e9", min_size=1, max_size=6)
BETWEEN = st.sampled_from([*"-_./=:#+,;|&!?~@", " ", ", ", "://"])


@given(
    name=st.lists(WORDS, min_size=1, max_size=6),
    inner=BETWEEN,
    before=st.lists(WORDS, max_size=20),
    after=st.lists(WORDS, max_size=20),
    between=BETWEEN,
)
def test_a_name_of_some_words_is_found_among_any_others(
    name: list[str], inner: str, before: list[str], after: list[str], between: str
) -> None:
    wanted = inner.join(name)
    text = between.join((*before, wanted, *after))
    assert len(wanted) < 3 or named_in([text], People.named([wanted]))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("5", "delta-rs 1.5.0"),
        ("1", "version 1.0"),
        ("7", "part-7.00.parquet"),
        ("2026", "clicks of 2026"),
        ("123456", "part-123456.parquet"),
    ],
)
def test_short_numbers_are_no_names(number: str, text: str) -> None:
    assert not named_in([text], People.named([number], UserType.INTEGER))


def test_a_long_text_is_looked_at_in_parts() -> None:
    asked: list[int] = []

    def recognise(names: list[str]) -> list[bool]:
        asked.append(len(names))
        return [name == "ann lee" for name in names]

    text = " ".join(f"word{number}" for number in range(8000)) + " ann lee."
    assert named_in([text], People.recognised_by(recognise))  # type: ignore[arg-type]
    assert len(asked) > 1
    assert max(asked) <= 50_000


def is_named(folder: Path, name: str) -> bool:
    eraser = eraser_of(folder)
    erasure = eraser.apply(eraser.empty_plan(), People.named([name], UserType.TEXT))
    named = [each for each in erasure.remains if "name people" in each]
    assert (erasure.state == SourceState.LOGICALLY_DELETED) == bool(named)
    assert name not in str(erasure)
    return bool(named)


def empty_folder(folder: Path) -> None:
    (folder / "of" / "zed-alice77").mkdir(parents=True)


def folder_without_parquet(folder: Path) -> None:
    (folder / "zed-alice77").mkdir()
    (folder / "zed-alice77" / "notes.txt").write_text("x")


def other_file(folder: Path) -> None:
    (folder / "notes-zed-alice77.txt").write_text("x")


@pytest.mark.parametrize("make", [empty_folder, folder_without_parquet, other_file])
def test_names_of_everything_in_a_folder_count(tmp_path: Path, make: Callable[[Path], None]) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    assert not is_named(tmp_path, "zed-alice77")
    make(tmp_path)
    assert is_named(tmp_path, "zed-alice77")
    assert not is_named(tmp_path / "a.parquet", "zed-alice77"), "others may be sources of their own"


def test_values_of_an_enum_of_polars_are_said(tmp_path: Path) -> None:
    """They are in the metadata of all files, whatever rows these have."""
    names = ["ann-7000", "bob-7001", "eve-7002"]
    (tmp_path / "files").mkdir()
    rows = {"action": ["A", "B"], "reward": [1, 0], "user": names[1:]}
    frame = pl.DataFrame(rows, schema_overrides={"user": pl.Enum(names)})
    frame.write_parquet(tmp_path / "files" / "a.parquet")
    assert is_named(tmp_path / "files", "ann-7000")
    assert not is_named(tmp_path / "files", "ann-700")
    deltalake.write_deltalake(str(tmp_path / "table"), frame.to_arrow())
    source = open_source(f"delta:{tmp_path / 'table'}", action="action", reward="reward", whole_rows=False)
    eraser = open_eraser(source)
    people = People.named(["ann-7000"], UserType.TEXT)
    assert eraser.purge(eraser.empty_plan(), people, ignore_retention=True).state != SourceState.PURGED


@pytest.mark.parametrize(("name", "text"), [each for each in FOUND if "%" not in each[1]])
def test_names_within_key_value_metadata_are_said(tmp_path: Path, name: str, text: str) -> None:
    pq.write_table(ROWS.replace_schema_metadata({"source": text}), tmp_path / "a.parquet")
    assert is_named(tmp_path, name)
