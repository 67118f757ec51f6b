"""Chromium for tests: it may talk to the service only, and must not complain."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.service.servers import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu"]
VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 850}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 850}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
}


def reason_to_skip() -> str | None:
    """Why no browser can be used here; None if one can."""
    for name in ("playwright", "axe_playwright_python"):
        if find_spec(name) is None:
            return f"{name} is not installed"
    return None if CHROMIUM else "Chromium is not installed"


def artefacts(otherwise: Path) -> Path:
    """Where screenshots are kept: CI names a folder."""
    folder = Path(os.environ.get("ARMNESIA_ARTEFACTS") or otherwise) / "page"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Watched:
    """A page of a browser, and whatever must not happen on it."""

    def __init__(self, page: Any, served: Served) -> None:
        self.page, self.served = page, served
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.addresses: list[str] = []
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.route("**/*", self._check_request)

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _check_request(self, route: Any) -> None:
        self.addresses.append(route.request.url)
        if urlsplit(route.request.url).netloc == urlsplit(self.served.url).netloc:
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def open(self, path: str) -> None:
        self.page.goto(self.served.url + path)

    def sign_in(self, role: str = "operator") -> None:
        self.open("/")
        self.page.fill("#token", self.served.tokens[role])
        self.page.click("main button")
        self.page.wait_for_selector("nav")

    def preview(self, *names: str) -> None:
        self.open("/page/forget")
        self.page.fill("#names", "\n".join(names))
        self.page.click("main button.main")
        self.page.wait_for_selector("h1:has-text('?')")

    def heading(self) -> str:
        return str(self.page.inner_text("h1"))


@contextmanager
def watching(browser: Any, served: Served, **options: Any) -> Iterator[Watched]:
    """A page in a profile of its own; at the end it must have nothing to complain of."""
    context = browser.new_context(**{**VIEWS["light"], **options})
    context.set_default_timeout(10_000)
    watched = Watched(context.new_page(), served)
    yield watched
    context.close()
    assert watched.complaints == []
    assert watched.foreign == []
