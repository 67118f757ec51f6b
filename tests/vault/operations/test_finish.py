"""Pending erasures are completed together, and their certificates signed again."""

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import Certificate, Vault
from armnesia.vault.ledger import commitments
from armnesia.vault.operations import finish
from tests.databases import Place
from tests.vault.raw_vaults import change, dumped, filled, reader_of, values

NAMES = [f"stranger-{number}" for number in range(7)]


def states(vault: Vault) -> dict[int, str]:
    """What the stored certificates say of erasure: "draft" if they are not signed yet."""
    found = {}
    for sequence, body in values(vault, "SELECT sequence, body FROM certificate ORDER BY sequence"):
        pending, complete = ('"state":"pending"' in body), ('"state":"complete"' in body)
        found[sequence] = "pending" if pending else "complete" if complete else "draft"
    return found


def forgotten(vault: Vault, place: Place) -> Vault:
    """Entries 2 to 9 with erasure pending; one of the certificates was signed so, and stored."""
    with reader_of(place):
        assert vault.forget(users=["ann"]).erasure == "pending"
        for name in NAMES:
            assert vault.forget(users=[name]).erasure == "pending"
        assert vault.certificate(users=[NAMES[0]]).erasure == "pending"
    assert states(vault) == {3: "pending"} | dict.fromkeys((2, *range(4, 10)), "draft")
    return vault


@pytest.fixture
def vault(place: Place) -> Iterator[Vault]:
    with filled(place) as opened:
        yield forgotten(opened, place)


def erased(vault: Vault, place: Place) -> None:
    """On PostgreSQL deleted bytes leave the files by `compact` only."""
    if "sqlite" not in place.url:
        assert vault.compact().complete


def test_all_that_is_pending_is_completed_in_one_call(
    vault: Vault, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "_AT_ONCE", 3)
    erased(vault, place)
    counted: list[int] = []
    before = vault.head
    done = vault.finish(progress=counted.append)
    assert done.to_dict() == {
        "erasure": "complete",
        "reissued": [2, 3, 4, 5, 6, 7, 8, 9],
        "pending": 0,
        "pending_because": None,
        "head": str(before),
        "folder": None,
        "withheld": [],
    }
    assert done.complete
    assert counted == [3, 6, 8]  # in transactions of three
    assert states(vault) == dict.fromkeys(range(2, 10), "complete")
    for name in ("ann", NAMES[0], NAMES[6]):
        certificate = vault.certificate(users=[name])
        assert certificate.erasure == "complete"
        assert certificate.verify(vault.public_keys()) == []
    assert vault.verify().problems == ()
    assert vault.status().erasure == "complete"
    with place.open() as another:  # the vault itself knows it, not only this process
        assert another._state().erased_through == 9


def test_what_is_complete_is_not_signed_again(vault: Vault, place: Place) -> None:
    erased(vault, place)
    assert len(vault.finish().reissued) == 8
    before = dumped(vault)
    again = vault.finish()
    assert (again.erasure, again.reissued, again.pending) == ("complete", (), 0)
    assert dumped(vault) == before


def test_a_vault_without_certificates_is_finished(place: Place) -> None:
    with filled(place) as vault:
        done = vault.finish()
        assert (done.erasure, done.reissued, done.pending) == ("complete", (), 0)


def test_drafts_that_a_later_checkpoint_completed_are_signed_too(sqlite_place: Place) -> None:
    """Their certificates were handed out with erasure pending, which the vault does not store."""
    with forgotten(filled(sqlite_place), sqlite_place) as vault:
        assert vault.forget(users=["bob"]).erasure == "complete"
        vault.change_policy(beyond="rollback")
        assert vault._state().erased_through == 10
        assert vault.finish().reissued == tuple(range(2, 11))


def test_certificates_of_earlier_entries_are_left_as_they_are(vault: Vault, place: Place) -> None:
    erased(vault, place)
    assert vault.finish(since=8).reissued == (8, 9)
    assert states(vault)[7] == "draft"
    assert vault.finish(since=3).reissued == (3, 4, 5, 6, 7)


@pytest.mark.parametrize("since", [0, -1, True, "2", 2.0])
def test_an_entry_that_cannot_be_is_refused(sqlite_place: Place, since: Any) -> None:
    with (
        filled(sqlite_place) as vault,
        pytest.raises(InvalidInputError, match="since must be the number of a ledger entry, 1 or more; got"),
    ):
        vault.finish(since=since)


def test_a_reader_is_waited_for_and_then_reported(sqlite_place: Place) -> None:
    forgotten(filled(sqlite_place), sqlite_place).close()
    with sqlite_place.open(timeout=0.3) as vault:
        with reader_of(sqlite_place):
            start = time.monotonic()
            vault.forget(users=["bob"])
            done = vault.finish()
            assert time.monotonic() - start > 0.3
            assert (done.erasure, done.reissued, done.pending) == ("pending", (), 9)
            assert done.pending_because == "another process was using the vault"
        assert states(vault)[2] == "draft"
        done = vault.finish()
        assert (len(done.reissued), done.pending_because) == (9, None)


