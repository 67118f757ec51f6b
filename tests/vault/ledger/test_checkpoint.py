"""Signed notes and checkpoints, against the examples that their specifications publish."""

import base64

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.signatures import public_key
from armnesia.vault.ledger.checkpoint import Checkpoint, Note, Proof, decoded, encoded, key_id_of, origin_of
from armnesia.vault.ledger.merkle import Tree, leaf_hash

# c2sp.org/signed-note, section "Verifier keys", example
VERIFIER_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SIGNED = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72In"
    "eyaQM=\n"
)
# The beginning of the same document; its key is not published, and its text has an empty line.
WITH_EMPTY_LINE = (
    "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n\n"
    "— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99i"
    "hAQwaqP3ZekRwNtIc=\n"
)
# c2sp.org/tlog-checkpoint
PUBLISHED_CHECKPOINT = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nT"
    "o+zyWE+xeMcTOAYQ8=\n"
)
SEED, OTHER = bytes(range(32)), bytes(range(1, 33))
NAME = origin_of("v-1")


def published_key() -> tuple[str, str, str]:
    name, key_id, key = VERIFIER_KEY.split("+", 2)
    data = base64.b64decode(key)
    assert data[:1] == b"\x01"
    return name, key_id, data[1:].hex()


def test_the_published_note_verifies() -> None:
    name, key_id, public = published_key()
    note = Note.read(SIGNED)
    assert note.text == "This is an example message.\n"
    assert note.is_signed_by(name, public)
    assert key_id_of(name, public).hex() == key_id
    assert str(note) == SIGNED


def test_each_changed_character_of_the_published_note_is_refused() -> None:
    name, _, public = published_key()
    for place, character in enumerate(SIGNED):
        changed = SIGNED[:place] + ("A" if character != "A" else "B") + SIGNED[place + 1 :]
        try:
            read = Note.read(changed)
        except InvalidInputError:
            continue
        assert not read.is_signed_by(name, public)


def test_the_text_ends_at_the_last_empty_line() -> None:
    note = Note.read(WITH_EMPTY_LINE)
    assert note.text.endswith("sole:\n\ned è subito sera.\n")
    assert [name for name, _ in note.signatures] == ["quasimodo.example/salvatore"]
    assert str(note) == WITH_EMPTY_LINE
    assert not note.is_signed_by("quasimodo.example/salvatore", public_key(SEED))


def test_unknown_signatures_are_passed_over_and_a_wrong_one_of_a_known_key_is_not() -> None:
    note, witness = Note.signed("a\n", NAME, SEED), Note.signed("a\n", "witness.example", OTHER)
    both = Note("a\n", witness.signatures + note.signatures)
    assert Note.read(str(both)).is_signed_by(NAME, public_key(SEED))
    assert both.is_signed_by("witness.example", public_key(OTHER))
    assert not both.is_signed_by(NAME, public_key(OTHER))
    assert not both.is_signed_by("armnesia/v-2", public_key(SEED))
    wrong = Note.signed("b\n", NAME, SEED).signatures
    assert not Note("a\n", note.signatures + wrong).is_signed_by(NAME, public_key(SEED))
    sixteen = Note("a\n", 15 * witness.signatures + note.signatures)
    assert Note.read(str(sixteen)).is_signed_by(NAME, public_key(SEED))


@pytest.mark.parametrize(
    "wrong",
    [
        SIGNED.replace("\n\n", "\n"),
        SIGNED.rstrip("\n"),
        SIGNED + "more",
        SIGNED.replace("—", "-"),
        SIGNED.replace("message", "mess\tage"),
        SIGNED.replace("message", "mess\r\nage"),
        SIGNED.replace("message", "mess\ud800age"),
        SIGNED.replace("com/foo", "com foo"),
        SIGNED.replace("com/foo", "com+foo"),
        SIGNED.replace("com/foo", "com\u2028foo"),
        SIGNED.replace("aQM=", "aQN="),
        SIGNED.partition("\n\n")[0] + "\n\n",
        "",
    ],
)
def test_what_is_no_note_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInputError, match=r"a signed note must be|base64 must be"):
        Note.read(wrong)


def test_a_signature_of_another_length_is_wrong() -> None:
    ((_, own),) = Note.signed("a\n", NAME, SEED).signatures
    for length in (0, 1, 63, 65):
        text = f"a\n\n— {NAME} {encoded((own + b'x')[: 4 + length])}\n"
        assert not Note.read(text).is_signed_by(NAME, public_key(SEED))


