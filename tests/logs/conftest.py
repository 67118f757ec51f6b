"""Where the sources of tests are written: once for all tests of a process."""

from collections.abc import Iterator

import pytest

from tests.logs.conformance.sources import Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("sources"))
    yield made
    made.close()
