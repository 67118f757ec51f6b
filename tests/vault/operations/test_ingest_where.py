"""Ingesting only the rows that satisfy conditions, in managed and external vaults."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidLogError, VaultError
from armnesia.vault import Configuration, Vault
from tests.databases import Place
from tests.vault.raw_vaults import arms, dumped

HEADER = "action,reward,user,country,age"
ROWS = [
    ("A", 1, "ann", "DE", 20),
    ("A", 0, "bob", "FR", 30),
    ("B", 1, "ann", "FR", 40),
    ("B", 1, "cem", "DE", 50),
    ("A", 1, "ann", "DE", 60),
]


@pytest.fixture(params=["csv", "sqlite"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    if request.param == "csv":
        lines = [HEADER, *(",".join(map(str, row)) for row in ROWS)]
        (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
        return {"source": str(tmp_path / "log.csv"), "user": "user"}
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute(f"CREATE TABLE visits ({HEADER})")
        file.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", ROWS)
    return {"source": f"sqlite:///{tmp_path}/log.db", "table": "visits", "user": "user"}


def created(place: Place, mode: Any) -> Vault:
    return place.create(Configuration(actions=("A", "B"), mode=mode))


def counts(vault: Vault) -> list[int]:
    return [count for count, _, _ in arms(vault)]


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_only_these_rows_come_in_and_are_forgotten(place: Place, source: dict[str, Any], mode: str) -> None:
    with created(place, mode) as vault:
        done = vault.ingest(**source, where=["country = DE", "age >= 20"])
        assert (done.rows, done.added) == (3, 3)
        assert counts(vault) == [2, 1]
        again = vault.ingest(**source, where=["country = DE", "age >= 20"])
        assert (again.added, again.already_there) == (0, 3 if mode == "managed" else 0)
        assert vault.verify().holds
        assert vault.forget(users=["ann"]).records == 2
        assert counts(vault) == [0, 1]
        assert vault.verify().holds


def test_a_row_is_the_same_row_without_the_condition(place: Place, source: dict[str, Any]) -> None:
    with created(place, "managed") as vault:
        vault.ingest(**source, where="country = DE")
        done = vault.ingest(**source)
        assert (done.added, done.already_there) == (2, 3)
        assert vault.forget(users=["ann"]).records == 3
        assert vault.verify().holds


def test_an_external_vault_records_the_conditions(place: Place, source: dict[str, Any]) -> None:
    with created(place, "external") as vault:
        vault.ingest(**source, where="country = 'DE'")
        vault.ingest(**source, where="country=DE")  # the same condition
        ((_, description),) = dumped(vault)["source"]
        assert json.loads(description)["address"]["where"] == ["country = 'DE'"]
        Vault.restore(place.url, keys=place.keys, as_it_is=True)
        assert counts(vault) == [2, 1]
        with pytest.raises(VaultError, match="its rows would count twice"):
            vault.ingest(**source)
        assert len(dumped(vault)["source"]) == 1


def test_conditions_that_the_source_cannot_answer_leave_nothing(place: Place, source: dict[str, Any]) -> None:
    with created(place, "managed") as vault:
        for where, message in (
            ("planet = Mars", "where column 'planet' is not in the source"),
            ("country > 5", "where column 'country' must hold numbers to be compared with 5"),
        ):
            with pytest.raises(InvalidLogError, match=message):
                vault.ingest(**source, where=where)
        with pytest.raises(InvalidLogError, match="no row of the source satisfies country"):
            vault.ingest(**source, where="country = XX")
        assert vault.status().records == 0


def test_a_condition_on_people_is_not_stored(place: Place, source: dict[str, Any]) -> None:
    with created(place, "external") as vault:
        with pytest.raises(VaultError, match=r"must not be on the user column; got one on 'user'"):
            vault.ingest(**source, where=["country = DE", "user != ann"])
        with pytest.raises(VaultError, match=r"must not be on the id column; got one on 'age'"):
            vault.ingest(**source, id="age", where="age > 20")
        assert "ann" not in repr(dumped(vault))


@pytest.mark.parametrize("earlier", [False, True])
def test_nor_is_one_on_people_where_another_column_or_none_has_the_users(
    place: Place, source: dict[str, Any], earlier: bool
) -> None:
    """By the usual name of the column, or by that of the vault."""
    where = "user = ann"
    naming: dict[str, Any] = {"user": "country"}
    with created(place, "external") as vault:
        if earlier:
            vault.ingest(**{**source, "user": "age"}, where="country = DE")
            where, naming = "age = 21", {"user": None, "no_user": True}
        with pytest.raises(VaultError, match=f"must not be on the .* column; got one on '{where[:3]}"):
            vault.ingest(**{**source, **naming}, where=where)
        assert "ann" not in repr(dumped(vault))
        assert "age = " not in repr(dumped(vault))


def test_a_managed_vault_stores_no_condition(place: Place, source: dict[str, Any]) -> None:
    with created(place, "managed") as vault:
        assert vault.ingest(**source, where="user = ann").added == 3
        assert "ann" not in repr(dumped(vault))


def test_an_external_vault_refuses_a_dataframe_with_or_without_conditions(place: Place) -> None:
    frame = {"action": ["A"], "reward": [1], "user": ["ann"]}
    with created(place, "external") as vault, pytest.raises(VaultError, match="give a file or a table"):
        vault.ingest(frame, user="user", where="action = A")


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("options", [{}, {"dry_run": True}], ids=str)
def test_conditions_that_no_row_satisfies_are_refused(
    sqlite_place: Place, source: dict[str, Any], mode: str, options: dict[str, Any]
) -> None:
    with created(sqlite_place, mode) as vault:
        before = dumped(vault)
        with pytest.raises(InvalidLogError, match="no row of the source satisfies country = 'de'"):
            vault.ingest(**source, where="country = de", **options)
        assert dumped(vault) == before
