"""OpenDSR 2.0, by the text of the specification; its sections are named."""

import asyncio
import base64
import hashlib
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from armnesia.core.errors import InvalidInputError
from armnesia.service.app import create_app
from armnesia.service.opendsr.desk import Desk
from armnesia.service.opendsr.processor import Processor
from armnesia.service.tokens import name_of
from armnesia.vault import Callback, ForgetRequest, Keyring, SubjectRequest, Vault
from tests.databases import Place, fresh_place
from tests.service.certificates import DOMAIN, HOST, elliptic_key, issued, processor, rsa_key
from tests.service.servers import PEOPLE, SETTINGS, Served, fill, let_the_desk_work, listening, log_of
from tests.service.test_vault_worker import worker_of
from tests.vault.raw_vaults import change, values

CALLBACK = f"https://{HOST}/opendsr/callbacks"


def body(**changes: Any) -> dict[str, Any]:
    """A request as section 7.2 has it."""
    return {
        "regulation": "gdpr",
        "subject_request_id": str(uuid.uuid4()),
        "subject_request_type": "erasure",
        "submitted_time": "2026-10-02T15:00:00Z",
        "subject_identities": [identity(PEOPLE[0])],
        "api_version": "2.0",
        **changes,
    }


def identity(value: str, format_: str = "raw", kind: str = "controller_customer_id") -> dict[str, str]:
    return {"identity_type": kind, "identity_value": value, "identity_format": format_}


@contextmanager
def opendsr(place: Place, made: Processor, names: tuple[str, ...] = PEOPLE) -> Iterator[Served]:
    from tests.service.servers import log_of

    tokens = fill(place, log=log_of(names))
    with place.open() as vault:
        tokens["another"] = vault.create_token("operator", name="another controller").text
    app = create_app(place.open, SETTINGS, processor=made)
    with listening(app) as url:
        yield Served(url, place, tokens, app)


@pytest.fixture
def served(place: Place, tmp_path: Path) -> Iterator[Served]:
    with opendsr(place, processor(tmp_path)) as running:
        yield running


