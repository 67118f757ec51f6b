"""Requests as HTTP/1.1 allows them to be sent: behind one another, in chunks, cut short, or not at all."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import httpx
import pytest

from armnesia.service import frame, protocol
from tests.service.servers import Served

LIVE = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextmanager
def talking(served: Served) -> Iterator[tuple[socket.socket, BinaryIO]]:
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), 20) as made, made.makefile("rb") as answers:
        yield made, answers


def next_answer(answers: BinaryIO, *, has_body: bool = True) -> tuple[int, httpx.Headers, bytes]:
    """The next answer of a connection, and nothing of the one after it."""
    status = int(answers.readline().split()[1])
    lines = iter(lambda: answers.readline().rstrip(b"\r\n"), b"")
    headers = httpx.Headers([(name, value) for name, _, value in (line.partition(b": ") for line in lines)])
    length = int(headers.get("content-length", 0))
    if has_body and headers.get("transfer-encoding") == "chunked":
        size = int(answers.readline(), 16)
        body = answers.read(size + 2)[:-2]
        assert answers.readline() == b"0\r\n"
        answers.readline()
        return status, headers, body
    return status, headers, answers.read(length) if has_body else b""


def deletion(
    served: Served, content: bytes, *headers: str, length: bool = True, role: str | None = "operator"
) -> bytes:
    lines = ["POST /v1/deletions HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers]
    lines += [] if role is None else [f"Authorization: Bearer {served.tokens[role]}"]
    lines += [f"Content-Length: {len(content)}"] if length else []
    return "\r\n".join([*lines, "", ""]).encode() + content


def asked(*users: str) -> bytes:
    return json.dumps({"users": users}).encode()


def test_requests_sent_behind_one_another_are_answered_in_their_order(served: Served) -> None:
    sent = deletion(served, asked("cem-4711")) + LIVE + deletion(served, asked("dan-4712")) + LIVE
    with talking(served) as (made, answers):
        made.sendall(sent)
        found = [next_answer(answers) for _ in range(4)]
    assert [status for status, _, _ in found] == [201, 200, 201, 200]
    sequences = [json.loads(found[place][2])["sequence"] for place in (0, 2)]
    assert sequences[0] < sequences[1]


def test_many_requests_behind_one_another_are_all_answered(served: Served) -> None:
    with talking(served) as (made, answers):
        made.sendall(1_500 * LIVE)  # more than the parser gets at once, and than is received at once
        assert [next_answer(answers)[0] for _ in range(1_500)] == 1_500 * [200]
        made.sendall(LIVE)
        assert next_answer(answers)[0] == 200


def test_requests_that_wait_are_not_all_read_at_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[None] = []
    complete = protocol.Protocol.on_headers_complete

    def count(self: protocol.Protocol) -> None:
        heads.append(None)
        complete(self)

    monkeypatch.setattr(protocol.Protocol, "on_headers_complete", count)
    with talking(served) as (made, answers):
        served.app.state.service.worker.write(lambda _: time.sleep(1.0))
        made.sendall(deletion(served, asked("cem-4711")) + 2_000 * LIVE)
        time.sleep(0.5)
        assert 1 < len(heads) < 200
        assert [next_answer(answers)[0] for _ in range(2_001)] == [201, *2_000 * [200]]


@pytest.mark.parametrize("bad", [b"nothing\r\n\r\n", b"GET /live HTTP/1.1\r\na b\r\n\r\n"])
def test_a_bad_request_behind_good_ones_is_told_after_their_answers(served: Served, bad: bytes) -> None:
    with talking(served) as (made, answers):
        made.sendall(deletion(served, asked("cem-4711")) + LIVE + bad + LIVE)
        found = [next_answer(answers)[0] for _ in range(3)]
        assert answers.read() == b""
    assert found == [201, 200, 400]


@pytest.mark.parametrize("before", [b"", LIVE, 2 * LIVE])
def test_a_bad_body_is_told_once_and_nothing_is_done(served: Served, before: bytes) -> None:
    sent = deletion(served, b"", "Transfer-Encoding: chunked", length=False) + b"zz\r\n"
    with talking(served) as (made, answers):
        made.sendall(before + sent + asked("cem-4711"))
        found = [next_answer(answers) for _ in range(before.count(b"GET") + 1)]
        assert answers.read() == b""
    assert [status for status, _, _ in found[:-1]] == before.count(b"GET") * [200]
    assert found[-1][0] == 400
    assert json.loads(found[-1][2])["type"] == "urn:armnesia:problem:no-http"
    with served.http() as http:
        assert http.post("/v1/deletions", json={"users": ["cem-4711"]}).json()["repeated"] is False


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_body_in_chunks_is_put_together(served: Served, size: int) -> None:
    content = asked("cem-4711")
    parts = [content[place : place + size] for place in range(0, len(content), size)]
    chunks = b"".join(b"%x;name=value\r\n%b\r\n" % (len(part), part) for part in parts)
    with talking(served) as (made, answers):
        made.sendall(deletion(served, b"", "Transfer-Encoding: chunked", length=False))
        made.sendall(chunks + b"0\r\n\r\n" + LIVE)
        status, _, body = next_answer(answers)
        assert (status, json.loads(body)["held"]) == (201, 1)
        assert next_answer(answers)[0] == 200


def test_headers_after_a_body_are_no_headers_of_a_request(served: Served) -> None:
    trailers = f"Authorization: Bearer {served.tokens['operator']}\r\nHost: other.example\r\n".encode()
    content = asked("cem-4711")
    chunks = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(content), content, trailers)
    sent = deletion(served, b"", "Transfer-Encoding: chunked", length=False, role=None)
    with talking(served) as (made, answers):
        made.sendall(sent + chunks)
        assert next_answer(answers)[0] == 401
        made.sendall(deletion(served, content, role=None))  # nor of the next one
        assert next_answer(answers)[0] == 401


@pytest.mark.parametrize("lines", [1, 800])
def test_a_head_that_is_too_long_is_refused(served: Served, lines: int) -> None:
    many = b"".join(b"X-%d: %b\r\n" % (number, b"a" * (96_000 // lines)) for number in range(lines))
    with talking(served) as (made, answers):
        try:
            made.sendall(LIVE[:-2] + many)
        except ConnectionError:
            return  # closed while it was being sent
        status, headers, body = next_answer(answers)
    assert (status, headers["connection"]) == (400, "close")
    assert json.loads(body)["type"] == "urn:armnesia:problem:no-http"


def test_a_long_head_within_the_limit_is_taken(served: Served) -> None:
    with talking(served) as (made, answers):
        for _ in range(3):
            made.sendall(LIVE[:-2] + b"X: " + b"a" * 60_000 + b"\r\nEmpty:\r\n\r\n")
            assert next_answer(answers)[0] == 200


def test_a_body_is_asked_for_if_the_client_waits_for_that(served: Served) -> None:
    content = asked("cem-4711")
    sent = deletion(served, content, "Expect: 100-continue")
    with talking(served) as (made, answers):
        made.sendall(sent[: -len(content)])
        assert answers.readline() == b"HTTP/1.1 100 Continue\r\n" or answers.readline()
        while answers.readline() != b"\r\n":
            pass
        made.sendall(content)
        assert next_answer(answers)[0] == 201
    with talking(served) as (made, answers):  # and not of somebody without a token
        made.sendall(deletion(served, content, "Expect: 100-continue", role=None)[: -len(content)])
        assert next_answer(answers)[0] == 401


def test_a_refused_request_leaves_the_connection_to_the_next_one(served: Served) -> None:
    content = asked(*(f"person {number}" for number in range(500)))
    with talking(served) as (made, answers):
        sent = deletion(served, content, role=None)
        made.sendall(sent[:-9])
        assert next_answer(answers)[0] == 401
        made.sendall(sent[-9:] + deletion(served, asked("cem-4711")))
        assert next_answer(answers)[0] == 201


@pytest.mark.parametrize(
    "sent",
    [
        LIVE[:-2] + b"Connection: close\r\n\r\n",
        b"GET /live HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)
def test_a_connection_is_closed_after_the_last_answer(served: Served, sent: bytes) -> None:
    with talking(served) as (made, answers):
        made.sendall(sent)
        status, headers, _ = next_answer(answers)
        assert (status, headers["connection"]) == (200, "close")
        assert answers.read() == b""


def test_an_upgrade_is_not_taken(served: Served) -> None:
    sent = LIVE[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with talking(served) as (made, answers):
        made.sendall(sent)
        assert next_answer(answers)[0] == 200


def test_an_answer_without_a_body_is_sent(served: Served) -> None:
    with talking(served) as (made, answers):
        for _ in range(2):
            made.sendall(LIVE.replace(b"GET", b"HEAD"))
            assert next_answer(answers, has_body=False)[0] == 405  # no address has HEAD
            made.sendall(LIVE)
            assert next_answer(answers)[0] == 200


@pytest.mark.parametrize("hosts", [b"", b"Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n"])
def test_a_request_has_one_host(served: Served, hosts: bytes) -> None:
    with talking(served) as (made, answers):
        made.sendall(b"GET /live HTTP/1.1\r\n" + hosts + b"\r\n")
        assert next_answer(answers)[0] == 400


def test_a_method_that_is_none_of_http_is_refused(served: Served) -> None:
    with talking(served) as (made, answers):
        made.sendall(LIVE.replace(b"GET", b"BREW"))
        assert next_answer(answers)[0] == 400


def test_a_connection_that_is_closed_by_half_is_given_up(served: Served) -> None:
    with talking(served) as (made, answers):
        made.sendall(deletion(served, asked("cem-4711"))[:-5])
        made.shutdown(socket.SHUT_WR)
        assert answers.read() == b""
    with served.http() as http:
        assert http.post("/v1/deletions", json={"users": ["cem-4711"]}).json()["repeated"] is False


def answered(served: Served, content: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    with served.http() as http:
        answer = http.post("/v1/deletions", content=content, headers=headers)
    facts = answer.json()
    return answer.status_code, {name: facts[name] for name in ("type", "detail", "errors") if name in facts}


DIRECT, BY_FASTAPI = "application/json", "application/json; a=b"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b'{"users": ["cem-4711"], "users": ["dan-4712"]}',
        b'{"users": []}',
        b'{"users": [1.5]}',
        b'{"users": ["cem-4711"], "epsilon": NaN}',
        b'{"users": ["cem-4711"], "epsilon": "1"}',
        b'{"users": ["cem-4711"], "unknown-of-ann": 1}',
        b'{"users": ["cem-4711"], "records": ["record-1"]}',
        b'{"users": ["Cem-4711"]}',
        b'{"users": ["cem-4711"], "unlearner": "none-such"}',
        b'{"users": ["' + b'a", "' * 1_001 + b'"]}',
        b"[" * 100_001,
        b'{"users": ["cem-4711"], "dry_run": true}',
    ],
)
@pytest.mark.parametrize("key", [None, "key-1", "", "a b", 201 * "k"])
def test_requests_are_refused_alike_with_and_without_fastapi(
    served: Served, content: bytes, key: str | None
) -> None:
    own = {} if key is None else {"Idempotency-Key": key}
    found = [answered(served, content, {"Content-Type": kind, **own}) for kind in (DIRECT, BY_FASTAPI)]
    assert found[0] == found[1]
    assert found[0][0] in (200, 409, 413, 422)


@pytest.mark.parametrize("kind", [DIRECT, BY_FASTAPI])
@pytest.mark.parametrize("content", [b'{"users": ["cem-4711"]}', b'{"users": []}'])
def test_each_request_is_counted_once(served: Served, kind: str, content: bytes) -> None:
    guard = served.app.state.service.guard
    before = guard._uses.total()
    for number in range(1, 4):
        answered(served, content, {"Content-Type": kind})
        assert guard._uses.total() == before + number


@pytest.mark.parametrize("kind", [DIRECT, BY_FASTAPI])
def test_requests_are_refused_by_their_token_before_their_body(served: Served, kind: str) -> None:
    for role, status in (("reader", 403), (None, 401)):
        with served.http(role) as http:
            answer = http.post("/v1/deletions", content=b"{", headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["status"]) == (status, status)


CHUNK = b"1\r\n \r\n"


def test_nothing_is_parsed_of_a_chunked_body_that_is_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "ANSWERED_SECONDS", 1.0)
    sizes: list[int] = []
    take = protocol.Protocol.on_body

    def count(self: protocol.Protocol, body: bytes) -> None:
        sizes.append(len(body))
        take(self, body)

    monkeypatch.setattr(protocol.Protocol, "on_body", count)
    with talking(served) as (made, answers):
        made.sendall(deletion(served, b"", "Transfer-Encoding: chunked", length=False, role=None))
        status, headers, _ = next_answer(answers)
        assert (status, headers["connection"]) == (401, "close")
        made.sendall(10_000 * CHUNK + b"0\r\n\r\n" + LIVE)
        assert answers.read() == b""  # closed after a while, and nothing else is answered
    assert sizes == []


def test_of_an_endless_body_that_is_answered_only_so_much_is_received(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "ANSWERED_SECONDS", 2.0)
    monkeypatch.setattr(protocol, "ANSWERED_BYTES", 100_000)
    received: list[int] = []
    take = protocol.Protocol.data_received

    def count(self: protocol.Protocol, data: bytes) -> None:
        received.append(len(data))
        take(self, data)

    monkeypatch.setattr(protocol.Protocol, "data_received", count)
    with talking(served) as (made, answers):
        made.sendall(deletion(served, b"", "Transfer-Encoding: chunked", length=False, role=None))
        assert next_answer(answers)[0] == 401
        with pytest.raises(ConnectionError):
            made.sendall(100_000_000 * b" ")
    assert sum(received) < 1_000_000


def test_others_have_their_turn_between_the_chunks_of_a_body(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks, most, beats = [0], [0], [0]
    take, begin = protocol.Protocol.on_body, protocol.Protocol.connection_made

    def count(self: protocol.Protocol, body: bytes) -> None:
        chunks[0] += 1
        take(self, body)

    def begin_beating(self: protocol.Protocol, transport: Any) -> None:
        begin(self, transport)

        def beat() -> None:
            most[0], chunks[0], beats[0] = max(most[0], chunks[0]), 0, beats[0] + 1
            if not transport.is_closing():
                self.loop.call_soon(beat)

        beat()

    monkeypatch.setattr(protocol.Protocol, "on_body", count)
    monkeypatch.setattr(protocol.Protocol, "connection_made", begin_beating)
    with talking(served) as (made, answers):
        made.sendall(deletion(served, b"", "Transfer-Encoding: chunked", length=False))
        made.sendall(50_000 * CHUNK + b"%x\r\n%b\r\n0\r\n\r\n" % (len(asked("cem-4711")), asked("cem-4711")))
        status, headers, _ = next_answer(answers)
        assert (status, "connection" in headers) == (201, False)
        made.sendall(LIVE)
        assert next_answer(answers)[0] == 200
    assert 0 < most[0] <= 4_096 // len(CHUNK) + 1
    assert beats[0] > 50_000 * len(CHUNK) // 4_096


LENGTH = f"Content-Length: {len(asked('cem-4711'))}"
WRONG_HEADS: list[list[str]] = [
    [LENGTH, LENGTH],
    [LENGTH, "Content-Length: 5"],
    [LENGTH, "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", LENGTH],
    ["Content-Length: +5"],
    ["Content-Length: 5, 5"],
    ["Content-Length: -1"],
    [f"Content-Length: {10**30}"],
    [f"Content-Length : {len(LENGTH)}"],
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding: chunked, gzip"],
    ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding:", " chunked"],
    ["Transfer-Encoding: \x0bchunked"],
    [LENGTH, "X: a\rb"],
    [LENGTH, "X: a\nb"],
    [LENGTH, "Authorization: Bearer other"],
    [LENGTH, "Content-Type: text/plain"],
    [LENGTH, "Idempotency-Key: a", "Idempotency-Key: b"],
    [LENGTH, "Connection: Upgrade", "Upgrade: h2c"],
    ["Transfer-Encoding: chunked", "Connection: Upgrade", "Upgrade: h2c"],
]


@pytest.mark.parametrize("heads", WRONG_HEADS, ids=repr)
def test_a_request_that_others_may_read_otherwise_is_refused(served: Served, heads: list[str]) -> None:
    content = asked("cem-4711")
    rest = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content) if "chunked" in str(heads) else content
    with talking(served) as (made, answers):
        made.sendall(deletion(served, b"", *heads, length=False) + rest + LIVE)
        assert next_answer(answers)[0] == 400
        assert answers.read() == b""
    with served.http() as http:
        assert http.post("/v1/deletions", json={"users": ["cem-4711"]}).json()["repeated"] is False


@pytest.mark.parametrize(
    "chunks",
    [
        b"5\n",
        b"5;a\n",
        b"0x5\r\n",
        b"-1\r\n",
        b"5 \r\n",
        b"f" * 18 + b"\r\n",
        b"1\r\naXX",
        b"1\r\na\n0\r\n\r\n",
    ],
)
def test_chunks_that_others_may_read_otherwise_are_refused(served: Served, chunks: bytes) -> None:
    with talking(served) as (made, answers):
        made.sendall(deletion(served, b"", "Transfer-Encoding: chunked", length=False) + chunks + LIVE)
        assert next_answer(answers)[0] == 400
        assert answers.read() == b""


@pytest.mark.parametrize("version", [b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/3.0"])
def test_other_versions_of_http_are_refused(served: Served, version: bytes) -> None:
    with talking(served) as (made, answers):
        made.sendall(LIVE.replace(b"HTTP/1.1", version))
        assert next_answer(answers)[0] == 400


def test_chunks_of_an_older_version_are_refused(served: Served) -> None:
    sent = deletion(served, b"0\r\n\r\n", "Transfer-Encoding: chunked", length=False)
    with talking(served) as (made, answers):
        made.sendall(sent.replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert next_answer(answers)[0] == 400


@pytest.mark.parametrize("kind", [DIRECT, BY_FASTAPI])
def test_space_around_a_header_is_no_part_of_it(served: Served, kind: str) -> None:
    content = asked("cem-4711")
    lines = ["POST /v1/deletions HTTP/1.1", "Host:\t127.0.0.1 \t", f"Content-Type: {kind}  "]
    lines += [f"Authorization:  Bearer {served.tokens['operator']} ", "Idempotency-Key:  key-1 \t"]
    lines += [f"Content-Length: {len(content)} "]
    with talking(served) as (made, answers):
        made.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        assert next_answer(answers)[0] == 201
        made.sendall(deletion(served, content, "Idempotency-Key: key-1"))
        assert next_answer(answers)[1]["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/v1/deletions", 405),
        ("OPTIONS", "/v1/deletions", 405),
        ("PUT", "/v1/deletions", 405),
        ("POST", "/v1/deletions/", 404),
        ("POST", "//v1/deletions", 404),
        ("POST", "/v1/x/../deletions", 404),
    ],
)
def test_other_methods_and_addresses_forget_nobody(
    served: Served, method: str, path: str, status: int
) -> None:
    sent = deletion(served, asked("cem-4711"))
    with talking(served) as (made, answers):
        made.sendall(sent.replace(b"POST /v1/deletions", f"{method} {path}".encode()))
        assert next_answer(answers, has_body=method != "HEAD")[0] == status
    with served.http() as http:
        assert http.post("/v1/deletions", json={"users": ["cem-4711"]}).json()["repeated"] is False


@pytest.mark.parametrize("role", ["operator", "reader", None])
@pytest.mark.parametrize(
    "content",
    [b'{"users": ["none"], "dry_run": true}', b"{", b'{"users": ["Cem-4711"]}', b'{"users": []}'],
)
def test_log_and_numbers_are_alike_with_and_without_fastapi(
    served: Served, monkeypatch: pytest.MonkeyPatch, role: str | None, content: bytes
) -> None:
    lines: list[dict[str, Any]] = []
    numbers: list[tuple[Any, ...]] = []

    def note(event: str, facts: dict[str, Any], level: int = 0) -> None:
        if event == "request":
            lines.append({**facts, "request": "", "milliseconds": 0, "level": level})

    monkeypatch.setattr(frame, "log", note)
    metrics = served.app.state.service.metrics
    monkeypatch.setattr(metrics, "observe_request", lambda *facts: numbers.append(facts[:3]))
    for kind in (DIRECT, BY_FASTAPI):
        with served.http(role) as http:
            http.post("/v1/deletions", content=content, headers={"Content-Type": kind})
    until = time.monotonic() + 20
    while len(lines) < 2 and time.monotonic() < until:  # they are written after the answers
        time.sleep(0.01)
    assert lines[0] == lines[1]
    assert numbers[0] == numbers[1]
    assert lines[0]["route"] == "/v1/deletions"
