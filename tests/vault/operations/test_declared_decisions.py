"""Decisions that are declared when a vault is created: they are there at once, and there are no others."""

from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault import Configuration, UserType, Vault
from tests.databases import Place
from tests.vault.raw_vaults import TABLES, Snapshot, dumped, values

BY = ("country", "age:18,30")
DECLARED: list[dict[str, Any]] = [
    {"country": country, "age": age} for country in ("DE", "FR") for age in ("<18", 18, 44)
]
COLUMNS: dict[str, Any] = {"user": "user", "id": "id"}
LOG: dict[str, list[Any]] = {
    "action": ["B", "A", "B", "B"],
    "reward": [1, 0, 1, 1],
    "user": ["ann", "bob", "ann", "cem"],
    "id": ["1", "2", "3", "4"],
    "country": ["DE", "DE", "FR", "FR"],
    "age": [20, 20, 17, 99],
}
OTHER: dict[str, list[Any]] = {
    "action": ["A", "A"],
    "reward": [1, 1],
    "user": ["eve", "eve"],
    "id": ["5", "6"],
    "country": ["DE", "IT"],
    "age": [20, 20],
}
REFUSED = r"the key \{'country': 'IT', 'age': '18..30'\} is not one of the vault's 6 declared decisions"


def created(place: Place, decisions: Any = DECLARED, **options: Any) -> Vault:
    configuration = {"actions": ("A", "B"), "by": BY, "user_type": UserType.TEXT, **options}
    return Vault.create(place.url, Configuration(**configuration), keys=place.keys, decisions=decisions)


def served(vault: Vault) -> dict[tuple[str, ...], tuple[Any, str]]:
    found = vault.decisions()
    keys = (tuple(key.values()) for key in found.keys)
    return dict(zip(keys, zip(found.actions, found.chosen_by, strict=True), strict=True))


def test_declared_decisions_are_there_at_once_and_rows_of_others_are_refused(place: Place) -> None:
    with created(place) as vault:
        assert set(served(vault).values()) == {("A", "default")}
        assert vault.status().decisions == 6
        assert vault.verify().problems == ()
        assert vault.ingest(LOG, **COLUMNS).decisions == 6
        before = {table: values(vault, f"SELECT * FROM {table}") for table in TABLES}
        for dry_run in (True, False):
            with pytest.raises(InvalidInputError, match=REFUSED):
                vault.ingest(OTHER, **COLUMNS, dry_run=dry_run)
        assert {table: values(vault, f"SELECT * FROM {table}") for table in TABLES} == before
        assert served(vault)["DE", "18..30"] == ("B", "learner")
        assert served(vault)["DE", "<18"] == ("A", "default")
        assert vault.ledger().entries[0].facts["configuration"]["declared_decisions"] == 6
        vault.forget(users=["ann"])
        assert vault.verify().problems == ()


def test_keys_of_forgotten_people_are_not_compared_with_the_list(place: Place) -> None:
    with created(place) as vault:
        vault.forget(users=["eve"])
        assert vault.ingest(OTHER, **COLUMNS).suppressed == 2


def test_a_row_is_not_corrected_to_a_key_that_is_not_declared(place: Place) -> None:
    with created(place) as vault:
        vault.ingest(LOG, **COLUMNS)
        moved = {name: column[:1] for name, column in LOG.items()} | {"country": ["IT"]}
        with pytest.raises(InvalidInputError, match=REFUSED):
            vault.ingest(moved, **COLUMNS, replace=True)


def test_an_external_vault_counts_no_rows_of_other_keys(place: Place, tmp_path: Path) -> None:
    def write(log: dict[str, list[Any]]) -> str:
        lines = [",".join(map(str, row)) for row in zip(*log.values(), strict=True)]
        (tmp_path / "log.csv").write_text("\n".join([",".join(log), *lines]) + "\n", encoding="utf-8")
        return str(tmp_path / "log.csv")

    with created(place, mode="external") as vault:
        vault.ingest(write(LOG), **COLUMNS)
        new = {name: [*column, *OTHER[name]] for name, column in LOG.items()}
        new["user"] = [*LOG["user"], "ann", "ann"]
        path, before = write(new), dumped(vault)
        with pytest.raises(InvalidInputError, match=REFUSED):
            vault.ingest(path, **COLUMNS)
        assert dumped(vault) == before
        write(LOG)
        assert vault.ingest(path, **COLUMNS).recounted_because
        assert vault.forget(users=["ann"]).counts == {"A": 0, "B": 2}
        assert vault.verify().problems == ()


@pytest.mark.parametrize("penalty", ["retained", "frozen"])
def test_a_backup_and_a_damaged_vault_keep_the_list(place: Place, tmp_path: Path, penalty: str) -> None:
    vault = created(place, penalty=penalty)
    backup = Snapshot(place, vault, tmp_path)
    vault.ingest(LOG, **COLUMNS)
    vault.forget(users=["ann"])
    vault.close()
    backup.put_back()
    Vault.restore(place.url, keys=place.keys)
    with place.open() as vault:
        assert vault.ingest(LOG, **COLUMNS).suppressed == 2
        with pytest.raises(InvalidInputError, match=REFUSED):
            vault.ingest(OTHER, **COLUMNS)
    with place.open(checked=False) as vault:
        Vault.restore(place.url, keys=place.keys, as_it_is=True)
        assert vault.verify().problems == ()
        assert vault.status().decisions == 6
        with pytest.raises(InvalidInputError, match=REFUSED):
            vault.ingest(OTHER, **COLUMNS)


@pytest.mark.parametrize(
    ("decisions", "options", "sentence"),
    [
        (DECLARED, {"by": ()}, "a vault without key columns"),
        (DECLARED, {"actions": None}, "declared decisions need declared actions"),
        (DECLARED, {"most_decisions": 5}, "must be from 1 to 5, the vault's limit"),
        ([], {}, "must be from 1 to 100,000"),
        ([*DECLARED, {"country": "DE", "age": 20}], {}, "'age': '18..30'} twice"),
        ([{"country": "DE"}], {}, "'age' is missing"),
        ([{"country": "", "age": 2}], {}, "a key must not be empty"),
        ([{"country": "x" * 1000, "age": 2}], {}, "at most 1,000 bytes"),
    ],
)
def test_a_wrong_list_is_refused_and_nothing_is_created(
    sqlite_place: Place, decisions: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        created(sqlite_place, decisions, **options)
    assert not sqlite_place.path.exists()