@pytest.fixture
def waiting(sqlite_place: Place, tmp_path: Path) -> Iterator[Served]:
    """A service whose requests stay pending for an hour."""
    with opendsr(sqlite_place, processor(tmp_path, delay_hours=1.0)) as running:
        yield running


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for requests that leave nothing in its vault."""
    folder = tmp_path_factory.mktemp("refusing")
    with opendsr(fresh_place("sqlite", folder), processor(folder, delay_hours=1.0)) as running:
        yield running


def is_signed(answer: httpx.Response, served: Served) -> bool:
    """Check as section 8.8 and the security guidelines say, by the certificate that discovery names."""
    with served.http(None) as http:
        found = http.get("/v2/discovery").json()["processor_certificate"]
        assert found == f"https://{DOMAIN}/v2/certificate.pem"
        certificate = x509.load_pem_x509_certificate(http.get("/v2/certificate.pem").content)
    key = certificate.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    for prefix in ("X-OpenDSR", "X-OpenGDPR"):
        assert answer.headers[f"{prefix}-Processor-Domain"] == DOMAIN
        signature = base64.b64decode(answer.headers[f"{prefix}-Signature"], validate=True)
        try:
            key.verify(signature, answer.content, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
    return True


def status_of(served: Served, id_: str, *, until: str | tuple[str, ...] | None = None) -> str:
    wanted = (until,) if isinstance(until, str) else until
    with served.http() as http:

        def status() -> str:
            return str(http.get(f"/v2/requests/{id_}").json()["request_status"])

        if wanted is not None:
            let_the_desk_work(served, lambda: status() in wanted)
        return status()


def test_discovery_needs_no_token(waiting: Served) -> None:
    """Section 6."""
    with waiting.http(None) as http:
        answer = http.get("/v2/discovery")
    found = answer.json()
    assert set(found) == {
        "api_version",
        "supported_identities",
        "supported_subject_request_types",
        "processor_certificate",
    }
    assert found["supported_subject_request_types"] == ["erasure"]
    assert found["supported_identities"] == [
        {"identity_type": "controller_customer_id", "identity_format": "raw"}
    ]
    assert is_signed(answer, waiting)


def test_the_certificate_is_signed_as_every_answer(waiting: Served) -> None:
    with waiting.http(None) as http:
        assert is_signed(http.get("/v2/certificate.pem"), waiting)


def test_a_request_is_received_answered_and_completed(served: Served) -> None:
    """Sections 7 and 8."""
    sent = body()
    raw = json.dumps(sent).encode()
    with served.http() as http, served.place.open() as vault:
        answer = http.post("/v2/requests", content=raw, headers={"Content-Type": "application/json"})
        assert answer.status_code == 201
        assert is_signed(answer, served)
        found = answer.json()
        assert found["subject_request_id"] == sent["subject_request_id"]
        assert found["controller_id"] == "test of operator"
        assert base64.b64decode(found["encoded_request"]) == raw
        received = datetime.fromisoformat(found["received_time"])
        assert datetime.fromisoformat(found["expected_completion_time"]) - received == timedelta(days=30)
        assert status_of(served, sent["subject_request_id"], until="completed") == "completed"
        assert vault.n_records == 16
        status = http.get(f"/v2/requests/{sent['subject_request_id']}")
        assert is_signed(status, served)
        assert set(status.json()) == {
            "api_version",
            "controller_id",
            "expected_completion_time",
            "request_status",
            "subject_request_id",
        }
        (stored,) = vault.subject_requests()
        assert (stored.users, stored.status) == (None, "completed")
        certificate = vault.certificate(entry=stored.sequence or 0)
        assert certificate.verify(vault.public_keys().keys) == []
        own = vault.certificate(users=[PEOPLE[0]])
        assert {each.mention.text for each in own.openings} == {PEOPLE[0], "test of operator"}
        assert vault.forget(users=[PEOPLE[0]]).repeated
        assert vault.verify().problems == ()


def test_the_same_request_again_has_the_same_answer(waiting: Served) -> None:
    sent = body()
    with waiting.http() as http, waiting.place.open() as vault:
        first, second = (http.post("/v2/requests", json=sent) for _ in range(2))
        assert first.json() == second.json()
        assert len(vault.subject_requests()) == 1
        other = http.post("/v2/requests", json={**sent, "regulation": "ccpa"})
        assert (other.status_code, other.json()["error"]["code"]) == (400, 400)
        with waiting.http("another") as another:
            assert another.post("/v2/requests", json=sent).status_code == 400


def test_a_pending_request_can_be_cancelled_and_no_other(waiting: Served) -> None:
    """Section 9."""
    sent = body()
    path = f"/v2/requests/{sent['subject_request_id']}"
    with waiting.http() as http, waiting.place.open() as vault:
        http.post("/v2/requests", json=sent)
        assert vault.subject_requests()[0].users == (PEOPLE[0],)
        assert http.get(path).json()["request_status"] == "pending"
        answer = http.delete(path)
        assert (answer.status_code, is_signed(answer, waiting)) == (202, True)
        assert set(answer.json()) == {"controller_id", "received_time", "subject_request_id", "api_version"}
        assert http.get(path).json()["request_status"] == "cancelled"
        assert vault.subject_requests()[0].users is None
        assert http.delete(path).status_code == 400
        again = http.post("/v2/requests", json=sent)
        assert (again.status_code, again.json()["error"]["errors"][0]["reason"]) == (400, "cancelled")
        assert http.get(path).json()["request_status"] == "cancelled"
        assert vault.n_records == 20


def test_a_controller_sees_its_own_requests_only(waiting: Served) -> None:
    sent = body()
    path = f"/v2/requests/{sent['subject_request_id']}"
    with waiting.http() as http:
        http.post("/v2/requests", json=sent)
    with waiting.http("another") as http:
        assert (http.get(path).status_code, http.delete(path).status_code) == (404, 404)
    with waiting.http("admin") as http:
        assert http.get(path).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"regulation": "hipaa"},
        {"regulation": None},
        {"subject_request_id": "A7551968-D5D6-44B2-9831-815AC9017798"},
        {"subject_request_id": "c232ab00-9414-11ec-b3c8-9f6bdeced846"},
        {"subject_request_id": "1"},
        {"subject_request_type": "access"},
        {"subject_request_type": "portability"},
        {"submitted_time": "2026-10-02"},
        {"submitted_time": "2026-10-02T15:00:00"},
        {"submitted_time": "0001-01-01T00:00:00+14:00"},
        {"submitted_time": "9999-12-31T23:59:59-14:00"},
        {"status_callback_urls": ["https://xn--cb-.example/"]},
        {"subject_identities": []},
        {"subject_identities": None},
        {"subject_identities": [identity(PEOPLE[0], "sha256")]},
        {"subject_identities": [identity(PEOPLE[0], "md5")]},
        {"subject_identities": [identity(PEOPLE[0], kind="email")]},
        {"subject_identities": [identity("")]},
        {"subject_identities": [identity("a\0b")]},
        {"subject_identities": [{"identity_type": "controller_customer_id"}]},
        {"api_version": "1.0"},
        {"extensions": {DOMAIN: {"property": 1}}},
        {"unknown": 1},
        {"status_callback_urls": ["http://controller.example/"]},
        {"status_callback_urls": ["https://127.0.0.1/"]},
        {"status_callback_urls": ["https://controller.example.evil.example/"]},
        {"status_callback_urls": ["https://controller.example:8443/"]},
        {"status_callback_urls": ["https://controller.example@evil.example/"]},
        {"status_callback_urls": ["https://user@controller.example/"]},
        {"status_callback_urls": ["https://evil.example#controller.example"]},
        {"status_callback_urls": ["https://evil.example\\@controller.example/"]},
        {"status_callback_urls": ["https://[::1/"]},
        {"status_callback_urls": ["file:///etc/passwd"]},
        {"status_callback_urls": ["https://controller.example/\x01"]},
        {"status_callback_urls": ["https://contro\tller.example/"]},
        {"status_callback_urls": ["https://controller.example/\u200b"]},
        {"status_callback_urls": ["https://controller.example/" + "a" * 1974]},
    ],
    ids=str,
)
def test_a_request_that_is_refused(refusing: Served, changes: dict[str, Any]) -> None:
    """Sections 7.5 and 7.6: status 400, an error object, and nothing of the person in it."""
    with refusing.http() as http, refusing.place.open() as vault:
        answer = http.post("/v2/requests", json=body(**changes))
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["code"], set(error)) == (400, {"code", "message", "errors"})
        assert all(set(each) == {"domain", "reason", "message"} for each in error["errors"])
        assert PEOPLE[0] not in answer.text
        assert vault.subject_requests() == ()


def test_other_extensions_and_unknown_ids(waiting: Served) -> None:
    with waiting.http() as http:
        sent = body(extensions={"other.example": {"property": 1}})
        assert http.post("/v2/requests", json=sent).status_code == 201
        assert http.get(f"/v2/requests/{uuid.uuid4()}").status_code == 404
        assert http.get("/v2/requests/1").status_code == 400
        with waiting.http(None) as stranger:
            refused = stranger.post("/v2/requests", json=sent)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, 401)


def test_people_who_are_named_by_digests(sqlite_place: Place, tmp_path: Path) -> None:
    digests = tuple(hashlib.sha256(name.encode()).hexdigest() for name in PEOPLE)
    with (
        opendsr(sqlite_place, processor(tmp_path, names="sha256"), digests) as running,
        running.http() as http,
        sqlite_place.open() as vault,
    ):
        formats = [
            each["identity_format"] for each in http.get("/v2/discovery").json()["supported_identities"]
        ]
        assert formats == ["raw", "sha256"]
        for each in (identity(PEOPLE[0]), identity(digests[1].upper(), "sha256")):
            sent = body(subject_identities=[each])
            assert http.post("/v2/requests", json=sent).status_code == 201
            assert status_of(running, sent["subject_request_id"], until="completed") == "completed"
        assert vault.n_records == 12
        wrong = body(subject_identities=[identity("abc", "sha256")])
        assert http.post("/v2/requests", json=wrong).status_code == 400


class Controller:
    """Receives callbacks; answers as it is told."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.received = list(statuses), list[httpx.Request]()

    def transport(self) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            self.received.append(request)
            status = self.statuses.pop(0) if self.statuses else 202
            if status == 0:
                raise httpx.ConnectError("no answer")
            return httpx.Response(status, headers={"Location": "http://127.0.0.1/"})

        return httpx.MockTransport(answer)

    def told(self) -> list[str]:
        return [json.loads(request.content)["request_status"] for request in self.received]


