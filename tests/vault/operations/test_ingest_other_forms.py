"""The same log in another form: booleans are one value in every spelling."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.vault import Configuration, Ingested, Vault
from tests.databases import Place

PEOPLE = 30
ROLES: dict[str, Any] = {"action": "version", "reward": "retention_7", "user": "userid"}
LOG = pd.DataFrame(
    {
        "userid": range(PEOPLE),
        "version": ["A", "B"] * (PEOPLE // 2),
        "rounds": range(100, 100 + PEOPLE),
        "retention_1": [True, False, True] * (PEOPLE // 3),
        "retention_7": [False, True] * (PEOPLE // 2),
    }
)


def write_forms(folder: Path) -> list[tuple[Any, str | None]]:
    """The same log in the forms that programs make of it, each with its table."""
    LOG.replace({True: "TRUE", False: "FALSE"}).to_csv(folder / "capitals.csv", index=False)
    LOG.to_csv(folder / "pandas.csv", index=False)
    LOG.to_parquet(folder / "log.parquet")
    with closing(sqlite3.connect(folder / "log.db")) as connection:
        LOG.to_sql("log", connection, index=False)
    files: list[tuple[Any, str | None]] = [
        (str(folder / name), None) for name in ("capitals.csv", "pandas.csv", "log.parquet")
    ]
    return [*files, (f"sqlite:///{folder / 'log.db'}", "log"), (LOG, None)]


def test_the_log_in_any_form_comes_in_once(sqlite_place: Place, tmp_path: Path) -> None:
    forms = write_forms(tmp_path)
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        done = [vault.ingest(source, table=table, **ROLES) for source, table in forms]
        assert [(each.added, each.already_there) for each in done] == [(PEOPLE, 0)] + [(0, PEOPLE)] * 4


def test_in_any_form_the_user_column_may_be_the_id_column(sqlite_place: Place, tmp_path: Path) -> None:
    forms = write_forms(tmp_path)
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        done = [vault.ingest(source, table=table, id="userid", **ROLES) for source, table in forms]
        assert [(each.added, each.already_there) for each in done] == [(PEOPLE, 0)] + [(0, PEOPLE)] * 4
        assert vault.forget(users=[3]).records == 1


def test_names_that_read_like_booleans_stay_names(sqlite_place: Place) -> None:
    log = {"action": ["A", "A"], "reward": [1, 1], "user": ["true", "1"]}
    with sqlite_place.create(Configuration(actions=("A",), user_type=UserType.TEXT)) as vault:
        assert vault.ingest(log).added == 2
        assert vault.forget(users=["true"]).records == 1


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("id_", [None, "row"])
def test_a_dry_run_says_what_the_ingest_then_does(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, id_: str | None
) -> None:
    """Without row state, an external vault counts a row as often as its sources have it."""
    monkeypatch.setattr("armnesia.vault.state.incoming_rows.CHUNK", 8)
    log = LOG.assign(row=range(PEOPLE))
    pd.concat([log[5:], log[20:]]).to_csv(tmp_path / "twice.csv", index=False)
    log[:10].to_csv(tmp_path / "first.csv", index=False)
    roles = {**ROLES, "id": id_}
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(str(tmp_path / "first.csv"), **roles)
        vault.forget(users=[7])
        before = vault.status(scores=True)
        would = vault.ingest(str(tmp_path / "twice.csv"), **roles, dry_run=True)
        assert vault.status(scores=True) == before
        done = vault.ingest(str(tmp_path / "twice.csv"), **roles)
        assert (would.dry_run, done.dry_run) == (True, False)
        assert _counts(would) == _counts(done)
        if mode == "external":
            assert _counts(done) == (35, 34, 0, 1)
        else:
            assert _counts(done) == ((35, 20, 14, 1) if id_ else (35, 30, 4, 1))
        assert vault.verify().holds


def _counts(done: Ingested) -> tuple[int, ...]:
    return done.rows, done.added, done.already_there, done.suppressed


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_refuses_what_the_ingest_refuses(
    sqlite_place: Place, tmp_path: Path, dry_run: bool
) -> None:
    log = LOG.assign(row=range(PEOPLE))
    file = tmp_path / "log.csv"
    log.to_csv(file, index=False)
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(str(file), **ROLES, id="row")
        head = vault.head
        log.assign(retention_7=~log["retention_7"]).to_csv(file, index=False)
        with pytest.raises(VaultError, match="at least 30 rows of this source have an id that the vault"):
            vault.ingest(str(file), **ROLES, id="row", dry_run=dry_run)
        assert vault.head == head


def test_a_dry_run_of_the_first_ingest_fixes_nothing(sqlite_place: Place) -> None:
    with sqlite_place.create() as vault:
        would = vault.ingest(LOG, **ROLES, dry_run=True)
        assert (would.added, would.actions_fixed, str(would.user_type_fixed)) == (
            PEOPLE,
            ("A", "B"),
            "integer",
        )
        assert (vault.configuration.actions, vault.configuration.user_type) == (None, None)
        assert vault.ingest(LOG, **ROLES).added == PEOPLE


def test_numbers_that_are_written_otherwise(tmp_path: Path) -> None:
    """What the tutorial says: 1.0 for 1 in the reward is the same row, 2.50 for 2.5 elsewhere is not."""
    files = {"first": ("1", "2.5"), "reward": ("1.0", "2.5"), "price": ("1", "2.50")}
    for name, (reward, price) in files.items():
        lines = ["action,reward,user,price", *(f"A,{reward},u{i},{price}" for i in range(19))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    with Vault.create(f"sqlite:///{tmp_path}/vault.db", Configuration(actions=("A", "B"))) as vault:
        assert vault.ingest(tmp_path / "first.csv", user="user").added == 19
        assert vault.ingest(tmp_path / "reward.csv", user="user", dry_run=True).added == 0
        assert vault.ingest(tmp_path / "price.csv", user="user", dry_run=True).added == 19