@pytest.mark.parametrize("text", ["AA", "AA=", "AB==", "AA==\n", " AA==", "A A=", "AA-_", "é", "A==="])
def test_base64_has_one_form(text: str) -> None:
    with pytest.raises(InvalidInputError, match="base64 must be as RFC 4648 writes it"):
        decoded(text)


def test_the_published_checkpoint_is_read() -> None:
    checkpoint = Checkpoint.of(Note.read(PUBLISHED_CHECKPOINT))
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text + "\n" == PUBLISHED_CHECKPOINT.partition("—")[0]


def test_a_checkpoint_is_read_as_it_was_signed() -> None:
    for size in (0, 1, 10**17):
        checkpoint = Checkpoint(NAME, size, Tree([leaf_hash(b"%d" % size)]).root)
        note = Note.read(str(checkpoint.signed(SEED)))
        assert note.is_signed_by(NAME, public_key(SEED))
        assert Checkpoint.of(note) == checkpoint


def test_lines_below_a_checkpoint_are_signed_and_passed_over() -> None:
    own = Checkpoint(NAME, 1, bytes(32))
    note = Note.signed(own.text + "more\n", NAME, SEED)
    assert Checkpoint.of(Note.read(str(note))) == own
    assert note.is_signed_by(NAME, public_key(SEED))
    with pytest.raises(InvalidInputError, match="a checkpoint must be"):
        Checkpoint.of(Note(own.text + "\nmore\n", ()))


@pytest.mark.parametrize("size", ["", "-1", "+1", "01", "1.0", "1e3", "١", "1 ", "9" * 30])
def test_a_size_has_one_form(size: str) -> None:
    with pytest.raises(InvalidInputError, match="a checkpoint must be an origin, a size and a root"):
        Checkpoint.of(Note(f"{NAME}\n{size}\n{encoded(bytes(32))}\n", ()))


def proof_of(index: int, size: int) -> tuple[Proof, bytes]:
    leaves = [leaf_hash(b"%d" % number) for number in range(size)]
    note = Checkpoint(NAME, size, Tree(leaves).root).signed(SEED)
    return Proof(index, Tree(leaves).proof(index), note), leaves[index]


@pytest.mark.parametrize(("index", "size"), [(0, 1), (0, 2), (4, 5), (6, 13)])
def test_a_proof_is_read_as_it_was_written(index: int, size: int) -> None:
    proof, leaf = proof_of(index, size)
    again = Proof.read(str(proof))
    assert (again.index, again.hashes, again.note) == (proof.index, proof.hashes, proof.note)
    assert again.includes(leaf)
    assert not again.includes(leaf_hash(b"another"))
    lines = str(proof).split("\n")
    assert lines[:2] == ["c2sp.org/tlog-proof@v1", f"index {index}"]
    assert lines[2 + len(proof.hashes) :] == ["", *str(proof.note).split("\n")]


def test_each_changed_character_of_a_proof_is_refused() -> None:
    proof, leaf = proof_of(6, 13)
    text = str(proof)
    for place, character in enumerate(text):
        changed = text[:place] + ("1" if character != "1" else "2") + text[place + 1 :]
        try:
            read = Proof.read(changed)
        except InvalidInputError:
            continue
        assert not (read.includes(leaf) and read.note.is_signed_by(NAME, public_key(SEED))), changed


def test_extra_data_is_passed_over() -> None:
    proof, leaf = proof_of(1, 2)
    text = str(proof).replace("index", "extra AAAA\nindex")
    assert Proof.read(text) == proof
    assert proof.includes(leaf)


@pytest.mark.parametrize(
    ("part", "by"),
    [
        ("@v1", "@v2"),
        ("index 1", "index 01"),
        ("index 1", "index -1"),
        ("index 1", "Index 1"),
        ("\n\narmnesia", "\narmnesia"),
        ("armnesia/v-1\n2\n", "armnesia/v-1\ntwo\n"),
    ],
)
def test_what_is_no_proof_is_refused(part: str, by: str) -> None:
    proof, _ = proof_of(1, 2)
    assert part in str(proof)
    with pytest.raises(InvalidInputError, match="must be"):
        Proof.read(str(proof).replace(part, by, 1))


def test_a_place_beyond_the_ledger_is_not_in_it() -> None:
    proof, leaf = proof_of(1, 2)
    assert not Proof(7, proof.hashes, proof.note).includes(leaf)
