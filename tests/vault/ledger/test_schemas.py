"""The published JSON Schemas agree with the package on what an entry and a certificate are."""

import copy
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Level
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.entry import KINDS, OF_A_FORGET, OF_ITS_SHAPE, PREDICATE_TYPE, Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.people import OUTCOMES, RECORD, USER
from tests.vault.ledger.ledgers import FACTS, PUBLIC, SEED, SmallLedger, entry_of


def schema(name: str) -> Any:
    return json.loads(files("armnesia.vault.ledger").joinpath(name).read_text("utf-8"))


ENTRY, CERTIFICATE = schema("entry.v1.schema.json"), schema("certificate.v1.schema.json")
OF_ENTRY, OF_CERTIFICATE = map(jsonschema_rs.validator_for, (ENTRY, CERTIFICATE))
EXAMPLES = {
    "init": entry_of(1, "init"),
    "policy": entry_of(2, "policy", organisation=None),
    "forget": entry_of(3, "forget", facts=FACTS),
    "shape": entry_of(3, "forget", facts={**FACTS, "level": "request_shape", "counts": [1]}),
    "readmit": entry_of(4, "readmit", facts={"ends": [3]}),
    "erased": entry_of(4, "erased", facts={"source": "sales", "through": 3}),
}


def is_entry(predicate: Any, like: Entry) -> bool:
    """Whether the package reads a statement with this predicate."""
    statement = {**like.to_dict(), "predicate": predicate}
    try:
        Entry.of(Envelope.signed(json.dumps(statement).encode(), SEED))
    except InvalidInputError:
        return False
    return True


def test_the_schemas_are_schemas_and_list_what_the_package_has() -> None:
    for each in (ENTRY, CERTIFICATE):
        assert jsonschema_rs.meta.is_valid(each)
    assert ENTRY["$id"] == PREDICATE_TYPE
    assert tuple(ENTRY["properties"]["kind"]["enum"]) == KINDS
    names = set(ENTRY["allOf"][1]["then"]["propertyNames"]["enum"])
    assert names == OF_A_FORGET | OF_ITS_SHAPE | set(ENTRY["required"])
    assert ENTRY["allOf"][1]["then"]["properties"]["level"]["enum"] == [str(level) for level in Level]
    assert CERTIFICATE["$defs"]["opening"]["properties"]["role"]["enum"] == list(OUTCOMES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_entries_fit(name: str) -> None:
    predicate = EXAMPLES[name].to_dict()["predicate"]
    assert OF_ENTRY.is_valid(predicate)
    assert is_entry(predicate, EXAMPLES[name])


OTHER_VALUES: list[Any] = [None, True, 0, 1, 2, "", "AB", [], {}, "request_shape", "init"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_schema_and_package_agree_on_changed_entries(name: str) -> None:
    predicate = EXAMPLES[name].to_dict()["predicate"]
    changed = [
        {**predicate, field: value} for field in (*predicate, "counts", "held") for value in OTHER_VALUES
    ]
    changed += [{key: value for key, value in predicate.items() if key != field} for field in predicate]
    verdicts = [OF_ENTRY.is_valid(each) for each in changed]
    assert verdicts == [is_entry(each, EXAMPLES[name]) for each in changed]
    assert {True, False} == set(verdicts)


def certificates() -> list[Certificate]:
    ledger = SmallLedger()
    ledger.write(entry_of(4, "compacted"))
    names = ((USER, "416"), (USER, "bob"), (USER, "zoé"), (RECORD, "r-7"))
    opened = [ledger.certificate(*name, later=later) for name in names for later in ((), (4,))]
    return [*opened, Certificate(opened[1].logged, ())]


def test_certificates_fit() -> None:
    for each in certificates():
        assert OF_CERTIFICATE.is_valid(each.to_dict())


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.pop("later"),
        lambda own: own.update(more=1),
        lambda own: own["envelope"].update(payload="e30"),
        lambda own: own["envelope"].update(payloadType="application/json"),
        lambda own: own["envelope"]["signatures"][0].pop("keyid"),
        lambda own: own.update(proof="index 2"),
        lambda own: own["opening"].append(own["opening"][0]),
        lambda own: own["opening"][0].update(outcome=""),
        lambda own: own["opening"][1].update(outcome="deleted"),
        lambda own: own["opening"][0].update(salt="00"),
        lambda own: own["opening"][0].update(index=-1),
        lambda own: own["opening"][0]["path"].append("00"),
    ],
)
def test_what_the_schema_refuses_the_package_refuses(change: Callable[[Any], Any]) -> None:
    document = copy.deepcopy(certificates()[1].to_dict())
    change(document)
    assert not OF_CERTIFICATE.is_valid(document)
    try:
        certificate = Certificate.read(json.dumps(document))
    except InvalidInputError:
        return
    assert certificate.verify(PUBLIC) == ["the opening of the user is not of entry 3"]
