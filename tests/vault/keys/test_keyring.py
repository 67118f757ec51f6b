"""The keyring: digests, signatures by the standard, and a file that only its owner reads."""

import hashlib
import json
import os
import pickle
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError, MissingExtraError, VaultError
from armnesia.vault.keys import keyring, private_files, signatures
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring

RING = Keyring("v-1", b"1" * 32, (b"a" * 32,))
ROTATED = Keyring("v-1", b"1" * 32, (b"a" * 32, b"b" * 32))
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PARTS = st.lists(TEXT | st.text("0123456789:ab", max_size=6), min_size=2, max_size=4)

# RFC 8032, section 7.1: seed, public key, message, signature.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
]


def identity(parts: list[str]) -> bytes:
    return RING.record_identities(parts[0], *([part] for part in parts[1:]))[0]


def blake(key: bytes, purpose: bytes, data: bytes, size: int = 16) -> bytes:
    return hashlib.blake2b(data, digest_size=size, key=key, person=purpose).digest()


def test_the_same_bytes_for_different_purposes_have_different_digests() -> None:
    text = canonical({"users": ["ann"]})
    digests = {
        RING.owner_digests([text])[0],
        RING.digest(b"case", text),
        RING.record_identities("id", [text])[0],
        RING.seal(text),
    }
    assert len(digests) == 4


@given(PARTS, PARTS)
def test_rows_of_different_parts_have_different_identities(left: list[str], right: list[str]) -> None:
    assert (identity(left) == identity(right)) == (left == right)


@given(PARTS)
def test_an_identity_is_one_keyed_hash(parts: list[str]) -> None:
    encoded = "".join(f"{len(part)}:{part}" for part in parts).encode()
    assert identity(parts) == blake(b"1" * 32, b"record", encoded)


@pytest.mark.parametrize(
    "digest", [lambda text: RING.owner_digests([text])[0], lambda text: identity([text, text]), RING.seal]
)
def test_text_that_utf8_cannot_hold_is_refused_and_not_repeated(digest: Callable[[str], bytes]) -> None:
    with pytest.raises(InvalidInputError, match="an unpaired surrogate") as refusal:
        digest("person-7\ud800")
    assert "person" not in str(refusal.value)


def test_new_keys_are_new_and_old_ones_stay() -> None:
    created = Keyring.create("v-2")
    assert created.digest_key not in created.signing_keys
    assert Keyring.create("v-2") != created
    more = created.with_new_signing_key()
    assert (more.digest_key, more.signing_version) == (created.digest_key, 2)
    assert more.extends(created)
    assert more.at(1) == created
    for version in (0, 3):
        with pytest.raises(VaultError, match=f"signing keys 1 to 2; the vault uses {version}"):
            more.at(version)


def test_a_keyring_does_not_show_its_keys() -> None:
    shown = repr(ROTATED) + str(ROTATED) + f"{ROTATED}"
    for key in (ROTATED.digest_key, *ROTATED.signing_keys):
        assert key.hex() not in shown
        assert key.decode() not in shown


def test_a_keyring_that_was_used_can_go_to_another_process() -> None:
    used = Keyring.create("v-1")
    data = used.owner_digests(["r1"])
    assert pickle.loads(pickle.dumps(used)).owner_digests(["r1"]) == data


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC_8032)
def test_signatures_are_those_of_the_standard(seed: str, public: str, message: str, signature: str) -> None:
    ring = Keyring("v-1", b"1" * 32, (bytes.fromhex(seed),))
    data = bytes.fromhex(message)
    assert ring.public_key() == public
    assert ring.sign(data).hex() == signature
    assert signatures.is_signed(data, bytes.fromhex(signature), public)
    assert not signatures.is_signed(data + b"x", bytes.fromhex(signature), public)


def test_every_changed_bit_of_a_signature_is_seen() -> None:
    signature, public = RING.sign(b"text"), RING.public_key()
    for bit in range(len(signature) * 8):
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        assert not signatures.is_signed(b"text", bytes(changed), public)
    for wrong in (b"", signature[:-1], signature + b"\0"):
        assert not signatures.is_signed(b"text", wrong, public)


