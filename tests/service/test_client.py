"""The client: against a service, and against answers that no service gives."""

import importlib
import ssl
from typing import Any

import httpx
import pytest

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.service import Client, ServiceError, Settings, create_app
from tests.service.servers import PEOPLE, Served


def answering(*answers: Any) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        found = answers[min(len(seen), len(answers)) - 1]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, httpx.Response) else httpx.Response(found[0], **found[1])

    return httpx.MockTransport(answer), seen


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("armnesia.service.client.time.sleep", found.append)
    return found


def test_a_problem_becomes_an_error(served: Served) -> None:
    with served.client("reader") as client, pytest.raises(ServiceError) as caught:
        client.forget([PEOPLE[0]])
    assert (caught.value.status, caught.value.kind) == (403, "forbidden")
    assert str(caught.value) == "the service answered 403: The role of the token does not allow this."


def test_a_busy_service_is_asked_again_with_the_same_key(pauses: list[float]) -> None:
    transport, seen = answering(
        (503, {"headers": {"Retry-After": "3"}}),
        httpx.ConnectError("refused"),
        (429, {"headers": {"Retry-After": "1000"}}),
        (201, {"json": {"records": 1}}),
    )
    with Client("http://service", "token", transport=transport) as client:
        assert client.forget(["ann"]) == {"records": 1}
    assert pauses == [3.0, 0.2, 30.0]
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 1
    assert {request.content for request in seen} == {b'{"users":["ann"]}'}
    with Client("http://service", "token", transport=transport) as client:
        client.forget(["ann"])
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 2


def test_a_service_that_stays_busy(pauses: list[float]) -> None:
    transport, seen = answering((503, {"text": "<html>", "headers": {"Retry-After": "1"}}))
    told = pytest.raises(ServiceError, match="answered 503: it told nothing else")
    with Client("http://service", "token", transport=transport, retries=2) as client, told:
        client.head()
    assert (len(seen), len(pauses)) == (3, 2)


def test_what_is_no_answer_is_an_error(pauses: list[float]) -> None:
    transport, _ = answering(httpx.ReadTimeout("late"))
    told = pytest.raises(ServiceError, match="http://service cannot be reached: ReadTimeout")
    with Client("http://service/", "token", transport=transport, retries=1) as client, told as caught:
        client.head()
    assert (caught.value.status, caught.value.kind) == (None, "")


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "localhost", ""])
def test_an_address_without_a_scheme(url: str) -> None:
    with pytest.raises(InvalidInputError, match="url must begin with https://"):
        Client(url, "token")


def test_a_preview_and_the_state_of_the_service(served: Served) -> None:
    with served.client() as client:
        assert client.preview([PEOPLE[0]])["dry_run"] is True
        number = client.forget(records=["record-0"])["entry"]
        assert client.deletion(number)["entry"] == number
        assert client.certificate(number).entry.number == number
        assert client.health()["status"] == "ok"


IN_USE = {
    "json": {"type": "urn:armnesia:problem:key-in-use", "detail": "It is being answered."},
    "headers": {"Retry-After": "2"},
}


def test_a_request_that_is_still_being_answered_is_waited_for(pauses: list[float]) -> None:
    transport, seen = answering(
        httpx.ReadTimeout("late"), (409, IN_USE), (409, IN_USE), (201, {"json": {"entry": 2}})
    )
    with Client("http://service", "token", transport=transport) as client:
        assert client.forget(["ann"]) == {"entry": 2}
    assert pauses[1:] == [2.0, 2.0]
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 1
    similar = {"json": {"type": "urn:armnesia:problem:similar-name", "detail": "Spelled alike."}}
    transport, seen = answering((409, similar))
    told = pytest.raises(ServiceError, match="Spelled alike")
    with Client("http://service", "token", transport=transport) as client, told:
        client.forget(["ann"])
    assert len(seen) == 1


def test_a_pause_that_is_a_date_is_a_second(pauses: list[float]) -> None:
    date = {"headers": {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}}
    transport, _ = answering((503, date), (200, {"json": {"head": "1:ab"}}))
    with Client("http://service", "token", transport=transport) as client:
        assert client.head() == "1:ab"
    assert pauses == [1.0]


def test_health_is_told_also_if_it_is_failing(pauses: list[float]) -> None:
    failing = {"status": "failing", "database": "refused-by-vault"}
    transport, seen = answering((503, {"json": failing}))
    with Client("http://service", "token", transport=transport) as client:
        assert client.health() == failing
    assert (len(seen), pauses) == (1, [])


@pytest.mark.parametrize(
    ("answer", "status", "attempts"),
    [
        (httpx.ConnectError("refused"), None, 2),
        ((401, {"json": {"type": "urn:armnesia:problem:unauthorized"}}), 401, 1),
        ((503, {"json": {"type": "urn:armnesia:problem:vault-unreadable"}}), 503, 2),
        ((200, {"text": "<html>"}), 200, 1),
    ],
    ids=str,
)
def test_what_is_no_state_of_the_service_is_an_error(
    pauses: list[float], answer: Any, status: int | None, attempts: int
) -> None:
    transport, seen = answering(answer)
    told = pytest.raises(ServiceError)
    with Client("http://service", "token", transport=transport, retries=1) as client, told as caught:
        client.health()
    assert (caught.value.status, len(seen)) == (status, attempts)


def test_names_of_the_package() -> None:
    import armnesia.service

    assert armnesia.service.Settings is Settings
    assert callable(create_app)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = armnesia.service.nothing


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import armnesia.service

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    for module, error in (("fastapi", MissingExtraError), ("armnesia.gone", ModuleNotFoundError)):
        with monkeypatch.context() as patched:
            patched.setattr(importlib, "import_module", lambda _, name=module: missing(name))
            with pytest.raises(error):
                _ = armnesia.service.Client


@pytest.mark.parametrize(("url", "loads"), [("http://127.0.0.1:1", 0), ("https://127.0.0.1:1", 1)])
def test_authorities_are_read_only_where_a_certificate_is_checked(
    monkeypatch: pytest.MonkeyPatch, url: str, loads: int
) -> None:
    loaded: list[object] = []
    load = ssl.SSLContext.load_verify_locations

    def note(context: ssl.SSLContext, *places: Any, **named: Any) -> None:
        loaded.append(places or named)
        load(context, *places, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", note)
    with Client(url, "token", retries=0) as client, pytest.raises(ServiceError):
        client.head()
    assert len(loaded) == loads
