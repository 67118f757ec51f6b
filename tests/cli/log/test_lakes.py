"""Commands on Delta and Iceberg tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest

from tests.cli.examples import COLUMNS, USER_COLUMN
from tests.logs.lake_tables import edit_commit, set_features, write_delta, write_iceberg

LAKES = pytest.mark.parametrize("write", [write_delta, write_iceberg])
DECLARED = (*COLUMNS, "--actions", "A,B,C", "--json")


def rows_of(clicks: Path) -> pa.Table:
    return pc.read_csv(clicks)


@LAKES
def test_a_table_is_decided_on_and_unlearned_as_its_rows_in_a_file(
    run: Any, clicks: Path, tmp_path: Path, write: Callable[..., str]
) -> None:
    name = write(tmp_path / "lake", rows_of(clicks))
    assert run("decide", name, *DECLARED).json == run("decide", clicks, *DECLARED).json
    asked = (*DECLARED, *USER_COLUMN, "--user", "u1")
    forgotten = run("unlearn", name, *asked).json
    assert forgotten == run("unlearn", clicks, *asked).json
    assert forgotten["request"]["records"] == 40


@LAKES
def test_a_table_is_ingested(
    run: Any, folder: Path, tmp_path: Path, clicks: Path, write: Callable[..., str]
) -> None:
    name = write(tmp_path / "lake", rows_of(clicks))
    assert run("init", "--actions", "A,B,C").code == 0
    ingest = ("ingest", name, *COLUMNS, *USER_COLUMN, "--json")
    assert run(*ingest).json["added"] == 200
    assert run(*ingest).json["already_there"] == 200
    assert run("verify").code == 0


def test_a_table_that_is_refused_has_exit_code_2(run: Any, clicks: Path, tmp_path: Path) -> None:
    name = write_delta(tmp_path / "lake", rows_of(clicks))
    edit_commit(tmp_path / "lake", 0, set_features("aFeatureOfLater"))
    for command in (("decide", name), ("decide", f"delta:{tmp_path}"), ("decide", "iceberg:clicks")):
        result = run(*command, *DECLARED)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("armnesia: ")
        assert result.err.count("\n") == 1
