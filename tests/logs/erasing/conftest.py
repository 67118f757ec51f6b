"""A source of each kind, in the folder of a test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg import catalog

from tests.logs.erasing.stores import (
    STORES,
    DeltaStore,
    IcebergStore,
    ParquetStore,
    PostgresStore,
    SQLiteStore,
    Store,
)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """What names a catalog of Iceberg tables is gone after a test."""
    before, configured = dict(os.environ), catalog._ENV_CONFIG
    yield
    catalog._ENV_CONFIG = configured
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty source of every kind."""
    return STORES[request.param](tmp_path / "log")


@pytest.fixture
def parquet(tmp_path: Path) -> ParquetStore:
    return ParquetStore(tmp_path / "log")


@pytest.fixture
def delta(tmp_path: Path) -> DeltaStore:
    return DeltaStore(tmp_path / "log")


@pytest.fixture
def iceberg(tmp_path: Path) -> IcebergStore:
    return IcebergStore(tmp_path / "log")


@pytest.fixture
def sqlite(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "log")


@pytest.fixture
def postgres(tmp_path: Path) -> PostgresStore:
    return PostgresStore(tmp_path / "log")
