"""Who sees the page: every page, for strangers, weak roles, forged forms and sessions that have ended."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import APIRouter

from armnesia.service.app import create_app
from armnesia.service.pages import sessions
from armnesia.service.pages.routing import FORM_BYTES, PageRoute
from armnesia.service.pages.sessions import IDLE, LIFETIME
from armnesia.vault import Role, Vault
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.pages.clients import PageClient, at_the_page
from tests.service.servers import SETTINGS, Served, fill, listening, serving

OPEN = {("GET", "/"), ("GET", "/page"), ("GET", "/page/sign-in"), ("POST", "/page/sign-in")}
OPEN |= {("GET", "/page/static/{name:path}")}
"""What a stranger may see: a new page has to be added here, or refuse strangers."""


class Page(NamedTuple):
    method: str
    path: str
    role: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def pages() -> Iterator[Page]:
    with tempfile.TemporaryDirectory() as folder:
        made = processor(Path(folder))
    app = create_app(lambda: Vault.open("sqlite:///never-opened.db"), SETTINGS, processor=made)
    for route in _routes(app.routes):
        if route.path == "/" or route.path.startswith("/page"):
            for method in route.methods:
                yield Page(method, route.path, (route.openapi_extra or {}).get("x-role"))


def _routes(found: Any) -> Iterator[Any]:
    """All routes, also those of routers that were included."""
    for route in found:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _routes(inner.routes)
        elif hasattr(route, "methods"):
            yield route


PAGES = list(pages())
GUARDED = [each for each in PAGES if each.role is not None]


def call(client: PageClient, page: Page, **options: Any) -> httpx.Response:
    path = re.sub(r"\{[^}]*\}", "1", page.path)
    return client.http.request(page.method, path, follow_redirects=False, **options)


def test_only_signing_in_is_open() -> None:
    assert {(each.method, each.path) for each in PAGES if each.role is None} == OPEN
    assert len(GUARDED) >= 20


@pytest.mark.parametrize("page", GUARDED, ids=str)
def test_a_page_refuses_strangers(shared: Served, page: Page) -> None:
    with at_the_page(shared, None) as client:
        for cookies, ended in (({}, False), ({"armnesia_session": "0" * 64}, True)):
            client.http.cookies = httpx.Cookies(cookies)
            answer = call(client, page)
            assert answer.status_code == 303
            assert answer.headers["location"] == "/page/sign-in" + ("?ended=1" if ended else "")
            assert answer.content == b""
        part = call(client, page, headers={"HX-Request": "true"})
        assert (part.status_code, part.headers["hx-redirect"]) == (401, "/page/sign-in?ended=1")
        client.http.cookies.clear()
        with_token = call(client, page, headers=shared.headers("admin"))
        assert with_token.status_code == 303  # tokens are for the API, and sessions are for the page


@pytest.mark.parametrize("page", [each for each in GUARDED if each.role != "reader"], ids=str)
def test_a_page_refuses_a_weaker_role(shared: Served, page: Page) -> None:
    with at_the_page(shared, "reader") as client:
        answer = call(client, page, data={"csrf": client.csrf} if page.method == "POST" else None)
        assert answer.status_code == 403
        assert "ask for a token of the role operator" in answer.text


@pytest.mark.parametrize("page", [each for each in GUARDED if each.method == "POST"], ids=str)
def test_a_form_that_was_not_made_by_the_session_is_refused(shared: Served, page: Page) -> None:
    with at_the_page(shared) as client, at_the_page(shared) as other:
        for csrf in ("", "x", "ñ", client.csrf[:-1], client.csrf.upper() + "0", other.csrf):
            answer = call(client, page, data={"csrf": csrf})
            assert answer.status_code == 403, csrf
            assert "not made by this session" in answer.text
        own = {"csrf": client.csrf}
        for site in ("cross-site", "same-site"):
            answer = call(client, page, data=own, headers={"Sec-Fetch-Site": site})
            assert answer.status_code == 403
            assert "sent by another site" in answer.text
        by_header = call(client, page, headers={"X-CSRF-Token": client.csrf, "Sec-Fetch-Site": "same-origin"})
        assert by_header.status_code != 403


def test_a_reader_sees_neither_forget_nor_numbers(shared: Served) -> None:
    with at_the_page(shared, "reader") as client, at_the_page(shared, "operator") as operator:
        seen, all_of_it = client.get("/page/decisions").text, operator.get("/page/decisions").text
        for words in ('href="/page/forget"', 'href="/page/requests"', "95 % interval"):
            assert words not in seen
            assert words in all_of_it
        assert "is for the role <em>operator</em>" in seen


def test_the_cookie_says_as_little_as_it_can(shared: Served, sqlite_place: Place) -> None:
    form = {"token": shared.tokens["reader"]}
    answer = httpx.post(f"{shared.url}/page/sign-in", data=form, trust_env=False)
    cookie = answer.headers["set-cookie"]
    assert re.match(r"armnesia_session=[0-9a-f]{64};", cookie)
    for flag in ("HttpOnly", "SameSite=strict", "Path=/page", "Max-Age=28800"):
        assert flag in cookie
    assert "Secure" not in cookie
    assert shared.tokens["reader"] not in str(answer.headers)
    tokens = fill(sqlite_place)
    with listening(create_app(sqlite_place.open, SETTINGS, behind_tls_proxy=True)) as url:
        behind_tls = httpx.post(f"{url}/page/sign-in", data={"token": tokens["reader"]}, trust_env=False)
    assert "; Secure" in behind_tls.headers["set-cookie"]
    assert behind_tls.headers["strict-transport-security"] == "max-age=31536000"


def test_the_policy_of_a_page_allows_its_own_files_only(shared: Served) -> None:
    with at_the_page(shared) as client:
        for path in ("/page/decisions", "/page/sign-in", "/page/nothing-here"):
            answer = client.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert set(re.findall(r"src ('[a-z]+')", policy)) == {"'none'", "'self'"}
            assert answer.headers["cache-control"] == "no-store"
            assert not re.search(r"<[^>]* (style|on[a-z]+)=|<style|<script(?! src=)", answer.text)
            assert not re.search(r'(src|href)="(?!/page|#)', answer.text)


def test_a_token_that_is_not_accepted(shared: Served) -> None:
    with at_the_page(shared, None) as client:
        for wrong in ("", "x", shared.tokens["admin"][:-1], "ñ"):
            answer = client.sign_in(wrong)
            assert answer.status_code == 401
            assert "This token is not accepted" in answer.text
            assert not client.http.cookies
            assert not wrong or f'value="{wrong}"' not in answer.text


@pytest.mark.parametrize(("seconds", "step"), [(IDLE, IDLE + 1), (LIFETIME, IDLE / 2)])
def test_a_session_ends(shared: Served, seconds: float, step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now = shared.app.state.sessions.now()
    monkeypatch.setattr(shared.app.state.sessions, "now", lambda: now)
    with at_the_page(shared, "reader") as client:
        begun = now
        while now - begun <= seconds:
            assert client.get("/page/health").url.path == "/page/health"
            now += step
        answer = client.get("/page/health")
    assert answer.url.path == "/page/sign-in"
    assert "Your session has ended" in answer.text


def test_signing_out_ends_the_session(shared: Served) -> None:
    with at_the_page(shared) as client:
        cookie = client.http.cookies["armnesia_session"]
        assert client.post("/page/sign-out").url.path == "/page/sign-in"
        client.http.cookies.set("armnesia_session", cookie, domain="127.0.0.1", path="/page")
        assert client.get("/page/decisions").url.path == "/page/sign-in"


def test_a_revoked_token_ends_its_sessions(sqlite_place: Place) -> None:
    with (
        serving(sqlite_place) as served,
        at_the_page(served, "operator") as client,
        at_the_page(served, "reader") as other,
    ):
        with served.place.open() as vault:
            vault.revoke_token(served.numbers["operator"])
        assert client.get("/page/forget").url.path == "/page/sign-in"
        assert other.get("/page/decisions/only").status_code == 200


def test_signing_in_again_begins_another_session(shared: Served) -> None:
    with at_the_page(shared) as client:
        first, csrf = client.http.cookies["armnesia_session"], client.csrf
        client.sign_in(shared.tokens["operator"])
        assert client.http.cookies["armnesia_session"] != first
        assert client.csrf != csrf


def test_only_so_many_sessions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MOST", 30)
    kept = sessions.Sessions(now=lambda: 0.0)
    of_one = [kept.begin(b"token") for _ in range(25)]
    assert [kept.find(each) is not None for each in of_one] == [False] * 5 + [True] * 20
    others = [kept.begin(b"%d" % number) for number in range(15)]
    assert sum(kept.find(each) is not None for each in (*of_one, *others)) == 30
    assert kept.find(others[-1]) is not None


def test_a_form_that_is_too_large_or_none(shared: Served) -> None:
    with at_the_page(shared) as client:
        large = client.preview("x" * (FORM_BYTES + 1))
        assert large.status_code == 413
        assert "larger than this page takes" in large.text
        broken = client.http.post(
            "/page/forget/preview",
            content=b"--x\r\nnothing",
            headers={"Content-Type": "multipart/form-data", "X-CSRF-Token": client.csrf},
        )
        assert broken.status_code in (400, 422)
        assert 'role="alert"' in broken.text


def test_there_is_no_such_page(shared: Served) -> None:
    with at_the_page(shared) as client:
        for path in (
            "/page/x",
            "/page/ledger/x",
            "/page/ledger/0",
            "/page/ledger/999",
            "/page/explore?epsilon=x",
        ):
            answer = client.get(path)
            assert answer.status_code == 404, path
            assert "There is no such page." in answer.text
        assert client.get("/page/static/../app.py").status_code == 404
        assert client.get("/page/static/vendor/htmx.LICENSE").status_code == 404
        assert client.get("/page/decisions/no=key").status_code == 404


def test_a_page_that_says_no_role_is_refused() -> None:
    router = APIRouter(route_class=PageRoute)
    with pytest.raises(TypeError, match="must say which role"):
        router.get("/page/open")(lambda: None)


def test_the_role_of_every_page_is_one() -> None:
    assert {each.role for each in GUARDED} == {str(Role.READER), str(Role.OPERATOR)}


@pytest.mark.parametrize("charset", ["undefined", "no-such", "idna", "hex"])
def test_a_form_in_an_encoding_that_is_none_is_refused(shared: Served, charset: str) -> None:
    content = b'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\nabc\xff\r\n--x--\r\n'
    headers = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    with shared.http(None) as http:
        assert http.post("/page/sign-in", content=content, headers=headers).status_code in (400, 401)
