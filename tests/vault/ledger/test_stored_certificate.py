"""Certificates as the vault stores them: drafts under the digest key in use, signed when handed out."""

import json
from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Keyring, Vault
from armnesia.vault.keys import signatures
from armnesia.vault.ledger.certificate import CertificateDraft
from tests.databases import Place
from tests.vault.raw_vaults import change, filled, values


def stored(vault: Vault, sequence: int = 2) -> tuple[str, bytes]:
    ((body, signature),) = values(
        vault, f"SELECT body, signature FROM certificate WHERE sequence = {sequence}"
    )
    return body, bytes(signature)


def forged_with(ring: Keyring, vault: Vault) -> None:
    """Put a draft that claims something else in the place of a certificate, sealed with these keys."""
    body = json.loads(stored(vault)[0])
    for name in ("issued", "signing_key"):
        body.pop(name, None)
    body["claims"]["forgotten"], body["not_covered"] = "everything, everywhere", []
    body["erasure"].pop("state", None)
    draft = CertificateDraft(body)
    change(
        vault,
        "UPDATE certificate SET body = ?, signature = ? WHERE sequence = 2",
        draft.text,
        ring.seal(draft.text),
    )


def test_a_forget_signs_once_and_stores_a_draft(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    signed: list[bytes] = []
    sign = signatures.sign

    def counting(data: bytes, seed: bytes) -> bytes:
        signed.append(data)
        return sign(data, seed)

    monkeypatch.setattr(signatures, "sign", counting)
    with filled(place) as vault:
        done = vault.forget(users=["ann"])
        assert len(signed) == 1
        body, seal = stored(vault)
        assert "signing_key" not in json.loads(body)
        assert len(seal) == 32
        assert done.certificate.verify(vault.public_keys()) == []
        assert vault.certificate(users=["ann"]).verify(vault.public_keys()) == []
        assert len(stored(vault)[1]) == 64
        assert vault.verify().holds


def test_a_digest_key_that_was_rotated_out_forges_nothing(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        old = vault._connection.all_keys
        vault.rotate_digest_key()
        assert vault.verify().holds  # the drafts are sealed again
        assert vault.certificate(users=["ann"]).verify(vault.public_keys()) == []
        forged_with(old, vault)
        assert any("seal does not match" in problem for problem in vault.verify().problems)
        with pytest.raises(VaultError, match="certificate 2 was changed by something other than armnesia"):
            vault.certificate(users=["ann"])


def test_a_changed_draft_stops_the_rotation_that_would_seal_it_again(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        change(vault, "UPDATE certificate SET body = replace(body, 'claims', 'Claims') WHERE sequence = 2")
        with pytest.raises(VaultError, match="certificate 2: its seal does not match"):
            vault.rotate_digest_key()


@pytest.mark.parametrize(
    "body",
    [
        '{"entry":{"salt_key":1e999},"sequence":2}',
        '{"sequence":2}',
        "[]",
        "{",
        '{"entry":[],"sequence":2,"signing_key":{}}',
    ],
)
def test_nonsense_in_the_table_is_a_problem_not_a_crash(place: Place, body: str) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        change(vault, "UPDATE certificate SET body = ? WHERE sequence = 2", body)
        assert any(problem.startswith("certificate 2: ") for problem in vault.verify().problems)
        with pytest.raises(VaultError, match="certificate 2"):
            vault.certificate(users=["ann"])


def test_a_repeated_request_pins_the_head(place: Place) -> None:
    """As after a crash between the commit and the writing of the pin."""
    with filled(place) as vault:
        before = Path(f"{place.keys}.head").read_bytes()
        vault.forget(users=["ann"])
        Path(f"{place.keys}.head").write_bytes(before)
        assert vault.forget(users=["ann"]).repeated
        assert vault._connection.pinned_head.read() == vault.head


def test_people_are_in_the_column_of_before(place: Place) -> None:
    log = {"action": ["A", "B"], "reward": [1, 0], "customer": ["ann", "bob"], "user": ["web", "app"]}
    with place.create() as vault:
        vault.ingest(log | {"id": ["r1", "r2"]}, user="customer", id="id")
        vault.forget(users=["ann"])
        more = log | {"id": ["r3", "r4"]}
        assert vault.ingest(more).suppressed == 1  # by the columns of before
