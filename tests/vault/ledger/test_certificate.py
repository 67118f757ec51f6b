"""Promise 6: a certificate is checked offline, in any layout, and each change of its content is refused."""

import base64
import dataclasses
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.signer import SSlibKey

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.signatures import public_key
from armnesia.vault.ledger.certificate import Certificate, Logged, PublicKeys
from armnesia.vault.ledger.checkpoint import Proof
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope, keyid_of
from armnesia.vault.ledger.merkle import Tree
from armnesia.vault.ledger.people import NOTHING, RECORD, USER, Mention, Opening, People
from armnesia.vault.ledger.words import Words
from tests.quick import examples, quick_only
from tests.vault.ledger.ledgers import FACTS, KEYRING, OTHER, PUBLIC, SEED, SmallLedger, entry_of

NEW = public_key(OTHER)


def with_later() -> tuple[SmallLedger, Certificate]:
    ledger = SmallLedger()
    ledger.write(entry_of(4, "compacted"))
    ledger.write(entry_of(5, "erased", facts={"source": "sales", "through": 4, "version": 12}))
    ledger.write(entry_of(6, "readmit", facts={"ends": [3]}))
    return ledger, ledger.certificate(later=(4, 5, 6))


def refused(text: str, keys: Any = PUBLIC) -> bool:
    try:
        return Certificate.read(text).verify(keys) != []
    except InvalidInputError:
        return True


def test_a_certificate_is_read_and_verified() -> None:
    for certificate in (SmallLedger().certificate(), with_later()[1]):
        again = Certificate.read(certificate.to_json())
        assert again == certificate
        assert again.verify(PUBLIC) == []


@pytest.mark.parametrize("later", quick_only([False], [False, True]))
def test_each_changed_character_is_refused(later: bool) -> None:
    text = (with_later()[1] if later else SmallLedger().certificate()).to_json()
    document = json.loads(text)
    kept = 0
    for place, character in enumerate(text):
        # Another digit or another letter: what stays well formed is the harder to notice.
        other = "7" if character.isalnum() and place % 2 else "A"
        changed = text[:place] + (other if character != other else "6") + text[place + 1 :]
        assert refused(changed), changed[max(0, place - 20) : place + 20]
        blank = text[:place] + " " + text[place + 1 :]
        if _is_same(blank, document):
            kept += 1
            assert not refused(blank)
    assert kept > 100


def _is_same(text: str, document: Any) -> bool:
    try:
        return bool(json.loads(text) == document)
    except ValueError:
        return False


@given(st.data())
@examples(200)
def test_any_layout_of_the_json_is_accepted(data: st.DataObject) -> None:
    document = json.loads(with_later()[1].to_json())

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shuffled(value[name]) for name in data.draw(st.permutations(list(value)))}
        return [shuffled(each) for each in value] if isinstance(value, list) else value

    indent = data.draw(st.none() | st.integers(0, 7) | st.just("\t"))
    text = json.dumps(shuffled(document), indent=indent, ensure_ascii=data.draw(st.booleans()))
    assert Certificate.read(text).verify(PUBLIC) == []


def test_a_field_that_nobody_knows_is_refused() -> None:
    document = json.loads(SmallLedger().certificate().to_json())
    for part in (
        document,
        document["envelope"],
        document["envelope"]["signatures"][0],
        document["opening"][0],
    ):
        part["note"] = "the records of eve too"
        assert refused(json.dumps(document))
        del part["note"]
    assert not refused(json.dumps(document))


def test_securesystemslib_verifies_the_envelope() -> None:
    document = json.loads(with_later()[1].to_json())
    key = SSlibKey(keyid_of(PUBLIC), "ed25519", "ed25519", {"public": PUBLIC})
    for part in (document, *document["later"]):
        envelope = TheirEnvelope.from_dict(part["envelope"])
        assert envelope.verify([key], 1)
        statement = json.loads(envelope.payload)
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["predicateType"] == "urn:armnesia:entry:v1"


def test_with_another_key_it_says_that_a_newer_one_may_be_needed() -> None:
    (problem,) = SmallLedger().certificate().verify(NEW)
    assert problem == (
        "the checkpoint is signed by another key: a newer public key of this vault, or a newer certificate,"
        " is needed; or it is not its certificate"
    )


