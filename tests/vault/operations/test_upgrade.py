"""Vaults of other versions: a newer one is refused, an older one, as it was written then, is upgraded."""

import json
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Upgraded, UserType, Vault
from armnesia.vault.state import migrations
from armnesia.vault.state.sealed_state import seal_on
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.opening import open_database
from armnesia.vault.storage.schema import EXTERNAL_LAYOUT, OWNER_INDEX, SERVICE_TABLES, VERSION
from armnesia.vault.storage.schema import TABLES as TABLES_OF
from tests.databases import Place
from tests.vault.raw_vaults import TABLES, arms, change, dumped, filled, values

OLD, FIRST_RELEASE, WITH_ARMS = (
    json.loads((Path(__file__).parent / "data" / f"version-{version}.json").read_text(encoding="utf-8"))
    for version in (1, 2, 4)
)


def _cell(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def put_old_vault(place: Place, old: dict[str, Any] = OLD) -> None:
    """A vault that an earlier armnesia wrote, on either database."""
    database = open_database(place.url, create=True)
    with database.writing() as session:
        write_old_tables(session, old)
    database.close()
    for path, text in ((place.keys, old["keys"]), (Path(f"{place.keys}.head"), old["head"])):
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")


def write_old_tables(session: Session, old: dict[str, Any]) -> None:
    for statement in old["tables"]:
        session.execute(statement.replace("BLOB", session.dialect.blob))
    for table, rows in old["rows"].items():
        for row in rows:
            marks = ", ".join("?" * len(row))
            session.execute(f"INSERT INTO {table} VALUES ({marks})", *map(_cell, row))


def tables_of(place: Place) -> dict[str, list[tuple[Any, ...]]]:
    database = open_database(place.url)
    with database.reading() as session:
        found = {
            table: sorted(session.query(f"SELECT * FROM {table}"), key=repr)
            for table in OLD["rows"]
            if table != "arm"  # which version 5 does not have
        }
    database.close()
    return found


def test_a_vault_of_a_newer_version_is_refused(place: Place) -> None:
    newer = VERSION + 1
    with filled(place) as vault:
        change(vault, "UPDATE vault SET schema_version = ?", newer)
        refusal = f"has schema version {newer}, this armnesia knows {VERSION}; use a newer armnesia"
        for asked in (vault.decide, place.open, lambda: Vault.upgrade(place.url, keys=place.keys)):
            with pytest.raises(VaultError, match=refusal):
                asked()


def test_a_vault_of_the_first_release_opens_as_before(place: Place) -> None:
    put_old_vault(place, FIRST_RELEASE)
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.decide().action in ("A", "B")
        for name, sequence in (("user-1", 2), ("user-3", 3), ("nobody", 3), ("user-4", 7)):
            certificate = vault.certificate(users=[name])
            assert certificate.body["sequence"] == sequence
            assert certificate.opening is not None
            assert certificate.verify(vault.public_keys()) == []
        again = vault.forget(users=["user-1"])
        assert (again.repeated, again.certificate.body["sequence"]) == (True, 2)
        assert vault.forget(users=["user-5"]).records == 5
        assert vault.certificate(users=["user-5"]).verify(vault.public_keys()) == []
        new = {"action": ["A", "B"], "reward": [1, 0], "who": ["user-1", "user-2"], "id": ["n1", "n2"]}
        done = vault.ingest(new, user="who", id="id")
        assert (done.added, done.suppressed) == (1, 1)
        assert vault.verify().problems == ()


@pytest.mark.parametrize("way", ["upgrade", "first change"])
def test_a_vault_of_version_4_gets_one_row_per_decision(place: Place, way: str) -> None:
    """Its penalty is frozen, people were forgotten, and a rotation of its digest key is half done."""
    put_old_vault(place, WITH_ARMS)
    numbers = [(row[2], row[3], row[4]) for row in WITH_ARMS["rows"]["arm"]]
    assert any(deleted for *_, deleted in numbers)
    with place.open() as vault:
        assert vault.verify().problems == ()
        served = vault.decide()
        assert served.by == "release"
        assert vault.preview(users=["user-5"]).records == 5
        assert vault.status().records == sum(count for count, *_ in numbers)
        assert values(vault, "SELECT schema_version FROM vault") == [(4,)]
        if way == "first change":
            vault.change_policy(max_epsilon=vault.configuration.policy.max_epsilon)
    if way == "upgrade":
        assert Vault.upgrade(place.url, keys=place.keys) == Upgraded(4, VERSION)
    with place.open() as vault:
        assert values(vault, "SELECT schema_version, decisions FROM vault") == [(VERSION, 1)]
        assert (arms(vault), vault.decide()) == (numbers, served)
        assert vault.verify().problems == ()
        vault.rotate_digest_key()
        assert vault.forget(users=["user-1"]).repeated
        assert vault.forget(users=["user-5"]).records == 5
        assert vault.verify().problems == ()


@pytest.mark.parametrize(
    "sql", ["UPDATE arm SET count = count + 1", "DELETE FROM vault", "UPDATE vault SET erased_through = 99"]
)
def test_a_vault_of_version_4_that_was_changed_is_rebuilt(place: Place, sql: str) -> None:
    put_old_vault(place, WITH_ARMS)
    numbers = [(row[2], row[3], row[4]) for row in WITH_ARMS["rows"]["arm"]]
    database = open_database(place.url)
    with database.writing() as session:
        # The rotation of its digest key is half done, which only the column `tallies` says.
        session.execute(sql)
    database.close()
    with place.open(accept="damaged") as vault:
        if sql.startswith("DELETE"):
            with pytest.raises(VaultError, match="run armnesia restore with the latest export"):
                vault.rebuild()
            return
        assert vault.rebuild().changed
        assert values(vault, "SELECT schema_version FROM vault") == [(VERSION,)]
        assert arms(vault) == numbers
        assert vault.verify().problems == ()
        assert vault.forget(users=["user-5"]).records == 5
        assert vault.verify().problems == ()


@pytest.mark.parametrize("sql", ["UPDATE arm SET total = total + 1", "UPDATE vault SET served = 1 - served"])
def test_a_vault_of_version_4_that_was_changed_is_not_opened(place: Place, sql: str) -> None:
    put_old_vault(place, WITH_ARMS)
    database = open_database(place.url)
    with database.writing() as session:
        session.execute(sql)
    database.close()
    with pytest.raises(VaultError, match="changed by something other than armnesia"):
        place.open()
    with pytest.raises(VaultError, match="changed by something other than armnesia"):
        Vault.upgrade(place.url, keys=place.keys)


def test_a_vault_of_version_1_is_upgraded_on_request(place: Place) -> None:
    put_old_vault(place)
    before = tables_of(place)
    with pytest.raises(VaultError, match=f"this armnesia needs {VERSION}: back it up and run"):
        place.open()
    assert tables_of(place) == before
    assert Vault.upgrade(place.url, keys=place.keys) == Upgraded(1, VERSION)
    after = tables_of(place)
    assert {name for name in after if after[name] != before[name]} == {"vault"}
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert [entry.kind for entry in vault.ledger()][-1] == "rotate_signing"
        for name, sequence in (("ann", 2), ("dea", 2), ("nobody", 3)):
            certificate = vault.certificate(users=[name])
            assert certificate.body["sequence"] == sequence
            assert certificate.verify(vault.public_keys()) == []
        log = {"action": ["A", "A", "B"], "reward": [1, 1, 0], "who": ["ann", "dea", "fay"]}
        done = vault.ingest(log | {"id": ["n1", "n2", "n3"]}, user="who", id="id")
        assert (done.added, done.suppressed) == (2, 1)
        assert vault.forget(users=["bob"]).counts == {"A": 1, "B": 1}
        assert vault.forget(users=["ann"]).repeated
        assert vault.verify().problems == ()
    assert Vault.upgrade(place.url, keys=place.keys) == Upgraded(VERSION, VERSION)


def test_an_older_vault_that_was_changed_is_not_sealed_anew(place: Place) -> None:
    put_old_vault(place)
    for table, column in (("arm", "total"), ("vault", "erased_through")):
        database = open_database(place.url)
        for by, refused in ((1, True), (-1, False)):
            with database.writing() as session:
                session.execute(f"UPDATE {table} SET {column} = {column} + {by}")
            if refused:
                with pytest.raises(VaultError, match="changed by something other than armnesia"):
                    Vault.upgrade(place.url, keys=place.keys)
        database.close()
    assert Vault.upgrade(place.url, keys=place.keys) == Upgraded(1, VERSION)


def test_a_version_that_never_was_is_refused(place: Place) -> None:
    with filled(place) as vault:
        change(vault, "UPDATE vault SET schema_version = 0")
    with pytest.raises(VaultError, match=f"there is no way from schema version 0 to {VERSION}"):
        Vault.upgrade(place.url, keys=place.keys)


def test_an_upgrade_that_fails_leaves_the_older_version(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_old_vault(place)
    before = tables_of(place)

    def half(session: Session, *_: Any) -> None:
        session.execute("CREATE TABLE remark (number INTEGER PRIMARY KEY)")
        session.execute("UPDATE arm SET nonsense = 1")

    with monkeypatch.context() as patched:
        patched.setitem(migrations.STEPS, 2, half)
        with pytest.raises(VaultError):
            Vault.upgrade(place.url, keys=place.keys)
    assert tables_of(place) == before
    assert Vault.upgrade(place.url, keys=place.keys) == Upgraded(1, VERSION)
    with place.open() as vault:
        assert vault.verify().holds
        assert dumped(vault)["record"] == before["record"]
        with pytest.raises(VaultError):
            values(vault, "SELECT * FROM remark")


def test_a_backup_of_version_1_is_upgraded_and_then_restored(place: Place, tmp_path: Path) -> None:
    """Neither may send people to the other one first."""
    put_old_vault(place)
    Vault.upgrade(place.url, keys=place.keys)
    with place.open() as vault:
        vault.forget(users=["bob"])
        vault.export(tmp_path / "latest.json", for_restore=True)
        pinned = vault.head
    database = open_database(place.url)
    with database.writing() as session:
        for table in TABLES:
            session.execute(f"DROP TABLE {table}")
        write_old_tables(session, OLD)
    database.close()
    with pytest.raises(VaultError, match="run armnesia upgrade"):
        Vault.restore(place.url, tmp_path / "latest.json", keys=place.keys)
    assert Vault.upgrade(place.url, keys=place.keys) == Upgraded(1, VERSION)
    with pytest.raises(VaultError, match="older than its pinned head"):
        place.open()
    assert Vault.restore(place.url, tmp_path / "latest.json", keys=place.keys).replayed == 1
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.forget(users=["bob"]).repeated
        assert vault.head.sequence == pinned.sequence + 1


def put_external_vault_of_version_5(place: Place, source: Path) -> None:
    """Make an external vault, and its tables as version 5 had them: keyed digests of every row."""
    with place.create(Configuration(actions=("A", "B"), user_type=UserType.TEXT, mode="external")) as vault:
        vault.ingest(str(source), user="who", id="id")
        vault.forget(users=["ann"])
        ring, state = vault._connection.all_keys, vault._state()
        with vault._connection.database.writing() as session:
            for table in TABLES_OF[EXTERNAL_LAYOUT, 5]:
                if table.name in ("record", "owner"):
                    session.execute(table.statement(session.dialect.blob))
            for table in SERVICE_TABLES:
                session.execute(f"DROP TABLE {table.name}")
            session.execute(OWNER_INDEX.statement)
            record = (b"identity", ring.owner_digest("bob"), b"content", 1)
            session.execute("INSERT INTO record VALUES (?, ?, ?, ?)", *record)
            ((number, text),) = session.query("SELECT number, description FROM source")
            old = json.loads(text)
            del old["counted"]
            old_text = json.dumps(old, sort_keys=True, separators=(",", ":"))
            session.execute("UPDATE source SET description = ?", old_text)
            digests = state.digests.update(ring, "source", [(number, text), (number, old_text)])
            digests = digests.update(ring, "record", [record])
            tables.set_vault(session, "tallies", digests.masked(ring, state.head))
            tables.set_vault(session, "schema_version", 5)
            columns = tables.read_sealed_columns(session, 5)
            tables.set_vault(session, "seal", seal_on(columns, None, ring))


@pytest.mark.parametrize("change_at_source", ["none", "other rows", "gone"])
def test_an_external_vault_counts_its_sources_when_it_is_upgraded(
    place: Place, tmp_path: Path, change_at_source: str
) -> None:
    source = tmp_path / "log.csv"
    source.write_text("action,reward,who,id\nA,1,ann,1\nB,0,bob,2\nB,0.5,cem,3\n")
    put_external_vault_of_version_5(place, source)
    with pytest.raises(VaultError, match=r"schema version 5, this armnesia needs 6.*run armnesia upgrade"):
        place.open()
    if change_at_source == "other rows":
        source.write_text("action,reward,who,id\nA,1,ann,1\nB,1,bob,2\nB,0.5,cem,3\n")
    elif change_at_source == "gone":
        source.unlink()
    done = Vault.upgrade(place.url, keys=place.keys)
    unconfirmed = () if change_at_source == "none" else (str(source),)
    assert (done.from_version, done.to_version, done.to_recount) == (5, VERSION, unconfirmed)
    assert done.to_dict().get("to_recount", []) == list(unconfirmed)
    with place.open() as vault:
        assert not {"record", "owner"} & dumped(vault).keys()
        assert vault.verify().problems == ()
        assert vault.certificate(users=["ann"]).verify(vault.public_keys()) == []
        if unconfirmed:
            with pytest.raises(VaultError, match="counted by an older version"):
                vault.forget(users=["bob"])
        if change_at_source == "other rows":
            assert vault.ingest(str(source), user="who", id="id").recounted
        elif change_at_source == "gone":
            assert vault.rebuild(without=[str(source)]).changed
        assert vault.verify().problems == ()
        if source.exists():
            assert vault.forget(users=["bob"]).records == 1
            assert vault.ingest(str(source), user="who", id="id").rows == 0
    assert Vault.upgrade(place.url, keys=place.keys).to_dict() == {"from": VERSION, "to": VERSION}
