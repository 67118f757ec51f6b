"""Rows without a user: they must not bring anybody back who was forgotten."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, VaultError
from armnesia.logs.statements import Reading
from armnesia.vault import Configuration, ForgetRequest, Vault
from tests.databases import Place

LOG: dict[str, list[Any]] = {
    "action": ["A", "B", "A"],
    "reward": [1, 0, 1],
    "who": ["ann", "bob", "cem"],
    "id": ["r1", "r2", "r3"],
}
REFUSED = "no user column was named.*forgotten people stay out"


UNNAMED = "no person's rows could be found later, because no user column was named"


def filled(place: Place) -> Vault:
    vault = place.create(Configuration(actions=("A", "B")))
    vault.ingest(LOG, user="who")
    return vault


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_source_without_a_user_column_is_refused_unless_that_is_stated(
    place: Place, mode: str, dry_run: bool, tmp_path: Path
) -> None:
    """The rows could not get their users later."""
    log = tmp_path / "log.csv"
    log.write_text("action,reward,Customer_ID,country,account\nA,1,ann,DE,1\nB,0,bob,FR,2\n")
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        unnamed: list[dict[str, Any]] = [{}, {"user": None}]
        for user in unnamed:
            with pytest.raises(VaultError, match=f"{UNNAMED}.*'Customer_ID', 'account' may be it.*--no-user"):
                vault.ingest(log, dry_run=dry_run, **user)
        assert vault.status().records == 0
        assert vault.ingest(log, no_user=True, dry_run=dry_run).added == 2


def test_a_source_without_any_such_column_is_refused_too(sqlite_place: Place) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        with pytest.raises(VaultError, match=r"name it with user \(--user-column\), so"):
            vault.ingest({"action": ["A"], "reward": [1], "plane": ["N711ZX"]})
        assert vault.ingest({"action": ["A"], "reward": [1], "user": ["ann"]}).added == 1


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_rows_with_the_users_of_the_vault_are_not_nobodys(
    sqlite_place: Place, mode: str, tmp_path: Path
) -> None:
    """A forgotten person would come in again."""
    log = str(tmp_path / "log.parquet")
    pd.DataFrame(LOG).to_parquet(log)
    with sqlite_place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(log, user="who")
        vault.forget(users=["ann"])
        before = vault.status().records
        more = str(tmp_path / "more.parquet")
        pd.DataFrame({**LOG, "who": ["ann", "dan", "eve"]}).to_parquet(more)
        with pytest.raises(InvalidInputError, match="'who' has the users of this vault"):
            vault.ingest(more, no_user=True)
        assert vault.status().records == before
        assert vault.ingest(more).suppressed == 1


def test_forgotten_people_stay_out_beside_rows_of_nobody(place: Place) -> None:
    with filled(place) as vault:
        assert vault.ingest({name: LOG[name] for name in ("action", "reward")}, no_user=True).added == 3
        vault.forget(users=["ann"])
        assert vault.ingest(LOG).suppressed == 1
        others = {"action": ["A"], "reward": [1], "id": ["of a machine"]}
        assert vault.ingest(others, no_user=True).added == 1
        assert vault.verify().holds


def test_the_first_user_column_is_named_once_people_were_forgotten(place: Place) -> None:
    """Some rows of another column `user` may be theirs."""
    log = {"action": ["B"], "reward": [1], "user": ["dan"], "id": ["another"]}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.forget(users=["ann"])
        before = vault.status()
        with pytest.raises(VaultError, match=REFUSED):
            vault.ingest(log)
        assert vault.status() == before
        vault.readmit(users=["ann"])
        assert vault.ingest(log).added == 1


def test_nobody_is_no_user(place: Place) -> None:
    with filled(place) as vault, pytest.raises(InvalidInputError, match="leave out one of the two"):
        vault.ingest(LOG, user="who", no_user=True)


def test_who_is_forgotten_while_a_source_is_read_stays_out(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look at the list and the transaction, another process may forget somebody."""
    with filled(place) as vault, place.open() as other:
        tallies = Reading.tallies

        def slowly(self: Reading, *arguments: Any) -> Any:
            monkeypatch.undo()
            other.forget(users=["ann"])
            return tallies(self, *arguments)

        monkeypatch.setattr(Reading, "tallies", slowly)
        done = vault.ingest({**LOG, "other": [1, 2, 3]}, user="who")
        assert (done.added, done.suppressed) == (2, 1)
        assert vault.verify().holds


