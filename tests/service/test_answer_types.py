"""The types of answers have exactly the keys that the service sends, and the values are of these types."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from armnesia.service import answer_types
from armnesia.vault import Configuration, UserType
from tests.databases import Place
from tests.service.servers import COLUMNS, CONFIGURATION, PEOPLE, Served, serving

BY_PAGE = Configuration(actions=("A", "B"), by=("page",), user_type=UserType.TEXT, columns=COLUMNS)


@pytest.fixture(params=["one", "many"])
def service(request: pytest.FixtureRequest, sqlite_place: Place) -> Iterator[Served]:
    """A vault with one decision, and one with many."""
    with serving(sqlite_place, BY_PAGE if request.param == "many" else CONFIGURATION) as running:
        yield running


def check(name: str, answer: Any) -> None:
    """Refuse an answer that has not exactly the keys of its type, or a value of another type."""
    kind = getattr(answer_types, name)
    TypeAdapter(kind).validate_python(answer, strict=True)
    assert set(answer) <= get_type_hints(kind).keys(), f"{name} does not have all keys"


def test_every_answer_has_the_keys_of_its_type(service: Served) -> None:
    row = {"action": "A", "reward": 1, "user": "somebody new", "id": "new-1", "page": "home"}
    with service.client() as client:
        decisions = list(client.decisions())
        check("Decision", decisions[0])
        check("DecisionWithArms", client.decision(decisions[0]["id"]))
        check("Arm", client.decision(decisions[0]["id"])["arms"][0])
        for people in (PEOPLE[:1], ["nobody-at-all"]):
            check("DeletionPreview", client.preview(people))
            done = client.forget(people)
            check("DeletionDone", done)
            check("DeletionDone", client.forget(people))
            for before in client.forget([*people, "one more"], exactly=True)["forgotten_before"]:
                check("ForgottenBefore", before)
            for each in done.get("decisions", []):
                check("TouchedDecision", each)
            check("DeletionSummary", client.deletion(done["entry"]))
        check("RecordsAdded", client.add_records([row]))
        check("RecordsAdded", client.add_records([{**row, "action": "B"}], replace=True))
        check("Health", client.health())
    with service.http() as http:
        for path, name in {
            "/v1/decisions": "Decisions",
            "/v1/ledger": "LedgerPage",
            "/v1/ledger/head": "LedgerHead",
            f"/v1/certificates/{done['entry']}": "CertificateFile",
            "/healthz": "Live",
        }.items():
            check(name, http.get(path).json())


def test_another_key_is_noticed() -> None:
    check("Live", {"status": "ok"})
    for wrong in ({"status": "ok", "more": 1}, {}, {"status": 1}):
        with pytest.raises((ValueError, AssertionError), match=r"validation error|does not have all keys"):
            check("Live", wrong)
