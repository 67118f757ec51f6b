"""The whole reproduction, coarse and with few data sets: everything is computed, drawn and written."""

import re
from pathlib import Path

from armnesia.paper.reproduce import PARTS, reproduce
from armnesia.paper.results import read_csv, read_parquet


def test_the_whole_paper_in_one_call(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = reproduce(tmp_path, quick=True, datasets=400, n_jobs=1, progress=lambda *step: told.append(step))
    page = found["report"].read_text(encoding="utf-8")
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    for expected in (
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Table 2",
        "Bounds",
        "Which method",
        "requests",
        "claims",
        "Beyond the paper",
        "predictive",
        "A year of monthly deletions",
    ):
        assert sum(expected in title for title in titles) == 1
    assert page.count("data:image/png;base64,") == 10
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    names = ["figure-1", "figure-2", "figure-3", "bounds", "phase"]
    names += ["beyond", "beyond-distance", "beyond-epsilon", "tradeoff", "stream"]
    assert pictures == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    rows = read_csv(tmp_path / "results.csv")
    assert {row["figure"] for row in rows} == {"1", "2", "3", "table2", "beyond", "tradeoff", "stream"}
    assert len(read_parquet(tmp_path / "results.parquet")) == len(rows)
    assert len(found["claims"]) == 18
    assert {name for name, _, _ in told} >= {"Figure 1", "Figure 2", "Figure 3", "Table 2"}
    assert len(PARTS) == 11