def test_postgresql_says_that_compact_is_needed(postgres_place: Place) -> None:
    with forgotten(filled(postgres_place), postgres_place) as vault:
        assert vault.compact().complete
        vault.forget(users=["bob"])
        done = vault.finish()  # what compact has erased is signed; the last one has to wait
        assert (done.erasure, done.reissued, done.pending) == ("pending", tuple(range(2, 10)), 1)
        assert done.pending_because == (
            "PostgreSQL keeps deleted rows in its files until armnesia compact is run"
        )
        assert vault.certificate(users=["ann"]).erasure == "complete"
        assert vault.certificate(users=["bob"]).erasure == "pending"
        assert vault.compact().complete
        assert vault.finish().to_dict() | {"head": ""} == {
            "erasure": "complete",
            "reissued": [10],
            "pending": 0,
            "pending_because": None,
            "head": "",
            "folder": None,
            "withheld": [],
        }


def test_certificates_are_signed_with_the_key_in_use(vault: Vault, place: Place) -> None:
    vault.rotate_signing_key()
    vault.rotate_digest_key()  # seals the drafts again
    erased(vault, place)
    assert len(vault.finish().reissued) == 8
    assert {vault.certificate_of_entry(n).body["signing_key"]["version"] for n in (2, 3, 9)} == {2}
    assert vault.verify().problems == ()


def test_a_changed_certificate_is_refused_and_nothing_is_signed(vault: Vault, place: Place) -> None:
    erased(vault, place)
    change(vault, "UPDATE certificate SET signature = ? WHERE sequence = 5", bytes(32))
    before = states(vault)
    with pytest.raises(VaultError, match="certificate 5 was changed by something other than armnesia"):
        vault.finish()
    assert states(vault) == before


# The certificates of many people.


def test_every_person_of_a_request_has_a_certificate_of_their_own(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["bob"])
        vault.forget(users=["ann", "bob", "cem", "nobody", 'é,\n"'], exactly=True)
        vault.forget(records=["r5", "r6"])
        names = ["nobody", "ann", "stranger", "cem", "bob", 'é,\n"']
        found = dict(vault.certificates(users=names))
        assert found.keys() == set(names)
        assert found.pop("stranger") is None
        for name, certificate in found.items():
            assert isinstance(certificate, Certificate)
            assert certificate.verify(vault.public_keys()) == []
            assert certificate.opening is not None
            assert certificate.opening["request"]["users"] == [name]
            assert certificate.to_dict() == vault.certificate(users=[name]).to_dict()
            assert certificate.body["sequence"] == (2 if name == "bob" else 3)  # bob was forgotten before
            others = set(names) - {name}
            assert not any(other in certificate.to_json() for other in others - {"nobody", "bob"})
        of_records = dict(vault.certificates(records=["r6", "r5"]))
        assert [c.opening["request"]["records"] for c in of_records.values() if c and c.opening] == [
            ["r5"],
            ["r6"],
        ]


def test_certificates_are_saved_in_a_new_folder(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        with reader_of(sqlite_place):
            vault.forget(users=["ann", "nobody"])
            done = vault.save_certificates(tmp_path / "new", users=["ann", "stranger", "nobody"])
        assert (done.written, done.pending, done.missing) == (2, 2, 1)
        assert done.folder == tmp_path / "new"
        with done.index.open(encoding="utf-8", newline="") as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
        assert {name: row["held"] for name, row in rows.items()} == {
            "ann": "yes",
            "nobody": "no",
            "stranger": "",
        }
        for name in ("ann", "nobody"):
            saved = Certificate.read(done.folder / rows[name]["file"])
            assert saved.opening is not None
            assert saved.opening["request"]["users"] == [name]
            assert saved.verify(vault.public_keys()) == []
        with pytest.raises(InvalidInputError, match="the folder must be a new one"):
            vault.save_certificates(done.folder, users=["ann"])


def test_certificates_that_finish_signs_are_saved(vault: Vault, place: Place, tmp_path: Path) -> None:
    erased(vault, place)
    folder = tmp_path / "signed"
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="the folder must be a new one"):
        vault.finish(folder=tmp_path)
    assert "complete" not in states(vault).values()
    done = vault.finish(since=8, folder=str(folder))
    assert (done.reissued, done.folder) == ((8, 9), folder)
    files = [folder / f"entry-{entry:06}.json" for entry in done.reissued]
    assert sorted(folder.iterdir()) == files
    for entry, file in zip(done.reissued, files, strict=True):
        assert Certificate.read(file).to_dict() == vault.certificate_of_entry(entry).to_dict()
        assert Certificate.read(file).opening is None


def test_names_are_checked_before_anything_is_read(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        wrong: dict[str, Any]
        for wrong in (
            {},
            {"users": []},
            {"users": ["ann"], "records": ["r1"]},
            {"users": [""]},
            {"users": "ann"},
        ):
            with pytest.raises(InvalidInputError):
                vault.certificates(**wrong)
            with pytest.raises(InvalidInputError):
                vault.save_certificates(tmp_path / "new", **wrong)
        assert not (tmp_path / "new").exists()


def test_the_hash_tree_is_made_once_for_a_whole_request(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the certificates of n people would take n² hashes."""
    names = [f"stranger-{number}" for number in range(64)]
    with filled(sqlite_place) as vault:
        vault.forget(users=names)
        joined = 0
        one = commitments._joined

        def counted(left: str, right: str) -> str:
            nonlocal joined
            joined += 1
            return one(left, right)

        monkeypatch.setattr(commitments, "_joined", counted)
        assert len(list(vault.certificates(users=names))) == 64
        assert joined == 63 + 64 * 6  # the tree, and for each certificate the check of its path
