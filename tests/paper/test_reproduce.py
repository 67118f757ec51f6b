"""The reproduction, on a coarse grid with few data sets: everything is computed, drawn and written."""

import csv
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper.reproduce import PARTS, reproduce
from armnesia.plotting.panels import Curve, Panel, for_print, picture_of_panels
from armnesia.plotting.style import save


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_one_part_writes_the_report_and_the_results(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    found = reproduce(
        tmp_path, parts=["table2"], datasets=200, n_jobs=1, progress=lambda *step: steps.append(step)
    )
    assert found.files == tuple(tmp_path / name for name in ("report.html", "results.csv", "results.parquet"))
    assert "<h2>Table 2: imitation at C* = 1.3</h2>" in found.report.read_text(encoding="utf-8")
    rows = read_csv(tmp_path / "results.csv")
    assert {row["figure"] for row in rows} == {"table2"}
    stored = duckdb.read_parquet(str(tmp_path / "results.parquet"))
    read = [dict(zip(stored.columns, row, strict=True)) for row in stored.fetchall()]
    assert [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in read
    ] == rows
    assert {type(row["n"]) for row in read} == {int}
    assert steps == 2 * [("Table 2", done, 4) for done in (1, 2, 3, 4)]  # two readings of k
    assert found.claims == ()


def test_an_unknown_part_or_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"part must be one of 1, .*, many_decisions or all; got '4'"):
        reproduce(tmp_path, parts=["4"])
    with pytest.raises(InvalidInputError, match="protocol must be one of exact, sampled, paper; got 'best'"):
        reproduce(tmp_path, protocol="best")
    assert list(tmp_path.iterdir()) == []


def test_a_part_is_in_one_file_named_by_its_key() -> None:
    files = {key: make.__module__.split(".")[2] for key, (_, make) in PARTS.items()}
    figures = {"1": "figures", "2": "figures", "3": "figures", "table1": "table_1", "table2": "table_2"}
    assert files == {key: figures.get(key, key) for key in PARTS}


def picture() -> Any:
    panels = [Panel(name, "N", "loss", [Curve("tilt", [1, 2], [0.1, 0.2])]) for name in ("$M_f$", "$M_d$")]
    return picture_of_panels([panels], title="Loss over N")


@pytest.mark.slow
def test_a_picture_is_saved_in_three_formats_the_same_each_time(tmp_path: Path) -> None:
    for ending, first in (("png", b"\x89PNG"), ("svg", b"<?xm"), ("pdf", b"%PDF")):
        once, again = (tmp_path / "new" / f"{name}.{ending}" for name in ("one", "two"))
        for file in (once, again):
            save(picture(), file)
        assert once.read_bytes() == again.read_bytes()
        assert once.read_bytes().startswith(first)


def test_for_print_panels_have_letters_and_their_titles_stand_in_the_caption() -> None:
    figure = picture()
    assert for_print(figure) == "Loss over N: (a) M_f (b) M_d"
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["(a)", "(b)"]
    assert figure.legends[0].get_title().get_text() == ""


@pytest.mark.slow
@pytest.mark.skipif(
    "ARMNESIA_HARD_TEST" not in os.environ,
    reason="make demo, which CI runs, does the same; make hard-test checks what it writes",
)
def test_the_whole_paper_in_one_call(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    found = reproduce(tmp_path, quick=True, datasets=400, n_jobs=1, progress=lambda *step: steps.append(step))
    page = found.report.read_text(encoding="utf-8")
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    for expected in (
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Table 1",
        "Table 2",
        "Bounds",
        "Which method",
        "requests",
        "claims",
        "Beyond the paper",
        "What a guarantee level costs",
        "predictive",
        "A year of monthly deletions",
        "One person in many decisions",
    ):
        assert sum(expected in title for title in titles) == 1
    assert page.count("data:image/png;base64,") == 12
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    names = ["figure-1", "figure-2", "figure-3", "bounds", "phase", "dependent-requests"]
    names += ["beyond", "beyond-distance", "beyond-epsilon", "tradeoff", "year", "many_decisions"]
    assert pictures == {f"{name}.{ending}" for name in names for ending in ("png", "svg", "pdf")}
    rows = read_csv(tmp_path / "results.csv")
    assert {row["figure"] for row in rows} == {
        *("1", "2", "3", "table2", "dependent_requests", "beyond", "level_costs", "tradeoff", "year"),
        "many_decisions",
    }
    assert duckdb.read_parquet(str(tmp_path / "results.parquet")).count("*").fetchall() == [(len(rows),)]
    assert len(found.claims) == 55
    assert {name for name, _, _ in steps} >= {"Figure 1", "Figure 2", "Figure 3", "Table 2"}
    assert len(PARTS) == len(titles) - 2  # how it was computed, and the contents