class Clock:
    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.time


def stored(vault: Vault, made: Processor, **changes: Any) -> SubjectRequest:
    """A request in a vault, without a service."""
    from armnesia.service.opendsr.endpoints import OpenDsrRequest, _subject_request

    sent = body(status_callback_urls=[CALLBACK])
    request = _subject_request(OpenDsrRequest.model_validate_json(json.dumps(sent)), made, "controller")
    return vault.add_subject_request(replace(request, **changes), json.dumps(sent).encode())


@contextmanager
def at_the_desk(place: Place, made: Processor, controller: Controller) -> Iterator[tuple[Any, Clock, Vault]]:
    fill(place)
    clock = Clock()
    with worker_of(place) as worker, place.open() as vault:
        clock.time = datetime.now(UTC) + timedelta(seconds=5)

        def work() -> None:
            asyncio.run(Desk(worker, made, now=clock, transport=controller.transport()).work())

        yield work, clock, vault


def test_a_controller_is_told_of_every_change_and_can_verify_it(sqlite_place: Place, tmp_path: Path) -> None:
    """Sections 8.5 to 8.8."""
    made, controller = processor(tmp_path), Controller()
    with at_the_desk(sqlite_place, made, controller) as (work, _, vault):
        request = stored(vault, made)
        work()
        assert controller.told() == ["in_progress", "completed"]
        key = x509.load_pem_x509_certificate(made.pem).public_key()
        assert isinstance(key, rsa.RSAPublicKey)
        for each in controller.received:
            assert str(each.url) == CALLBACK
            told = json.loads(each.content)
            assert told["status_callback_url"] == CALLBACK
            assert (told["subject_request_id"], told["controller_id"]) == (request.id, "controller")
            signature = base64.b64decode(each.headers["X-OpenDSR-Signature"])
            key.verify(signature, each.content, padding.PKCS1v15(), hashes.SHA256())
            with pytest.raises(InvalidSignature):
                key.verify(signature, each.content + b" ", padding.PKCS1v15(), hashes.SHA256())
            assert PEOPLE[0].encode() not in each.content
        work()
        assert len(controller.received) == 2
        assert vault.subject_requests(only_open=True) == ()


