"""Certificates: good ones pass with the file and the key alone, and nothing that one says can be changed."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.privacy import Level
from armnesia.vault.keys import signatures
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, CertificateDraft
from armnesia.vault.ledger.certificate_check import INTEGRITY_ONLY, OTHER_LAYOUT
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.commitments import commitment
from armnesia.vault.ledger.ledger import Entry
from tests.vault.forging import terms_of

TIME = "2026-11-15T10:42:07.123456Z"
RING = Keyring("v-1", (b"1" * 32,), (b"a" * 32,))
PUBLIC = RING.public_key()
REQUEST = {"users": ["ann", "émile"]}
COVERS = "the vault's files"
SALT = RING.salt(7, 1)


def entry_of(kind: str = "forget", covers: str = COVERS, **changes: Any) -> Entry:
    facts: dict[str, Any] = {"commitment": commitment(SALT, REQUEST), "salt_key": 1}
    if kind == "forget":
        facts |= {
            "unlearner": {"name": "tilt"},
            "level": "request_shape",
            "budget": {"epsilon": 1.0, "delta": 1e-5},
            "penalty": "retained",
            "released": "B",
        }
    facts |= changes
    if kind in CERTIFIED:
        facts["terms"] = terms_of(kind, facts, covers)
    return Entry.next_after(6, "ab" * 32, vault="v-1", kind=kind, time=TIME, code="armnesia 0.1.0", **facts)


def issued(entry: Entry | None = None, ring: Keyring = RING, **changes: Any) -> Certificate:
    covers = changes.pop("covers", COVERS)
    entry = entry or entry_of(covers=covers)
    draft = CertificateDraft.of(entry, covers)
    return draft.issue(ring, **{"head": entry.head, "erasure": "complete", "issued": TIME, **changes})


@given(st.text(max_size=20).filter(lambda text: text.isprintable()), st.sampled_from(["pending", "complete"]))
def test_texts_that_are_put_together_are_the_canonical_texts_of_the_bodies(text: str, erasure: Any) -> None:
    entry = entry_of(covers=text, released=text)
    draft = CertificateDraft.of(entry, text)
    assert draft.text == canonical(draft.body)
    issued_at_once = draft.issue(RING, head=entry.head, erasure=erasure, issued=TIME)
    assert issued_at_once.text == canonical(issued_at_once.body)
    read_again = CertificateDraft(json.loads(draft.text))
    assert read_again == draft
    assert read_again.issue(RING, head=entry.head, erasure=erasure, issued=TIME) == issued_at_once


def handed_out() -> Certificate:
    return issued().with_opening(SALT, REQUEST)


def signed(body: dict[str, Any], opening: dict[str, Any] | None = None) -> Certificate:
    """A body with a good signature, whatever it says."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Certificate(body, RING.sign(text.encode()), opening)