def test_single_records_are_known_by_their_id_only(place: Place) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.forget(records=["r1"])
        with pytest.warns(
            UserWarning, match="single records were forgotten here: without the id column"
        ) as told:
            vault.ingest(LOG, user="who")
        assert {Path(warning.filename).name for warning in told} == {Path(__file__).name}
        vault.readmit(records=["r1"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vault.ingest(LOG, user="who")


def test_sources_that_are_known_are_counted_anew_whoever_was_forgotten(place: Place, tmp_path: Path) -> None:
    """The rows of an external vault were asked about when they came in."""
    (tmp_path / "people.csv").write_text("action,reward,who,id\nA,1,ann,1\nB,0,bob,2\n")
    (tmp_path / "machines.csv").write_text("action,reward,id\nA,1,3\nB,0,4\n")
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(tmp_path / "people.csv", user="who")
        vault.ingest(tmp_path / "machines.csv", no_user=True)
        vault.forget(users=["ann"])
        assert Vault.restore(place.url, keys=place.keys).as_it_was
        assert vault.verify().holds
        with pytest.raises(InvalidLogError, match="user column 'who' is not in the source"):
            vault.ingest(tmp_path / "machines.csv")
        assert vault.ingest(tmp_path / "machines.csv", no_user=True).rows == 0


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("id_", [None, "id"])
def test_rows_that_came_in_without_a_user_do_not_get_one_later(
    place: Place, mode: str, id_: str | None, tmp_path: Path
) -> None:
    pd.DataFrame(LOG).to_csv(tmp_path / "log.csv", index=False)
    log = str(tmp_path / "log.csv")
    held = (
        "at least 3 rows of this source .* without .*: the first is row 1"
        if mode == "managed"
        else "its rows would count twice"
    )
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        assert vault.ingest(log, id=id_, no_user=True).added == 3
        replaces = [False, True] if id_ and mode == "managed" else [False]
        for replace in replaces:
            with pytest.raises(VaultError, match=held):
                vault.ingest(log, user="who", id=id_, replace=replace)
        assert vault.verify().holds


def test_a_request_says_that_rows_of_the_person_may_be_without_a_user(place: Place) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest({name: LOG[name] for name in ("action", "reward", "id")}, id="id", no_user=True)
        assert vault.preview(users=["ann"]).may_be_without_user
        done = vault.forget(users=["ann"])
        assert done.to_dict()["may_be_without_user"] is True
        assert done.certificate is not None
        assert "or under none" in done.certificate.words().text()
        assert not vault.preview(users=["ann"]).may_be_without_user  # answered before
        more = {**LOG, "id": ["r4", "r5", "r6"]}
        vault.ingest(more, user="who", id="id")
        assert not vault.forget(users=["bob"]).may_be_without_user  # whose rows were found
        assert vault.forget(users=["cem", "dan"]).may_be_without_user
        vault.forget(records=["r1", "r2", "r3"])
        assert not vault.forget(users=["eve"]).may_be_without_user


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_the_column_user_of_before_need_not_be_named_again(
    place: Place, mode: str, dry_run: bool, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user,who\nA,1,7,x\nB,0,8,y\n")
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(str(log))
        assert vault.forget(users=["7"]).records == 1
        log.write_text("action,reward,user,who\nA,1,7,x\nB,0,8,y\nA,0,9,z\n")
        done = vault.ingest(str(log), dry_run=dry_run)
        assert (done.added, done.suppressed, done.user_column) == (1, 1, "user")
        unnamed = tmp_path / "unnamed.csv"
        unnamed.write_text("action,reward,who\nA,1,7\n")
        with pytest.raises(InvalidLogError, match="user column 'user' is not in the source"):
            vault.ingest(str(unnamed), dry_run=dry_run)


IDS = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"], "id": ["r1", "r2"]}
NO_IDS = "no row of this vault has an id, because its sources have no id column"


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_ids_are_refused_where_no_row_has_one(place: Place, mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user,id\nA,1,ann,r1\nB,0,bob,r2\n")
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(str(log))
        before = vault.head
        for method in (vault.forget, vault.preview):
            with pytest.raises(VaultError, match=NO_IDS):
                method(records=["r1"])
        (refused,) = vault.forget_many([ForgetRequest(records=["r1"])])
        assert NO_IDS in str(refused)
        assert vault.head == before
        assert not vault.configuration.may_have_ids
        assert vault.forget(records=["r1"], exactly=True).records == 0
        assert vault.forget(records=["r1"]).repeated


def test_an_empty_vault_may_forget_ids_before_they_come(place: Place) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        assert vault.forget(records=["r1"]).records == 0
        done = vault.ingest(IDS, id="id")
        assert (done.added, done.suppressed) == (1, 1)


def test_rows_without_a_user_are_counted(place: Place) -> None:
    log = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "who": ["ann", None, None], "id": ["1", "2", "3"]}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        for dry_run in (True, False):
            done = vault.ingest(log, user="who", id="id", dry_run=dry_run)
            assert (done.without_user, done.to_dict()["without_user"]) == (2, 2)