def test_callbacks_are_tried_again_in_their_order(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path), Controller(500, 0, 302)
    with at_the_desk(sqlite_place, made, controller) as (work, clock, vault):
        stored(vault, made)
        work()
        assert controller.told() == ["in_progress"]
        work()
        assert len(controller.received) == 1
        for minutes in (1.1, 5.1, 15.1):
            clock.time += timedelta(minutes=minutes)
            work()
        assert controller.told() == ["in_progress"] * 4 + ["completed"]
        assert vault.subject_requests()[0].callbacks == ()


def test_a_controller_that_never_answers_is_given_up(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path), Controller(*[503] * 100)
    with at_the_desk(sqlite_place, made, controller) as (work, clock, vault):
        stored(vault, made)
        for _ in range(40):
            work()
            clock.time += timedelta(days=2)
        assert controller.told() == ["in_progress"] * 10 + ["completed"] * 10
        assert vault.subject_requests()[0].callbacks == ()


def test_a_host_that_is_no_longer_declared_is_not_called(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path), Controller()
    with at_the_desk(sqlite_place, processor(tmp_path, callback_hosts=()), controller) as (work, _, vault):
        stored(vault, made)
        work()
        assert controller.received == []


def test_a_request_waits_until_it_is_time(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path, delay_hours=24.0), Controller()
    with at_the_desk(sqlite_place, made, controller) as (work, clock, vault):
        stored(vault, made)
        work()
        assert (vault.subject_requests()[0].status, vault.n_records) == ("pending", 20)
        clock.time += timedelta(hours=25)
        work()
        assert (vault.subject_requests()[0].status, vault.n_records) == ("completed", 16)


def test_a_request_that_the_vault_refuses_waits_for_an_operator(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path), Controller()
    similar = PEOPLE[2].upper()
    with at_the_desk(sqlite_place, made, controller) as (work, clock, vault):
        stored(vault, made, users=(similar,))
        work()
        (found,) = vault.subject_requests()
        assert (found.status, found.obstacle, vault.n_records) == ("in_progress", "similar-name", 20)
        assert similar not in str(found.to_dict()) + repr(found)
        clock.time += timedelta(minutes=1)
        work()  # nobody has helped yet
        vault.forget(users=[similar], exactly=True)
        work()  # at once, not after an hour
        (found,) = vault.subject_requests()
        assert (found.status, found.obstacle, found.users) == ("completed", "", None)


