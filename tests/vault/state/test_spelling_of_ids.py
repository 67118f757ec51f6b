"""Ids of records that became floats: a forgotten record does not come back by another spelling."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.vault import Configuration, UserType, Vault
from tests.databases import Place


def log(*ids: Any) -> dict[str, list[Any]]:
    rows = len(ids)
    return {"action": ["A"] * rows, "reward": [1] * rows, "user": ["ann"] * rows, "id": list(ids)}


def ingest(vault: Vault, *ids: Any) -> int:
    return vault.ingest(log(*ids), user="user", id="id").added


def new_vault(place: Place) -> Vault:
    return place.create(Configuration(actions=("A", "B")))


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("ids", [("17.0", "x"), ("x", "18.00"), ("17", "17.0"), ("99.0",)])
def test_ids_that_look_like_integers_that_became_floats_are_refused(
    place: Place, tmp_path: Path, ids: tuple[str, ...], dry_run: bool
) -> None:
    """Whether the record is held, was forgotten, stands in the same source, or is new."""
    with new_vault(place) as vault:
        assert ingest(vault, 17, 18) == 2
        assert vault.forget(records=[17]).held == 1
        file = tmp_path / "floats.csv"
        pd.DataFrame(log(*ids)).to_csv(file, index=False)
        with pytest.raises(
            InvalidLogError, match=r"looks like integers that became floats: '[0-9.]*' in row"
        ):
            vault.ingest(file, user="user", id="id", dry_run=dry_run)
        assert vault.status().records == 1
        assert ingest(vault, "19", "a.0", "1.5", "v2.0") == 4  # which are no floats of integers


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
        assert vault.forget(records=[usual], exactly=True).records == 0
        assert vault.forget(records=[held]).records == 1
        assert vault.verify().holds
        Vault.restore(place.url, keys=place.keys, as_it_is=True)
        assert vault.n_records == 2