def test_the_newest_key_signs_and_old_public_keys_stay_known() -> None:
    signature = ROTATED.sign(b"text")
    assert signatures.is_signed(b"text", signature, ROTATED.public_key(2))
    assert not signatures.is_signed(b"text", signature, ROTATED.public_key(1))
    assert ROTATED.public_key() == ROTATED.public_key(2)
    assert ROTATED.public_key(1) == RING.public_key()
    for version in (0, 3):
        with pytest.raises(VaultError, match=f"signing keys 1 to 2; got {version}"):
            ROTATED.public_key(version)


@pytest.mark.parametrize("wrong", ["", "ab" * 31, "AB" * 32, "gg" * 32, "ab" * 32 + "\n"])
def test_what_is_no_public_key_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        signatures.is_signed(b"", bytes(64), wrong)


@pytest.mark.parametrize(
    "use",
    [
        lambda: Keyring.create("v-1").public_key(),
        lambda: Keyring.create("v-1").sign(b""),
        lambda: signatures.is_signed(b"", bytes(64), "ab" * 32),
    ],
    ids=["public_key", "sign", "is_signed"],
)
def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(MissingExtraError, match=r"The vault needs .* \"armnesia\[vault\]\""):
        use()


def test_a_saved_ring_is_read_back_and_only_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "vault.keys"
    before = os.umask(0)  # whatever the umask allows, the file is closed
    try:
        ROTATED.save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Keyring.read(path) == Keyring.read(str(path)) == ROTATED
    assert [file.name for file in tmp_path.iterdir()] == ["vault.keys"]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "vault.keys"
    RING.save(path)
    with pytest.raises(VaultError, match="exists already; nothing was written"):
        Keyring.create("v-1").save(path)
    assert Keyring.read(path) == RING
    assert len(list(tmp_path.iterdir())) == 1


def test_a_replaced_file_keeps_every_key(tmp_path: Path) -> None:
    path = tmp_path / "vault.keys"
    RING.save(path, replace=True)
    ROTATED.save(path, replace=True)
    assert Keyring.read(path) == ROTATED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    others = (RING, Keyring.create("v-1"), Keyring("v-2", ROTATED.digest_key, ROTATED.signing_keys))
    for other in others:
        with pytest.raises(VaultError, match="holds keys that the new keyring lacks; nothing was written"):
            other.save(path, replace=True)
    assert Keyring.read(path) == ROTATED
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("owner", "step"), [(os, "fsync"), (Path, "replace")])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, step: str
) -> None:
    path = tmp_path / "vault.keys"
    RING.save(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(owner, step, full)
    with pytest.raises(VaultError, match="cannot be written: No space left on device"):
        ROTATED.save(path, replace=True)
    assert Keyring.read(path) == RING
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666, 0o777])
def test_a_file_open_to_others_is_refused_with_the_way_to_close_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "vault.keys"
    RING.save(path)
    path.chmod(mode)
    with pytest.raises(VaultError, match=rf"mode {mode:04o}\); restrict it with: chmod 600 .*vault\.keys"):
        Keyring.read(path)
    path.chmod(0o400)
    assert Keyring.read(path) == RING


def document(**changes: Any) -> str:
    good = {"schema": keyring.SCHEMA, "vault": "v", "digest_key": "11" * 32, "signing_keys": ["22" * 32]}
    return json.dumps({**good, **changes})


@pytest.mark.parametrize(
    "text",
    [
        *("", document()[:-1], "[]", document(schema="armnesia.keys/2"), document(vault=None)),
        *(document(digest_key=7), document(digest_key="11" * 31), document(signing_keys=[])),
        *(document(signing_keys=["11" * 31]), document(signing_keys=["11" * 32] * 2)),
        *(document(signing_keys="11" * 32), document(signing_keys=["xx" * 32]), document(signing_keys=[7])),
    ],
)
def test_a_file_that_is_no_keyring_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vault.keys"
    private_files.write(path, document())
    assert Keyring.read(path).vault == "v"
    path.write_text(text)
    with pytest.raises(VaultError, match=r"vault\.keys is not a valid key file: copy it from") as refusal:
        Keyring.read(path)
    assert "1111" not in str(refusal.value)


def test_a_file_that_is_missing_a_folder_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VaultError, match=r"none\.keys cannot be read: No such file or directory"):
        Keyring.read(tmp_path / "none.keys")
    with pytest.raises(VaultError, match="cannot be read: Is a directory"):
        Keyring.read(tmp_path)
    private_files.write(tmp_path / "raw", "")
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    with pytest.raises(VaultError, match="must be text in UTF-8"):
        Keyring.read(tmp_path / "raw")