def test_a_service_that_was_killed_between_steps_goes_on(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path), Controller()
    with at_the_desk(sqlite_place, made, controller) as (work, _, vault):
        request = stored(vault, made, status="in_progress")
        number = vault.forget(users=[PEOPLE[0]]).entry  # and was killed
        work()
        found = vault.subject_request(request.id)
        assert found is not None
        assert (found.status, found.sequence, vault.head.size) == ("completed", number, number)


def test_names_are_stored_encrypted_and_deleted_with_the_answer(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path, delay_hours=1.0), Controller()
    with at_the_desk(sqlite_place, made, controller) as (work, clock, vault):
        request = stored(vault, made)
        rows = str(values(vault, "SELECT * FROM subject_request"))
        assert PEOPLE[0] not in rows
        assert vault.subject_request(request.id) == request
        cipher = values(vault, "SELECT identity FROM subject_request")[0][0]
        clock.time += timedelta(hours=2)
        work()
        assert values(vault, "SELECT identity FROM subject_request") == [(None,)]
    for path in sqlite_place.path.parent.glob(f"{sqlite_place.path.name}*"):
        content = path.read_bytes()
        assert PEOPLE[0].encode() not in content
        assert cipher not in content


def test_a_request_that_something_else_has_changed_is_found(sqlite_place: Place, tmp_path: Path) -> None:
    made = processor(tmp_path, delay_hours=1.0)
    with at_the_desk(sqlite_place, made, Controller()) as (_, _, vault):
        request = stored(vault, made)
        with pytest.raises(InvalidInputError, match="has changed meanwhile"):
            vault.change_subject_request(replace(request, status="completed"), request)
        change(vault, "UPDATE subject_request SET status = 'cancelled'")
        assert vault.verify().problems == (
            "requests: rows were added, changed or removed by something other than armnesia",
        )


