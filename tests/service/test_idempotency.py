"""The same Idempotency-Key gives the same answer, and does nothing twice."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import pytest
from starlette.responses import Response

from armnesia.service import idempotency
from armnesia.service.pages.sessions import LIFETIME
from tests.service.servers import PEOPLE, Served, serving_existing
from tests.service.test_vault_worker import Held

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
        assert (second["repeated"], second["entry"]) == (True, first["entry"])
        assert second["certificate"]["envelope"] == first["certificate"]["envelope"]
        assert http.post("/v1/records", json=RECORDS, headers=keyed()).json()["already_there"] == 1


def test_a_key_in_use_is_refused(served: Served) -> None:
    held = Held(served.app.state.service.worker)

    def send() -> Any:
        with served.http() as http:
            return http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed())

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(send) for _ in range(2)]
        refused = next(as_completed(both)).result()
        assert (refused.status_code, refused.headers["retry-after"]) == (409, "1")
        held.release()
        assert sorted(each.result().status_code for each in both) == [201, 409]


def test_old_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """When their hour is over, or there are too many; but none that is not answered yet."""
    monkeypatch.setattr(idempotency, "_MOST", 3)
    now = 0.0
    answers = idempotency.Answers(lambda: now)

    async def ask(key: str) -> Response:
        async def answer() -> Response:
            return Response(key)

        return await answers.once((1, "deletions", key), b"body", answer)

    async def work() -> None:
        nonlocal now
        for number in range(5):
            await ask(f"key-{number}")
        answers.sweep()
        assert [key for _, _, key in answers._answers] == ["key-2", "key-3", "key-4"]
        assert "idempotent-replayed" in (await ask("key-4")).headers
        now = idempotency.SECONDS + 1
        assert "idempotent-replayed" not in (await ask("key-4")).headers
        assert [key for _, _, key in answers._answers] == ["key-4"]
        first, never = asyncio.create_task(ask("key-5")), asyncio.Event()

        async def wait() -> Response:
            await never.wait()
            return Response("late")

        waiting = asyncio.create_task(answers.once((2, "deletions", "key"), b"", wait))
        await first
        await asyncio.sleep(0)
        now *= 3
        answers.sweep()
        assert [key for _, _, key in answers._answers] == ["key"]
        never.set()
        assert (await waiting).body == b"late"

    asyncio.run(work())


def test_what_is_kept_for_a_time_is_forgotten_without_another_request(served: Served) -> None:
    """Answers and sessions have names in them."""
    with served.http() as http:
        http.post("/v1/deletions", json={"users": [PEOPLE[0]]}, headers=keyed())
    service, sessions = served.app.state.service, served.app.state.sessions
    sessions.begin(b"digest of a token")
    assert (len(service.answers._answers), len(sessions._sessions)) == (1, 1)
    now = time.monotonic() + max(idempotency.SECONDS, LIFETIME) + 1
    service.answers.now = sessions.now = lambda: now
    asyncio.run(service.upkeep())
    assert (len(service.answers._answers), len(sessions._sessions)) == (0, 0)
