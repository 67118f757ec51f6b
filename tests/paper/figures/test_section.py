"""The sections on Figures 1 to 3 and Table 2, made of invented values; and the ε that one of them names."""

from collections.abc import Callable
from pathlib import Path

import pytest

from armnesia import privacy_curve
from armnesia.paper.figures.section import (
    figure_1_section,
    figure_2_section,
    figure_3_section,
    table_2_section,
)
from armnesia.paper.plan import Plan
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from tests.paper.drawing import InventedRun


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make_section", "name", "table_rows"),
    [
        (figure_1_section, "figure-1", 4 * 5),
        (figure_2_section, "figure-2", None),
        (figure_3_section, "figure-3", None),
        (table_2_section, None, 4 + 2),
    ],
)
def test_a_section_has_its_picture_table_and_rows(
    make_section: Callable[[Run], Section], name: str | None, table_rows: int | None, tmp_path: Path
) -> None:
    run = InventedRun(tmp_path, Plan(quick=True))
    section = make_section(run)
    assert section.paragraphs
    assert len(section.pictures) == (1 if name else 0)
    saved = sorted(file.name for file in run.pictures.iterdir()) if name else []
    assert saved == ([f"{name}.png", f"{name}.svg"] if name else [])
    assert [len(table.rows) for table in section.tables] == ([table_rows] if table_rows else [])
    assert run.rows


def test_the_privacy_of_the_experiments_is_what_the_report_says() -> None:
    assert privacy_curve(0.5).epsilon(1e-5) == pytest.approx(10.0, abs=0.01)
