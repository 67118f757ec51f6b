"""Results that several files of this room test: computed once per process."""

import pytest

from armnesia.paper.beyond.cells import beyond_cells
from armnesia.paper.beyond.curves import epsilon_curves
from armnesia.paper.beyond.results import SettingResults, results_by_setting
from armnesia.paper.bounds.curves import BoundsPanel
from armnesia.paper.cells import CellStore, Row, run_cells
from armnesia.paper.plan import Plan


@pytest.fixture(scope="session")
def beyond_rows() -> list[Row]:
    return run_cells(beyond_cells(Plan(quick=True, datasets=400)), CellStore())


@pytest.fixture(scope="session")
def beyond_settings(beyond_rows: list[Row]) -> list[SettingResults]:
    return results_by_setting(beyond_rows)


@pytest.fixture(scope="session")
def epsilon_panels() -> list[BoundsPanel]:
    return epsilon_curves(quick=True)
