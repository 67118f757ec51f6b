"""Entries: statements that other tools read, that claim no more than their level allows, and name nobody."""

import json
from dataclasses import replace
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.entry import KINDS, Entry
from armnesia.vault.ledger.envelope import STATEMENT, Envelope
from armnesia.vault.ledger.merkle import split
from armnesia.vault.ledger.people import (
    ACTOR,
    CASE,
    DELETED,
    NOTHING,
    UNCOUNTED,
    USER,
    Mention,
    Opening,
    People,
    refuse_named,
)
from tests.vault.ledger.ledgers import FACTS, KEYRING, MENTIONS, OTHER, PUBLIC, SEED, entry_of


def test_an_entry_is_a_statement_as_in_toto_writes_it() -> None:
    statement = json.loads(entry_of(3, "forget", subject=bytes(range(32)), facts=FACTS).payload)
    assert statement == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "people", "digest": {"sha256": bytes(range(32)).hex()}}],
        "predicateType": "urn:armnesia:entry:v1",
        "predicate": {
            "vault": "v-1",
            "organisation": "Example Ltd",
            "number": 3,
            "time": "2026-11-20T10:42:07.123456Z",
            "code": "armnesia 0.1.0",
            "signer": PUBLIC,
            "kind": "forget",
            **FACTS,
        },
    }


REQUIRED: dict[str, dict[str, Any]] = {
    "forget": FACTS,
    "readmit": {"ends": [2]},
    "erased": {"source": "sales", "through": 2},
    "compacted": {"through": 2},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_as_it_was_signed(kind: str) -> None:
    entry = entry_of(
        1 if kind == "init" else 3, kind, facts=REQUIRED.get(kind, {"note": [1, 0.5, None, "é"]})
    )
    again = Entry.of(Envelope.from_dict(entry.signed(SEED).to_dict()))
    assert again == entry
    about = json.loads(entry.payload)["subject"][0]["name"]
    assert about == ("people" if kind in ("forget", "readmit") else "configuration")


def test_an_entry_is_signed_with_the_key_that_it_names_alone() -> None:
    with pytest.raises(InvalidInputError, match="must be signed with the key that it names"):
        entry_of(2, "policy").signed(OTHER)


@pytest.mark.parametrize(
    "name", ["deleted", "held", "touched", "rows", "total_before", "counts", "decisions"]
)
def test_a_deletion_at_retained_claims_nothing_that_the_level_conceals(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"at level retained must not have {name}"):
        entry_of(3, "forget", facts={**FACTS, name: 1})


def test_a_deletion_at_another_level_may_have_counts() -> None:
    entry = entry_of(3, "forget", facts={**FACTS, "level": "request_shape", "counts": [1, 0]})
    assert Entry.of(entry.signed(SEED)).facts["counts"] == [1, 0]
    with pytest.raises(InvalidInputError, match="must not have held"):
        entry_of(3, "forget", facts={**FACTS, "level": "request_shape", "held": True})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "gone"}, "kind must be one of init, "),
        ({"kind": "init"}, "number must be 1 for init"),
        ({"number": 1}, "number must be 1 for init"),
        ({"number": True}, "number must be 1 for init"),
        ({"number": 0}, "number must be 1 for init"),
        ({"vault": ""}, "vault must be text"),
        ({"organisation": ""}, "organisation must be text"),
        ({"code": None}, "code must be text"),
        ({"time": "yesterday"}, "a time must look like"),
        ({"signer": "AB"}, "a public key must be 64"),
        ({"subject": b""}, "subject must be of 32 bytes"),
        ({"facts": {"number": 7}}, "facts must not be named number"),
        ({"facts": {"a": float("nan")}}, "facts must be plain JSON"),
        ({"facts": {"a": {1, 2}}}, "facts must be plain JSON"),
        ({"facts": {"a": "\ud800"}}, "facts must be plain JSON"),
        ({"kind": "forget"}, "facts must have level"),
        ({"kind": "forget", "facts": {**FACTS, "level": "full"}}, "level must be one of"),
        ({"kind": "erased", "facts": {"source": "sales", "through": "2"}}, "facts must have through"),
    ],
)
def test_a_wrong_field_is_refused_in_a_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        entry_of(**{"number": 2, "kind": "policy", **changes})


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.update(_type="https://in-toto.io/Statement/v2"),
        lambda own: own.update(predicateType="urn:armnesia:entry:v2"),
        lambda own: own.update(more=1),
        lambda own: own.pop("subject"),
        lambda own: own["subject"].append({"name": "more", "digest": {"sha256": "00"}}),
        lambda own: own["subject"][0].update(name="configuration"),
        lambda own: own["subject"][0]["digest"].update(sha256="AB" * 32),
        lambda own: own["subject"][0]["digest"].update(sha1="00"),
        lambda own: own["predicate"].pop("signer"),
        lambda own: own["predicate"].update(signer=7),
        lambda own: own["predicate"].update(number=3.0),
        lambda own: own.update(predicate=[]),
    ],
)
def test_what_is_no_statement_of_this_kind_is_refused(change: Any) -> None:
    statement = entry_of(3, "forget", facts=FACTS).to_dict()
    change(statement)
    with pytest.raises(InvalidInputError, match="must"):
        Entry.of(Envelope.signed(json.dumps(statement).encode(), SEED))