def test_an_old_entry_stands_under_a_checkpoint_of_a_new_key() -> None:
    ledger = SmallLedger()
    ledger.write(entry_of(4, "signing_key", facts={"public": NEW}))
    fresh = ledger.certificate(seed=OTHER)
    assert fresh.entry.signer == PUBLIC
    assert fresh.verify(NEW) == []
    assert fresh.verify(PUBLIC) != []
    assert fresh.verify([PUBLIC, NEW]) == fresh.verify(PublicKeys("v-1", (PUBLIC, NEW))) == []


def test_a_kept_checkpoint_must_be_of_the_same_ledger() -> None:
    ledger = SmallLedger()
    certificate, kept = ledger.certificate(), str(ledger.note())
    assert certificate.verify(PUBLIC, kept) == []
    assert certificate.verify(PUBLIC, certificate.checkpoint) == []
    ledger.write(entry_of(4, "policy"))
    (problem,) = ledger.certificate().verify(PUBLIC, kept)
    assert problem.startswith("the checkpoint that was kept has 3 entries, that of the certificate 4: ")

    forked = SmallLedger()
    forked.envelopes[1] = Envelope.signed(entry_of(2, "policy", organisation=None).payload, SEED)
    assert forked.certificate().verify(PUBLIC) == []
    assert forked.certificate().verify(PUBLIC, kept) == [
        "the ledger has changed since the checkpoint was kept, or it is another one"
    ]
    own = certificate.checkpoint
    elsewhere = dataclasses.replace(own, origin="armnesia/v-2")
    assert certificate.verify(PUBLIC, elsewhere) == ["the checkpoint that was kept is of another vault"]
    assert "that was kept is signed by another key" in certificate.verify(PUBLIC, str(own.signed(OTHER)))[0]


def test_an_opening_of_another_request_is_refused() -> None:
    certificate, people = SmallLedger().certificate(), People.of(KEYRING, 3, [Mention(USER, NOTHING, "416")])
    other = dataclasses.replace(certificate, openings=(people.opening(KEYRING, 3, USER, "416"),))
    assert other.verify(PUBLIC) == ["the opening of the user is not of entry 3"]
    opening = certificate.openings[0]
    for changes in (
        {"index": (opening.index + 1) % 8},
        {"index": 8},
        {"index": -1},
        {"salt": bytes(16)},
        {"path": ()},
        {"path": opening.path * 2},
    ):
        changed: Opening = dataclasses.replace(opening, **changes)
        assert dataclasses.replace(certificate, openings=(changed,)).verify(PUBLIC) == other.verify(PUBLIC)


def test_each_opening_may_be_left_out_and_none_stands_twice() -> None:
    certificate = SmallLedger().certificate()
    person, case, actor = certificate.openings
    fewer_openings: tuple[tuple[Opening, ...], ...] = ((), (person,), (case, actor))
    for openings in fewer_openings:
        fewer = dataclasses.replace(certificate, openings=openings)
        assert Certificate.read(fewer.to_json()).verify(PUBLIC) == []
        assert fewer.person == (person.mention if person in openings else None)
    for openings in ((person, person), (person, case, case)):
        with pytest.raises(InvalidInputError, match="opened for at most one person"):
            dataclasses.replace(certificate, openings=openings)


def test_an_entry_that_is_no_deletion_has_no_certificate() -> None:
    ledger = SmallLedger()
    logged = Logged.of(ledger.envelopes[1], Tree(ledger.leaves), ledger.note())
    with pytest.raises(InvalidInputError, match="a certificate must be of a deletion"):
        Certificate(logged, ledger.certificate().openings)


