"""A service that the tests of the page share, for whatever changes nothing."""

from collections.abc import Iterator

import pytest

from tests.databases import Place
from tests.service.certificates import processor
from tests.service.pages.clients import PageClient, at_the_page
from tests.service.servers import Served, fill, serving_existing


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("page")
    place = Place(f"sqlite:///{folder}/vault.db", folder / "vault.db.keys")
    with serving_existing(place, fill(place), made=processor(folder)) as running:
        yield running


@pytest.fixture(scope="package")
def shared_client(shared: Served) -> Iterator[PageClient]:
    with at_the_page(shared) as client:
        yield client
