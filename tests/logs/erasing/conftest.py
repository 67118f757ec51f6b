"""An empty log of each kind, in the folder of a test."""

from pathlib import Path
from typing import Any

import pytest

from tests.promises.lakes import KINDS, Delta, Folder, Postgres, Sqlite, make_lake


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One of every kind; a test of some kinds names them as parameters."""
    return make_lake(request.param, tmp_path, monkeypatch)


@pytest.fixture
def parquet(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def delta(tmp_path: Path) -> Delta:
    return Delta(tmp_path)


@pytest.fixture
def iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return make_lake("iceberg", tmp_path, monkeypatch)


@pytest.fixture
def sqlite(tmp_path: Path) -> Sqlite:
    return Sqlite(tmp_path)


@pytest.fixture
def postgres(tmp_path: Path) -> Postgres:
    return Postgres(tmp_path)
