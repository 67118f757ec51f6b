"""The same Idempotency-Key gives the same answer, and does nothing twice."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from armnesia.service import idempotency
from armnesia.service.pages.sessions import IDLE
from tests.databases import Place
from tests.service.servers import PEOPLE, SETTINGS, Served, serving, serving_existing

RECORDS = {"rows": [{"id": "new", "action": "A", "reward": 1, "user": "new person"}]}


def keyed(key: str = "key-1") -> dict[bytes, bytes]:
    return {b"Idempotency-Key": key.encode("latin-1")}


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("/v1/deletions", {"users": [PEOPLE[0]]}, {"users": [PEOPLE[1]]}),
        ("/v1/records", RECORDS, RECORDS | {"replace": True}),
    ],
)
def test_the_same_key_and_body_have_the_same_answer(
    served: Served, path: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    with served.http() as http, served.place.open() as vault:
        first = http.post(path, json=body, headers=keyed())
        held, head = vault.n_records, vault.head
        again = http.post(path, json=body, headers=keyed())
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["idempotent-replayed"] == "true"
        assert "idempotent-replayed" not in first.headers
        another = http.post(path, json=other, headers=keyed())
        assert (another.status_code, another.json()["type"].rpartition(":")[2]) == (422, "another-body")
        assert (vault.n_records, vault.head) == (held, head)
        with served.http("admin") as somebody_else:
            assert somebody_else.post(path, json=body, headers=keyed()).content != first.content


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("/v1/deletions", {"users": [PEOPLE[0]]}, {"users": [PEOPLE[1]]}),
        ("/v1/records", RECORDS, RECORDS | {"replace": True}),
    ],
)
def test_a_dry_run_has_nothing_to_do_with_the_key(
    served: Served, path: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    with served.http() as http:
        first = http.post(path, json=body, headers=keyed())
        dry = http.post(path, json=other | {"dry_run": True}, headers=keyed())
        assert dry.status_code == 200
        assert "idempotent-replayed" not in dry.headers
        assert http.post(path, json=body, headers=keyed()).content == first.content


def test_a_request_that_failed_can_be_sent_again(served: Served) -> None:
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": [PEOPLE[2].upper()]}, headers=keyed())
        assert refused.status_code == 409
        done = http.post("/v1/deletions", json={"users": [PEOPLE[2]]}, headers=keyed())
        assert done.status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "a b", "é"])
def test_a_key_that_is_none(served: Served, key: str) -> None:
    with served.http() as http:
        answer = http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed(key))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["at"] == "header/Idempotency-Key"


def test_a_restart_does_nothing_twice(served: Served) -> None:
    with served.http() as http:
        first = http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed()).json()
        assert http.post("/v1/records", json=RECORDS, headers=keyed()).json()["added"] == 1
    with serving_existing(served.place, served.tokens) as again, again.http() as http:
        second = http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed()).json()
        assert (second["repeated"], second["sequence"]) == (True, first["sequence"])
        assert second["certificate"]["body"]["entry"] == first["certificate"]["body"]["entry"]
        assert http.post("/v1/records", json=RECORDS, headers=keyed()).json()["already_there"] == 1


def test_a_key_in_use_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = served.app.state.service.worker
    begun, go_on, forget = threading.Event(), threading.Event(), worker.forget

    def hold(_: Any) -> None:
        begun.set()
        go_on.wait(20)

    def slowly(request: Any) -> Any:
        worker.write(hold)
        return forget(request)

    monkeypatch.setattr(worker, "forget", slowly)

    def send() -> Any:
        with served.http() as http:
            return http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed())

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(send)
        assert begun.wait(20)
        second = send()
        go_on.set()
        assert (second.status_code, second.headers["retry-after"]) == (409, "1")
        assert first.result().status_code == 201


def test_old_answers_are_forgotten(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "_MOST", 3)
    answers = served.app.state.service.answers
    number = served.numbers["operator"]
    with served.http() as http:
        for place in range(10):
            http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed(f"key-{place}"))
        assert len(answers._answers[number]) == 3
        for answer in answers._answers[number].values():
            answer.until = 0.0
        monkeypatch.setattr(idempotency, "_MOST", 100)
        late = http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed("key-9"))
        assert "idempotent-replayed" not in late.headers  # its hour is over
        other = http.post("/v1/deletions", json={"users": [PEOPLE[1]]}, headers=keyed("key-8"))
        assert other.status_code == 201
        assert len(answers._answers[number]) == 3
        answers.sweep()
        assert {key for _, key in answers._answers[number]} == {"key-8", "key-9"}
        kept = answers._answers[number].items()
        assert PEOPLE[0] not in str([(place, answer.body) for place, answer in kept])


def test_what_is_kept_for_a_time_is_forgotten_without_another_request(sqlite_place: Place) -> None:
    """Answers and sessions have names in them."""
    settings = replace(SETTINGS, note_seconds=0.05)
    with serving(sqlite_place, settings=settings) as running, running.http() as http:
        http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed())
        answers, sessions = running.app.state.service.answers, running.app.state.sessions
        number = running.numbers["operator"]
        sessions.begin(b"digest of a token")
        time.sleep(0.3)
        assert (len(answers._answers[number]), len(sessions._sessions)) == (1, 1)
        for answer in answers._answers[number].values():
            answer.until = 0.0
        sessions.now = lambda: time.monotonic() + IDLE + 1
        for _ in range(2400):
            if not answers._answers[number] and not sessions._sessions:
                break
            time.sleep(0.05)
        assert (len(answers._answers[number]), len(sessions._sessions)) == (0, 0)


def test_no_token_pushes_out_the_answers_of_another(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "_MOST", 3)
    sent = {"users": [PEOPLE[0]]}
    with served.http() as http, served.http("admin") as other:
        first = http.post("/v1/deletions", json=sent, headers=keyed())
        for place in range(10):
            other.post("/v1/deletions", json=sent, headers=keyed(f"key-{place}"))
        again = http.post("/v1/deletions", json=sent, headers=keyed())
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
