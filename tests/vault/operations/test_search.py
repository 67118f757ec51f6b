"""Searching the whole vault after a request: what no index leads to is found, and nothing false is signed."""

import json
import sqlite3
import struct
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import InvalidInputError, UnfinishedError, VaultBusyError, VaultError
from armnesia.vault import Certificate, Configuration, ForgetRequest, Vault
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.operations import forget as forget_operation
from armnesia.vault.operations import rotate
from armnesia.vault.state import certificates
from armnesia.vault.state.whole_search import search_vault
from armnesia.vault.storage import sqlite, sqlite_search
from armnesia.vault.storage.database import EVERY_ROW, SearchOutcome
from armnesia.vault.storage.sqlite import SqliteDatabase
from armnesia.vault.storage.sqlite_erasure import SqliteErasure
from tests.databases import Place, postgres_url
from tests.red_team.pages import pages_of
from tests.vault.raw_vaults import change, filled, raising, reader_of, values
from tests.vault.storage.test_postgres import schema_of

SIZE = 4096
LEAVES = (10, 13)
FOUND = "digests of these people or records may still be in the vault, outside of its"


def test_what_was_searched_is_certified(place: Place) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["ann"], search=True)
        assert done.certificate.searched == vault._connection.database.search_covers
        assert done.to_dict()["searched"] is True
        assert done.certificate.verify(vault.public_key()) == []
        assert (
            f"Searched: {done.certificate.searched} was read after the deletion;" in done.certificate.words()
        )
        assert vault.certificate(users=["ann"]).text == done.certificate.text, "it is stored"
        assert not vault.forget(users=["bob"]).certificate.searched
        assert "Searched:" not in vault.certificate(users=["bob"]).words()
        again = vault.forget(users=["bob"], search=True)
        assert (again.repeated, again.searched) == (True, True)
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
        assert (done.certificate.opening, done.searched) == (None, True)
        found = dict(vault.certificates(users=["ann", "bob", "nobody-here"]))
        assert len(found) == 3
        assert all(each is not None and each.searched for each in found.values())
        assert vault.verify().problems == ()


