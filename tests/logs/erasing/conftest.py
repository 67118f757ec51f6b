"""A source of each kind, in the folder of a test."""

from pathlib import Path

import pytest
from pyiceberg import catalog
from pyiceberg.utils.config import Config

from tests.logs.erasing.stores import STORES, DeltaStore, IcebergStore, Store, iceberg_variables


def make_store(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty source of a kind."""
    if kind == "iceberg":
        for name, text in iceberg_variables(folder).items():
            monkeypatch.setenv(name, text)
        monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())  # read when pyiceberg is imported
    return STORES[kind](folder)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A source of every kind."""
    return make_store(request.param, tmp_path / "log", monkeypatch)


@pytest.fixture
def table(tmp_path: Path) -> DeltaStore:
    """An empty Delta table."""
    return DeltaStore(tmp_path / "log")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IcebergStore:
    """An empty Iceberg table."""
    store = make_store("iceberg", tmp_path / "log", monkeypatch)
    assert isinstance(store, IcebergStore)
    return store
