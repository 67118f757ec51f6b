"""An erasure that is killed between any two steps is finished by running it again, and never half done."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import SERVER, postgres_url
from tests.logs.erasing.conftest import make_store
from tests.logs.erasing.interrupted import ERASED, erase
from tests.logs.erasing.stores import (
    STORES,
    PostgresStore,
    Row,
    Store,
    found_in,
    iceberg_variables,
    in_order,
    name_of,
    needles,
)

_FEWEST = {"parquet": 10, "delta": 6, "iceberg": 10, "sqlite": 5, "postgresql": 6}
"""How many steps an erasure has at least, so that the search for them is known to work."""
_MOST = 80


def killed(store: Store, kind: str, plan_file: Path, step: int) -> int | None:
    """Run an erasure up to a step; None if it was killed there, or else the number of its steps."""
    schema = [store.schema] if isinstance(store, PostgresStore) else []
    variables = {**os.environ, **iceberg_variables(store.folder)}
    if kind == "postgresql":
        variables[SERVER] = postgres_url()
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.logs.erasing.interrupted",
            kind,
            store.folder,
            plan_file,
            str(step),
            *schema,
        ],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode == -9:
        return None
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout.split()[-1])


def assert_never_half(store: Store, rows: list[Row], kind: str) -> None:
    """All rows of others are there; of the rows to be erased, all or, of several files, those of some."""
    found = store.rows()
    others = [row for row in rows if row[0] not in ERASED]
    assert in_order(row for row in found if row[0] not in ERASED) == in_order(others)
    if kind != "parquet":
        assert len(found) in (len(rows), len(others))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_an_erasure_killed_at_any_step_is_finished(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    for step in range(1, _MOST):
        folder, plan_file = tmp_path / f"log-{step}", tmp_path / f"plan-{step}"
        store = make_store(kind, folder, monkeypatch)
        rows = store.with_parts(2)
        number = killed(store, kind, plan_file, step)
        assert_never_half(store, rows, kind)
        erase(store, plan_file)
        others = [row for row in rows if row[0] not in ERASED]
        assert in_order(store.rows()) == in_order(others)
        assert found_in(store.contents(), needles(row for row in rows if row[0] in ERASED)) == set()
        assert not list(folder.glob(".armnesia-*")) if folder.exists() else True
        shutil.rmtree(folder, ignore_errors=True)
        if number is not None:
            steps = number
            break
    assert _FEWEST[kind] <= steps < _MOST


@pytest.mark.slow
def test_a_parquet_erasure_killed_between_two_files_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for one step that matters, in the quick tests."""
    store = make_store("parquet", tmp_path / "log", monkeypatch)
    rows, plan_file = store.with_parts(2), tmp_path / "plan"
    parts = []
    for step in range(10, _MOST):  # before that the new files are written
        assert killed(store, "parquet", plan_file, step) is None
        assert_never_half(store, rows, "parquet")
        parts = [row for row in store.rows() if row[0] == name_of(1)]
        if plan_file.exists() and len(parts) < len([row for row in rows if row[0] == name_of(1)]):
            break
        plan_file.unlink(missing_ok=True)
    assert parts, "some files were replaced, and some not"
    erase(store, plan_file)
    assert in_order(store.rows()) == in_order(row for row in rows if row[0] not in ERASED)