def test_an_entry_signed_by_a_stranger_or_elsewhere_is_refused() -> None:
    ledger = SmallLedger()
    entry = ledger.certificate().entry
    ledger.envelopes[2] = Envelope.signed(entry.payload, OTHER)
    assert ledger.certificate().verify(PUBLIC) == ["entry 3 is not signed by the key that it names"]
    certificate = SmallLedger().certificate()
    for changes in ({"index": 1}, {"hashes": ()}, {"hashes": certificate.logged.proof.hashes * 2}):
        logged = Logged(certificate.logged.envelope, dataclasses.replace(certificate.logged.proof, **changes))
        (problem,) = dataclasses.replace(certificate, logged=logged).verify(PUBLIC)
        assert problem == "entry 3 is not in the ledger of its checkpoint"
    moved = SmallLedger()
    moved.envelopes.insert(1, moved.envelopes[1])
    proof = Proof(3, Tree(moved.leaves).proof(3), moved.note())
    logged = Logged(certificate.logged.envelope, proof)
    assert proof.includes(logged.envelope.leaf)
    (problem,) = dataclasses.replace(certificate, logged=logged).verify(PUBLIC)
    assert problem == "entry 3 is not in the ledger of its checkpoint"
    other = SmallLedger()
    other.envelopes[2] = Envelope.signed(dataclasses.replace(entry, vault="v-2").payload, SEED)
    assert other.certificate().verify(PUBLIC) == ["entry 3 and its checkpoint are of different vaults"]


@pytest.mark.parametrize(
    "entry",
    [
        entry_of(4, "policy"),
        entry_of(2, "compacted"),
        entry_of(2, "erased", facts={"source": "sales", "through": 3}),
        entry_of(2, "readmit", facts={"ends": [3]}),
        entry_of(4, "readmit", facts={"ends": [2]}),
        entry_of(4, "erased", facts={"source": "sales", "through": 2}),
    ],
)
def test_a_later_entry_must_concern_the_deletion(entry: Entry) -> None:
    ledger = SmallLedger()
    ledger.write(entry)
    logged = Logged(ledger.envelopes[-1], ledger.certificate().logged.proof)
    with pytest.raises(
        InvalidInputError, match=f"entry {entry.number} does not concern the deletion of entry 3"
    ):
        dataclasses.replace(ledger.certificate(), later=(logged,))


def test_a_later_entry_must_stand_under_the_same_checkpoint() -> None:
    ledger = SmallLedger()
    ledger.write(entry_of(4, "compacted"))
    (later,) = ledger.certificate(later=(4,)).later
    ledger.write(entry_of(5, "policy"))
    certificate = dataclasses.replace(ledger.certificate(), later=(later,))
    assert certificate.verify(PUBLIC) == ["entry 4 comes with another checkpoint"]


BEGINNING = {
    "416": (
        "On 18 November 2026 Example Ltd deleted the records held under the identifier 416, and decided again"
        " without them.\n"
    ),
    "bob": (
        "On 18 November 2026 Example Ltd stopped counting the records held under the identifier bob, and"
        " decided again without them. They were still at the source then.\n"
    ),
    "zoé": "On 18 November 2026 Example Ltd held nothing under the identifier zoé.\n",
}


@pytest.mark.parametrize("name", BEGINNING)
def test_the_three_outcomes_have_their_own_words(name: str) -> None:
    certificate = SmallLedger().certificate(text=name)
    assert certificate.verify(PUBLIC) == []
    text = certificate.words().text()
    assert text.startswith(BEGINNING[name] + "\nIt does not cover:\n")
    assert len(certificate.words().not_covered) <= 5
    for other in BEGINNING.keys() - {name}:
        assert other not in " ".join(certificate.words().said)


def test_a_record_has_words_of_its_own() -> None:
    certificate = SmallLedger().certificate(RECORD, "r-7")
    assert certificate.words().said == (
        "On 18 November 2026 Example Ltd deleted the record r-7, and decided again without it.",
    )


def test_later_entries_are_told_and_the_technical_part_has_the_facts() -> None:
    text = with_later()[1].words().text()
    for said in (
        "On 21 November 2026 the deleted bytes left the files of the database (entry 4).\n",
        "On 22 November 2026 nothing of it was left at the source with the id sales (entry 5).\n",
        "On 23 November 2026 people of this request were admitted again (entry 6).\n",
        "Level: retained: the deleted records are forgotten",
        "Guarantee: ε = 0.5, δ = 1e-05\n",
        "Method: tilt\n",
        "Case: DSR-2026/12\n",
        "Entered by: clerk@example.com\n",
        "Checkpoint: armnesia/v-1, 6 entries, root ",
    ):
        assert said in text


