"""Values of types and forms that armnesia does not write: `verify` finds each, and nothing fails on them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import filled

CHANGES = {
    "no commitments": "DELETE FROM people",
    "commitments of one byte": "UPDATE people SET leaves = x'00'",
    "commitments of text": "UPDATE people SET leaves = 'x'",
    "commitments of no entry": "UPDATE people SET number = number + 100",
    "commitments of no deletion": "UPDATE people SET number = 1 WHERE number = 2",
    "suppressed digests of text": "UPDATE suppressed SET digest = 'abc' || rowid",
    "suppressed kind": "UPDATE suppressed SET kind = 'xyz'",
    "suppressed since text": "UPDATE suppressed SET since = 'x'",
    "entry of bytes": "UPDATE entry SET envelope = x'ff' WHERE number = 2",
    "entry of a number": "UPDATE entry SET envelope = 5 WHERE number = 1",
    "entry of an empty object": "UPDATE entry SET envelope = '{}' WHERE number = 2",
    "entry that is spelled otherwise": "UPDATE entry SET envelope = envelope || ' '",
    "entry under another number": "UPDATE entry SET number = 77 WHERE number = 2",
    "leaf of text": "UPDATE entry SET leaf = 'x' WHERE number = 2",
    "no entries": "DELETE FROM entry",
    "owners of text": "UPDATE record SET owner = 'abc'",
    "identities of text": "UPDATE record SET identity = 'abc' || rowid",
    "units of text": "UPDATE record SET units = 'abc'",
    "an arm that does not exist": "UPDATE record SET arm = 77",
    "served": "UPDATE decision SET served = 99",
    "check-sums": "UPDATE vault SET check_sums = 'zz'",
    "size of text": "UPDATE vault SET ledger_size = 'x'",
    "frontier": "UPDATE vault SET frontier = 'zz'",
    "version of text": "UPDATE vault SET schema_version = 'x'",
    "version of bytes": "UPDATE vault SET schema_version = x'01'",
    "signing key of text": "UPDATE vault SET signing_key = 'x'",
    "signing key that does not exist": "UPDATE vault SET signing_key = 9",
    "seal of text": "UPDATE vault SET seal = 'x'",
    "configuration that is a list": "UPDATE vault SET configuration = '[]'",
    "mode that is a list": """UPDATE vault SET configuration = '{"mode": []}'""",
    "id of bytes": "UPDATE vault SET id = x'00'",
    "key": "UPDATE decision SET key = 'x'",
    "statistics that are no JSON": "UPDATE decision SET statistics = 'x'",
    "statistics of bytes": "UPDATE decision SET statistics = x'00'",
    "statistics of an unknown kind": """UPDATE decision SET statistics = '{"kind":"gram"}'""",
    "count of text": """UPDATE decision SET statistics = replace(statistics, 'counts":[', 'counts":["x",')""",
    "another number": "UPDATE decision SET number = 7",
    "no decision": "DELETE FROM decision",
    "two decisions": "INSERT INTO decision SELECT 2, '[2]', statistics, 0, 'learner' FROM decision",
    "number of decisions": "UPDATE vault SET decisions = 'x'",
    "no vault": "DELETE FROM vault",
}
"""What is changed, by SQL that SQLite accepts."""
SOURCE_CHANGES = {
    "no JSON": "UPDATE source SET description = '{'",
    "an empty object": "UPDATE source SET description = '{}'",
    "a list": "UPDATE source SET description = '[]'",
    "half of it": """UPDATE source SET description = '{"kind": "file"}'""",
    "bytes": "UPDATE source SET description = x'7b'",
}


def run(place: Place, sql: str) -> None:
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute(sql)
        connection.commit()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A vault with requests of every kind."""
    place = fresh_place("sqlite", tmp_path_factory.mktemp("original"))
    with filled(place) as vault:
        vault.forget(users=["ann", "bob", "zoe"])
        vault.forget(users=["cem"])
        vault.forget(records=["r6"])
    return place


@pytest.mark.parametrize("name", CHANGES)
def test_verify_finds_it_and_a_restore_accepts_it_only_if_told(
    original: Place, tmp_path: Path, name: str
) -> None:
    shutil.copytree(original.path.parent, tmp_path / "copy")
    place = Place(f"sqlite:///{tmp_path}/copy/{original.path.name}", tmp_path / "copy" / original.keys.name)
    run(place, CHANGES[name])
    try:
        vault = place.open(checked=False)
    except ArmnesiaError:  # whose vault it is cannot be read any more
        return
    with vault:
        assert vault.verify().problems
        try:
            done = Vault.restore(place.url, keys=place.keys)
        except ArmnesiaError:
            return
        assert not done.as_it_was, "what the journal has is put back, and the ledger says so"
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann", "zoe"]).repeated
        assert vault.certificate(users=["bob"]).verify(vault.public_key()) == []


@pytest.mark.parametrize("name", SOURCE_CHANGES)
def test_a_changed_description_of_a_source(sqlite_place: Place, tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user,id\nA,1,ann,1\nB,0,bob,2\n", encoding="utf-8")
    with sqlite_place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(log, user="user", id="id")
    run(sqlite_place, SOURCE_CHANGES[name])
    with sqlite_place.open() as vault:
        assert vault.verify().problems
        with pytest.raises(ArmnesiaError):
            vault.forget(users=["ann"])
