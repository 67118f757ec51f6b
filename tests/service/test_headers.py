"""Headers of every answer, refusals included: no cache, no frame, no program, no other site."""

from typing import Any

import pytest

from tests.service.servers import Served

ALWAYS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
NEVER = ("server", "x-powered-by", "etag", "last-modified", "set-cookie", "access-control-allow-origin")
REQUESTS: list[tuple[str, str, int]] = [
    ("GET", "/healthz", 200),
    ("GET", "/openapi.json", 200),
    ("GET", "/health", 200),
    ("GET", "/metrics", 200),
    ("GET", "/v1/decisions", 200),
    ("GET", "/v1/decisions/only", 200),
    ("GET", "/v1/ledger", 200),
    ("GET", "/v1/ledger/head", 200),
    ("GET", "/v1/deletions/99", 404),
    ("GET", "/nothing", 404),
    ("POST", "/v1/deletions", 422),
    ("PUT", "/v1/deletions", 405),
    ("OPTIONS", "/v1/deletions", 405),
]


def check(answer: Any) -> None:
    for name, value in ALWAYS.items():
        assert answer.headers.get_list(name) == [value], (answer.url, name)
    for name in NEVER:
        assert name not in answer.headers
    assert len(answer.headers["x-request-id"]) == 16


@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_every_answer_has_them(served: Served, method: str, path: str, status: int) -> None:
    with served.http() as http:
        answer = http.request(method, path, headers={"Origin": "https://other.example"})
        assert answer.status_code == status
        check(answer)


def test_refusals_of_strangers_and_of_large_bodies_have_them(served: Served) -> None:
    with served.http(None) as http:
        check(http.get("/v1/decisions"))
        check(http.get("/metrics"))
        check(http.get("/v1/ledger"))
    with served.http() as http:
        answer = http.post("/v1/deletions", content=b"x" * 4_000_001)
        assert answer.status_code == 413
        check(answer)


def test_certificates_are_not_cached(served: Served) -> None:
    with served.http() as http:
        done = http.post("/v1/deletions", json={"users": ["cem-4711"]})
        check(done)
        for path in (done.headers["Location"], f"/v1/certificates/{done.json()['entry']}"):
            check(http.get(path))