def test_sources_where_nobody_has_erased_are_named_beside_those_where_somebody_has() -> None:
    entry = dataclasses.replace(
        SmallLedger().certificate().entry, facts={**FACTS, "sources": ["sales", "other"]}
    )
    later = [each.entry for each in with_later()[1].later]
    at = SmallLedger().certificate().checkpoint
    assert "Of other sources this is not known: other." in Words.of(entry, None, [], later, at).said
    assert not any("other sources" in each for each in Words.of(entry, None, [], [], at).said)


def test_without_an_organisation_the_vault_is_named() -> None:
    ledger = SmallLedger()
    entry = dataclasses.replace(ledger.certificate().entry, organisation=None)
    ledger.envelopes[2] = Envelope.signed(entry.payload, SEED)
    assert (
        ledger.certificate().words().said[0].startswith("On 18 November 2026 the holder of vault v-1 deleted")
    )


def test_the_page_loads_and_runs_nothing_and_hides_nothing() -> None:
    certificate = SmallLedger().certificate()
    hostile = Mention(USER, "deleted", "<script>alert(1)</script>\x1b[2J\u202e")
    opening = dataclasses.replace(certificate.openings[0], mention=hostile)
    page = dataclasses.replace(certificate, openings=(opening,)).words().html()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\u202e" in page
    assert not re.search(r"https?:|src=|href=|url\(|@import", page)
    assert "default-src 'none'" in page


def test_the_summary_has_no_name() -> None:
    summary = with_later()[1].summary()
    assert summary["entry"] == 3
    assert summary["outcome"] == "deleted"
    assert summary["level"] == "retained"
    assert summary["budget"] == FACTS["budget"]
    assert summary["later"] == ["compacted", "erased", "readmit"]
    assert "416" not in json.dumps(summary)


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.pop("proof"),
        lambda own: own.update(envelope=None),
        lambda own: own["opening"][0].update(text="\ud800"),
        lambda own: own["opening"][0].update(index=True),
        lambda own: own["opening"][0].update(index=1.0),
        lambda own: own["opening"][0].update(salt="AB"),
        lambda own: own["opening"][0].update(outcome=["deleted"]),
        lambda own: own["opening"][0].update(role={}),
    ],
)
def test_what_is_no_certificate_is_refused_in_a_sentence(change: Any) -> None:
    document = json.loads(SmallLedger().certificate().to_json())
    change(document)
    with pytest.raises(InvalidInputError, match="must"):
        Certificate.read(json.dumps(document))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def as_signed(statement: Any) -> bytes:
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [each for key in keys for each in places(value[key])]


@given(st.data())
@examples(600)
def test_any_other_value_anywhere_is_refused_or_told_without_a_failure(data: st.DataObject) -> None:
    document = json.loads(with_later()[1].to_json())
    before = json.dumps(document)
    parts = [document, *document["later"]]
    statements = [json.loads(base64.b64decode(part["envelope"]["payload"])) for part in parts]
    chosen = data.draw(st.sampled_from([document, *statements]))
    container, key = data.draw(st.sampled_from(places(chosen)))
    container[key] = data.draw(VALUES)
    for part, statement in zip(parts, statements, strict=True):
        if statement is chosen:
            part["envelope"] = Envelope.signed(as_signed(statement), SEED).to_dict()
    after = json.dumps(document)
    try:
        certificate = Certificate.read(after)
    except InvalidInputError:
        return
    # Later entries may be left out.
    assert bool(certificate.verify(PUBLIC)) == (after != before and len(certificate.later) == 3)
    assert certificate.words().text()
    assert certificate.words().html()
    assert json.dumps(certificate.summary())


@pytest.mark.parametrize("text", ["", "[]", "7", "{", '{"later": [], "later": []}', "[" * 10**5, b"\xff"])
def test_what_is_no_object_is_refused_in_a_sentence(text: str | bytes) -> None:
    with pytest.raises(InvalidInputError, match="a certificate must be"):
        Certificate.read(text)
