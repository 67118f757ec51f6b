"""Where the vaults of these tests are: a new place per test, on every database or on one of them."""

from pathlib import Path

import pytest

from tests.databases import Place, fresh_place


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest) -> str:
    """Each database in turn; `parametrize("database", ["sqlite"], indirect=True)` takes one of them.

    What is tested on both is slow on PostgreSQL; quick tests of PostgreSQL take `postgres_place`.
    """
    return str(request.param)


@pytest.fixture
def place(database: str, tmp_path: Path) -> Place:
    return fresh_place(database, tmp_path)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return fresh_place("sqlite", tmp_path)


@pytest.fixture
def postgres_place(tmp_path: Path) -> Place:
    return fresh_place("postgresql", tmp_path)
