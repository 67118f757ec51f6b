"""What endpoints answer, against the vault itself."""

import json
import math
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from armnesia.service import ServiceError
from armnesia.vault import Certificate, Configuration, UserType
from armnesia.vault.db import statements
from armnesia.vault.db.schema import DecisionRow
from tests.databases import Place
from tests.service.pages.clients import at_the_page
from tests.service.servers import (
    COLUMNS,
    PEOPLE,
    SETTINGS,
    Served,
    log_of,
    serving,
    serving_existing,
)
from tests.vault.operations.test_forget_many import write_csv
from tests.vault.raw_vaults import change

MANY = Configuration(actions=("A", "B"), by=("page",), user_type=UserType.TEXT, columns=COLUMNS)


def test_a_person_is_forgotten_with_a_certificate(served_anywhere: Served) -> None:
    person = PEOPLE[0]
    with served_anywhere.http() as http, served_anywhere.place.open() as vault:
        expected = vault.preview(users=[person])
        preview = http.post("/v1/deletions", json={"users": [person], "dry_run": True})
        assert preview.status_code == 200
        assert preview.json()["counts"] == {str(arm): n for arm, n in expected.counts.items()}
        assert preview.json()["probabilities"] == expected.probabilities
        assert vault.n_records == 20
        answer = http.post("/v1/deletions", json={"users": [person]})
        done = answer.json()
        assert (answer.status_code, done["records"], done["held"], done["repeated"]) == (201, 4, 1, False)
        assert vault.n_records == 16
        certificate = Certificate.read(json.dumps(done["certificate"]))
        assert certificate.verify(vault.public_keys().keys) == []
        assert certificate.person is not None
        assert certificate.person.text == person
        assert {each.mention.text for each in certificate.openings} == {person, "test of operator"}
        again = http.post("/v1/deletions", json={"users": [person]})
        assert (again.status_code, again.json()["repeated"]) == (200, True)
        assert again.headers["location"] == answer.headers["location"] == f"/v1/deletions/{done['entry']}"
        shown = http.get(answer.headers["location"]).json()
        assert shown == vault.certificate(entry=done["entry"]).summary()
        named = http.get(f"/v1/certificates/{done['entry']}").json()
        assert Certificate.read(json.dumps(named)).verify(vault.public_keys().keys) == []
        assert named["opening"] == []
        assert vault.verify().holds


def test_a_request_has_a_case_and_says_who_was_forgotten_before(served: Served) -> None:
    with served.http() as http, served.place.open() as vault:
        first = http.post("/v1/deletions", json={"users": [PEOPLE[0]], "case": "T-17"}).json()
        assert vault.entries_of_case("T-17") == [first["entry"]]
        done = http.post("/v1/deletions", json={"users": [PEOPLE[0], PEOPLE[1]]}).json()
        assert (done["records"], done["named"], done["held"]) == (4, 2, 1)
        (before,) = done["forgotten_before"]
        assert (before["entry"], before["names"]) == (first["entry"], [PEOPLE[0]])
        refused = http.post("/v1/deletions", json={"users": [PEOPLE[2]], "case": f"of {PEOPLE[2]}"})
        assert refused.status_code == 422
        assert PEOPLE[2] not in refused.text


def test_records_are_forgotten_by_their_ids(served: Served) -> None:
    with served.http() as http, served.place.open() as vault:
        done = http.post("/v1/deletions", json={"records": ["record-0", "record-5"]}).json()
        assert (done["records"], done["named"], vault.n_records) == (2, 2, 18)


