"""A signing key was stolen: what it signed since is refused, counted, and issued again with the new key."""

import json
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import Certificate, Keyring, LedgerCopy, Vault
from tests.databases import Place
from tests.vault.forging import sign_again
from tests.vault.raw_vaults import Snapshot, change, filled


def exported(vault: Vault, folder: Path) -> tuple[LedgerCopy, dict[int, Certificate]]:
    """The ledger and the certificates of an auditor's export."""
    vault.export(folder / "export.json")
    rows = json.loads((folder / "export.json").read_text(encoding="utf-8"))["certificates"]
    found = {row["sequence"]: Certificate(row["body"], bytes.fromhex(row["signature"])) for row in rows}
    return LedgerCopy.read(folder / "export.json"), found


def version_of(certificate: Certificate) -> int:
    return int(certificate.body["signing_key"]["version"])


def must_be_reissued(version: int, since: int) -> str:
    return (
        f"key {version} was compromised: certificates that it signed since entry {since} must be issued"
        " again; ask the operator for it (armnesia certificate show)"
    )


def test_what_was_signed_since_is_refused_and_issued_again(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        before = vault.forget(users=["ann"]).certificate  # entry 2
        shown_later = [vault.forget(users=["bob"]).certificate]  # entry 3
        after = vault.forget(users=["cem"]).certificate  # entry 4
        shown_later.append(vault.certificate(users=["bob"]))  # stored, issued at entry 4
        assert vault.status().to_reissue == 0
        vault.rotate_signing_key(compromised_since=4)
        assert vault.ledger()[-1].fields["compromised_since"] == 4
        keys = vault.public_keys()
        assert [key.compromised_since for key in keys.keys] == [4, None]
        assert vault.status().to_reissue == 2
        assert vault.verify().problems == ()
        (note,) = vault.verify().notes
        assert note.startswith("2 certificates signed with a compromised key, of ledger entries 3, 4: ")

        ledger, certificates = exported(vault, tmp_path)
        for certificate in (before, shown_later[0]):
            assert certificate.verify(keys, ledger=ledger) == []
            (problem,) = certificate.verify(keys)  # a thief could have named that entry
            assert problem.endswith("that this one was signed before can be checked with the ledger only")
        for certificate in (shown_later[1], after):
            for given in (keys, list(keys)):
                assert certificate.verify(given, ledger=ledger) == [must_be_reissued(1, 4)]
            assert certificate.verify(keys) == [must_be_reissued(1, 4)]
        assert {number: version_of(one) for number, one in certificates.items()} == {2: 2, 3: 2, 4: 2}
        assert vault.status().to_reissue == 2  # an export hands out no certificate to a person

        for left, name in ((1, "cem"), (0, "bob"), (0, "ann")):
            again = vault.certificate(users=[name])
            assert version_of(again) == 2
            assert again.opening is not None
            assert again.verify(keys, ledger=ledger) == again.verify(keys) == []
            assert vault.status().to_reissue == left
        assert vault.forget(users=["cem"]).certificate == vault.certificate(users=["cem"])
        assert vault.verify().notes == ()


def test_finish_issues_again_what_a_stolen_key_signed(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        for name in ("ann", "bob", "cem"):
            vault.forget(users=[name])
            vault.certificate(users=[name])
        vault.compact()
        assert vault.finish().reissued == ((2, 3, 4) if "postgresql" in place.url else ())
        vault.rotate_signing_key(compromised_since=vault.head.sequence)
        assert vault.status().to_reissue == (3 if "postgresql" in place.url else 1)
        done = vault.finish()
        assert done.complete
        assert vault.status().to_reissue == 0
        assert vault.finish().reissued == ()
        ledger, certificates = exported(vault, tmp_path)
        for certificate in certificates.values():
            assert certificate.verify(vault.public_keys(), ledger=ledger) == []
        assert version_of(certificates[4]) == 2
        assert vault.verify().holds


def test_a_compromise_reaches_back_over_earlier_rotations(place: Place, tmp_path: Path) -> None:
    """The whole key file was stolen at entry 2, and two rotations later that is noticed."""
    with filled(place) as vault:
        signed = [vault.forget(users=["ann"]).certificate]  # entry 2, key 1
        vault.rotate_signing_key()
        signed.append(vault.forget(users=["bob"]).certificate)  # entry 4, key 2
        vault.rotate_signing_key(compromised_since=4)
        signed.append(vault.forget(users=["cem"]).certificate)  # entry 6, key 3
        ledger, _ = exported(vault, tmp_path)
        refused = [bool(one.verify(vault.public_keys(), ledger=ledger)) for one in signed]
        assert refused == [False, True, False]
        assert vault.status().to_reissue == 1
        vault.rotate_signing_key(compromised_since=2)
        assert [key.compromised_since for key in vault.public_keys().keys] == [2, 2, 2, None]
        assert vault.status().to_reissue == 3
        ledger, certificates = exported(vault, tmp_path)
        for one in signed:
            assert one.verify(vault.public_keys(), ledger=ledger) != []
        assert [version_of(one) for one in certificates.values()] == [4, 4, 4]
        for name in ("ann", "bob", "cem"):
            assert vault.certificate(users=[name]).verify(vault.public_keys(), ledger=ledger) == []
        assert vault.status().to_reissue == 0
        vault.rotate_signing_key()
        assert vault.status().to_reissue == 0
        assert vault.verify().holds


@pytest.mark.parametrize("since", [0, -1, 4, True, 2.0, "2"])
def test_what_is_no_entry_of_the_ledger_is_refused_before_a_key_is_made(
    sqlite_place: Place, since: Any
) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        vault.forget(users=["bob"])
        before = Path(sqlite_place.keys).read_bytes()
        with pytest.raises(InvalidInputError, match=r"must be the number of a ledger entry, 1 to 3; got"):
            vault.rotate_signing_key(compromised_since=since)
        assert Path(sqlite_place.keys).read_bytes() == before
        assert len(vault.ledger()) == 3


def test_a_thief_who_can_also_write_the_table_gets_nothing_signed_again(place: Place) -> None:
    """A stored certificate of a compromised key is not handed out, and its words are not signed again."""
    with filled(place) as vault:
        vault.forget(users=["ann"])
        honest = vault.certificate(users=["ann"])
        stolen = Keyring.read(place.keys)
        statement = "UPDATE certificate SET body = ?, signature = ? WHERE sequence = 2"
        changed = sign_again(honest, stolen, claims={**honest.body["claims"], "forgotten": "everything"})
        change(vault, statement, changed.text, changed.signature)
        assert vault.verify().problems == (
            "certificate 2: the certificate's words are not those that its ledger entry fixes",
        )
        with pytest.raises(VaultError, match="certificate 2 was changed"):
            vault.certificate(users=["ann"])
        dated = sign_again(honest, stolen, issued="2020-01-01T00:00:00.000000Z")
        change(vault, statement, dated.text, dated.signature)
        vault.rotate_signing_key(compromised_since=1)
        again = vault.certificate(users=["ann"])
        assert version_of(again) == 2
        assert again.body["issued"] > "2026"
        assert again.body["claims"] == honest.body["claims"]


def test_a_restored_vault_keeps_words_keys_and_the_count(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        copy = Snapshot(place, vault, tmp_path)
        vault.forget(users=["bob"])
        vault.rotate_signing_key(compromised_since=3)
        expected = vault.public_keys().keys
        words = vault.certificate(users=["bob"]).body["claims"]
        vault.export(tmp_path / "restore.json", for_restore=True)
    copy.put_back()
    Vault.restore(place.url, tmp_path / "restore.json", keys=place.keys)
    with place.open() as vault:
        assert vault.public_keys().keys == expected
        assert vault.status().to_reissue == 1  # a draft again: that it was issued again is not in the ledger
        found = vault.certificate(users=["bob"])
        assert (found.body["claims"], version_of(found)) == (words, 2)
        ledger, _ = exported(vault, tmp_path)
        assert found.verify(vault.public_keys(), ledger=ledger) == []
        assert vault.status().to_reissue == 0
        assert vault.verify().holds


def test_words_that_the_entry_does_not_fix_are_not_restored(sqlite_place: Place, tmp_path: Path) -> None:
    """The words come from the export, which may have been written by a version with other words."""
    with filled(sqlite_place) as vault:
        copy = Snapshot(sqlite_place, vault, tmp_path)
        vault.forget(users=["ann"])
        vault.export(tmp_path / "restore.json", for_restore=True)
        ring = vault._connection.all_keys
    document = json.loads((tmp_path / "restore.json").read_text(encoding="utf-8"))
    document["certificates"][0]["body"]["proves"] = "that no copy exists"
    text = json.dumps(
        {name: part for name, part in document.items() if name != "seal"},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    document["seal"] = ring.seal(text).hex()
    (tmp_path / "restore.json").write_text(json.dumps(document), encoding="utf-8")
    copy.put_back()
    with pytest.raises(VaultError, match="certificate 2: the certificate's words are not those"):
        Vault.restore(sqlite_place.url, tmp_path / "restore.json", keys=sqlite_place.keys)
