"""Searching the whole vault after a request: what no index leads to is found, and nothing false is signed."""

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import UnfinishedError, VaultError
from armnesia.vault import Certificate, Configuration, ForgetRequest
from armnesia.vault.storage import sqlite
from armnesia.vault.storage.sqlite_unused_space import SharedFile
from tests.databases import Place, postgres_url
from tests.red_team.pages import pages_of
from tests.vault.raw_vaults import change, filled, raising, reader_of, values
from tests.vault.storage.test_postgres import schema_of

SIZE = 4096
LEAVES = (10, 13)
FOUND = "digests of these people or records are still in the vault, where no index leads to"


def test_what_was_searched_is_certified(place: Place) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["ann"], search=True)
        assert done.certificate.searched
        assert done.to_dict()["searched"] is True
        assert done.certificate.verify(vault.public_key()) == []
        assert "Searched: after the deletion, all of the vault was read" in done.certificate.words()
        assert vault.certificate(users=["ann"]).text == done.certificate.text, "it is stored"
        assert not vault.forget(users=["bob"]).certificate.searched
        assert "Searched:" not in vault.certificate(users=["bob"]).words()
        again = vault.forget(users=["bob"], search=True)
        assert (again.repeated, again.certificate.searched) == (True, True)
        assert vault.certificate(users=["bob"]).searched, "it is stored"
        assert vault.verify().problems == ()


@pytest.mark.parametrize("rotated", [False, True])
def test_nothing_held_and_single_records_are_searched_too(place: Place, rotated: bool) -> None:
    """The suppression list has the digests of those who are forgotten, as they are before a rotation."""
    with filled(place) as vault:
        for _ in range(2 if rotated else 0):
            vault.rotate_digest_key()
        assert vault.forget(users=["nobody-here"], search=True).certificate.searched
        assert vault.forget(records=["r1", "r4"], search=True).certificate.searched
        vault.readmit(users=["nobody-here"])
        assert vault.forget(users=["nobody-here", "ann"], search=True).certificate.searched
        assert vault.verify().problems == ()


def test_one_of_several_does_not_speak_for_the_others(place: Place) -> None:
    """The certificate is about everybody in the request: it says nothing that was looked at for one only."""
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
        assert not vault.forget(users=["ann"], search=True).certificate.searched
        assert not vault.certificate(users=["bob"]).searched
        assert vault.forget(users=["bob", "ann"], search=True).certificate.searched


def test_each_of_several_gets_a_certificate_that_says_so(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["ann", "bob", "nobody-here"], search=True)
        assert (done.certificate.opening, done.certificate.searched) == (None, True)
        found = dict(vault.certificates(users=["ann", "bob", "nobody-here"]))
        assert len(found) == 3
        assert all(each is not None and each.searched for each in found.values())
        assert vault.verify().problems == ()