def body_with(**changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = handed_out().to_dict()["body"]
    return {**body, **changes}


def test_a_file_is_checked_by_hand_with_the_standard_tools() -> None:
    document = json.loads(handed_out().to_json())
    body, entry = document["body"], document["body"]["entry"]

    def text(value: Any) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    assert signatures.is_signed(text(body), bytes.fromhex(document["signature"]), PUBLIC)
    assert body["entry_hash"] == hashlib.sha256(text(entry)).hexdigest()
    opened = bytes.fromhex(document["opening"]["salt"]) + text(document["opening"]["request"])
    assert entry["commitment"] == hashlib.sha256(opened).hexdigest()
    assert (body["sequence"], body["vault"]) == (entry["sequence"], entry["vault"]) == (7, "v-1")


def test_a_good_certificate_passes_in_all_its_forms() -> None:
    for certificate in (issued(), handed_out(), issued(entry_of("nothing_held"))):
        document = certificate.to_dict()
        canonical_file = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        for read in (
            Certificate.from_json(certificate.to_json()),
            Certificate.from_json(certificate.to_json().encode()),
            Certificate.from_json(canonical_file),
            Certificate.from_dict(document),
        ):
            assert read == certificate
            assert (
                read.verify(PUBLIC) == read.verify([RING.public_key(), "00" * 32]) == read.verify(None) == []
            )


def test_the_stored_form_names_nobody_and_is_read_back() -> None:
    body = json.dumps(
        handed_out().to_dict()["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert "ann" not in body
    assert SALT.hex() not in body
    stored = Certificate.from_stored(body, issued().signature)
    assert stored == issued()
    assert stored.with_opening(SALT, REQUEST) == handed_out()


def problems_of(file: bytes) -> list[str]:
    """What reading and checking a file complains about."""
    try:
        return Certificate.from_json(file).verify(PUBLIC)
    except ArmnesiaError as error:
        return [str(error)]


def says_the_same(file: bytes, other: bytes) -> bool:
    """Whether two files differ in their layout only; 1 and 1.0 are two texts."""
    return json.dumps(json.loads(file), sort_keys=True) == json.dumps(json.loads(other), sort_keys=True)


@pytest.mark.slow
def test_a_change_of_any_byte_of_the_file_is_found() -> None:
    file = handed_out().to_json().encode()
    assert problems_of(file) == []
    for position in range(len(file)):
        changed = bytearray(file)
        changed[position] ^= 1 << position % 8
        found = problems_of(bytes(changed))
        assert found or says_the_same(bytes(changed), file), f"byte {position} can be changed"


@given(st.data())
def test_any_edit_of_the_file_is_found(data: st.DataObject) -> None:
    file = handed_out().to_json().encode()
    start = data.draw(st.integers(0, len(file)))
    stop = data.draw(st.integers(start, min(len(file), start + 3)))
    replacement = data.draw(st.binary(max_size=3) | st.sampled_from([b" ", b"\n", b"0", b"A", b"\r\n"]))
    changed = file[:start] + replacement + file[stop:]
    assert problems_of(changed) or says_the_same(changed, file)


@given(st.data())
def test_any_edit_of_the_stored_body_is_found(data: st.DataObject) -> None:
    body = json.dumps(issued().to_dict()["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    start = data.draw(st.integers(0, len(body)))
    stop = data.draw(st.integers(start, min(len(body), start + 3)))
    changed = body[:start] + data.draw(st.text(max_size=3) | st.sampled_from([" ", "0"])) + body[stop:]
    try:
        problems = Certificate.from_stored(changed, issued().signature).verify(PUBLIC)
    except ArmnesiaError as error:
        problems = [str(error)]
    assert bool(problems) == (changed != body)


LAYOUTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "python -m json.tool": lambda document: json.dumps(document, indent=4) + "\n",
    "an answer of the service": lambda document: json.dumps(document, separators=(",", ":")),
    "names in another order": lambda document: json.dumps(dict(reversed(document.items()))),
    "another line at the end": lambda document: json.dumps(document, indent=2, sort_keys=True) + "\n\n",
    "lines of Windows": lambda document: json.dumps(document, indent=2).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_certificate_in_another_layout_is_valid_with_a_note(layout: str, tmp_path: Path) -> None:
    ours, file = handed_out(), tmp_path / "certificate.json"
    file.write_text(LAYOUTS[layout](ours.to_dict()), newline="")
    found, checked = Certificate.check_file(file, PUBLIC)
    assert found == ours
    assert checked.problems == ()
    assert OTHER_LAYOUT in checked.notes
    for text in (ours.to_json(), canonical(ours.to_dict())):
        file.write_text(text)
        assert OTHER_LAYOUT not in Certificate.check_file(file, PUBLIC)[1].notes


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"erasure": {', '"erasure": {"state": "complete", ', "must have each name once .* 'state' twice"),
        ('"opening": {', '"opening": null, "opening": {', "must have each name once .* 'opening' twice"),
        ('"users": [', '"users": ["eve"], "users": [', "must have each name once .* 'users' twice"),
        ('"sequence": 7', '"sequence": NaN', "must have numbers that JSON has; got NaN"),
        ('"sequence": 7', '"sequence": -Infinity', "must have numbers that JSON has; got -Infinity"),
        ('"sequence": 7', '"sequence": 7e0', "must have numbers as they are read back; got 7e0"),
        ('"sequence": 7', '"sequence": 7.00', "must have numbers as they are read back; got 7.00"),
        ('"sequence": 7', '"sequence": -0', "must have numbers as they are read back; got -0"),
        ('"sequence": 7', '"sequence": 7.0', "the signature does not match"),
        ('"sequence": 7', '"sequence": "7"', "the signature does not match"),
        ('"sequence": 7', '"sequence": true', "the signature does not match"),
        ('"signature": "', '"signature": " ', "must be lower-case hexadecimal, without spaces"),
        ('"body": {', '"other": 1, "body": {', "a certificate must have a body, a signature"),
        ('"body": {', '"body": {"other": 1, ', "the signature does not match"),
        ('"opening": {', '"opening": {"other": 1, ', "the opening must have a salt"),
        ("{", "\ufeff{", "must be valid JSON"),
    ],
)
def test_what_may_be_understood_otherwise_is_refused(old: str, new: str, problem: str) -> None:
    file = json.dumps(handed_out().to_dict())
    assert problems_of(file.encode()) == []
    changed = file.replace(old, new, 1)
    assert changed != file
    assert any(re.search(problem, found) for found in problems_of(changed.encode()))


def test_a_signature_in_capitals_is_refused() -> None:
    file, signature = handed_out().to_json(), handed_out().signature.hex()
    assert problems_of(file.replace(signature, signature.upper()).encode())


def test_a_certificate_signed_by_someone_else_is_found_only_with_the_public_key() -> None:
    forger = Keyring("v-1", RING.digest_keys, (b"f" * 32,))
    forged = issued(ring=forger)
    assert forged.verify(PUBLIC) == [
        "the certificate is signed with a key that is not among the public keys given: if the list is an"
        " old one, get the newest"
    ]
    assert forged.verify(None) == []
    assert "not who signed it" in INTEGRITY_ONLY
    assert forged.verify([PUBLIC, forger.public_key()]) == []


def test_a_forger_cannot_name_the_right_key() -> None:
    forger = Keyring("v-1", RING.digest_keys, (b"f" * 32,))
    body = {**issued(ring=forger).to_dict()["body"], "signing_key": {"version": 1, "public": PUBLIC}}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert Certificate(body, forger.sign(text.encode())).verify(PUBLIC) == [
        "the signature does not match: the certificate has been changed"
    ]


def test_certificates_of_old_signing_keys_stay_valid() -> None:
    old, new = issued(), issued(ring=RING.with_new_signing_key())
    assert new.body["signing_key"]["version"] == 2
    keys = [PUBLIC, new.body["signing_key"]["public"]]
    assert old.verify(keys) == new.verify(keys) == []
    assert new.verify(PUBLIC) != []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schema": "armnesia.certificate/2"}, "the certificate's schema must be armnesia.certificate/1"),
        ({"sequence": 8}, "the certificate's sequence is not that of its ledger entry"),
        ({"sequence": 7.0}, "the certificate's sequence is not that of its ledger entry"),
        ({"vault": "v-2"}, "the certificate's vault is not that of its ledger entry"),
        ({"entry_hash": "0" * 64}, "the certificate's entry_hash is not that of its ledger entry"),
        ({"entry": []}, "the certificate's ledger entry cannot be read"),
        ({"entry": {}}, "the certificate's ledger entry cannot be read: an entry's schema"),
        (
            {"erasure": {"state": "done", "covers": COVERS}},
            "the certificate's erasure must be pending or complete",
        ),
    ],
)
def test_a_signed_body_that_contradicts_its_entry_is_found(changes: dict[str, Any], problem: str) -> None:
    assert signed(body_with()).verify(PUBLIC) == []
    problems = signed(body_with(**changes)).verify(PUBLIC)
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_a_certificate_of_another_kind_of_entry_is_found_and_not_issued() -> None:
    entry = entry_of("readmit")
    body = body_with(entry=dict(entry.fields), entry_hash=entry.hash, issued_at_head=str(entry.head))
    assert signed(body).verify(PUBLIC) == [
        "the certificate's ledger entry must be forget or nothing_held; got 'readmit'"
    ]
    with pytest.raises(
        InvalidInputError, match="the entry of a certificate must be forget or nothing_held; got 'readmit'"
    ):
        issued(entry)


@pytest.mark.parametrize(
    "signing_key", [None, {}, [], {"public": 5, "version": 1}, {"public": "ab", "version": 1}]
)
def test_a_body_without_a_signing_key_is_found(signing_key: Any) -> None:
    problems = signed(body_with(signing_key=signing_key)).verify(None)
    assert problems[0] == "the certificate names no valid signing key"


def test_a_body_without_erasure_is_found() -> None:
    assert "the certificate's erasure must be pending or complete" in signed(body_with(erasure=None)).verify(
        PUBLIC
    )


def wrong_openings() -> Iterator[tuple[Any, str]]:
    form = "the opening must have a salt of 32 hexadecimal digits, a request and, optionally, a path"
    other = "the opening does not match the commitment: the certificate is about another request"
    yield {}, form
    yield {"salt": "xx" * 16, "request": REQUEST}, form
    yield {"salt": SALT.hex()[2:], "request": REQUEST}, form
    yield {"salt": SALT.hex().upper(), "request": REQUEST}, form
    yield {"salt": 5, "request": REQUEST}, form
    yield {"salt": SALT.hex(), "request": REQUEST, "note": "not signed"}, form
    yield {"salt": SALT.hex(), "request": ["ann"]}, form
    yield {"salt": SALT.hex(), "request": {"users": ["ann"]}}, other
    yield {"salt": SALT.hex(), "request": {"users": ["émile", "ann"]}}, other
    yield {"salt": "00" * 16, "request": REQUEST}, other


@pytest.mark.parametrize(("opening", "problem"), list(wrong_openings()))
def test_an_opening_that_does_not_open_is_found(opening: Any, problem: str) -> None:
    assert Certificate(issued().body, issued().signature, opening).verify(PUBLIC) == [problem]


def test_an_opening_of_another_request_is_not_attached() -> None:
    with pytest.raises(InvalidInputError, match="the certificate is about another request"):
        issued().with_opening(SALT, {"users": ["bob"]})


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        (b"\xff", "must be text in UTF-8"),
        ("[1]", "must be a JSON object"),
        ("{}", "must have a body, a signature"),
        ('{"body":{},"signature":"00","more":1}', "must have a body, a signature"),
        ('{"body":{},"signature":5}', "must have a body, a signature"),
        ('{"body":{},"signature":"zz"}', "signature of a certificate must be hexadecimal"),
        ('{"body":{},"signature":"00","opening":[]}', "opening of a certificate must have"),
        ('{"body":{"a":NaN},"signature":"00"}', "must have numbers that JSON has; got NaN"),
        ('{"body":{"a":"\\ud800"},"signature":"00"}', "must be plain JSON: text must be encodable"),
        (
            '{"body":' + '{"a":' * 500 + "1" + "}" * 500 + ',"signature":"00"}',
            "nested at most 100 levels deep",
        ),
        ("[" * 100_000, "must be valid JSON"),
    ],
    ids=range(11),
)
def test_a_file_that_is_no_certificate_is_refused(file: str | bytes, complaint: str) -> None:
    with pytest.raises(VaultError, match=complaint):
        Certificate.from_json(file)


def test_an_empty_certificate_has_problems_and_no_words() -> None:
    empty = Certificate.from_json('{"body":{},"signature":"00"}')
    assert len(empty.verify(PUBLIC)) == 4
    with pytest.raises(VaultError, match="lacks a part"):
        empty.words()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one key"):
        issued().verify([])
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        issued().verify("key")
    with pytest.raises(InvalidInputError, match="erasure must be pending or complete; got 'done'"):
        issued(erasure="done")
    with pytest.raises(VaultError, match="the keyring and the entry belong to different vaults"):
        issued(ring=Keyring.create("v-2"))
    for missing in ("level", "budget", "unlearner", "released"):
        facts = {name: fact for name, fact in entry_of().fields.items() if name != missing}
        with pytest.raises(InvalidInputError, match="must have level, budget"):
            issued(Entry(facts))
    with pytest.raises(InvalidInputError, match="level must be one of"):
        issued(entry_of(level="perfect"))


def test_a_certificate_is_reissued_when_erasure_is_complete() -> None:
    pending = issued(erasure="pending")
    complete = issued(erasure="complete")
    assert pending.body["entry_hash"] == complete.body["entry_hash"]
    assert "Erasure: pending: the vault's files" in pending.words()
    assert "Erasure: complete: the vault's files" in complete.words()
    assert pending.verify(PUBLIC) == complete.verify(PUBLIC) == []


@pytest.mark.parametrize("level", Level)
def test_the_words_say_what_is_forgotten_how_far_and_what_is_not_covered(level: Level) -> None:
    words = issued(entry_of(level=level)).with_opening(SALT, REQUEST).words()
    for needed in (
        "Request: 2 users: 'ann', 'émile'",
        "bit for bit",
        f"Level: {level}: up to (ε, δ), {level.meaning}",
        'the arm served after the deletion, "B", was drawn once by tilt, with (ε = 1, δ = 1e-05)',
        "decisions released before the deletion",
        "records of others that were collected while such a decision was served: they stay",
        "requests of others that were chosen by looking at such a decision; requests that are chosen by"
        " looking at the arm served after the deletion are covered",
        "statistics or scores published before and after",
        "backups, copies",
        "other accounts of the same person",
        "records without a user, if the vault holds any: whose they are is not known to it",
        "does not prove that no copy of the records exists elsewhere",
        f"Ledger entry: 7:{entry_of(level=level).hash}",
        f"signing key 1: {PUBLIC}",
    ):
        assert needed in words
    assert "penalty is frozen" not in words


def test_the_words_say_what_a_frozen_penalty_keeps_and_when_nothing_is_promised() -> None:
    frozen = issued(entry_of(penalty="frozen")).words()
    assert "the number of deleted records per arm is kept, because the penalty is frozen" in frozen
    assert "promises nothing" in issued(entry_of(budget={"epsilon": "inf", "delta": 0})).words()


@pytest.mark.parametrize(
    ("unlearner", "level", "promised"),
    [
        ("rollback", "retained", True),
        ("imitation_rollback", "retained", True),
        ("rollback", "request_shape", False),
        ("tilt", "retained", False),
        ("frozen_rollback", "request_shape", False),
    ],
)
def test_only_rollback_is_said_to_be_identical_to_retraining(
    unlearner: str, level: str, *, promised: bool
) -> None:
    exact = {"epsilon": 0.0, "delta": 0.0}
    words = issued(entry_of(unlearner={"name": unlearner}, level=level, budget=exact)).words()
    assert ("identical to retraining" in words) == promised


def test_nothing_held_is_said_honestly() -> None:
    words = issued(entry_of("nothing_held"), covers="nothing had to be erased").words()
    assert "Request: not named here" in words
    assert (
        "Forgotten: nothing: when the request was made, the vault held no records of the users or ids in it"
        in words
    )
    assert "Guarantee: none" in words
    assert "ε" not in words
    assert "bit for bit" not in words


def test_long_requests_are_cut_and_strange_names_cannot_move_the_cursor() -> None:
    request = {"records": [f"r{number}" for number in range(12)]}
    many = issued(entry_of(commitment=commitment(SALT, request))).with_opening(SALT, request).words()
    assert "Request: 12 records: 'r0'" in many
    assert "'r9' and 2 more" in many
    assert "r10" not in many
    odd = {"users": ["a\x1b[2J\nLevel: retained"]}
    words = issued(entry_of(commitment=commitment(SALT, odd))).with_opening(SALT, odd).words()
    assert "\x1b" not in words
    assert len(words.split("\n")) == len(many.split("\n"))
    assert "1 user: 'a\\x1b[2J" in words
    assert "\x1b" not in issued(covers="\x1b[2J").words()


def test_a_certificate_does_not_follow_changes_of_what_made_it() -> None:
    body = body_with()
    certificate = signed(body)
    body["sequence"] = 8
    assert certificate.verify(PUBLIC) == []


def test_a_check_of_files_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_text("{", encoding="utf-8")
    found, checked = Certificate.check_file(file, "ab" * 32)
    assert found is None
    assert checked.to_dict() == {
        "valid": False,
        "decided": True,
        "problems": ["the certificate must be valid JSON; it is invalid or truncated"],
        "notes": [],
        "signer_checked": True,
        "ledger_checked": False,
        "certificate": None,
    }
    incomplete = Certificate({"schema": "other"}, bytes(64)).check(None)
    assert (incomplete.valid, incomplete.certificate) == (False, None)