def test_what_the_vault_refuses_is_told_without_names(served: Served) -> None:
    person = PEOPLE[2]
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"users": [person.upper()]}, 409, "similar-name"),
        ({"users": [person], "epsilon": 3.0, "unlearner": "gaussian", "delta": 0.1}, 409, "beyond-policy"),
        ({"users": [person], "unlearner": person}, 422, "invalid-value"),
        ({"users": [person], "unlearner_options": {person: 1}}, 422, "invalid-value"),
        ({"users": [" "]}, 422, "invalid-value"),
        ({"users": [person], "records": ["r"]}, 422, "invalid-request"),
        ({}, 422, "invalid-request"),
        ({"users": []}, 422, "invalid-request"),
        ({"users": person}, 422, "invalid-request"),
        ({"users": [1.5]}, 422, "invalid-request"),
        ({"users": [True]}, 422, "invalid-request"),
        ({"users": [None]}, 422, "invalid-request"),
        ({"users": [person], person: 1}, 422, "invalid-request"),
        ({"users": [person], "dry_run": "yes"}, 422, "invalid-request"),
    ]
    with served.http() as http, served.place.open() as vault:
        head = vault.head
        for body, status, kind in cases:
            for dry_run in (True, False) if "dry_run" not in body else (None,):
                sent = body if dry_run is None else {**body, "dry_run": dry_run}
                answer = http.post("/v1/deletions", json=sent)
                assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (status, kind), sent
                assert person.encode() not in answer.content.lower()
        assert (vault.head, vault.n_records) == (head, 20)


