"""A request with an erasure at the source that is killed at any step: running it again finishes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armnesia.vault import Vault
from tests.databases import SERVER, Place, fresh_place, postgres_url
from tests.logs.erasing.stores import Row, Store, iceberg_variables, in_order
from tests.vault.erasable_logs import KINDS, assert_is_plain, counted_vault, make_log, traces
from tests.vault.interrupted_erasure import ERASED

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

_FEWEST = {"parquet": 20, "delta": 15, "iceberg": 20, "sqlite": 15, "postgresql": 15}
"""How many steps a request has at least, so that the search for them is known to work."""
_MOST = 120
_PARTS = 4
"""Tests that share the steps of a kind, so that they can run at the same time."""


def killed(log: Store, kind: str, place: Place, step: int) -> int | None:
    """Run a request up to a step; None if it was killed there, or else the number of its steps."""
    variables = {**os.environ, **iceberg_variables(log.folder)}
    if kind == "postgresql":
        variables[SERVER] = postgres_url()
    command = [sys.executable, "-m", "tests.vault.interrupted_erasure", kind, str(step)]
    ended = subprocess.run(
        [*command, place.url, place.keys], env=variables, capture_output=True, text=True, check=False
    )
    if ended.returncode == -9:
        return None
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout.split()[-1])


def assert_never_half(log: Store, rows: list[Row], kind: str) -> None:
    """All rows of others are there; of the rows to be erased, all or, of several files, those of some."""
    found = log.rows()
    others = [row for row in rows if row[0] not in ERASED]
    assert in_order(row for row in found if row[0] not in ERASED) == in_order(others)
    if kind != "parquet":
        assert len(found) in (len(rows), len(others))


def assert_claims_are_true(vault: Vault, log: Store) -> None:
    """What a certificate says after an interruption, if there is one yet, holds at the source."""
    if not any(entry.kind == "forget" for entry in vault.ledger()):
        return
    source = vault.certificate(users=ERASED).source
    assert source is not None
    if source["state"] != "untouched":
        assert not [row for row in log.rows() if row[0] in ERASED]


def run_and_finish(
    kind: str, step: int, folder: Path, monkeypatch: pytest.MonkeyPatch, *, by: str
) -> int | None:
    """Kill a request at a step, then finish it, and look at everything; as `killed`."""
    folder.mkdir()
    log, place = make_log(kind, folder / "log", monkeypatch), fresh_place("sqlite", folder)
    rows = log.with_parts(2)
    counted_vault(place, log).close()
    number = killed(log, kind, place, step)
    assert_never_half(log, rows, kind)
    with place.open() as vault:
        assert_claims_are_true(vault, log)
        forgotten = any(entry.kind == "forget" for entry in vault.ledger())
        if forgotten and by == "erase":
            vault.erase_at_sources(purge=True, ignore_retention=True)
        else:
            vault.forget(users=ERASED, erase_at_source=True, purge=True, ignore_retention=True)
        assert_is_plain(vault, rows, ERASED)
        assert in_order(log.rows()) == in_order(row for row in rows if row[0] not in ERASED)
        source = vault.certificate(users=ERASED).source
        assert source is not None
        assert source["state"] == "purged"
        assert not any(each.interrupted for each in vault.source_erasures().sources)
    assert traces(log, place, [row for row in rows if row[0] in ERASED]) == set()
    assert not list((folder / "log").glob(".armnesia-*"))
    return number


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, _PARTS + 1))
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_killed_at_any_step_is_finished(
    kind: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(first, _MOST, _PARTS):
        by = "erase" if step // _PARTS % 2 else "forget"
        number = run_and_finish(kind, step, tmp_path / f"step-{step}", monkeypatch, by=by)
        if number is not None:
            assert _FEWEST[kind] <= number < step <= number + _PARTS
            return
    pytest.fail(f"there are more than {_MOST} steps")


@pytest.mark.parametrize(("kind", "step"), [("parquet", 14), ("sqlite", 7)])
def test_a_request_killed_at_a_step_is_finished(
    kind: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for a few steps, in the quick tests."""
    assert run_and_finish(kind, step, tmp_path / "killed", monkeypatch, by="erase") is None
