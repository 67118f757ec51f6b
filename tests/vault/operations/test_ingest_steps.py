"""A source comes in as a whole or not at all, in steps of any size."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Ingested
from armnesia.vault.state import incoming_rows, record_loader
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import arms

PEOPLE = ("ann", "bob", "eve", None)


class Row(NamedTuple):
    id: str
    action: str
    reward: float
    user: str | None
    page: str


def as_log(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(Row._fields, zip(*rows, strict=True), strict=True)}


def small_steps(patched: pytest.MonkeyPatch) -> None:
    """Chunks of three rows, and records that are written four at a time."""
    patched.setattr(incoming_rows, "CHUNK", 3)
    patched.setattr(record_loader, "_AT_ONCE", 4)
    patched.setattr(record_loader, "_MANY", 2)


def counts(done: Ingested) -> tuple[int, ...]:
    return done.rows, done.added, done.already_there, done.suppressed, done.replaced


@pytest.mark.sampled(1)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_small_steps_give_the_same_vault(database: str, tmp_path: Path) -> None:
    """The digests and statistics do not depend on how many rows are written at a time."""
    rows = [Row(f"r{n}", "AB"[n % 2], n % 5 / 4, PEOPLE[n % 4], "home") for n in range(60)]
    found = []
    for steps in (False, True):
        with pytest.MonkeyPatch.context() as patched:
            if steps:
                small_steps(patched)
            with fresh_place(database, tmp_path).create(Configuration(actions=("A", "B"))) as vault:
                vault.ingest(as_log(rows[:40]), user="user", id="id")
                for dry_run in (True, False):
                    done = vault.ingest(as_log(rows[20:]), user="user", id="id", dry_run=dry_run)
                    assert counts(done) == (40, 20, 20, 0, 0)
                assert vault.forget(users=["ann"]).records == 15
                assert vault.verify().holds
                assert vault.n_records == 45
                found.append(arms(vault))
    assert found[0] == found[1]


def test_a_source_is_refused_as_a_whole(place: Place) -> None:
    """Also for what only a comparison with the vault shows: a retired arm, an id with another reward."""
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest({"action": ["A"], "reward": [1], "id": ["1"]}, id="id", no_user=True)
        vault.retire_arm("B", new_rows="refuse")
        for action, reward in (("B", 1), ("A", 0)):
            rows = {"action": ["A", "A", action], "reward": [1, 1, reward], "id": ["2", "3", "1"]}
            with pytest.raises(VaultError, match="nothing was ingested"):
                vault.ingest(rows, id="id", no_user=True)
            assert vault.n_records == 1
