"""Ids of records that became floats: a forgotten record does not come back by another spelling."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from armnesia.core.errors import ChangedRecordError, SimilarNameError, VaultError
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.state import record_comparison
from tests.databases import Place

FLOATS = "'id' looks like integers that became floats, such as 7.0 for 7, first in row 1"


def log(*ids: Any) -> dict[str, list[Any]]:
    rows = len(ids)
    return {"action": ["A"] * rows, "reward": [1] * rows, "user": ["ann"] * rows, "id": list(ids)}


def ingest(vault: Vault, *ids: Any) -> int:
    return vault.ingest(log(*ids), user="user", id="id").added


def new_vault(place: Place) -> Vault:
    return place.create(Configuration(actions=("A", "B")))


def test_a_forgotten_record_does_not_come_back_as_a_float(place: Place, tmp_path: Path) -> None:
    with new_vault(place) as vault:
        assert ingest(vault, 17, 18) == 2
        assert vault.forget(records=[17, 18]).held == 2
        file = tmp_path / "floats.csv"
        pd.DataFrame(log("17.0", "x")).to_csv(file, index=False)
        with pytest.raises(VaultError, match=r"1 row has an id .* '17\.0' in row 1, which may be '17'"):
            vault.ingest(file, user="user", id="id")
        assert vault.status().records == 0
        assert ingest(vault, "19") == 1


def test_a_record_that_is_held_does_not_come_in_again_as_a_float(place: Place) -> None:
    with new_vault(place) as vault:
        assert ingest(vault, 17, 18) == 2
        with pytest.raises(VaultError, match=r"2 rows have an id that the vault holds or has forgotten"):
            ingest(vault, "x", "17.0", "18.00")
        assert vault.status().records == 2


def test_a_record_that_was_forgotten_as_a_float_does_not_come_back_as_an_integer(place: Place) -> None:
    with new_vault(place) as vault:
        with pytest.warns(UserWarning, match=FLOATS):
            assert ingest(vault, "17.0") == 1
        assert vault.forget(records=["17.0"]).held == 1
        with pytest.raises(VaultError, match=r"'17' in row 1, which may be '17\.0'"):
            ingest(vault, "17")


@pytest.mark.parametrize("again", [(17, 18), ("17", "x"), ("x", "18")])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_record_that_is_held_as_a_float_does_not_come_in_again_as_an_integer(
    place: Place, again: tuple[Any, ...], dry_run: bool
) -> None:
    with new_vault(place) as vault:
        with pytest.warns(UserWarning, match=FLOATS):
            assert ingest(vault, "17.0", "18.0") == 2
        with pytest.raises(
            ChangedRecordError, match=r"an id .* '1[78]' in row [12], which may be '1[78]\.0'"
        ):
            vault.ingest(log(*again), user="user", id="id", dry_run=dry_run)
        assert vault.status().records == 2
        assert ingest(vault, 19) == 1


def test_integers_are_compared_with_floats_up_to_a_number(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comparison is a look-up, also in a vault that never held a float."""
    monkeypatch.setattr(record_comparison, "_MOST_INTEGERS", 3)
    with new_vault(place) as vault:
        with pytest.warns(UserWarning, match=FLOATS):
            assert ingest(vault, "17.0") == 1
        with pytest.raises(ChangedRecordError, match=r"'17' in row 3"):
            ingest(vault, 1, 2, 17)
        assert ingest(vault, 1, 2, 3, 17) == 4


@pytest.mark.parametrize("ids", [("17", "17.0"), ("x", "17", "y", "17.00", "17")])
@pytest.mark.parametrize("dry_run", [False, True])
def test_within_one_source_a_float_after_its_integer_is_refused_as_in_a_later_one(
    place: Place, ids: tuple[str, ...], dry_run: bool
) -> None:
    with new_vault(place) as vault:
        with pytest.raises(ChangedRecordError, match=r"1 row has an id .* '17\.00?' in row .* may be '17'"):
            vault.ingest(log(*ids), user="user", id="id", dry_run=dry_run)
        assert vault.status().records == 0


@pytest.mark.filterwarnings("ignore:id column 'id' looks like")
def test_what_came_in_can_be_sent_again(place: Place) -> None:
    batch = "17.0", "17", "17.0"
    with new_vault(place) as vault:
        assert ingest(vault, *batch) == 2
        for _ in range(2):
            again = vault.ingest(log(*batch), user="user", id="id")
            assert (again.added, again.already_there) == (0, len(batch))
        assert vault.forget(records=["17"], exactly=True).held == 1
        again = vault.ingest(log("17.0", "17"), user="user", id="id")
        assert (again.added, again.already_there, again.suppressed) == (0, 1, 1)


def test_ids_that_look_like_floats_are_named(sqlite_place: Place) -> None:
    with new_vault(sqlite_place) as vault:
        with pytest.warns(UserWarning, match=FLOATS):
            assert ingest(vault, "1.0", "2.0") == 2
        assert ingest(vault, "a.0", "1.5", "3", "v2.0") == 4  # which are no floats of integers


def test_a_column_of_floats_in_a_frame_is_not_another_spelling(sqlite_place: Place) -> None:
    with new_vault(sqlite_place) as vault:
        assert ingest(vault, 17, 18) == 2
        assert vault.forget(records=[17]).held == 1
        frame = pd.DataFrame(log(17.0, 18.0))
        again = vault.ingest(frame, user="user", id="id")
        assert (again.added, again.suppressed, again.already_there) == (0, 1, 1)


@pytest.mark.parametrize("kind", ["table", "csv"])
@pytest.mark.parametrize(
    ("user_type", "held", "usual"), [(UserType.TEXT, " ann", "ann"), (UserType.INTEGER, "07", "7")]
)
@pytest.mark.filterwarnings("ignore:user column 'user' ", "ignore:.*begins or ends with a space")
def test_ids_that_are_the_users_are_compared_as_the_source_spells_them(
    place: Place, tmp_path: Path, kind: str, user_type: UserType, held: str, usual: str
) -> None:
    """Rows of a table were found by the usual spelling and left out by the other: they came back."""
    rows = pd.DataFrame(
        {"n": [1, 2, 3], "action": list("ABA"), "reward": [1, 0, 0], "user": [held, "8", "9"]}
    )
    if kind == "csv":
        rows.to_csv(tmp_path / "log.csv", index=False)
        source, options = str(tmp_path / "log.csv"), dict[str, Any]()
    else:
        with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
            rows.to_sql("log", connection, index=False)
        source, options = f"sqlite:///{tmp_path}/log.db", {"table": "log"}
    configuration = Configuration(actions=("A", "B"), mode="external", user_type=user_type)
    with place.create(configuration) as vault:
        vault.ingest(source, user="user", id="user", **options)
        with pytest.raises(SimilarNameError):
            vault.forget(records=[usual])
        assert vault.forget(records=[held]).records == 1
        assert vault.verify().holds
        vault.rebuild()
        assert vault.n_records == 2