def test_another_type_of_payload_is_refused() -> None:
    payload = entry_of(2, "policy").payload
    with pytest.raises(InvalidInputError, match=f"must be of the type {STATEMENT}".replace("+", r"\+")):
        Entry.of(Envelope.signed(payload, SEED, "application/json"))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 33])
def test_each_person_of_a_request_is_opened_and_nobody_else(n: int) -> None:
    outcomes = (DELETED, UNCOUNTED, NOTHING)
    mentions = [Mention(USER, outcomes[at % 3], f"person {at}") for at in range(n)]
    people = People(split(b"".join(People.of(KEYRING, 3, mentions).leaves)))
    assert len(people.leaves) >= n
    assert len(people.leaves).bit_count() == 1
    for mention in mentions:
        opening = people.opening(KEYRING, 3, USER, mention.text)
        assert opening.mention == mention
        assert opening.root == people.root
        assert Opening.from_dict(json.loads(json.dumps(opening.to_dict()))) == opening
    for number, name in ((3, "person -1"), (3, "Person 0"), (4, "person 0")):
        with pytest.raises(
            InvalidInputError, match=f"the request of entry {number} has no user of this name"
        ):
            people.opening(KEYRING, number, USER, name)


def test_commitments_depend_on_the_keys_the_entry_and_every_part() -> None:
    mention = Mention(USER, DELETED, "ann")
    other_keys = Keyring("v-1", bytes(32), (SEED,))
    different = [
        People.of(KEYRING, 3, [mention]),
        People.of(KEYRING, 4, [mention]),
        People.of(other_keys, 3, [mention]),
        People.of(KEYRING, 3, [Mention(USER, NOTHING, "ann")]),
        People.of(KEYRING, 3, [Mention("record", DELETED, "ann")]),
        People.of(KEYRING, 3, [Mention(CASE, "", "ann")]),
        People.of(KEYRING, 3, [Mention(ACTOR, "", "ann")]),
        People.of(KEYRING, 3, [Mention(USER, DELETED, "ann\n")]),
    ]
    assert len({each.root for each in different}) == len(different)


def test_a_salt_does_not_reach_into_the_text() -> None:
    crafted = Mention(USER, NOTHING, "xuser\ndeleted\nann")
    opening = People.of(KEYRING, 3, [crafted]).opening(KEYRING, 3, USER, crafted.text)
    longer = replace(opening, salt=opening.salt + b"user\nnothing\nx", mention=Mention(USER, DELETED, "ann"))
    assert longer.root == opening.root
    with pytest.raises(InvalidInputError, match="an opening must have role"):
        Opening.from_dict(longer.to_dict())


def test_the_order_of_a_request_says_nothing() -> None:
    assert People.of(KEYRING, 3, MENTIONS) == People.of(KEYRING, 3, reversed(MENTIONS))


@pytest.mark.parametrize(
    ("role", "outcome"), [("user", ""), ("case", "deleted"), ("queen", "deleted"), ("record", "gone")]
)
def test_a_role_has_its_own_outcomes(role: str, outcome: str) -> None:
    with pytest.raises(InvalidInputError, match="a role must be one of user, record, case, actor"):
        Mention(role, outcome, "ann")


@pytest.mark.parametrize(
    ("case", "names_somebody"),
    [
        *((case, True) for case in ("ann", "Request of ANN, 2026", "ann@example.com", "7_ann", "416", "a+b")),
        *((case, False) for case in ("DSR-2026/12", "annual review", "4160", "a-b", "")),
    ],
)
def test_a_case_that_names_somebody_as_a_word_is_refused(case: str, names_somebody: bool) -> None:
    refusal = None
    try:
        refuse_named(case, ["bob", "ann", "416", "a+b"])
    except InvalidInputError as error:
        refusal = str(error)
    assert refusal == ("the case must not name anybody whom the request is about" if names_somebody else None)