def test_what_was_searched_stays_when_erasure_is_completed_later(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        done = vault.forget(users=["ann", "bob"], search=True)
        assert (done.erasure, done.searched) == ("pending", True)
        vault.compact()
        vault.finish()
        later = vault.certificate(users=["ann"])
        assert (later.erasure, later.searched) == ("complete", EVERY_ROW)
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
            assert (done.erasure, done.searched) == ("pending", False)
        done = vault.forget(users=["ann"], search=True)
        assert (done.erasure, done.searched) == ("complete", True)


def test_a_failure_of_the_search_is_said_after_the_request(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        monkeypatch.setattr(sqlite, "find_in_file", raising(OSError(5, "Input/output error")))
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
                    done = vault.forget(users=[person], search=True)
            except VaultError as error:
                found += FOUND in str(error)
                continue
            signed += done.searched
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


@pytest.mark.parametrize("said", [False, "yes", 1, None, ["every byte"]])
def test_that_all_was_searched_is_said_in_one_form(sqlite_place: Place, said: object) -> None:
    with filled(sqlite_place) as vault:
        certificate = vault.forget(users=["ann"], search=True).certificate
        key = vault.public_key()
    body = {**certificate.body, "erasure": {**certificate.body["erasure"], "searched": said}}
    forged = Certificate(body, certificate.signature, certificate.opening)
    assert any("erasure.searched must be" in problem for problem in forged.verify(key))


def test_others_who_write_meanwhile_are_not_taken_for_copies(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of the suppression list move while the file is read."""
    people = large(sqlite_place)
    find_in_file = sqlite_search.find_in_file
    readings: list[list[int]] = []

    def others_write(file: Any, digests: Any) -> Any:
        readings.append(find_in_file(file, digests))
        if len(readings) == 1:
            with sqlite_place.open() as other:
                other.forget_many([ForgetRequest(users=[name]) for name in people[1:200]])
        return readings[-1]

    with sqlite_place.open() as vault:
        monkeypatch.setattr(sqlite, "find_in_file", others_write)
        assert vault.forget(users=[people[0]], search=True).certificate.searched
    first, second = readings
    assert set(first) != set(second), "what the test is about"


def test_a_search_that_finds_nothing_would_certify_copies(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: nothing is read."""
    people = large(sqlite_place)
    data = bytearray(sqlite_place.path.read_bytes())
    leaves = leaves_of(bytes(data), pages_of(sqlite_place.path)["record"])
    content, lost = page_of(data, leaves[2]), page_of(data, leaves[5])
    overwrite(sqlite_place, leaves[5], content)
    with sqlite_place.open() as vault:
        digest = vault._connection.all_keys.owner_digest
        person = next(name for name in people if digest(name) in content and digest(name) not in lost)
        monkeypatch.setattr(SqliteDatabase, "search_for", lambda *_: SearchOutcome(False))
        assert vault.forget(users=[person], search=True).searched, "false"
        owners = [bytes(owner) for (owner,) in values(vault, "SELECT owner FROM record NOT INDEXED") if owner]
        assert digest(person) in owners


def page_of(data: bytes | bytearray, number: int) -> bytes:
    return bytes(data[(number - 1) * SIZE : number * SIZE])


def overwrite(place: Place, number: int, content: bytes) -> None:
    data = bytearray(place.path.read_bytes())
    data[(number - 1) * SIZE : number * SIZE] = content
    place.path.write_bytes(data)


LIST, ITS_INDEX = "suppressed", "sqlite_autoindex_suppressed_1"


@pytest.mark.parametrize("first", [False, True], ids=["damaged before", "damaged after"])
@pytest.mark.parametrize(
    ("copied", "lost", "kind", "rotated"),
    [
        ("record", LIST, "records", False),
        ("sqlite_autoindex_record_1", ITS_INDEX, "records", True),
        ("owner", LIST, "users", False),
        ("owner", LIST, "users", True),
        ("record_owner", ITS_INDEX, "users", True),
        ("sqlite_autoindex_owner_1", ITS_INDEX, "users", False),
        ("sqlite_autoindex_owner_1", ITS_INDEX, "users", True),
    ],
)
def test_a_page_in_the_place_of_one_of_the_list_is_found(
    sqlite_place: Place, copied: str, lost: str, kind: str, rotated: bool, first: bool
) -> None:
    """What is left there has the digest where the list is expected to have it."""
    request: dict[str, Any] = {kind: ["ann"] if kind == "users" else ["r1"]}
    with filled(sqlite_place) as vault:
        if rotated:
            vault.rotate_digest_key()
        vault.forget(users=["dan", *(f"stranger-{number}" for number in range(4))])
        pages = pages_of(sqlite_place.path)
        content = page_of(sqlite_place.path.read_bytes(), pages[copied][0])
        keys = vault._connection.all_keys
        digest = keys.owner_digest("ann") if kind == "users" else keys.record_identity("id", "r1")
        assert digest in content, "what the test is about"
        if first:
            vault.forget(**request)
    overwrite(sqlite_place, pages[lost][0], content)
    with pytest.raises(VaultError), sqlite_place.open() as vault:
        vault.forget(**request, search=True)


def test_a_person_who_is_not_in_the_list_is_not_certified(sqlite_place: Place) -> None:
    """A foreign index leads to the row of somebody else, which would be changed instead."""
    with filled(sqlite_place) as vault:
        vault.forget(users=["bob"])
        vault.forget(users=["cem"])
    pages = pages_of(sqlite_place.path)
    content = page_of(sqlite_place.path.read_bytes(), pages["sqlite_autoindex_owner_1"][0])
    overwrite(sqlite_place, pages[ITS_INDEX][0], content)
    with sqlite_place.open() as vault:
        for name in ("ann", "dan"):
            with pytest.raises(VaultError, match="damaged"):
                vault.forget(users=[name])
        assert values(vault, "SELECT count(*) FROM suppressed NOT INDEXED") == [(2,)]


def test_a_list_that_is_read_twice_does_not_hide_a_copy(sqlite_place: Place) -> None:
    """A pointer of its tree leads to the same page as another: each row on it is counted twice."""
    people = large(sqlite_place)
    with sqlite_place.open() as vault:
        vault.forget_many([ForgetRequest(users=[name]) for name in people[1:]])
        vault.forget(users=[people[0]])
        digest = vault._connection.all_keys.owner_digest(people[0])
        ((root,),) = values(vault, "SELECT rootpage FROM sqlite_master WHERE name = 'suppressed'")
    data = sqlite_place.path.read_bytes()
    interior = bytearray(page_of(data, root))
    assert interior[0] == 5, "the list has several pages"
    (number,) = struct.unpack_from(">H", interior, 3)
    cells = [*struct.unpack_from(f">{number}H", interior, 12), 8]
    children = {at: struct.unpack_from(">I", interior, at)[0] for at in cells}
    own = next(at for at, page in children.items() if digest in page_of(data, page))
    other = next(at for at in cells if at != own)
    struct.pack_into(">I", interior, other, children[own])
    overwrite(sqlite_place, root, bytes(interior))
    sqlite_place.path.write_bytes(sqlite_place.path.read_bytes() + digest.ljust(SIZE, b"\0"))
    with sqlite_place.open() as vault, pytest.raises(UnfinishedError, match=FOUND):
        vault.forget(users=[people[0]], search=True)


def test_what_comes_from_the_log_into_the_file_is_read(sqlite_place: Place) -> None:
    """Another program has left the digest in the log, which a reader holds while the search begins."""
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        digest = vault._connection.all_keys.owner_digest("ann")
        with reader_of(sqlite_place), closing(sqlite3.connect(sqlite_place.path)) as other, other:
            other.execute("UPDATE certificate SET signature = ? WHERE sequence = 2", (digest,))
        with pytest.raises(VaultError):
            vault.forget(users=["ann"], search=True)
        assert digest in sqlite_place.path.read_bytes().replace(digest, b"", 2), "beside the list"


@pytest.mark.parametrize("column", ["owner", "identity", "tally"])
def test_every_column_of_the_server_that_has_digests_is_read(postgres_place: Place, column: str) -> None:
    with filled(postgres_place) as vault:
        keys = vault._connection.all_keys
        database = vault._connection.database
        wanted = keys.record_identity("id", "r4") if column == "identity" else keys.owner_digest("cem")
        assert database.search_for([wanted], {}).found
        if column != "identity":
            table, other = ("record", "owner") if column == "tally" else ("owner", "record")
            assert change(vault, f"DELETE FROM {table} WHERE owner = ?", wanted) == 1
            assert database.search_for([wanted], {}).found, f"in {other}"


def damaged(place: Place) -> str:
    """A vault with a copy of a page of records in the place of another one, and somebody on it."""
    people = large(place)
    data = place.path.read_bytes()
    leaves = leaves_of(data, pages_of(place.path)["record"])
    overwrite(place, leaves[5], page_of(data, leaves[2]))
    with place.open() as vault:
        digest = vault._connection.all_keys.owner_digest
    return next(
        name
        for name in people
        if digest(name) in page_of(data, leaves[2]) and digest(name) not in page_of(data, leaves[5])
    )


def test_a_certificate_is_withheld_after_a_search_that_found_something(
    sqlite_place: Place, tmp_path: Path
) -> None:
    person = damaged(sqlite_place)
    with sqlite_place.open() as vault:
        with pytest.raises(UnfinishedError, match="their certificate is withheld"):
            vault.forget(users=[person], search=True)
        entry = vault.status().head.sequence
        for refused in (
            lambda: vault.certificate(users=[person]),
            lambda: vault.certificate_of_entry(entry),
            lambda: vault.forget(users=[person]),
        ):
            with pytest.raises(VaultError, match=f"certificate {entry} is withheld"):
                refused()
        finished = vault.finish()
        assert (entry in finished.reissued, finished.withheld, finished.complete) == (False, (entry,), False)
        vault.export(tmp_path / "export.json")
        exported = json.loads((tmp_path / "export.json").read_text())["certificates"]
        assert {each["sequence"]: bool(each["signature"]) for each in exported} == {
            entry - 1: True,
            entry: False,
        }
        with pytest.raises(UnfinishedError, match=FOUND):
            vault.forget(users=[person], search=True)


def test_a_withheld_certificate_is_signed_after_the_repair(sqlite_place: Place) -> None:
    """The copy is on a page that nothing leads to: `compact` leaves it out."""
    with filled(sqlite_place) as vault:
        digest = vault._connection.all_keys.owner_digest("ann")
    with sqlite_place.path.open("ab") as file:  # behind the pages that the vault is going to take
        file.write(bytes(50 * SIZE) + digest.ljust(SIZE, b"\0"))
    with sqlite_place.open() as vault:
        with pytest.raises(UnfinishedError, match=FOUND):
            vault.forget(users=["ann"], search=True)
        assert vault.verify().problems == ()
        vault.compact()
        with pytest.raises(VaultError, match="is withheld"):
            vault.certificate(users=["ann"])
        vault.rotate_digest_key()
        done = vault.forget(users=["ann"], search=True)
        assert (done.searched, done.repeated) == (True, True)
        assert vault.certificate(users=["ann"]).text == done.certificate.text
        assert vault.verify().problems == ()


def test_a_repeated_request_returns_the_same_certificate(place: Place) -> None:
    with filled(place) as vault:
        first = vault.forget(users=["ann"], search=True)
        again = vault.forget(users=["ann"], search=True)
        assert (again.certificate.text, again.certificate.signature) == (
            first.certificate.text,
            first.certificate.signature,
        )


def test_why_nothing_was_searched_is_said(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        assert vault.forget(users=["cem"]).not_searched_because is None, "it was not asked for"
        vault.forget(users=["ann", "bob"])
        one = vault.forget(users=["ann"], search=True)
        assert "give all of them" in str(one.not_searched_because)
        with reader_of(sqlite_place):
            done = vault.forget(users=["dan"], search=True)
        assert done.not_searched_because == "deleted bytes are still in the files"
        assert done.to_dict()["not_searched_because"] == done.not_searched_because


def test_a_large_vault_that_others_write_to_is_not_read_twice(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_LONGEST_SEARCH", -1.0)
    find_in_file = sqlite_search.find_in_file

    def others_write(file: Any, digests: Any) -> Any:
        with sqlite_place.open() as other:
            other.forget(users=["bob"])
        return find_in_file(file, digests)

    with filled(sqlite_place) as vault:
        monkeypatch.setattr(sqlite, "find_in_file", others_write)
        done = vault.forget(users=["ann"], search=True)
        assert (done.searched, done.erasure) == (False, "complete")
        assert "others have written to the vault" in str(done.not_searched_because)


def test_a_vault_that_stays_locked_is_not_searched(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_in_file = sqlite_search.find_in_file
    with filled(sqlite_place), sqlite_place.open(timeout=0.2) as vault, ExitStack() as lent:

        def others_lock(file: Any, digests: Any) -> Any:
            other = lent.enter_context(closing(sqlite3.connect(sqlite_place.path, isolation_level=None)))
            other.execute("BEGIN IMMEDIATE")
            return find_in_file(file, digests)

        monkeypatch.setattr(sqlite, "find_in_file", others_lock)
        done = vault.forget(users=["ann"], search=True)
        assert done.not_searched_because == "another process kept the vault locked"


def test_a_certificate_that_cannot_be_stored_is_said_after_the_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = raising(
        VaultBusyError("the vault 'v' is in use by another process; nothing was changed, try again")
    )
    with filled(place) as vault:
        monkeypatch.setattr(forget_operation, "store_certificate", locked)
        with pytest.raises(UnfinishedError, match="the request is done, but") as caught:
            vault.forget(users=["ann"], search=True)
        assert "nothing was changed" not in str(caught.value)
        monkeypatch.undo()
        assert vault.forget(users=["ann"], search=True).repeated


def others_act(
    place: Place,
    vault: Vault,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Vault], Any],
    *,
    after: bool = False,
) -> None:
    """Let another process do something before the next search, or after it."""
    database = type(vault._connection.database)
    search_for = database.search_for

    def search(*given: Any) -> Any:
        found = search_for(*given) if after else None
        monkeypatch.undo()
        with place.open() as other:
            act(other)
        return found or search_for(*given)

    monkeypatch.setattr(database, "search_for", search)


@pytest.mark.parametrize("first", [True, False], ids=["first", "repeated"])
def test_rows_that_come_back_between_search_and_signature(
    place: Place, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """A rebuild in between may have removed rows that came back after the search."""
    with filled(place) as vault:
        ann = vault._connection.all_keys.owner_digest("ann")
        (row, _) = values(vault, "SELECT * FROM record WHERE owner = ?", ann)
        if not first:
            vault.forget(users=["ann"])

        def rebuild(other: Vault) -> None:
            change(other, f"INSERT INTO record VALUES ({', '.join('?' * len(row))})", *row)
            other.rebuild()

        others_act(place, vault, monkeypatch, rebuild, after=True)
        with pytest.raises(VaultError, match="restored or rebuilt meanwhile"):
            vault.forget(users=["ann"], search=True)
        assert not vault.certificate(users=["ann"]).searched


def test_people_who_are_readmitted_meanwhile_are_no_damage(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:

        def readmit(other: Vault) -> None:
            other.readmit(users=["ann"])
            row = {"action": ["A"], "reward": [1], "who": ["ann"], "id": ["r9"]}
            other.ingest(row, user="who", id="id")

        others_act(place, vault, monkeypatch, readmit)
        done = vault.forget(users=["ann"], search=True)
        assert "others have readmitted people" in str(done.not_searched_because)


def test_a_key_that_is_compromised_during_the_search_signs_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:
        others_act(place, vault, monkeypatch, lambda other: other.rotate_signing_key(compromised_since=1))
        with pytest.raises(UnfinishedError, match="the signing key was compromised meanwhile"):
            vault.forget(users=["ann"], search=True)
        done = vault.forget(users=["ann"], search=True)
        assert done.searched
        assert done.certificate.verify(vault.public_key()) == []


def test_a_key_that_is_rotated_during_the_search_signs_its_last_certificate(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was in use at the head that the certificate names."""
    with filled(place) as vault:
        others_act(place, vault, monkeypatch, lambda other: other.rotate_signing_key())
        done = vault.forget(users=["ann"], search=True)
        assert done.searched
        assert done.certificate.verify(vault.public_keys()) == []
        assert vault.certificate(users=["ann"]).text == done.certificate.text


def test_a_retired_key_does_not_vouch_for_a_search(place: Place) -> None:
    """Whoever holds it could have added that: the ledger does not say what was searched."""
    with filled(place) as vault:
        certificate = vault.forget(users=["ann"], search=True).certificate
        assert not [note for note in certificate.check(vault.public_keys()).notes if "searched" in note]
        vault.rotate_signing_key()
        notes = certificate.check(vault.public_keys()).notes
        assert [note for note in notes if note.startswith("The ledger does not say what was searched")]


@pytest.mark.parametrize("said", ["no", 1, None])
def test_search_is_true_or_false(place: Place, said: Any) -> None:
    with filled(place) as vault, pytest.raises(InvalidInputError, match="search must be True or False"):
        vault.forget(users=["ann"], search=said)


def test_an_export_with_a_withheld_certificate_restores_a_backup(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        digest = vault._connection.all_keys.owner_digest("ann")
        vault.back_up(tmp_path / "backup.db")
    with sqlite_place.path.open("ab") as file:  # behind the pages that the vault is going to take
        file.write(bytes(50 * SIZE) + digest.ljust(SIZE, b"\0"))
    with sqlite_place.open() as vault:
        with pytest.raises(UnfinishedError, match=FOUND):
            vault.forget(users=["ann"], search=True)
        vault.forget(users=["bob"])
        vault.export(tmp_path / "export.json", for_restore=True)
    sqlite_place.path.write_bytes((tmp_path / "backup.db").read_bytes())
    for name in ("-wal", "-shm"):
        sqlite_place.path.with_name(sqlite_place.path.name + name).unlink(missing_ok=True)
    Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)
    with sqlite_place.open() as vault:
        assert vault.verify().problems == ()
        for name in ("ann", "bob"):
            assert vault.forget(users=[name], search=True).searched


def test_a_damaged_index_of_the_list_is_no_readmission(sqlite_place: Place) -> None:
    """The list does not find the person; that nobody was readmitted is in the ledger."""
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        database = vault._connection.database
        digest = vault._connection.all_keys.owner_digest("ann")
        assert isinstance(database, SqliteDatabase)
        assert database.search_for([digest], {}).found
        target = ErasureTarget.of(["ann"], None)
        change(vault, "DELETE FROM suppressed")
        found = search_vault(
            vault._connection, target, vault._connection.all_keys, vault.status().head, erased=True
        )
        assert found == SearchOutcome(True)


def test_a_digest_key_that_is_rotated_meanwhile_is_no_damage(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:
        others_act(place, vault, monkeypatch, lambda other: other.rotate_digest_key())
        done = vault.forget(users=["ann"], search=True)
        assert done.searched or "rotated a key" in str(done.not_searched_because)
        assert vault.forget(users=["ann"], search=True).searched


def test_a_certificate_that_could_not_be_withheld_is_not_said_to_be(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = damaged(sqlite_place)
    monkeypatch.setattr(
        certificates, "_withhold", raising(VaultError("the disk is full; nothing was changed"))
    )
    with (
        sqlite_place.open() as vault,
        pytest.raises(UnfinishedError, match=r"could not be withheld \(the disk is full\)"),
    ):
        vault.forget(users=[person], search=True)


def test_a_rebuild_does_not_release_what_is_withheld(sqlite_place: Place) -> None:
    """It removes a row of somebody else, and all certificates are drafted again."""
    with filled(sqlite_place) as vault:
        keys = vault._connection.all_keys
        (row,) = values(vault, "SELECT * FROM record WHERE owner = ?", keys.owner_digest("bob"))
        vault.forget(users=["bob"])
    with sqlite_place.path.open("ab") as file:  # behind the pages that the vault is going to take
        file.write(bytes(50 * SIZE) + keys.owner_digest("ann").ljust(SIZE, b"\0"))
    with sqlite_place.open() as vault:
        with pytest.raises(UnfinishedError, match=FOUND):
            vault.forget(users=["ann"], search=True)
        change(vault, f"INSERT INTO record VALUES ({', '.join('?' * len(row))})", *row)
        vault.rebuild()
        with pytest.raises(VaultError, match="is withheld"):
            vault.certificate(users=["ann"])
        assert [note for note in vault.verify().notes if note.startswith("1 certificate is withheld")]


def test_a_certificate_that_was_signed_before_it_is_withheld_is_not_stored(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        entry = vault.status().head.sequence
        signed = certificates._issue(vault._connection, entry).certificate
        certificates._withhold(vault._connection, entry)
        with pytest.raises(VaultError, match="was withheld meanwhile"):
            certificates.store_certificate(vault._connection, signed)


def test_an_error_of_the_disk_after_the_commit_leaves_erasure_pending(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        monkeypatch.setattr(SqliteErasure, "is_done", raising(sqlite3.OperationalError("disk I/O error")))
        monkeypatch.setattr(SqliteErasure, "leave_nothing", lambda *_: False)
        with pytest.warns(UserWarning, match="all changes are committed"):
            done = vault.forget(users=["ann"])
        assert done.erasure == "pending"
        assert "disk I/O error" in str(done.pending_because)


def test_a_rotation_that_is_held_up_says_that_the_key_is_in_use(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = VaultBusyError("the vault 'v' is in use by another process; nothing was changed, try again")
    with filled(place) as vault:
        with monkeypatch.context() as patched:
            patched.setattr(rotate, "_rotate_records", raising(busy))
            with pytest.raises(
                UnfinishedError, match="the new digest key is in use, but not for all"
            ) as caught:
                vault.rotate_digest_key()
        assert "nothing was changed" not in str(caught.value)
        assert vault.rotate_digest_key().version == 2
        assert vault.verify().problems == ()


def test_a_hash_tree_that_is_gone_is_told(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
        change(vault, "DELETE FROM tree")
        with pytest.raises(VaultError, match="changed by something other than armnesia"):
            vault.certificate(users=["ann"])