@pytest.mark.parametrize(
    "content",
    [b"", b"[", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"users": ["\\ud800"]}', b'{"users": [NaN]}'],
)
def test_a_body_that_is_no_request(served: Served, content: bytes) -> None:
    with served.http() as http:
        for path in ("/v1/deletions", "/v1/records"):
            answer = http.post(path, content=content, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422
            assert answer.json()["type"].endswith(":invalid-request")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", None])
def test_a_body_that_was_not_sent_as_json(served: Served, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    with served.http() as http:
        for path in ("/v1/deletions", "/v1/records"):
            answer = http.post(path, content=b'{"users": ["cem-4711"]}', headers=headers)
            assert (answer.status_code, answer.json()["type"].split(":")[-1]) == (422, "invalid-request")
            (error,) = answer.json()["errors"]
            assert error == {
                "at": "body",
                "message": "must be JSON, sent with Content-Type: application/json",
            }
        assert http.post("/v1/deletions", json={"users": ["cem-4711"]}).json()["repeated"] is False


def test_decisions_in_pages_and_by_key(sqlite_place: Place) -> None:
    log = log_of() | {"page": [f"page/{n}?a=b&c={n} ü" for n in range(20)]}
    with serving(sqlite_place, MANY, log=log) as running, running.http() as http, running.client() as client:
        with sqlite_place.open() as vault:
            expected = vault.decisions().to_dict()
            first = http.get("/v1/decisions", params={"limit": 7}).json()
            assert (first["total"], first["next"], first["head"]) == (20, 7, expected["head"])
            last = http.get("/v1/decisions", params={"limit": 7, "after": 14}).json()
            assert (len(last["decisions"]), last["next"]) == (6, None)
            found = list(client.decisions())
            assert [{**each, "id": ""} for each in found] == [
                {**each, "id": ""} for each in expected["decisions"]
            ]
            (one,) = client.decisions(page="page/3?a=b&c=3 ü")
            assert one == found[3]
            for each in found:
                shown = client.decision(each["id"])
                assert {**shown, **each} == shown
                scores = vault.status(scores=True, where=each["key"]).scores or ()
                assert [(arm["action"], arm["count"]) for arm in shown["arms"]] == [
                    (arm.action, arm.count) for arm in scores
                ]
        for missing in ("page=nowhere", "only", "country=DE", "%", "page", "=", "page=1&page=2"):
            answer = http.get(f"/v1/decisions/{quote(missing, safe='')}")
            assert answer.status_code == 404
            assert answer.json()["type"].endswith(":no-decision")
        assert http.get("/v1/decisions", params={"where": "page"}).status_code == 422
        twice = http.get("/v1/decisions", params={"where": ["page=1", "page=2"]})
        assert (twice.status_code, twice.json()["errors"][0]["at"]) == (422, "query/where")
        held = found[3]["key"]["page"]
        twisted = f"page=nowhere&page={quote(held, safe='')}"  # the last of them would be held
        assert http.get(f"/v1/decisions/{quote(twisted, safe='')}").status_code == 404


def test_the_one_decision_with_its_arms(served: Served) -> None:
    with served.client() as client, served.place.open() as vault:
        shown, scores = client.decision(), vault.status(scores=True).scores
        assert scores is not None
        assert shown["action"] == vault.decide().action
        for arm, expected in zip(shown["arms"], scores, strict=True):
            assert (arm["action"], arm["count"], arm["mean"]) == (
                expected.action,
                expected.count,
                expected.mean,
            )
            low, high = arm["interval"]
            assert arm["mean"] is not None
            assert 0.0 <= low <= arm["mean"] <= high <= 1.0
            # Hoeffding: 2 exp(-2 n r²) is 0.05 at the radius, unless the interval is cut.
            radius = max(arm["mean"] - low, high - arm["mean"])
            assert 2 * math.exp(-2 * arm["count"] * radius**2) >= 0.05 - 1e-9


def test_a_page_of_decisions_reads_no_others(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys that are asked for, a search or an order."""
    names = [f"user {number}" for number in range(300)]
    log: dict[str, list[Any]] = {"action": ["A"] * 300, "reward": [1] * 300}
    log |= {"user": names, "page": names, "id": names}
    read, rows = statements.read, list[int]()

    def fail(*_: Any) -> Any:
        raise AssertionError("all were read")

    def count(session: Any, kind: Any, **where: Any) -> Any:
        rows.extend(where.get("number", ()) if kind is DecisionRow else ())
        return read(session, kind, **where)

    with serving(sqlite_place, MANY, log=log) as served, served.http("reader") as http:
        monkeypatch.setattr(statements, "stream", fail)
        monkeypatch.setattr(statements, "read", count)
        found = http.get("/v1/decisions", params={"after": 3, "limit": 7}).json()
        assert (found["total"], found["next"], rows) == (300, 10, list(range(4, 11)))
        assert [each["key"]["page"] for each in found["decisions"]] == names[3:10]
        beyond = http.get("/v1/decisions", params={"after": 400}).json()
        assert (beyond["decisions"], beyond["total"], beyond["next"]) == ([], 300, None)
        (one,) = http.get("/v1/decisions", params={"where": "page=user 7"}).json()["decisions"]
        assert one["key"] == {"page": "user 7"}
        none = http.get("/v1/decisions", params={"where": "page=nowhere"}).json()
        assert (none["decisions"], none["total"], none["head"]) == ([], 0, found["head"])
        with at_the_page(served, "reader") as page:
            rows.clear()
            assert page.get("/page/decisions").status_code == 200
        assert rows == list(range(1, 51))


def test_the_ledger_in_pages(served: Served) -> None:
    with served.client() as client, served.place.open() as vault:
        for person in PEOPLE[:3]:
            client.forget([person])
        entries = vault.ledger()
        assert list(client.ledger()) == entries.to_dict()["entries"]
        assert list(client.ledger(after=3)) == entries.to_dict()["entries"][3:]
        assert client.head() == str(vault.head)
        assert vault.check_ledger(client.checkpoint()).holds
        with served.http("reader") as http:
            page = http.get("/v1/ledger", params={"limit": 2, "after": 1}).json()
            assert ([entry["number"] for entry in page["entries"]], page["next"]) == ([2, 3], 3)
            exact = http.get("/v1/ledger", params={"limit": 3, "after": 1}).json()
            assert (len(exact["entries"]), exact["next"]) == (3, None)
            assert http.get("/v1/ledger", params={"after": 10**9}).json()["entries"] == []
            for wrong in ({"after": -1}, {"limit": 0}, {"after": "x"}, {"after": 2**63}):
                assert http.get("/v1/ledger", params=wrong).status_code == 422


def test_numbers_without_a_certificate(served: Served) -> None:
    with served.http("reader") as http:
        for path in ("/v1/certificates", "/v1/deletions"):
            assert [http.get(f"{path}/{number}").status_code for number in (1, 2, 99, 0, "x", 2**63)] == [
                404,
                404,
                404,
                422,
                422,
                422,
            ]


def row(number: int, **other: Any) -> dict[str, Any]:
    return {"id": f"new-{number}", "action": "A", "reward": 1, "user": f"new person {number}", **other}


def test_a_reader_finds_one_segment_of_a_key_with_edges(sqlite_place: Place) -> None:
    by_rounds = Configuration(
        actions=("A", "B"), by=("rounds:10,50,200",), user_type=UserType.TEXT, columns=COLUMNS
    )
    log = {**log_of(), "rounds": [5, 25, 60, 500] * len(PEOPLE)}
    with serving(sqlite_place, by_rounds, log=log) as served, served.http("reader") as http:

        def keys(*where: str) -> list[dict[str, str]]:
            answer = http.get("/v1/decisions", params={"where": list(where)})
            assert answer.status_code == 200, answer.text
            assert answer.json()["total"] == len(answer.json()["decisions"])
            return [each["key"] for each in answer.json()["decisions"]]

        for value, segment in {
            "25": "10..50",
            "10": "10..50",
            "10..50": "10..50",
            "49.5": "10..50",
            "-1": "<10",
            "<10": "<10",
            ">=200": ">=200",
        }.items():
            assert keys(f"rounds={value}") == [{"rounds": segment}]
        assert len(keys()) == 4
        with served.client("reader") as client:
            assert [each["key"] for each in client.decisions(rounds=25)] == [{"rounds": "10..50"}]
        for wrong in (["rounds=many"], ["rounds=nan"], ["rounds"], ["rounds:10,50,200=25"], ["rounds=1"] * 2):
            refused = http.get("/v1/decisions", params={"where": wrong})
            assert (refused.status_code, refused.json()["errors"][0]["at"]) == (422, "query/where")
        told = http.get("/v1/decisions", params={"where": "rounds=many"}).json()["errors"][0]["message"]
        assert told == "rounds must be a number or one of '<10', '10..50', '50..200', '>=200'"
        with at_the_page(served, "reader") as page:
            found = page.post("/page/decisions", {"search": "rounds=25"}).text
            assert "10..50" in found
            assert "1–1 of 1 decision" in found
            assert "for each rounds." in found


def test_records_are_added_once(served_anywhere: Served) -> None:
    with served_anywhere.client() as client, served_anywhere.place.open() as vault:
        assert client.add_records([row(1), row(2)], dry_run=True)["added"] == 2
        assert vault.n_records == 20
        assert client.add_records([row(1), row(2)])["added"] == 2
        again = client.add_records([row(2), row(3)])
        assert (again["added"], again["already_there"], vault.n_records) == (1, 1, 23)
        client.forget(["new person 1"])
        back = client.add_records([row(1), row(4, user="new person 1")])
        assert (back["added"], back["suppressed"]) == (0, 2)
        assert client.add_records([row(2, reward=0)], replace=True)["replaced"] == 1
        assert client.add_records([{"id": "n", "action": "B", "reward": 0.5}], user=None)["added"] == 1
        assert vault.verify().holds


def test_rows_that_are_no_log(served: Served) -> None:
    name = "new person 7"
    cases: list[tuple[list[Any], int]] = [
        ([], 422),
        ([row(1), {"id": "x"}], 422),
        ([row(1, id=None)], 422),
        ([row(1, id="")], 422),
        ([{"action": "A", "reward": 1, "user": name}], 422),
        ([row(1, action=name)], 422),
        ([row(1, reward=2)], 422),
        ([row(1, reward=name)], 422),
        ([row(1, user=[name])], 422),
        ([row(1, reward=None)], 422),
        ([row(1), row(1, user="another")], 422),
        ([row(1, id=2**70)], 422),
        ([row(1, id=1.5)], 422),
        ([row(1, id=True)], 422),
        ([row(1, user=7.0)], 422),
        ([row(1, user="")], 422),
        ([row(1, reward=10**400)], 422),
        ([row(1, id="record-0")], 409),
        ([name], 422),
    ]
    with served.http() as http, served.place.open() as vault:
        for rows, status in cases:
            answer = http.post("/v1/records", json={"rows": rows})
            assert answer.status_code in (status, 422), rows
            assert name.encode() not in answer.content
        assert vault.n_records == 20
        wrong = http.post("/v1/records", json={"rows": [row(1)], "action": name})
        assert wrong.status_code == 422
        assert name.encode() not in wrong.content


def test_a_refused_row_is_told_with_its_place(served: Served) -> None:
    cases: list[tuple[dict[str, Any], str, list[str]]] = [
        ({"rows": [row(1), row(2, reward=7)]}, "invalid-rows", ["body/rows/1/reward"]),
        ({"rows": [row(1), row(2, reward="high")]}, "invalid-rows", ["body/rows/1/reward"]),
        ({"rows": [row(1), row(2, action="Z")]}, "undeclared-action", ["body/rows/1/action"]),
        ({"rows": [row(1), row(2, action=None)]}, "invalid-rows", ["body/rows/1/action"]),
        ({"rows": [row(1), row(1, reward=0)]}, "invalid-rows", ["body/rows/0/id"]),
        ({"rows": [row(1), row(2, id="record-3")]}, "changed-record", ["body/rows/1/id"]),
        ({"rows": [row(1, paid=1)], "reward": "paid"}, "other-columns", ["body/reward"]),
        ({"rows": [row(1, arm="A")], "action": "arm"}, "other-columns", ["body/action"]),
        ({"rows": [row(1, who="x")], "user": "who"}, "other-columns", ["body/user"]),
        ({"rows": [row(1, key="k")], "id": "key"}, "other-columns", ["body/id"]),
        ({"rows": [row(1)], "reward": "paid"}, "invalid-request", ["body/rows/0"]),
    ]
    with served.http() as http, served.client() as client, served.place.open() as vault:
        for body, kind, places in cases:
            told = http.post("/v1/records", json=body).json()
            assert told["type"].rpartition(":")[2] == kind, told
            assert [each["at"] for each in told["errors"]] == places, told
            with pytest.raises(ServiceError, match=places[0]) as refused:
                client.add_records(**body)
            assert told["errors"][0]["message"] in str(refused.value)
        columns = http.post("/v1/records", json=cases[-2][0]).json()["errors"][0]["message"]
        assert columns.endswith("ids from: id")
        assert vault.n_records == 20
        assert http.post("/v1/records", json={"rows": [row(1)]}).status_code == 200


def test_rows_of_a_vault_with_keys(sqlite_place: Place) -> None:
    with serving(sqlite_place, MANY) as running, running.http() as http:
        told = http.post("/v1/records", json={"rows": [row(1)]}).json()
        assert told["errors"][0]["message"].endswith("tells decisions apart: page")
        told = http.post("/v1/records", json={"rows": [row(1, page="a"), row(2, page=None)]}).json()
        assert [each["at"] for each in told["errors"]] == ["body/rows/1/key"]
        assert http.post("/v1/records", json={"rows": [row(1, page="a")]}).status_code == 200
        unknown = http.get("/v1/decisions", params={"where": "land=DE"})
        assert unknown.status_code == 422
        assert unknown.json()["errors"] == [
            {"at": "query/where", "message": "must be KEY=VALUE, where KEY is page"}
        ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_refused_name_is_told_with_its_place(served: Served, dry_run: bool) -> None:
    some = [f"unknown-{number}" for number in range(9)]
    wrong = {"similar-name": (PEOPLE[2].upper(), "likely spelling"), "invalid-value": (" ", "is empty")}
    with served.http() as http:
        for kind, (name, words) in wrong.items():
            told = http.post("/v1/deletions", json={"users": [*some, name], "dry_run": dry_run}).json()
            assert told["type"].rpartition(":")[2] == kind
            assert [each["at"] for each in told["errors"]] == ["body/users/9"]
            assert words in told["errors"][0]["message"]


def test_a_body_of_another_type_is_told_which_is_taken(served: Served) -> None:
    with served.http() as http:
        for content, sent_as in ((b'{"users": ["x"]}', "text/plain"), (b"users", "application/json")):
            headers = {"Content-Type": sent_as}
            told = http.post("/v1/deletions", content=content, headers=headers).json()
            assert "Content-Type: application/json" in told["errors"][0]["message"], told


def test_records_of_an_external_vault_stay_at_their_sources(sqlite_place: Place) -> None:
    path = write_csv(sqlite_place.path.parent / "log.csv", log_of())
    external = Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT, columns=COLUMNS)
    with sqlite_place.create(external) as vault:
        vault.ingest(path, user="user", id="id")
        token = vault.create_token("operator").text
    with serving_existing(sqlite_place, {"operator": token}) as running, running.http() as http:
        refused = http.post("/v1/records", json={"rows": [row(1)]})
        assert (refused.status_code, refused.json()["type"].rpartition(":")[2]) == (409, "external-vault")
        done = http.post("/v1/deletions", json={"users": [PEOPLE[0]]})
        assert (done.status_code, done.json()["records"]) == (201, 4)


def test_health_and_numbers(served_anywhere: Served) -> None:
    with served_anywhere.http("reader") as http, served_anywhere.client() as client:
        assert http.get("/healthz").json() == {"status": "ok"}
        found = http.get("/health").json()
        assert found["status"] == "ok"
        assert found["ledger_length"] == 1
        client.forget([PEOPLE[0]])
        text = http.get("/metrics").text
        assert "armnesia_deletions_total 1.0" in text
        assert "armnesia_ledger_length 2.0" in text
        assert 'armnesia_requests_total{method="GET",route="/health",status="200"} 1.0' in text


def test_the_document_is_counted_by_its_route(served: Served) -> None:
    with served.http("reader") as http:
        http.get("/openapi.json")
        http.request("BREW", "/openapi.json")
        text = http.get("/metrics").text
    assert 'armnesia_requests_total{method="GET",route="/openapi.json",status="200"} 1.0' in text
    assert "BREW" not in text


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_a_changed_vault_is_failing(served: Served, path: str) -> None:
    """The token cannot be checked either, so that no more is told."""
    with served.place.open() as vault:
        change(vault, "UPDATE vault SET signing_key = 2")
    with served.http("reader") as http:
        answer = http.get(path)
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "urn:armnesia:problem:vault-unreadable"


def test_a_vault_that_changes_after_its_tokens_were_read_is_failing(sqlite_place: Place) -> None:
    settings = replace(SETTINGS, token_seconds=600.0)
    with serving(sqlite_place, settings=settings) as running, running.http("reader") as http:
        assert http.get("/health").status_code == 200
        with running.place.open() as vault:
            change(vault, "UPDATE vault SET signing_key = 2")
        found = http.get("/health")
        assert (found.status_code, found.json()["status"]) == (503, "failing")
        assert found.json()["database"] == "refused-by-vault"
        numbers = http.get("/metrics")
        assert (numbers.status_code, numbers.json()["title"]) == (503, "Service Unavailable")


def test_no_programs_of_other_hosts_document_the_service(served: Served) -> None:
    with served.http(None) as http:
        assert http.get("/docs").status_code == http.get("/redoc").status_code == 404


def test_a_vault_that_knows_its_rows_by_their_contents_takes_none(sqlite_place: Place) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log_of())
        token = vault.create_token("operator").text
    with serving_existing(sqlite_place, {"operator": token}) as running, running.http() as http:
        told = http.post("/v1/records", json={"rows": [row(1)]})
        assert (told.status_code, told.json()["errors"][0]["at"]) == (409, "body/id")
        assert "knows its rows by their contents" in told.json()["errors"][0]["message"]
