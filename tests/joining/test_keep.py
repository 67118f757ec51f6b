"""Columns of the exposures that the log keeps, compared with plain Python."""

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia import join_metrics, read_log
from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.vault import Configuration, Vault
from tests.joining.tables import write

COLUMNS = ("experiment", "action", "user", "time", "country", "age")


def exposures(seed: int) -> list[dict[str, Any]]:
    """Few times, so that several exposures of a person are the first; some values are missing."""
    draw = random.Random(seed)
    rows = []
    for _ in range(400):
        user, experiment = f"u{draw.randrange(60)}", draw.choice(["checkout", "search"])
        rows.append(
            {
                "experiment": experiment,
                "action": "AB"[(int(user[1:]) + len(experiment)) % 2],
                "user": user,
                "time": f"2026-01-0{draw.randrange(1, 5)}T00:00:00Z",
                "country": draw.choice(["DE", "FR", None]),
                "age": str(draw.randrange(15, 60)),
            }
        )
    return rows


def first_values(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[str | None, str]]:
    """Of the first exposures, the smallest values; a missing one comes last."""
    found: dict[tuple[str, str], Any] = {}
    for row in rows:
        key = (row["time"], row["country"] is None, row["country"] or "", row["age"])
        person = (row["experiment"], row["user"])
        found[person] = min(found.get(person, key), key)
    return {person: (country or None, age) for person, (_, _, country, age) in found.items()}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("out", ["log.parquet", "log.csv"])
def test_the_log_has_the_values_of_the_first_exposure(tmp_path: Path, suffix: str, out: str) -> None:
    rows = exposures(seed=len(suffix))
    shown = write(tmp_path / f"shown.{suffix}", rows, COLUMNS)
    bought = tmp_path / "bought.csv"
    bought.write_text("user,time\nu1,2026-01-05T00:00:00Z\n", encoding="utf-8")
    options: dict[str, Any] = {"window": "14d", "aggregate": "any", "out": tmp_path / out}
    done = join_metrics(shown, bought, **options, keep=["country", "age"])
    sql = f"""SELECT experiment, "user", country, age FROM '{tmp_path / out}'"""
    found = {(row[0], row[1]): (row[2] or None, str(row[3])) for row in duckdb.sql(sql).fetchall()}
    assert found == first_values(rows)
    assert len({country for country, _ in found.values()}) == 3
    plain = join_metrics(shown, bought, **{**options, "out": tmp_path / f"plain-{out}"})
    assert {**plain.to_dict(), "out": None} == {**done.to_dict(), "out": None}


@pytest.mark.parametrize(
    ("suffix", "out_suffix"), [("csv", "csv"), ("parquet", "parquet"), ("parquet", "csv")]
)
def test_a_vault_has_decisions_by_kept_columns(tmp_path: Path, suffix: str, out_suffix: str) -> None:
    """Also by numbers with edges; in Parquet they stay numbers."""
    rows = [{**row, "country": row["country"] or "none"} for row in exposures(seed=1)]
    as_numbers = [{**row, "age": float(row["age"])} for row in rows]
    shown = write(tmp_path / f"shown.{suffix}", rows if suffix == "csv" else as_numbers, COLUMNS)
    bought, out = tmp_path / "bought.csv", tmp_path / f"log.{out_suffix}"
    bought.write_text("user,time\nu1,2026-01-05T00:00:00Z\n", encoding="utf-8")
    done = join_metrics(shown, bought, window="14d", aggregate="any", out=out, keep=("country", "age"))
    by = ("experiment", "country", "age:30")
    wanted = {
        (experiment, country, "<30" if int(age) < 30 else ">=30")
        for (experiment, _), (country, age) in first_values(rows).items()
    }
    assert set(read_log(out, actions=["A", "B"]).by(*by).keys) == wanted
    with Vault.create(f"sqlite:///{tmp_path}/v.db", Configuration(actions=("A", "B"), by=by)) as vault:
        assert vault.ingest(out, id="id").added == done.rows
        assert {tuple(key.values()) for key in vault.decisions().keys} == wanted


@pytest.mark.parametrize(
    ("keep", "error", "sentence"),
    [
        (["planet"], InvalidLogError, "keep column 'planet' of the exposures is not in the source"),
        (["User"], InvalidInputError, "keep must be different columns, and others than .*; got 'User'"),
        (["country", "country"], InvalidInputError, "keep must be different columns"),
        ([""], InvalidInputError, "keep must be names of columns"),
    ],
)
def test_columns_that_cannot_be_kept_are_refused(
    tmp_path: Path, keep: list[str], error: type[Exception], sentence: str
) -> None:
    shown = write(tmp_path / "shown.csv", exposures(seed=1), COLUMNS)
    with pytest.raises(error, match=sentence):
        join_metrics(shown, shown, window="14d", aggregate="any", out=tmp_path / "log.csv", keep=keep)


def test_a_property_and_a_strange_name_are_kept(tmp_path: Path) -> None:
    name = 'a "b", c'
    row = {"experiment": "e", "action": "A", "user": "ann", "time": "2026-01-01", name: "x"}
    shown = tmp_path / "shown.jsonl"
    write(shown, [{**row, "properties": {"country": "DE"}}], [*row, "properties"])
    out = tmp_path / "log.csv"
    join_metrics(shown, shown, window="1d", aggregate="count", out=out, keep=[name, "properties.country"])
    header, line = out.read_text(encoding="utf-8").splitlines()
    assert header.endswith('metric_rows,"a ""b"", c",properties.country')
    assert line.endswith(",x,DE")
