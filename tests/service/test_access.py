"""Who gets in: every endpoint of the OpenAPI document, with every token that must not suffice."""

import asyncio
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import APIRouter

from armnesia.service.app import create_app
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.service.tokens import Route
from armnesia.vault import Role, Token, Tokens, Vault
from armnesia.vault.operations.tokens import token_digest
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.servers import PEOPLE, SETTINGS, Served, fill, serving, serving_existing
from tests.vault.raw_vaults import change

OPEN = {("get", "/healthz"), ("get", "/v2/discovery"), ("get", "/v2/certificate.pem")}
"""What needs no token: a new endpoint has to be added here, or refuse strangers."""


class Endpoint(NamedTuple):
    method: str
    path: str
    role: Role | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def endpoints() -> Iterator[Endpoint]:
    with tempfile.TemporaryDirectory() as folder:
        made = processor(Path(folder))
    app = create_app(lambda: Vault.open("sqlite:///never-opened.db"), SETTINGS, processor=made)
    for path, methods in app.openapi()["paths"].items():
        for method, described in methods.items():
            role = described.get("x-role")
            yield Endpoint(method, path, None if role is None else Role(role))


ENDPOINTS = list(endpoints())
GUARDED = [each for each in ENDPOINTS if each.role is not None]


def call(served: Served, endpoint: Endpoint, authorization: str | None) -> Any:
    path = re.sub(r"\{[^}]*\}", "1", endpoint.path)
    headers = {} if authorization is None else {"Authorization": authorization}
    with served.http(None) as http:
        return http.request(endpoint.method, path, headers=headers, content=b"{ this is not JSON")