def test_what_was_searched_stays_when_erasure_is_completed_later(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        done = vault.forget(users=["ann", "bob"], search=True)
        assert (done.erasure, done.certificate.searched) == ("pending", True)
        vault.compact()
        vault.finish()
        later = vault.certificate(users=["ann"])
        assert (later.erasure, later.searched) == ("complete", True)
        assert vault.verify().problems == ()


def test_a_rebuilt_vault_was_not_searched(place: Place) -> None:
    """Something has put a row of the person back: the search before says nothing of it."""
    with filled(place) as vault:
        ann = vault._connection.all_keys.owner_digest("ann")
        (row, _) = values(vault, "SELECT * FROM record WHERE owner = ?", ann)
        assert vault.forget(users=["ann"], search=True).certificate.searched
        change(vault, f"INSERT INTO record VALUES ({', '.join('?' * len(row))})", *row)
        vault.rebuild()
        assert not vault.certificate(users=["ann"]).searched
        assert vault.forget(users=["ann"], search=True).certificate.searched


def test_a_vault_that_holds_no_rows_is_not_searched(sqlite_place: Place, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n")
    with sqlite_place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(str(tmp_path / "log.csv"))
        assert not vault.forget(users=["ann"], search=True).certificate.searched


def test_files_are_not_searched_while_erasure_is_pending(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        with reader_of(sqlite_place):
            done = vault.forget(users=["ann"], search=True)
            assert (done.erasure, done.certificate.searched) == ("pending", False)
        done = vault.forget(users=["ann"], search=True)
        assert (done.erasure, done.certificate.searched) == ("complete", True)


def test_a_failure_of_the_search_is_said_after_the_request(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        monkeypatch.setattr(SharedFile, "places_of", raising(OSError(5, "Input/output error")))
        with pytest.raises(UnfinishedError, match=r"is done, but the vault could not be searched .* error"):
            vault.forget(users=["ann"], search=True)
        monkeypatch.undo()
        assert vault.forget(users=["ann"], search=True).certificate.searched


def large(place: Place) -> list[str]:
    """A vault of many pages, and the people in it."""
    log: dict[str, list[Any]] = {
        "action": ["A", "B"] * 750,
        "reward": [row % 2 for row in range(1500)],
        "who": [f"user-{row // 5}" for row in range(1500)],
        "id": list(range(1500)),
    }
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, user="who", id="id")
        vault.forget(users=[f"user-{number}" for number in range(250, 300)])
    return [f"user-{number}" for number in range(250)]


@pytest.mark.parametrize("copied", ["record", "record_owner", "sqlite_autoindex_owner_1"])
@pytest.mark.parametrize("lost", ["record", "record_owner", "ledger", "suppressed", "certificate"])
def test_a_copy_of_a_page_anywhere_in_the_file_is_found(sqlite_place: Place, copied: str, lost: str) -> None:
    """The disk has written a page in the place of another: rows of a person are in the file twice.

    Without a search nothing false is said: the certificate does not cover such copies.
    """
    people = large(sqlite_place)
    original = sqlite_place.path.read_bytes()
    pinned = sqlite_place.keys.with_name(f"{sqlite_place.keys.name}.head").read_bytes()
    pages = {name: leaves_of(original, own) for name, own in pages_of(sqlite_place.path).items()}
    with sqlite_place.open() as vault:
        digest = vault._connection.all_keys.owner_digest
    signed = found = 0
    for source in pages[copied][1:8:3]:
        content = original[(source - 1) * SIZE : source * SIZE]
        held = [name for name in people if digest(name) in content]
        target = next(page for page in pages[lost][::-1] if page != source)
        for person in held[:2]:
            data = bytearray(original)
            data[(target - 1) * SIZE : target * SIZE] = content
            sqlite_place.path.write_bytes(data)
            sqlite_place.keys.with_name(f"{sqlite_place.keys.name}.head").write_bytes(pinned)
            try:
                with sqlite_place.open() as vault:
                    certificate = vault.forget(users=[person], search=True).certificate
            except VaultError as error:
                found += FOUND in str(error)
                continue
            signed += certificate.searched
    assert signed == 0
    assert found or {copied, lost} != {"record"}, "these requests do not stumble over the damage before"


def leaves_of(data: bytes, pages: list[int]) -> list[int]:
    return [page for page in pages if data[(page - 1) * SIZE] in LEAVES]


def test_a_row_that_no_index_of_the_server_has_is_found(postgres_place: Place) -> None:
    """As on a copied page: a second copy of a row, of which the indexes do not know."""
    with filled(postgres_place) as vault:
        schema = schema_of(vault)
        columns = ", ".join(
            name
            for (name,) in values(
                vault,
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'record'"
                f" AND table_schema = '{schema}' ORDER BY ordinal_position",
            )
        )
        indexes = [
            name
            for (name,) in values(
                vault,
                f"SELECT indexname FROM pg_indexes WHERE schemaname = '{schema}' AND tablename = 'record'",
            )
        ]
        digest = vault._connection.all_keys.owner_digest("ann")
    written = "UPDATE pg_index SET indisready = {0}, indisvalid = {0} WHERE indexrelid = '{1}'::regclass"
    copy = f"INSERT INTO {schema}.record ({columns}) SELECT {columns} FROM {schema}.record WHERE owner = %s"
    steps: list[list[tuple[str, Any]]] = [
        [(written.format("false", f"{schema}.{name}"), None) for name in indexes],
        [(copy, (digest,))],
        [(written.format("true", f"{schema}.{name}"), None) for name in indexes],
    ]
    for statements in steps:
        with closing(psycopg.connect(postgres_url())) as connection, connection.transaction():
            connection.execute("SET allow_system_table_mods = on")
            for statement, parameters in statements:
                connection.execute(statement, parameters)
    with postgres_place.open() as vault:
        with pytest.raises(UnfinishedError, match=FOUND):
            vault.forget(users=["ann"], search=True)
        with pytest.raises(UnfinishedError, match=FOUND):
            vault.forget(users=["ann"], search=True)


def test_a_second_entry_of_the_suppression_list_is_not_taken_for_its_own(sqlite_place: Place) -> None:
    """The digest stands on pages of the list, but not in a row of it: in the unused part of a page."""
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        digest = vault._connection.all_keys.owner_digest("ann")
    data = bytearray(sqlite_place.path.read_bytes())
    (page, *_) = pages_of(sqlite_place.path)["suppressed"]
    middle = (page - 1) * SIZE + SIZE // 2
    assert data[middle : middle + 64] == bytes(64)
    data[middle : middle + len(digest)] = digest
    sqlite_place.path.write_bytes(data)
    with sqlite_place.open() as vault, pytest.raises(UnfinishedError, match=FOUND):
        vault.forget(users=["ann"], search=True)


@pytest.mark.parametrize("said", [False, "yes", 1, None])
def test_that_all_was_searched_is_said_in_one_form(sqlite_place: Place, said: object) -> None:
    with filled(sqlite_place) as vault:
        certificate = vault.forget(users=["ann"], search=True).certificate
        key = vault.public_key()
    body = {**certificate.body, "erasure": {**certificate.body["erasure"], "searched": said}}
    forged = Certificate(body, certificate.signature, certificate.opening)
    assert "the certificate must not have erasure.searched" in forged.verify(key)
    assert "Searched:" not in forged.words()


def test_others_who_write_meanwhile_are_not_taken_for_copies(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of the suppression list move while the file is read."""
    people = large(sqlite_place)
    places_of = SharedFile.places_of

    readings: list[list[int]] = []

    def others_write(file: Any, digests: Any) -> Any:
        readings.append(places_of(file, digests))
        if len(readings) == 1:
            with sqlite_place.open() as other:
                other.forget_many([ForgetRequest(users=[name]) for name in people[1:200]])
        return readings[-1]

    with sqlite_place.open() as vault:
        monkeypatch.setattr(SharedFile, "places_of", others_write)
        assert vault.forget(users=[people[0]], search=True).certificate.searched
    first, second = readings
    assert set(first) != set(second), "what the test is about"


def test_without_the_search_the_copies_would_be_certified(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: only pages of the suppression list are looked at."""
    people = large(sqlite_place)
    data = bytearray(sqlite_place.path.read_bytes())
    leaves = leaves_of(bytes(data), pages_of(sqlite_place.path)["record"])
    source, target = leaves[2], leaves[5]
    content, lost = (bytes(data[(page - 1) * SIZE : page * SIZE]) for page in (source, target))
    data[(target - 1) * SIZE : target * SIZE] = content
    sqlite_place.path.write_bytes(data)
    with sqlite_place.open() as vault:
        digest = vault._connection.all_keys.owner_digest
        person = next(name for name in people if digest(name) in content and digest(name) not in lost)
        monkeypatch.setattr(SharedFile, "places_of", lambda *_: [])
        monkeypatch.setattr(sqlite, "count_suppressed_both_ways", lambda *_: 0)
        assert vault.forget(users=[person], search=True).certificate.searched, "false"
        owners = [bytes(owner) for (owner,) in values(vault, "SELECT owner FROM record NOT INDEXED") if owner]
        assert digest(person) in owners
