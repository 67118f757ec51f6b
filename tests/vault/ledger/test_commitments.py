"""One person opens a request of many without naming the others."""

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.vault import Certificate, Configuration, Vault
from armnesia.vault.ledger.commitments import commitment, inclusion_path, root_from_path, tree_root
from tests.databases import Place
from tests.vault.raw_vaults import values

HASHES = st.lists(st.binary(min_size=32, max_size=32).map(bytes.hex), min_size=1, max_size=40, unique=True)
PEOPLE = ["ann", "bob", "cleo", "dan", "eve"]


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def test_the_root_by_hand() -> None:
    a, b, c = (sha(letter) for letter in (b"a", b"b", b"c"))
    root = sha(b"\x01" + sha(b"\x01" + a + b) + c)
    assert tree_root([a.hex(), b.hex(), c.hex()]) == root.hex()
    assert tree_root([a.hex()]) == a.hex()


def test_nobody_is_no_request() -> None:
    with pytest.raises(InvalidInputError, match="at least one name"):
        tree_root([])


@given(HASHES)
def test_every_path_leads_to_the_root(leaves: list[str]) -> None:
    root = tree_root(leaves)
    assert all(
        root_from_path(leaf, inclusion_path(leaves, place)) == root for place, leaf in enumerate(leaves)
    )


@given(HASHES, st.data())
def test_another_leaf_or_a_changed_path_leads_elsewhere(leaves: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(leaves) - 1))
    path = inclusion_path(leaves, place)
    stranger = sha(bytes.fromhex(leaves[place])).hex()
    assert root_from_path(stranger, path) != tree_root(leaves)
    if path:
        step = data.draw(st.integers(0, len(path) - 1))
        side, _, beside = path[step].partition(":")
        for changed in (f"{'left' if side == 'right' else 'right'}:{beside}", f"{side}:{stranger}"):
            other = [*path[:step], changed, *path[step + 1 :]]
            assert root_from_path(leaves[place], other) != tree_root(leaves)


@given(HASHES.filter(lambda leaves: len(leaves) > 1))
def test_the_order_of_names_matters(leaves: list[str]) -> None:
    assert tree_root(leaves[::-1]) != tree_root(leaves)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault.create(f"sqlite:///{tmp_path}/vault.db", Configuration(actions=("A", "B")))
    log = {"arm": ["A", "B"] * 5, "click": [1, 0] * 5, "who": PEOPLE * 2}
    vault.ingest(log, action="arm", reward="click", user="who")
    return vault


def test_everyone_of_a_batch_gets_a_certificate_that_names_nobody_else(vault: Vault) -> None:
    done = vault.forget(users=PEOPLE[:3])
    assert done.certificate.opening is None
    for person in PEOPLE[:3]:
        file = vault.certificate(users=[person]).to_json()
        assert Certificate.from_json(file).verify(vault.public_key()) == []
        assert f'"{person}"' in file
        assert not any(f'"{other}"' in file for other in PEOPLE if other != person)
        assert vault.forget(users=[person]).repeated


def test_a_path_of_somebody_else_does_not_open(vault: Vault) -> None:
    vault.forget(users=PEOPLE[:3])
    ann, bob = (vault.certificate(users=[person]) for person in PEOPLE[:2])
    assert ann.opening is not None
    assert bob.opening is not None
    mixed = Certificate(ann.body, ann.signature, {**ann.opening, "path": bob.opening["path"]})
    assert mixed.verify(vault.public_key()) == [
        "the opening does not match the commitment: the certificate is about another request"
    ]


def test_whoever_was_forgotten_before_keeps_the_first_certificate(vault: Vault) -> None:
    first = vault.forget(users=["ann"]).certificate
    vault.forget(users=["ann", "bob"])
    assert vault.certificate(users=["ann"]).body["sequence"] == first.body["sequence"]
    assert vault.certificate(users=["bob"]).body["sequence"] == first.body["sequence"] + 1


def test_certificates_of_a_batch_survive_new_keys(vault: Vault) -> None:
    vault.forget(users=PEOPLE)
    before = vault.certificate(users=["eve"])
    vault.rotate_digest_key()
    vault.rotate_signing_key()
    assert vault.certificate(users=["eve"]).opening == before.opening
    assert vault.forget(users=["eve"]).repeated


def test_the_ledger_holds_the_root_of_what_is_handed_out(vault: Vault) -> None:
    vault.forget(users=PEOPLE[:2])
    leaves = []
    for person in PEOPLE[:2]:
        opening = vault.certificate(users=[person]).opening
        assert opening is not None
        leaves.append(commitment(bytes.fromhex(opening["salt"]), {"users": [person], "held": True}))
    *_, last = vault.ledger()
    assert last.fields["commitment"] == tree_root(leaves)


def test_no_name_can_be_tested_against_the_ledger_once_its_nonce_is_erased(vault: Vault) -> None:
    """It takes the keys and the nonce: a copy of the database alone, or the keys alone, open nothing."""
    first = vault.forget(users=["ann"]).certificate
    assert first.opening is not None
    database, ring = vault._connection.database, vault._connection.all_keys
    with database.reading() as session:
        ((sequence, nonce),) = session.query("SELECT sequence, opening FROM request")
    assert ring.salt(sequence, 1, "ann", nonce).hex() == first.opening["salt"]
    for guess in (ring.salt(sequence, 1, "ann"), bytes.fromhex(nonce)):
        assert commitment(guess, {"users": ["ann"]}) != first.body["entry"]["commitment"]
    vault.readmit(users=["ann"], erase=True)
    with database.reading() as session:
        assert session.query("SELECT opening FROM request") == []


def test_the_same_request_is_committed_to_differently_each_time(vault: Vault) -> None:
    """Also in two copies of one vault, where the entries have the same number."""
    first = Path(vault.status().location)
    second = first.parent / "copy"
    second.mkdir()
    vault.back_up(second / "vault.db")
    shutil.copy(f"{first}.keys", second / "vault.db.keys")  # without the pin, which would know better
    copy = Vault.open(f"sqlite:///{second / 'vault.db'}")
    mine, other = (one.forget(users=["eve"]).certificate.body["entry"] for one in (vault, copy))
    copy.close()
    assert mine["sequence"] == other["sequence"]
    assert mine["commitment"] != other["commitment"]


def test_a_request_of_many_is_kept_in_little_room(sqlite_place: Place) -> None:
    """The tree once, and for each who is in it a nonce and a place: not everyone's whole way to the root."""
    people = [f"user-{number}" for number in range(2000)]
    with sqlite_place.create(Configuration(actions=("A",))) as vault:
        vault.ingest({"action": ["A"] * 2000, "reward": [1] * 2000, "who": people}, user="who")
        done = vault.forget(users=[*people, "nobody"])
        assert (done.named, done.held) == (2001, 2000)
        ((largest,),) = values(vault, "SELECT max(length(opening)) FROM request")
        ((leaves,),) = values(vault, "SELECT length(leaves) FROM tree")
        assert largest <= 32 + len(" nothing 2000")
        assert leaves == 32 * 2001
        for name in ("user-0", "user-1999", "nobody"):
            certificate = vault.certificate(users=[name])
            assert certificate.verify(vault.public_keys()) == []
            assert certificate.opening is not None
            assert certificate.opening["request"]["held"] is (name != "nobody")
        assert vault.verify().holds