def is_refused(answer: Any, status: int) -> bool:
    told = answer.json()
    if answer.url.path.startswith("/v2/"):
        assert set(told["error"]) == {"code", "message", "errors"}
        return bool(told["error"]["code"] == answer.status_code == status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert told["status"] == answer.status_code
    assert set(told) == {"type", "title", "status", "detail"}
    return bool(answer.status_code == status)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("access")
    place = Place(f"sqlite:///{folder}/vault.db", folder / "vault.db.keys")
    with serving_existing(place, fill(place), made=processor(folder)) as running:
        yield running


def test_only_one_address_is_open() -> None:
    assert {(each.method, each.path) for each in ENDPOINTS if each.role is None} == OPEN
    assert len(GUARDED) >= 10


@pytest.mark.parametrize("endpoint", GUARDED, ids=str)
def test_an_endpoint_refuses_whoever_has_no_valid_token(shared: Served, endpoint: Endpoint) -> None:
    """Before it reads the body, which is no JSON."""
    text = shared.tokens["admin"]
    for wrong in (
        None,
        "",
        "Bearer",
        f"Basic {text}",
        f"Bearer {text[:-1]}",
        f"Bearer {text}x",
        f"Bearer {text.lower()}",
        "Bearer ñ",
        text,
    ):
        answer = call(shared, endpoint, None if wrong is None else wrong.encode("latin-1"))  # type: ignore[arg-type]
        assert is_refused(answer, 401), wrong
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("endpoint", [each for each in GUARDED if each.role is not Role.READER], ids=str)
def test_an_endpoint_refuses_a_weaker_role(shared: Served, endpoint: Endpoint) -> None:
    assert endpoint.role is not None
    for role in Role:
        refused = call(shared, endpoint, f"Bearer {shared.tokens[role]}").status_code == 403
        assert refused == (not role.includes(endpoint.role))


@pytest.mark.parametrize("endpoint", GUARDED, ids=str)
def test_an_endpoint_refuses_revoked_expired_and_foreign_tokens(shared: Served, endpoint: Endpoint) -> None:
    with shared.place.open() as vault:
        revoked = vault.create_token("admin")
        assert call(shared, endpoint, f"Bearer {revoked.text}").status_code not in (401, 403)
        vault.revoke_token(revoked.token.number)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("armnesia.vault.operations.tokens.utc_now", lambda: "2026-01-01T10:00:00Z")
            expired = vault.create_token("admin", days=1)
    for text in (revoked.text, expired.text, f"armnesia_{'A' * 43}"):
        assert is_refused(call(shared, endpoint, f"Bearer {text}"), 401)


def test_tokens_that_something_else_has_changed_are_all_refused(sqlite_place: Place) -> None:
    with serving(sqlite_place) as running, running.http("reader") as http:
        assert http.get("/v1/decisions").status_code == 200
        with running.place.open() as vault:
            change(vault, "UPDATE token SET facts = replace(facts, 'reader', 'admin')")
        answer = http.get("/v1/decisions")
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:armnesia:problem:vault-unreadable"


def test_a_token_is_accepted_until_its_last_day(monkeypatch: pytest.MonkeyPatch) -> None:
    token = Token(1, Role.READER, "", "2026-11-03", "2026-11-06", digest=token_digest("text"))
    tokens = Tokens((token,))
    for day, accepted in (("02", False), ("03", True), ("06", True), ("07", False)):
        monkeypatch.setattr(
            "armnesia.vault.operations.tokens.utc_now", lambda day=day: f"2026-11-{day}T10:00:00Z"
        )
        assert (tokens.find(token.digest) == token) == accepted


def test_a_revoked_token_is_refused_after_the_time_of_the_cache(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(token_seconds=3600, verify_hours=0)
    with serving(sqlite_place, settings=settings) as running, running.http("reader") as http:
        assert http.get("/v1/ledger/head").status_code == 200
        with running.place.open() as vault:
            vault.revoke_token(running.numbers["reader"])
        assert http.get("/v1/ledger/head").status_code == 200
        now = time.monotonic() + 3600
        monkeypatch.setattr(running.app.state.service.guard, "now", lambda: now)
        assert http.get("/v1/ledger/head").status_code == 401


def test_uses_are_noted_by_day_and_number(sqlite_place: Place) -> None:
    with serving(sqlite_place) as running, running.http("reader") as http:
        for _ in range(7):
            http.get("/v1/ledger/head")
    with sqlite_place.open() as vault:
        found = {str(token.role): (token.last_used, token.uses) for token in vault.tokens()}
        assert found["reader"][1] == 7
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["reader"][0] or "")
        assert found["operator"] == (None, 0)
        assert vault.verify().holds


def test_an_endpoint_that_says_no_role_is_refused() -> None:
    router = APIRouter(route_class=Route)
    with pytest.raises(TypeError, match="/v1/new must say which role it needs"):
        router.get("/v1/new")(lambda: {})


def test_the_limits_of_bodies_and_batches(sqlite_place: Place) -> None:
    settings = Settings(body_bytes=1000, names=2, rows=1, page=1, verify_hours=0)
    with serving(sqlite_place, settings=settings) as running, running.http() as http:
        long = b'{"users": ["' + b"x" * 2000 + b'"]}'
        in_parts = (long[start : start + 100] for start in range(0, len(long), 100))
        for content in (long, in_parts):
            answer = http.post("/v1/deletions", content=content)
            assert (answer.status_code, answer.json()["type"][-14:]) == (413, "body-too-large")
        many = http.post("/v1/deletions", json={"users": list(PEOPLE[:3])})
        assert (many.status_code, many.json()["type"][-15:]) == (413, "batch-too-large")
        rows = [{"id": str(number), "action": "A", "reward": 1, "user": "x"} for number in range(2)]
        assert http.post("/v1/records", json={"rows": rows}).status_code == 413
        assert len(http.get("/v1/ledger", params={"limit": 500}).json()["entries"]) == 1
        with sqlite_place.open() as vault:
            assert vault.n_records == 20


def test_uses_that_could_not_be_noted_are_kept(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service = served.app.state.service

    def too_busy(*_: object) -> None:
        raise Problem("too-busy")

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with served.http("reader") as http:
        for _ in range(3):
            http.get("/v1/ledger/head")
    for failure in (too_busy, fail):
        with monkeypatch.context() as patched:
            patched.setattr(service.worker, "write", failure)
            asyncio.run(service.upkeep())
        assert sum(service.guard._uses.values()) == 3
    asyncio.run(service.upkeep())
    assert service.guard._uses == {}
    with served.place.open() as vault:
        assert sum(token.uses for token in vault.tokens()) == 3
