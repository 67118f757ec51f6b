"""The types of answers have exactly the keys that the service sends, and the values are of these types."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from armnesia.service import answer_types
from armnesia.vault import Configuration, UserType, Vault
from tests.databases import Place
from tests.service.servers import CONFIGURATION, PEOPLE, Served, serving

BY_PAGE = Configuration(actions=("A", "B"), by=("page",), user_type=UserType.TEXT)


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
            for each in done.get("decisions", []):
                check("TouchedDecision", each)
            check("DeletionSummary", client.deletion(done["sequence"]))
        check("RecordsAdded", client.add_records([row]))
        check("RecordsAdded", client.add_records([{**row, "action": "B"}], replace=True))
        check("Health", client.health())
    with service.http() as http:
        for path, name in {
            "/v1/decisions": "Decisions",
            "/v1/ledger": "LedgerPage",
            "/v1/ledger/head": "LedgerHead",
            f"/v1/certificates/{done['sequence']}": "CertificateFile",
            "/v1/certificates": "CertificatesToReissue",
            "/live": "Live",
        }.items():
            check(name, http.get(path).json())


def test_another_key_is_noticed() -> None:
    check("LedgerHead", {"head": "1:ab"})
    for wrong in ({"head": "1:ab", "more": 1}, {}, {"head": 1}):
        with pytest.raises((ValueError, AssertionError), match=r"validation error|does not have all keys"):
            check("LedgerHead", wrong)


@pytest.mark.filterwarnings("ignore:this vault was succeeded")
def test_a_deletion_says_that_the_vault_was_succeeded(sqlite_place: Place, tmp_path: Path) -> None:
    with serving(sqlite_place) as service, service.client() as client:
        assert "successors" not in client.forget(PEOPLE[:1])
        new = f"sqlite:///{tmp_path}/new.db"
        with Vault.create(new, successor_of=sqlite_place.url, successor_keys=sqlite_place.keys) as successor:
            made = successor.identity().vault
        done = client.forget(PEOPLE[1:2])
        check("DeletionDone", done)
        assert done["successors"] == [made]
        assert client.forget(PEOPLE[1:2])["successors"] == [made]
