"""The same log in another form: booleans are one value in every spelling, and doubled rows are warned of."""

import sqlite3
import warnings
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.vault import Configuration, Ingested, Vault
from armnesia.vault.state.source_remarks import SourceRemarks
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


def renamed(log: pd.DataFrame) -> pd.DataFrame:
    return log.rename(columns={"rounds": "a_number"})


def warned(vault: Vault, source: Any, **options: Any) -> tuple[Ingested, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = vault.ingest(source, **{**ROLES, **options})
    return done, [str(each.message) for each in caught]


def test_the_same_log_that_is_not_recognised_is_warned_of(place: Place) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        assert warned(vault, LOG)[1] == []
        would, (warning,) = warned(vault, renamed(LOG), dry_run=True)
        assert warning.startswith("none of the 30 rows is known, but 30 of 30 people have rows already: if")
        assert "every row would count twice (no id column" in warning
        assert would.added == PEOPLE
        done, (warning,) = warned(vault, renamed(LOG))
        assert "every row now counts twice" in warning
        assert done.added == PEOPLE


def test_the_warning_needs_nine_of_ten_people_and_twenty_of_them(sqlite_place: Place) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(LOG, **ROLES)
        other = renamed(LOG)
        assert warned(vault, other[:19], dry_run=True)[1] == []
        assert len(warned(vault, other[:20], dry_run=True)[1]) == 1
        other.loc[:3, "userid"] = [101, 102, 103, 104]
        assert warned(vault, other, dry_run=True)[1] == []
        other.loc[0, "userid"] = 0
        assert len(warned(vault, other, dry_run=True)[1]) == 1
        vault.ingest(other[-1:], **ROLES)
        assert warned(vault, other, dry_run=True)[1] == []  # a row is known


def test_only_so_many_people_are_looked_up(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceRemarks, "most", 25)
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(LOG, **ROLES)
        _, (warning,) = warned(vault, renamed(LOG), dry_run=True)
        assert "25 of the first 25 people have rows already" in warning


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


@pytest.mark.parametrize("dry_run", [True, False])
def test_another_user_column_is_refused_with_the_one_of_before(sqlite_place: Place, dry_run: bool) -> None:
    log = LOG.assign(session=range(1000, 1000 + PEOPLE))
    options: Mapping[str, Any] = {**ROLES, "dry_run": dry_run}
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, **ROLES)
        refusal = r"at least 30 rows .* row 1; give --user-column userid, as before, or make a new vault"
        with pytest.raises(VaultError, match=refusal):
            vault.ingest(log, **{**options, "user": "session"})


def test_numbers_that_are_written_otherwise(tmp_path: Path) -> None:
    """What the tutorial says: 1.0 for 1 in the reward is the same row, 2.50 for 2.5 elsewhere is not."""
    files = {"first": ("1", "2.5"), "reward": ("1.0", "2.5"), "price": ("1", "2.50")}
    for name, (reward, price) in files.items():
        lines = ["action,reward,user,price", *(f"A,{reward},u{i},{price}" for i in range(19))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    with Vault.create(f"sqlite:///{tmp_path}/vault.db", Configuration(actions=("A", "B"))) as vault:
        assert vault.ingest(tmp_path / "first.csv", user="user").added == 19
        assert vault.ingest(tmp_path / "reward.csv", user="user", dry_run=True).added == 0
        assert (
            vault.ingest(tmp_path / "price.csv", user="user", dry_run=True).added == 19
        )  # no warning: 19 people
