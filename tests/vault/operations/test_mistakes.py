"""Mistakes that people make: told in one sentence before anything is written, or no mistakes any more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, InvalidLogError, VaultBusyError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import LOG, Snapshot, dumped, filled


def test_an_export_replaces_an_older_one_and_nothing_else(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        (tmp_path / "notes.txt").write_text("dear diary")
        (tmp_path / "list.json").write_text("[1]")
        for other in (place.keys, Path(f"{place.keys}.head"), tmp_path / "notes.txt", tmp_path / "list.json"):
            before = other.read_bytes()
            with pytest.raises(VaultError, match="exists already and is no export of this vault"):
                vault.export(other)
            assert other.read_bytes() == before
        vault.export(tmp_path / "latest.json")
        vault.forget(users=["ann"])
        assert vault.export(tmp_path / "latest.json", for_restore=True).entries == 2
    elsewhere = tmp_path / "another"
    elsewhere.mkdir()
    another = fresh_place("sqlite", elsewhere)
    with another.create() as vault, pytest.raises(VaultError, match="no export of this vault"):
        vault.export(tmp_path / "latest.json")


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ann", "bob"]),
        pd.Series(["ann", "bob"]),
        pd.Index(["ann", "bob"]),
        pl.Series(["ann", "bob"]),
    ],
    ids=lambda names: f"{type(names).__module__}.{type(names).__name__}",
)
def test_names_come_in_any_list(place: Place, names: Any) -> None:
    with filled(place) as vault:
        done = vault.forget(users=names)
        assert (done.named, done.held, done.records) == (2, 2, 3)
        assert vault.readmit(users=names).readmitted == 2
        with pytest.raises(InvalidInputError, match="must name at least one"):
            vault.forget(users=names[:0])


@pytest.mark.slow
@pytest.mark.parametrize(("names", "got"), [("ann", "text"), (b"ann", "bytes"), (5, "int"), (1.5, "float")])
def test_a_single_name_is_no_list(place: Place, names: Any, got: str) -> None:
    with filled(place) as vault:
        before = dumped(vault)
        with pytest.raises(InvalidInputError, match=f"must be a list of names; got a single {got}"):
            vault.forget(users=names)
        assert dumped(vault) == before


def test_each_of_several_is_told_whether_anything_of_theirs_was_held(place: Place) -> None:
    with filled(place) as vault:
        would = vault.preview(users=["ann", "typo", "dan"])
        done = vault.forget(users=["ann", "typo", "dan"])
        assert (
            (would.named, would.held, would.unlearner)
            == (done.named, done.held, "rollback")
            == (3, 2, "rollback")
        )
        for name, held in (("ann", True), ("typo", False), ("dan", True)):
            certificate = vault.certificate(users=[name])
            assert certificate.opening is not None
            assert certificate.opening["request"] == {"users": [name], "held": held}
            assert certificate.verify(vault.public_keys()) == []
            assert ("held nothing under this name" in certificate.words()) is not held
        by_id = vault.forget(records=["r2", "no such id"])
        assert (by_id.named, by_id.held) == (2, 1)
        nobody = vault.preview(users=["typo"])
        assert (nobody.named, nobody.held, nobody.unlearner) == (1, 0, None)


def test_the_certificate_may_be_looked_at_when_the_vault_is_closed(place: Place) -> None:
    with filled(place) as vault:
        one, several, keys = (
            vault.forget(users=["ann"]),
            vault.forget(users=["bob", "x"]),
            vault.public_keys(),
        )
    for done in (one, several):
        assert done.certificate.verify(keys) == []


def test_a_closed_vault_says_that_it_is_closed(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    vault.close()
    vault.close()
    calls: list[Callable[[], Any]] = [
        *(vault.decide, vault.status, vault.verify, vault.compact, vault.finish, vault.ledger),
        lambda: vault.forget(users=["ann"]),
        lambda: vault.ingest(LOG, user="who", id="id"),
        lambda: vault.export(tmp_path / "export.json"),
    ]
    for call in calls:
        with pytest.raises(VaultError, match=r"^the vault '.*' is closed; open it again$"):
            call()
    with place.open() as again:
        assert again.verify().holds


def test_a_vault_that_another_connection_holds_open_is_closed_all_the_same(place: Place) -> None:
    with filled(place):
        vault = place.open()
        vault.close()
        with pytest.raises(VaultError, match="is closed; open it again"):
            vault.decide()


def test_a_head_may_be_given_as_it_is_printed(place: Place) -> None:
    with filled(place) as vault:
        head = str(vault.head)
        vault.forget(users=["ann"])
        assert vault.verify(head).holds
        assert vault.check_ledger(head).problems == ()
        with pytest.raises(InvalidInputError, match="a head must look like"):
            vault.verify("12")


def test_an_id_that_means_another_row_is_located(place: Place) -> None:
    with filled(place) as vault:
        before = dumped(vault)
        changed = LOG | {"reward": [1.0, 0.5, 0.25, 0.0, 0.5, 0.0]}
        with pytest.raises(
            VaultError, match=r"at least 2 rows of this source have an id .* the first is row 4; an id must"
        ):
            vault.ingest(changed, user="who", id="id")
        assert dumped(vault) == before


def test_the_user_column_is_the_id_column_if_each_person_has_one_row(place: Place) -> None:
    log = {"action": ["A", "B", "A"], "reward": [1, 0, 0], "who": [7, 8, 9]}
    names: dict[str, Any] = {"user": "who", "id": "who"}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        assert vault.ingest(log, **names).added == 3
        as_floats = log | {"who": [7.0, 8.0, 9.0], "new": [1, 2, 3]}
        assert vault.ingest(as_floats, **names).already_there == 3
        with pytest.raises(VaultError, match="at least 1 row of this source has an id"):
            vault.ingest(log | {"reward": [1, 1, 0]}, **names)
        assert vault.forget(users=[7]).records == 1
        assert vault.ingest(log, **names).suppressed == 1
        assert vault.forget(records=["8"]).records == 1
        assert vault.ingest(log, **names).suppressed == 2
        assert vault.verify().holds


@pytest.mark.filterwarnings("ignore:id column 'who' looks like")
@pytest.mark.parametrize(
    ("again", "match"),
    [("7", "is the user column as well, .* row 1 is the first of a person"), ("7.0", "which may be '7'")],
)
def test_a_second_row_of_a_person_is_refused_where_the_user_is_the_id(
    sqlite_place: Place, again: str, match: str
) -> None:
    log = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "who": ["7", "8", again]}
    with sqlite_place.create(Configuration(actions=("A", "B"), user_type=UserType.INTEGER)) as vault:
        for dry_run in (True, False):
            with pytest.raises(ArmnesiaError, match=match):
                vault.ingest(log, user="who", id="who", dry_run=dry_run)
        assert vault.status().records == 0


def test_a_column_of_people_does_not_become_the_actions(place: Place) -> None:
    people: dict[str, Any] = {"action": [f"user-{i}" for i in range(101)], "reward": [1] * 101}
    with place.create() as vault:
        before = dumped(vault)
        with pytest.raises(InvalidLogError, match=r"101 different values, .* is it the right column"):
            vault.ingest(people, no_user=True)
        assert dumped(vault) == before
    declared = Configuration(actions=tuple(people["action"]))
    elsewhere = place.keys.parent / "declared"
    elsewhere.mkdir()
    with fresh_place("sqlite", elsewhere).create(declared) as vault:
        assert vault.ingest(people, no_user=True).added == 101


def test_an_action_has_a_name(place: Place) -> None:
    with pytest.raises(InvalidInputError, match=r"must have a name; got an empty one"):
        place.create(Configuration(actions=("A", "", "B")))
    with place.create() as vault, pytest.raises(InvalidLogError, match="no empty labels"):
        vault.ingest({"action": ["A", ""], "reward": [1, 0]}, no_user=True)


def test_what_is_no_configuration_is_refused(place: Place) -> None:
    wrong: Any = "lcb"
    with pytest.raises(InvalidInputError, match="must be a Configuration; got a str"):
        Vault.create(place.url, wrong, keys=place.keys)


@pytest.mark.parametrize("keys", [".", "", "folder"])
def test_keys_are_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(InvalidInputError, match="keys must be a file; got the folder"):
        Vault.create("sqlite:///vault.db", keys=keys)
    assert not Path("vault.db").exists()


def test_a_source_that_is_gone_is_told_with_the_way_out(place: Place, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n")
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(str(tmp_path / "log.csv"), user="user")
        (tmp_path / "log.csv").unlink()
        way_out = r"no longer exists, run armnesia rebuild --without .*log\.csv"
        for asked in (lambda: vault.forget(users=["ann"]), vault.rebuild):
            with pytest.raises(VaultError, match=way_out):
                asked()
        assert any("rebuild --without" in problem for problem in vault.verify().problems)


def test_a_lost_pin_is_noted(place: Place) -> None:
    with filled(place) as vault:
        assert vault.verify().notes == ()
        Path(f"{place.keys}.head").unlink()
        (note,) = vault.verify().notes
        assert note.startswith("no head is pinned beside the keys")


def test_a_vault_that_is_in_use_is_told_apart(place: Place) -> None:
    """A program that gets this may try again."""
    with (
        filled(place) as busy,
        place.open(timeout=0.1) as vault,
        busy._connection.database.writing(),
        pytest.raises(VaultBusyError, match="in use by another process; nothing was changed, try again"),
    ):
        vault.forget(users=["ann"])


def test_an_option_that_postgresql_does_not_know_is_told(postgres_place: Place) -> None:
    with pytest.raises(VaultError, match="an option that PostgreSQL does not know"):
        Vault.create(postgres_place.url.replace("schema=", "schma="), keys=postgres_place.keys)


def test_a_vault_without_actions_forgets_nobody_and_says_so(place: Place) -> None:
    with place.create(Configuration(actions=None)) as vault:
        assert vault.preview(users=["ann"]).records == 0
        done = vault.forget(users=["ann"])
        assert (done.records, done.certificate.summary()["kind"]) == (0, "nothing_held")
        assert vault.verify().holds


@pytest.mark.parametrize(
    "mistaken",
    [
        lambda vault: vault.ledger(after=2**70),
        lambda vault: vault.ledger(after=-(2**70)),
        lambda vault: vault.ledger(most=2**70),
        lambda vault: vault.certificate_of_entry(2**70),
        lambda vault: vault.deletion(2**70),
        lambda vault: vault.finish(since=2**70),
        lambda vault: vault.forget(users=[10**5000]),
        lambda vault: vault.ingest(
            {"action": ["A"], "reward": [1], "who": [10**5000], "id": [9]}, user="who", id="id"
        ),
        lambda vault: vault.forget(users=["ann"], epsilon=10**400, delta=0),
        lambda vault: vault.change_policy(max_epsilon=10**400),
        lambda vault: vault.export("a\0"),
        lambda vault: vault.back_up("a\0"),
        lambda vault: vault.save_certificates("a\0", users=["ann"]),
        lambda vault: vault.copy_to("sqlite:///a\0"),
        lambda vault: Vault.open("sqlite:///a\0"),
    ],
)
def test_numbers_and_paths_that_nothing_takes_are_refused_in_words(
    sqlite_place: Place, mistaken: Callable[[Vault], object]
) -> None:
    with filled(sqlite_place) as vault:
        head = vault.head
        with pytest.raises(ArmnesiaError) as refused:
            mistaken(vault)
        assert "\n" not in str(refused.value)
        assert vault.head == head
        assert vault.verify().holds


def test_a_key_file_has_one_pinned_head_by_every_name(sqlite_place: Place, tmp_path: Path) -> None:
    """A link to it is no other key file, and a rotation writes into the file itself."""
    place, link = sqlite_place, tmp_path / "link.keys"
    filled(place).close()
    link.symlink_to(place.keys)
    with place.open() as vault:
        backup = Snapshot(place, vault, tmp_path)
    with Vault.open(place.url, keys=link) as vault:
        vault.forget(users=["ann"])
        vault.rotate_digest_key()
    assert link.is_symlink()
    with place.open() as vault:
        assert vault.verify().holds
    assert not link.with_name("link.keys.head").exists()
    backup.put_back()
    for keys in (link, place.keys):
        with pytest.raises(VaultError, match="older than its pinned head"):
            Vault.open(place.url, keys=keys)
