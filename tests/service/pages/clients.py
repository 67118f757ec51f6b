"""A browser without scripts: it keeps cookies, reads forms, and sends them."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.service.servers import NO_AUTHORITY, Served


class PageClient:
    """Somebody at the page, who has signed in or not."""

    def __init__(self, served: Served) -> None:
        self.http = httpx.Client(
            base_url=served.url, timeout=30, trust_env=False, follow_redirects=True, verify=NO_AUTHORITY
        )
        self.csrf = ""

    def sign_in(self, token: str) -> httpx.Response:
        answer = self.http.post("/page/sign-in", data={"token": token})
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', answer.text)
        self.csrf = found[1] if found else ""
        return answer

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    def post(self, path: str, data: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        return self.http.post(path, data={"csrf": self.csrf, **(data or {})}, **options)

    def preview(self, *names: str, **fields: str) -> httpx.Response:
        return self.post("/page/forget/preview", {"names": "\n".join(names), **fields})

    def confirm(self, previewed: httpx.Response) -> httpx.Response:
        """Confirm, and wait until that is done."""
        answer = self.post("/page/forget/confirm", {"prepared": prepared_in(previewed)})
        return self.once_done(answer.url.path) if "<progress" in answer.text else answer

    def once_done(self, path: str, **options: Any) -> httpx.Response:
        """What a request shows when it is done."""
        until = time.monotonic() + 60
        while "<progress" in (answer := self.get(path, **options)).text:
            assert time.monotonic() < until, "the request is still being answered"
            time.sleep(0.01)
        return answer


def prepared_in(previewed: httpx.Response) -> str:
    found = re.search(r'name="prepared" value="([0-9a-f]{32})"', previewed.text)
    assert found, previewed.text
    return found[1]


@contextmanager
def at_the_page(served: Served, role: str | None = "operator") -> Iterator[PageClient]:
    client = PageClient(served)
    with client.http:
        if role is not None:
            assert client.sign_in(served.tokens[role]).status_code == 200
            assert client.csrf
        yield client