def test_what_is_stored_reads_back_the_same() -> None:
    request = SubjectRequest(
        "id",
        "pending",
        "c",
        "r",
        "s",
        "d",
        "b",
        "gdpr",
        "e",
        ("u",),
        (Callback("u", "pending", 3, "t"),),
        "o",
    )
    keyring = Keyring.create("v-1")
    assert SubjectRequest.of_row(request.row(keyring), keyring) == request
    assert request.to_dict()["untold"] == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"names": ("other.example",)}, "must be issued to 'opendsr.processor.example'"),
        ({"names": ()}, "must be issued to 'opendsr.processor.example'"),
        ({"days": -1}, "is not valid today"),
        ({"self_signed": True}, "is self-signed, which OpenDSR forbids"),
        ({"key": elliptic_key()}, "must be an RSA key of 2048 bits or more"),
        ({"key": rsa_key(1024)}, "must be an RSA key of 2048 bits or more"),
        ({"other_key": rsa_key()}, "is not that of the certificate"),
    ],
    ids=["name", "no name", "old", "self-signed", "elliptic", "short", "another key"],
)
def test_a_certificate_that_controllers_could_not_verify(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Processor(DOMAIN, *issued(tmp_path, **options))


def test_other_mistakes(tmp_path: Path) -> None:
    certificate, key = issued(tmp_path)
    (tmp_path / "empty").touch()
    for arguments, options, told in [
        ((tmp_path / "none", key), {}, "certificate .*none' cannot be read: No such file"),
        ((tmp_path / "empty", key), {}, "must be PEM"),
        ((certificate, tmp_path / "empty"), {}, "must be PEM"),
        ((certificate, key), {"names": "md5"}, "must be raw or sha256; got 'md5'"),
        ((certificate, key), {"delay_hours": -1}, "must be 0 or more hours; got -1"),
        (
            (certificate, key),
            {"callback_hosts": ("https://x/",)},
            "must be HOST or HOST:PORT; got 'https://x/'",
        ),
        ((certificate, key), {"callback_hosts": ("",)}, "must be HOST or HOST:PORT; got ''"),
    ]:
        with pytest.raises(InvalidInputError, match=told):
            Processor(DOMAIN, *arguments, **options)  # type: ignore[arg-type]


def test_without_a_processor_there_is_no_opendsr(sqlite_place: Place) -> None:
    app = create_app(sqlite_place.open)
    assert not [path for path in app.openapi()["paths"] if path.startswith("/v2")]


def test_an_address_that_cannot_be_called_harms_no_other_request(sqlite_place: Place, tmp_path: Path) -> None:
    """One that an earlier version has taken; it is given up like any other."""
    made, controller = processor(tmp_path), Controller()
    with at_the_desk(sqlite_place, made, controller) as (work, clock, vault):
        first = stored(vault, made, urls=(f"https://{HOST}/\x01",))
        second = stored(vault, made, users=(PEOPLE[1],))
        work()
        assert controller.told() == ["in_progress", "completed"]
        found = [vault.subject_request(each.id) for each in (first, second)]
        assert [each and each.status for each in found] == ["completed", "completed"]
        for _ in range(40):
            clock.time += timedelta(days=2)
            work()
        assert vault.subject_requests(only_open=True) == ()


def test_whatever_a_call_leads_to_is_tried_again(sqlite_place: Place, tmp_path: Path) -> None:
    made, controller = processor(tmp_path), Controller()

    def fail(request: httpx.Request) -> httpx.Response:
        raise ZeroDivisionError

    with at_the_desk(sqlite_place, made, controller) as (work, _, vault):
        stored(vault, made)
        controller.transport = lambda: httpx.MockTransport(fail)  # type: ignore[method-assign]
        work()
        assert [each.attempts for each in vault.subject_requests()[0].callbacks] == [1, 0]


def test_a_request_that_fails_does_not_hold_up_the_others(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, controller = processor(tmp_path), Controller()
    begin = Desk._begin

    async def fail_for_one(desk: Desk, request: SubjectRequest) -> SubjectRequest:
        if request.users == (PEOPLE[0],):
            raise ZeroDivisionError
        return await begin(desk, request)

    monkeypatch.setattr(Desk, "_begin", fail_for_one)
    with at_the_desk(sqlite_place, made, controller) as (work, _, vault):
        stored(vault, made)
        stored(vault, made, users=(PEOPLE[1],))
        work()
        assert sorted(each.status for each in vault.subject_requests()) == ["completed", "pending"]


def test_the_desk_goes_on_after_any_failure_and_counts_for_health(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = served.app.state.desk
    failed = threading.Event()

    async def fail() -> None:
        failed.set()
        raise ZeroDivisionError

    tasks = served.app.state.service._always
    loop = tasks[0].get_loop()
    with served.http() as http:
        with monkeypatch.context() as patched:
            patched.setattr(desk, "work", fail)
            loop.call_soon_threadsafe(desk.wake.set)
            assert failed.wait(30)
            assert http.get("/healthz").status_code == 200
        sent = body()
        assert http.post("/v2/requests", json=sent).status_code == 201
        later = status_of(served, sent["subject_request_id"], until=("in_progress", "completed"))
        assert later != "pending"

        def end(_: object) -> None:
            raise SystemError

        monkeypatch.setattr("armnesia.service.opendsr.desk.described", end)
        monkeypatch.setattr(desk, "work", fail)
        ended = threading.Event()
        for task in tasks:
            task.add_done_callback(lambda _: ended.set())
        loop.call_soon_threadsafe(desk.wake.set)
        assert ended.wait(30)
        assert http.get("/healthz").status_code == 503
        assert http.get("/health").json()["status"] == "failing"


@pytest.mark.slow
def test_hosts_are_called_at_the_same_time(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer is called once in a round, and does not hold up the others."""
    monkeypatch.setattr("armnesia.service.opendsr.desk._SECONDS", 5.0)
    slow, quick = "slow.example", "quick.example"
    made, called = processor(tmp_path, callback_hosts=(HOST, slow, quick)), list[str]()
    ended: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        called.append(request.url.host)
        if request.url.host == slow:
            await asyncio.Event().wait()
        ended.append(request.url.host)
        return httpx.Response(202)

    controller = Controller()
    controller.transport = lambda: httpx.MockTransport(answer)  # type: ignore[method-assign]
    with at_the_desk(sqlite_place, made, controller) as (work, _, vault):
        urls = tuple(f"https://{host}/" for host in (slow, quick))
        for name in PEOPLE[:3]:
            stored(vault, made, users=(name,), urls=urls)
        work()
        assert (called.count(slow), called.count(quick), ended.count(quick)) == (1, 6, 6)
        left = [each for request in vault.subject_requests() for each in request.callbacks]
        assert {each.url for each in left} == {f"https://{slow}/"}
        assert sorted(each.attempts for each in left) == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("host", ["Controller.example", "controller.example:443", "CONTROLLER.example:443"])
def test_a_declared_host_in_any_spelling(tmp_path: Path, host: str) -> None:
    made = processor(tmp_path, callback_hosts=(host,))
    assert made.callback_hosts == (HOST,)
    assert made.may_call(CALLBACK)
    assert made.may_call("https://Controller.EXAMPLE:443/x")
    assert not made.may_call("https://controller.example:8443/x")


def test_a_refused_request_is_not_remembered_for_good(sqlite_place: Place, tmp_path: Path) -> None:
    made = processor(tmp_path)
    fill(sqlite_place)
    with worker_of(sqlite_place) as worker, sqlite_place.open() as vault:
        clock = Clock()
        clock.time += timedelta(seconds=5)
        desk = Desk(worker, made, now=clock, transport=Controller().transport())
        stored(vault, made, users=(PEOPLE[2].upper(),))
        asyncio.run(desk.work())
        assert len(desk._refused) == 1
        vault.forget(users=[PEOPLE[2].upper()], exactly=True)
        clock.time += timedelta(hours=2)
        asyncio.run(desk.work())
        assert desk._refused == {}


def test_a_body_that_is_too_large_is_told_as_opendsr_has_it(waiting: Served) -> None:
    with waiting.http() as http:
        headers = {"Content-Type": "application/json"}
        answer = http.post("/v2/requests", content=b"x" * 4_000_001, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400)
        assert answer.json()["error"]["errors"][0]["reason"] == "body-too-large"
        assert http.post("/v1/deletions", content=b"x" * 4_000_001, headers=headers).status_code == 413


def test_deletions_are_counted_by_whatever_way_they_come(served: Served) -> None:
    with served.http() as http:

        def counted() -> float:
            found = re.search(r"^armnesia_deletions_total (\S+)", http.get("/metrics").text, re.M)
            return 0.0 if found is None else float(found[1])

        for name in PEOPLE[:2]:
            before = counted()
            http.post("/v2/requests", json=body(subject_identities=[identity(name)]))
            let_the_desk_work(served, lambda: counted() > before)  # noqa: B023 (called at once)
        before = counted()
        assert http.post("/v1/deletions", json={"users": [PEOPLE[2]]}).status_code == 201
        assert counted() > before


def test_a_refused_request_is_tried_less_and_less_often(sqlite_place: Place, tmp_path: Path) -> None:
    """However fast the ledger grows: each attempt may take seconds of the one writer."""
    made = processor(tmp_path)
    fill(sqlite_place, log=log_of((*PEOPLE, *(f"victim-{number}" for number in range(150)))))
    with worker_of(sqlite_place) as worker, sqlite_place.open() as vault:
        clock, tried = Clock(), list[datetime]()
        begun = clock.time = clock.time + timedelta(seconds=5)
        forget = worker.forget

        def count(request: ForgetRequest) -> Any:
            tried.append(clock.time)
            return forget(request)

        worker.forget = count  # type: ignore[method-assign]
        desk = Desk(worker, made, now=clock, transport=Controller().transport())
        stored(vault, made, users=(PEOPLE[2].upper(),))
        for number in range(140):
            asyncio.run(desk.work())
            vault.forget(users=[f"victim-{number}"])
            clock.time += timedelta(minutes=1)
        minutes = [round((each - begun).total_seconds() / 60) for each in tried]
        assert minutes == [0, 1, 2, 4, 8, 16, 32, 64, 124]
        vault.forget(users=[PEOPLE[2].upper()], exactly=True)
        clock.time += timedelta(hours=1)
        asyncio.run(desk.work())
        assert vault.subject_requests()[0].status == "completed"


def test_no_token_can_take_the_name_of_another_ones_number(waiting: Served) -> None:
    with waiting.place.open() as vault:
        nameless = vault.create_token("operator")
        number = nameless.token.number
        for name in (f"token-{number}", f"Token-{number}", f" token-{number}"):
            with pytest.raises(InvalidInputError, match="token-7"):
                vault.create_token("operator", name=name)
        vault.create_token("operator", name=f"token-desk-{number}")
    assert name_of(nameless.token) == f"token-{number}"
