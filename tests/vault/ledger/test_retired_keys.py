"""Somebody holds a signing key that was retired or stolen: what he signs is not valid against the ledger."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import Head, Keyring, LedgerCopy, PublicKeys, Vault
from armnesia.vault.ledger.certificate import CertificateDraft
from armnesia.vault.ledger.certificate_check import HEAD_ALONE, INTEGRITY_ONLY, KEYS_WITHOUT_RANGES
from armnesia.vault.ledger.ledger import Entry
from tests.databases import Place
from tests.vault.forging import about_another_entry, sign_again, terms_of
from tests.vault.raw_vaults import change, filled, reader_of

LATER = "2027-06-01T12:00:00.000000Z"


def copy_of(vault: Vault, folder: Path) -> LedgerCopy:
    vault.export(folder / "export.json")
    return LedgerCopy.read(folder / "export.json")


def keys_of(place: Place) -> Keyring:
    return Keyring.read(place.keys)


@pytest.fixture
def rotated(sqlite_place: Place) -> Iterator[Vault]:
    """A vault whose first key is retired: ann forgotten by it (entry 2), bob by the next one (entry 4)."""
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        vault.rotate_signing_key()
        vault.forget(users=["bob"])
        yield vault


def test_honest_certificates_of_all_keys_are_valid(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        first = vault.forget(users=["ann"]).certificate
        vault.rotate_signing_key()
        second = vault.forget(users=["bob"]).certificate
        stored = vault.certificate(users=["ann"])
        vault.rotate_signing_key()
        third = vault.forget(users=["cem"]).certificate
        ledger, keys, head = copy_of(vault, tmp_path), vault.public_keys(), vault.head
        assert [(key.first_entry, key.last_entry) for key in keys.keys] == [(1, 2), (3, 4), (5, None)]
        for certificate in (first, second, stored, third):
            for given in (keys, list(keys)):
                assert certificate.verify(given) == []
                assert certificate.check(given, ledger=ledger).problems == ()
                assert certificate.check(given, ledger=ledger).notes == ()
                assert certificate.verify(given, ledger=ledger, head=head) == []
                assert certificate.verify(given, head=head) == []
        assert stored.body["signing_key"]["version"] == 2  # signed again, at a later entry


@pytest.mark.parametrize("issued", ["2020-01-01T00:00:00.000000Z", "now", LATER])
def test_an_invented_entry_is_not_valid_with_any_date(rotated: Vault, tmp_path: Path, issued: str) -> None:
    """Whatever entry, head of issue and date he names: the ledger does not have that entry."""
    stolen, ledger, keys = rotated._connection.all_keys, copy_of(rotated, tmp_path), rotated.public_keys()
    honest = rotated.certificate(users=["bob"])
    date = honest.body["issued"] if issued == "now" else issued
    heads = [Head(number, hash_) for number, hash_ in enumerate(ledger.hashes, 1)]
    for sequence in (2, 3, 4, 5):
        for at in [None, *(str(head) for head in heads if head.sequence > sequence)]:
            invented = about_another_entry(honest, stolen, sequence=sequence, released="A", issued_at=at)
            forged = sign_again(invented, stolen, issued=date)
            assert forged.verify(None) == []  # nothing in the file gives it away
            for given in (keys, list(keys)):
                for head in (None, rotated.head):
                    assert forged.verify(given, ledger=ledger, head=head) != []


def test_a_certificate_after_the_rotation_is_not_valid_even_without_the_ledger(rotated: Vault) -> None:
    """This passed before keys had ranges: the retired key is in the list, and the list was all there was."""
    stolen = rotated._connection.all_keys
    forged = sign_again(rotated.certificate(users=["bob"]), stolen)
    assert forged.verify(rotated.public_keys()) == [
        "the certificate was issued at entry 4 of the ledger, but its key 1 signed from entry 1 to entry 2"
    ]


def test_a_date_after_the_rotation_is_not_valid_even_without_the_ledger(rotated: Vault) -> None:
    first = sign_again(rotated.certificate(users=["ann"]), rotated._connection.all_keys)
    entry = rotated.ledger()[1]
    within: dict[str, Any] = {"issued_at_head": str(entry.head)}
    stolen, keys = rotated._connection.all_keys, rotated.public_keys()
    assert sign_again(first, stolen, **within).verify(keys) == []
    (problem,) = sign_again(first, stolen, **within, issued=LATER).verify(keys)
    assert problem.startswith(f"the certificate is dated {LATER}, but its key 1 was retired at 20")
    (problem,) = sign_again(first, stolen, **within, issued="soon").verify(keys)
    assert problem == "the certificate has no valid date: 'soon'"
    invented = about_another_entry(first, stolen, time=LATER)
    (problem,) = invented.verify(keys)
    assert problem.startswith(f"the certificate's entry is dated {LATER}, but its key 1 was retired")


def test_the_words_of_an_entry_cannot_be_changed_by_any_key(rotated: Vault) -> None:
    """Not even by the key in use, and not even where nothing but the file is checked."""
    stolen = rotated._connection.all_keys
    honest = rotated.certificate(users=["bob"])
    body = honest.body
    changes: dict[str, Any]
    for changes in (
        {"claims": {**body["claims"], "guarantee": "everything, everywhere"}},
        {"claims": {**body["claims"], "more": "and all backups"}},
        {"not_covered": []},
        {"proves": "that no copy exists"},
        {"erasure": {"state": "complete", "covers": "all files of the company"}},
    ):
        problems = sign_again(honest, stolen, version=2, **changes).verify(None)
        assert problems == ["the certificate's words are not those that its ledger entry fixes"]
    for changes, problem in (
        ({"remark": "also the backups"}, "the certificate must not have remark"),
        (
            {"erasure": {**body["erasure"], "backups": "complete"}},
            "the certificate must not have erasure.backups",
        ),
        ({"issued": ...}, "the certificate lacks issued"),
        ({"issued_at_head": ...}, "the certificate lacks issued_at_head"),
    ):
        assert sign_again(honest, stolen, version=2, **changes).verify(None) == [problem]


@pytest.mark.parametrize(
    "at", [None, 5, "", "4", "4:ab", f" 4:{'ab' * 32}", f"3:{'ab' * 32}", f"4:{'ab' * 32}", f"04:{'ab' * 32}"]
)
def test_a_head_of_issue_that_cannot_be_is_found_in_the_file(rotated: Vault, at: Any) -> None:
    honest = rotated.certificate(users=["bob"])
    (problem,) = sign_again(honest, rotated._connection.all_keys, version=2, issued_at_head=at).verify(None)
    assert problem.startswith("the certificate's issued_at_head")


def test_an_issue_at_a_head_that_never_was_is_found_with_the_ledger(rotated: Vault, tmp_path: Path) -> None:
    stolen, keys = rotated._connection.all_keys, rotated.public_keys()
    rotated.change_policy(max_epsilon=1.0)
    ledger = copy_of(rotated, tmp_path)
    forged = sign_again(
        rotated.certificate(users=["bob"]), stolen, version=2, issued_at_head=f"5:{'ab' * 32}"
    )
    assert forged.verify(keys) == []
    assert forged.verify(keys, ledger=ledger) == [
        "entry 5, which the certificate was issued at, is not that of the ledger given"
    ]


def test_a_retired_key_cannot_complete_an_erasure_that_was_pending(
    sqlite_place: Place, tmp_path: Path
) -> None:
    with filled(sqlite_place) as vault:
        with reader_of(sqlite_place):
            pending = vault.forget(users=["ann"]).certificate
            assert pending.erasure == "pending"
            vault.rotate_signing_key()
        assert vault.public_keys().keys[0].erased_through == 0
        ledger, stolen = copy_of(vault, tmp_path), keys_of(sqlite_place)
        complete = {**pending.body["erasure"], "state": "complete"}
        forged = sign_again(pending, stolen, erasure=complete)
        refusal = [
            "the certificate says that erasure is complete, but when its key 1 was retired, it was complete"
            " up to entry 0 only"
        ]
        assert forged.verify(vault.public_keys()) == forged.verify([*vault.public_keys()], ledger=ledger)
        assert forged.verify(vault.public_keys(), ledger=ledger) == refusal
        assert pending.verify(vault.public_keys(), ledger=ledger) == []
        again = vault.certificate(users=["ann"])  # the reader is gone, and the key in use may say it
        assert (again.erasure, again.body["signing_key"]["version"]) == ("complete", 2)
        assert again.verify(vault.public_keys(), ledger=ledger) == []


def ledger_of(*entries: Entry) -> LedgerCopy:
    return LedgerCopy.of([(entry.sequence, entry.text, entry.hash) for entry in entries])


def following(before: Entry, **fields: Any) -> Entry:
    """An entry with these fields that follows another one."""
    return Entry({**fields, "sequence": before.sequence + 1, "previous": before.hash})


def test_a_ledger_made_with_a_retired_key_is_not_taken_for_the_true_one(rotated: Vault) -> None:
    """He invents a ledger that leads to the present key, as far as he can sign it."""
    true, keys = rotated.ledger(), rotated.public_keys()
    stolen = rotated._connection.all_keys.at(digest_version=1, signing_version=1)
    facts = {**true[1].fields, "kind": "nothing_held", "terms": terms_of("nothing_held", {}, "all files")}
    invented = following(true[0], **facts)
    draft = CertificateDraft.of(invented, "all files")
    forged = draft.issue(stolen, head=invented.head, erasure="pending")
    assert forged.verify(keys) == []

    with pytest.raises(VaultError, match="sequence 3: signed_by_new is not a signature of that key"):
        ledger_of(true[0], invented, following(invented, **true[2].fields))
    unsigned = {name: value for name, value in true[2].fields.items() if name != "signed_by_new"}
    as_of_the_first_release = ledger_of(true[0], invented, following(invented, **unsigned))
    for given in (keys, list(keys)):
        (problem,) = forged.verify(given, ledger=as_of_the_first_release)
        assert "key 1, which is retired, and whoever holds it can make another ledger" in problem
    own = stolen.with_new_signing_key()
    rotation = following(
        invented,
        **unsigned
        | {"public": own.public_key(), "signed_by_previous": stolen.sign(own.public_key().encode()).hex()},
    )
    rotation = Entry({**rotation.fields, "signed_by_new": own.sign(rotation.text.encode()).hex()})
    for ledger in (ledger_of(true[0], invented, rotation), ledger_of(true[0], invented)):
        # By the list, the second could also be an old export of the true ledger.
        old = len(ledger.hashes) == 2
        for given in (keys, list(keys)):
            checked = forged.check(given, ledger=ledger)
            (problem,) = checked.problems
            if old and given is keys:
                assert problem.startswith("the ledger given ends at entry 2, before entry 3, which put key 2")
            else:
                assert problem.startswith(f"the ledger given does not name the public key {keys[1]}")
            assert (checked.valid, checked.decided) == (False, not (old and given is keys))
        # Whoever knows the retired key alone needs a head that was kept elsewhere.
        assert forged.verify(keys[0], ledger=ledger, head=rotated.head) != []
    (problem,) = forged.verify(keys[0], ledger=ledger_of(true[0], invented, rotation))
    assert "can make another ledger" in problem


def test_a_head_alone(rotated: Vault, tmp_path: Path) -> None:
    keys, heads = rotated.public_keys(), [entry.head for entry in rotated.ledger()]
    certificate = rotated.forget(users=["cem"]).certificate
    rotated.change_policy(max_epsilon=1.0)
    stolen = rotated._connection.all_keys
    assert certificate.verify(keys, head=heads[-1]) == [
        "the certificate's entry 5 is later than the head given, which is that of entry 4: get a newer head"
    ]
    own = Head(5, certificate.body["entry_hash"])
    checked = certificate.check(keys, head=own)
    assert checked.valid
    assert HEAD_ALONE in checked.notes
    assert certificate.verify(keys, head=rotated.head) == []
    other = about_another_entry(certificate, stolen, 2, released="A")
    assert other.verify(keys, head=own) == [
        "entry 5, which the certificate is about, is not that of the head given"
    ]
    assert other.verify(keys, head=rotated.head) == []  # what a head alone cannot show
    newer = rotated.public_keys()
    assert certificate.verify(newer, head=newer.head) == []
    assert certificate.verify(newer, head=Head(newer.head.sequence, "ab" * 32)) == [
        "the list of public keys and the head given disagree about entry 6 of the ledger: one of them is of"
        " another ledger"
    ]
    later = sign_again(other, stolen, 2, issued_at_head=f"6:{'ab' * 32}")
    assert later.verify(keys, head=rotated.head) == [
        "entry 6, which the certificate was issued at, is not that of the head given"
    ]
    assert later.verify(keys, ledger=copy_of(rotated, tmp_path)) != []


def test_what_could_not_be_checked_is_said(rotated: Vault) -> None:
    early = rotated.public_keys()
    retired, in_use = (rotated.certificate(users=[name]) for name in ("ann", "bob"))
    retired = sign_again(retired, rotated._connection.all_keys, issued_at_head=str(rotated.ledger()[1].head))
    assert in_use.check(None).notes == (INTEGRITY_ONLY,)
    assert in_use.check(list(early)).notes == (KEYS_WITHOUT_RANGES,)
    assert in_use.check(early).notes == ()
    (note,) = retired.check(early).notes
    assert note.startswith("The certificate is signed with key 1, which is retired.")
    (note,) = rotated.forget(users=["cem"]).certificate.check(early).notes
    assert "issued at entry 5, after the list of public keys was made, at entry 4" in note
    for missing in ({"ledger": ledger_of(*rotated.ledger())}, {"head": rotated.head}):
        with pytest.raises(InvalidInputError, match="together with a public key"):
            in_use.check(None, **missing)


def test_what_belongs_to_another_vault_or_is_too_old_is_refused(
    rotated: Vault, sqlite_place: Place, tmp_path: Path
) -> None:
    keys, certificate = rotated.public_keys(), rotated.certificate(users=["bob"])
    with filled(Place(f"sqlite:///{tmp_path}/other.db", tmp_path / "other.keys")) as other:
        ledger, foreign = ledger_of(*other.ledger()), other.public_keys()
    own = certificate.body["vault"]
    assert certificate.verify(keys, ledger=ledger) == [
        f"the ledger given is that of another vault, {foreign.vault}; it must be that of {own}"
    ]
    renamed = PublicKeys(foreign.vault, keys.head, keys.keys)
    (problem,) = certificate.verify(renamed)
    assert problem.startswith(
        f"the list of public keys is that of another vault, {foreign.vault}; it must be that of {own}"
    )
    assert certificate.verify(keys, ledger=ledger_of(*rotated.ledger()[:3])) == [
        "the ledger given ends at entry 3, before entry 4, which the certificate is about: get a newer export"
    ]
    moved = replace(keys, keys=(replace(keys.keys[0], last_entry=1), replace(keys.keys[1], first_entry=2)))
    assert certificate.verify(moved, ledger=ledger_of(*rotated.ledger())) == [
        "the list of public keys and the ledger given disagree about key 2"
    ]
    rotated.change_policy(max_epsilon=1.0)
    later = sign_again(certificate, keys_of(sqlite_place), 2, issued_at_head=str(rotated.head))
    assert later.verify(keys, ledger=ledger_of(*rotated.ledger())) == []
    assert later.verify(keys, ledger=ledger_of(*rotated.ledger()[:4])) == [
        "the ledger given ends at entry 4, before entry 5, which the certificate was issued at: get a newer"
        " export"
    ]
    wrong = sign_again(certificate, keys_of(sqlite_place), 2)
    wrong = sign_again(
        wrong, keys_of(sqlite_place), 2, signing_key={**wrong.body["signing_key"], "version": 1}
    )
    assert wrong.verify(list(keys)) == []
    assert wrong.verify(keys) == ["the certificate says that its signing key is 1; it is 2"]


def test_a_stored_certificate_outside_the_range_of_its_key_is_a_problem(rotated: Vault) -> None:
    stolen = rotated._connection.all_keys
    honest = rotated.certificate(users=["bob"])
    for forged, problem in (
        (sign_again(honest, stolen), "issued at entry 4 of the ledger, but its key 1 signed from entry 1"),
        (
            sign_again(honest, stolen, 2, issued_at_head=f"5:{'ab' * 32}"),
            "issued at a head that the ledger never had",
        ),
    ):
        statement = "UPDATE certificate SET body = ?, signature = ? WHERE sequence = 4"
        change(rotated, statement, forged.text, forged.signature)
        (found,) = rotated.verify().problems
        assert found.startswith("certificate 4: ")
        assert problem in found
    change(rotated, statement, honest.text, honest.signature)
    assert rotated.verify().holds


def test_a_rotation_whose_signatures_do_not_match_is_a_problem(rotated: Vault) -> None:
    """Without the keys a ledger can be chained anew, but not signed."""
    entries = list(rotated.ledger())
    for name in ("signed_by_previous", "signed_by_new", "erased_through"):
        fields = {**entries[2].fields, name: 1 if name == "erased_through" else "ab" * 64}
        broken = [entries[0], entries[1], Entry(fields)]
        with pytest.raises(VaultError, match="sequence 3: signed_by"):
            ledger_of(*broken)
        change(
            rotated,
            "UPDATE ledger SET entry = ?, hash = ? WHERE sequence = 3",
            broken[2].text,
            broken[2].hash,
        )
        last = following(broken[2], **entries[3].fields)
        change(rotated, "UPDATE ledger SET entry = ?, hash = ? WHERE sequence = 4", last.text, last.hash)
        assert any("sequence 3: signed_by" in problem for problem in rotated.verify().problems)
    rotated._connection.signing_keys = ()
    with pytest.raises(VaultError, match="ledger: sequence 3: signed_by_new is not a signature of that key"):
        rotated.public_keys()
