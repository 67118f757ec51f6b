"""What is answered before a request is one: connections without a request, too many of them, and bad ones."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from armnesia.service import protocol, server
from armnesia.service.app import create_app
from tests.databases import Place
from tests.service.servers import SETTINGS, Served, fill, listening
from tests.service.test_headers import ALWAYS

HEAD = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM = b"POST /page/sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM += b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def connected(url: str, sent: bytes = b"") -> Iterator[socket.socket]:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), 20) as made:
        made.sendall(sent)
        yield made


def received(made: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    parts = iter(lambda: made.recv(65536), b"")
    return b"".join(parts)


def answer_in(content: bytes) -> tuple[int, httpx.Headers, Any]:
    head, _, body = content.partition(b"\r\n\r\n")
    first, *others = head.decode().split("\r\n")
    headers = httpx.Headers([(name, value) for name, _, value in (line.partition(": ") for line in others)])
    if "chunked" in headers.get("transfer-encoding", ""):
        body = body.split(b"\r\n")[1]
    return int(first.split()[1]), headers, json.loads(body)


def short(monkeypatch: pytest.MonkeyPatch, head: float = 0.3, body: float = 0.6) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", head)
    monkeypatch.setattr(protocol, "BODY_SECONDS", body)


@pytest.mark.parametrize("sent", [b"", b"GET /li", HEAD, HEAD + b"\r\n" + HEAD[:9], FORM % 9 + b"token="])
def test_a_request_that_does_not_end_is_given_up(
    served: Served, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    short(monkeypatch)
    begun = time.monotonic()
    with connected(served.url, sent) as made:
        received(made)
    assert 0.2 < time.monotonic() - begun < 4.0  # uvicorn would close after 5 seconds at the earliest


def test_bytes_that_come_slowly_gain_no_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch)
    begun = time.monotonic()
    with connected(served.url) as made, suppress(ConnectionError):
        for _ in range(100):
            made.sendall(b"X")
            time.sleep(0.05)
    assert time.monotonic() - begun < 4.0


def test_a_request_that_takes_long_to_answer_is_not_given_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch, 0.2, 0.2)
    served.app.state.service.worker.write(lambda _: time.sleep(1.0))
    with served.http() as http:
        assert http.post("/v1/deletions", json={"users": ["cem-4711"]}).status_code == 201
        assert http.get("/live").status_code == 200


def test_idle_connections_shut_nobody_out_for_long(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch, 1.0)
    monkeypatch.setattr(server, "_CONNECTIONS", 20)
    fill(sqlite_place)
    with listening(create_app(sqlite_place.open, SETTINGS)) as url:
        parts = urlsplit(url)
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(25)]
        with connected(url, HEAD + b"\r\n") as made:
            status, headers, problem = answer_in(received(made))
        assert (status, problem["type"]) == (503, "urn:armnesia:problem:too-busy")
        assert headers["retry-after"] == "1"
        check(headers)
        time.sleep(1.5)
        assert httpx.get(f"{url}/live", trust_env=False).status_code == 200
        for each in idle:
            each.close()


def check(headers: httpx.Headers) -> None:
    assert headers["content-type"] == "application/problem+json"
    assert headers["connection"] == "close"
    for name, value in ALWAYS.items():
        assert headers.get_list(name) == [value]


@pytest.mark.parametrize("sent", [b"nothing\r\n\r\n", HEAD + b"a b\r\n\r\n", HEAD + b"X: " + b"a" * 100_000])
def test_what_is_no_http_is_told_as_a_problem(served: Served, sent: bytes) -> None:
    with connected(served.url, sent) as made:
        content = made.recv(65536)
    status, headers, problem = answer_in(content)
    assert (status, problem["type"]) == (400, "urn:armnesia:problem:no-http")
    check(headers)


def test_headers_of_the_service_are_in_these_answers_as_well(sqlite_place: Place) -> None:
    fill(sqlite_place)
    app = create_app(sqlite_place.open, SETTINGS, headers={"Strict-Transport-Security": "max-age=1"})
    with (
        listening(app, {"Strict-Transport-Security": "max-age=1"}) as url,
        connected(url, b"x\r\n\r\n") as made,
    ):
        _, headers, _ = answer_in(made.recv(65536))
    assert headers["strict-transport-security"] == "max-age=1"


@pytest.mark.parametrize("length", [4_001, 3_999_999])
def test_a_form_that_is_too_large_is_refused_before_it_is_read(served: Served, length: int) -> None:
    with connected(served.url, FORM % length) as made:
        assert made.recv(100).startswith(b"HTTP/1.1 413")
    chunked = (FORM % 1).replace(b"Content-Length: 1", b"Transfer-Encoding: chunked")
    with connected(served.url, chunked + b"%x\r\n" % length + b"a" * min(length, 5_000)) as made:
        assert made.recv(100).startswith(b"HTTP/1.1 413")


def test_a_large_form_of_somebody_who_has_signed_in_is_refused_before_it_is_read(served: Served) -> None:
    with served.http(None) as http:
        cookie = http.post("/page/sign-in", data={"token": served.tokens["operator"]}).cookies
    sent = (FORM % 1_000_001).replace(b"/page/sign-in", b"/page/forget/preview")
    sent = sent[:-2] + b"Cookie: armnesia_session=%s\r\n\r\n" % cookie["armnesia_session"].encode()
    with connected(served.url, sent) as made:
        assert made.recv(100).startswith(b"HTTP/1.1 413")


DOCUMENTS = 100 * b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextmanager
def not_reading(url: str) -> Iterator[socket.socket]:
    """A client that asks for more than fits into the buffers, and reads nothing."""
    parts = urlsplit(url)
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(20)
        made.connect((parts.hostname, parts.port))
        made.sendall(DOCUMENTS)
        yield made


def test_a_client_that_does_not_read_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.5)
    with served.http(None) as http:
        length = len(http.get("/openapi.json").content)
    with not_reading(served.url) as made:
        time.sleep(2.5)
        content = 0
        with suppress(ConnectionError):
            while part := made.recv(65536):
                content += len(part)
    assert content < 90 * length


@pytest.mark.slow
def test_a_client_that_reads_slowly_gets_its_answers(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 3.0)  # a busy machine may stop both for a second
    with connected(served.url, DOCUMENTS) as made:
        content, ended = bytearray(), time.monotonic() + 5.0
        while content.count(b"HTTP/1.1 200") < 100:
            part = made.recv(30_000)
            assert part, "the connection was closed"
            content += part
            time.sleep(0.05 * (time.monotonic() < ended))


def test_the_end_does_not_wait_for_a_client_that_does_not_read(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "ENDING_SECONDS", 0.5)
    fill(sqlite_place)
    with ExitStack() as clients:
        with listening(create_app(sqlite_place.open, SETTINGS)) as url:
            clients.enter_context(not_reading(url))
            time.sleep(1.5)
            ended = time.monotonic()
        assert time.monotonic() - ended < 10


def test_a_refused_request_does_not_hold_its_connection_by_its_body(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "ANSWERED_SECONDS", 0.5)
    begun = time.monotonic()
    sent = b"POST /v1/deletions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
    with connected(served.url, sent) as made, suppress(ConnectionError):
        assert made.recv(65536).startswith(b"HTTP/1.1 401")
        for _ in range(300):
            made.sendall(b"X")
            time.sleep(0.05)
    assert time.monotonic() - begun < 10
