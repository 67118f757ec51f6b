"""Every promise holds on both databases; the quick run has the tests on SQLite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.driver import Driven, driven
from tests.promises.killing import Killer

ON_EACH = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


@pytest.fixture(params=ON_EACH)
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
