"""Where the vaults of these tests are, and a service over a small one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import Place, fresh_place
from tests.service.servers import Served, serving


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick run leaves a file out whose requests are made when it is collected, which takes seconds."""
    is_quick = config.getoption("markexpr") == "not slow"
    return True if is_quick and collection_path.name == "test_schema.py" else None


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(database: str, tmp_path: Path) -> Place:
    return fresh_place(database, tmp_path)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return fresh_place("sqlite", tmp_path)


@pytest.fixture
def served(sqlite_place: Place) -> Iterator[Served]:
    """A service over a vault on SQLite."""
    with serving(sqlite_place) as running:
        yield running


@pytest.fixture
def served_anywhere(place: Place) -> Iterator[Served]:
    """A service over a vault on each database."""
    with serving(place) as running:
        yield running
