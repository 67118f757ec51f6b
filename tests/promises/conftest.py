"""Every promise holds on both databases: each test gets a vault on each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import DATABASES
from tests.promises.driver import Driven, driven
from tests.promises.killing import Killer

POSTGRESQL_SLOWLY = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
"""For the longest tests: the quick run has them on SQLite."""


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vault(database: str, tmp_path: Path) -> Driven:
    """A new vault with the arms A and B, whose people are named by text."""
    return driven(database, tmp_path)


@pytest.fixture(scope="session")
def killer() -> Iterator[Killer]:
    with Killer() as made:
        yield made
