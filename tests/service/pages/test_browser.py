"""The page in Chromium: what a person does on it, what it looks like, and what it must not do."""

import csv
import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from armnesia.privacy import Level
from armnesia.service.pages import forget as forget_page
from armnesia.service.pages.sessions import IDLE
from armnesia.vault import Configuration, Policy, UserType
from tests.databases import Place, fresh_place
from tests.service.pages.browsers import (
    ARGUMENTS,
    CHROMIUM,
    VIEWS,
    Watched,
    artefacts,
    reason_to_skip,
    watching,
)
from tests.service.servers import Served, serving

pytestmark = pytest.mark.skipif(reason_to_skip() is not None, reason=str(reason_to_skip()))
PEOPLE = tuple(f"person-{number:04}" for number in range(500))
STAR = "Ada Ñandú <ada@example.org>"
ARMS = ("Morning", "Noon", "Evening")
CONFIGURATION = Configuration(
    actions=ARMS, by=("country",), user_type=UserType.TEXT, policy=Policy(2.0, 1e-3, tuple(Level))
)


def log() -> dict[str, list[Any]]:
    """In every country Noon is best by the records of one person, and Evening by all others."""
    rows: list[tuple[str, int, str, str]] = []
    for place, person in enumerate(PEOPLE):
        country = ("DE", "FR", "IT")[place % 3]
        rows += [(arm, int(arm == "Evening" and place % 4 > 0), person, country) for arm in ARMS]
    rows += [("Noon", 1, STAR, country) for country in ("DE", "FR", "IT") for _ in range(400)]
    actions, rewards, users, countries = map(list, zip(*rows, strict=True))
    ids = [str(number) for number in range(len(rows))]
    return {"action": actions, "reward": rewards, "user": users, "country": countries, "id": ids}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def served(sqlite_place: Place) -> Iterator[Served]:
    with serving(sqlite_place, CONFIGURATION, log=log()) as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for tests that forget nobody, or somebody whom no other test names."""
    with serving(fresh_place("sqlite", tmp_path_factory.mktemp("page")), CONFIGURATION, log=log()) as running:
        yield running


@pytest.fixture
def watched(browser: Any, served: Served) -> Iterator[Watched]:
    with watching(browser, served) as watched:
        watched.sign_in()
        yield watched


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = "from armnesia.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def served_arms(watched: Watched) -> list[str]:
    watched.open("/page/decisions")
    return [str(each) for each in watched.page.locator("td .arm").all_inner_texts()]


@pytest.mark.slow
def test_a_person_is_forgotten(watched: Watched, tmp_path: Path) -> None:
    """Sign in, preview, confirm, certificate; the decisions change, and the certificate is verified."""
    page = watched.page
    assert served_arms(watched) == ["Noon"] * 3
    watched.preview(STAR)
    assert page.locator(".facts dd").all_inner_texts() == ["1,200", "3", "3"]
    page.click("button.danger")
    page.wait_for_selector("text=1,200 records deleted.")
    assert page.locator("td .tag", has_text="changed").count() == 3
    with page.expect_download() as started:
        page.click("text=Download the certificate")
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    assert served_arms(watched) == ["Evening"] * 3
    with watched.served.place.open() as vault:
        public = vault.public_key()
    verified = run("certificate", "verify", file, "--public-key", public)
    assert verified.returncode == 0, verified.stderr
    assert STAR in verified.stdout.replace("\n", " ")
    assert run("certificate", "verify", file, "--public-key", "ab" * 32).returncode == 1
    assert not [each for each in watched.addresses if "Ada" in each or "ada" in each]


@pytest.mark.slow
def test_five_hundred_people_are_uploaded(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget_page, "_SECONDS_TO_WAIT", 0.0)  # so that there is progress to be seen
    page = watched.page
    watched.open("/page/forget")
    page.click("summary")
    table = tmp_path / "people.csv"
    table.write_text("who,since\n" + "".join(f"{person},2025\n" for person in PEOPLE))
    page.set_input_files("#file", table)
    page.fill("#column", "who")
    page.click("main button.main")
    assert watched.heading() == "Forget 500 people?"
    page.click("button.danger")
    page.wait_for_selector("text=1,500 records deleted.")
    with page.expect_download() as started:
        page.click("text=Download 500 certificates")
    archive = zipfile.ZipFile(io.BytesIO(Path(started.value.path()).read_bytes()))
    index = list(csv.DictReader(io.StringIO(archive.read("index.csv").decode())))
    assert sorted(row["name"] for row in index) == sorted(PEOPLE)
    assert len(archive.namelist()) == 501
    with watched.served.place.open() as vault:
        assert vault.verify().holds
        assert vault.n_records == 1200


@pytest.mark.slow
def test_a_wrong_spelling_is_asked_about(browser: Any, shared: Served) -> None:
    with watching(browser, shared) as watched:
        watched.sign_in()
        watched.preview("Person-0007")
        watched.page.wait_for_selector("text=Is this how the vault spells it?")
        watched.page.click("text=Yes, use the vault’s spelling")
        watched.page.wait_for_selector("button.danger")
        assert watched.page.locator(".names .who").all_inner_texts() == ["person-0007"]


@pytest.mark.slow
def test_a_session_that_has_ended(browser: Any, shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a page and a whole page both lead to the form for the token, and back."""
    with watching(browser, shared) as watched:
        watched.sign_in()
        sessions = shared.app.state.sessions
        now = sessions.now()
        watched.preview("person-0001")
        monkeypatch.setattr(sessions, "now", lambda: now + IDLE + 60)
        watched.page.click("button.danger")
        watched.page.wait_for_selector("text=Your session has ended")
        with shared.place.open() as vault:
            assert vault.preview(users=["person-0001"]).held == 1, "nothing was changed"
        watched.sign_in()
        monkeypatch.setattr(sessions, "now", lambda: now + 2 * IDLE + 120)
        watched.page.fill("#search", "DE")
        watched.page.wait_for_selector("text=Your session has ended")
        (complaint,) = watched.complaints  # Chromium tells of every status 401
        assert "401" in complaint
        watched.complaints.clear()


@pytest.mark.slow
def test_parts_of_pages_are_exchanged(browser: Any, shared: Served) -> None:
    """Searching, checking and exploring load no page."""
    with watching(browser, shared) as watched:
        watched.sign_in()
        _search_check_and_explore(watched)


def _search_check_and_explore(watched: Watched) -> None:
    page = watched.page
    watched.open("/page/decisions")
    page.fill("#search", "fr")
    page.wait_for_selector("text=1–1 of 1 decision")
    page.select_option("#sort", "arm")
    page.fill("#search", "nothing like it")
    page.wait_for_selector("text=No decision has “nothing like it”.")
    assert page.url.endswith("/page/decisions"), "what is searched for is in no address"
    watched.open("/page/ledger")
    page.click("text=Compare with a checkpoint")
    page.fill("#kept", page.input_value("#checkpoint"))
    page.click("text=Compare >> nth=-1")
    page.wait_for_selector("text=of this checkpoint, unchanged")
    watched.open("/page/explore")
    page.wait_for_selector("#curve canvas")
    before = page.inner_text("#explored")
    page.focus("#epsilon")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('#explored').innerText !== before", arg=before)
    page.wait_for_selector("text=54.6 to 1")
    assert page.inner_text("output[for=epsilon]") == "2"
    assert page.locator("#curve canvas").count() == 1


@pytest.mark.slow
def test_it_works_by_keyboard_alone(browser: Any, shared: Served) -> None:
    with watching(browser, shared) as watched:
        page = watched.page
        watched.open("/")
        page.keyboard.type(shared.tokens["operator"])
        page.keyboard.press("Enter")
        page.wait_for_selector("nav")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "To the content"
        for _ in range(3):
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Forget"
        page.keyboard.press("Enter")
        page.wait_for_url("**/page/forget")
        page.focus("#names")
        page.keyboard.type("person-0002")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("button.danger")
        page.focus("button.danger")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=3 records deleted.")


@pytest.mark.slow
def test_it_works_without_scripts(browser: Any, shared: Served) -> None:
    with watching(browser, shared, java_script_enabled=False) as watched:
        page = watched.page
        watched.sign_in()
        page.fill("#search", "it")
        page.click("text=Search >> nth=-1")
        assert page.locator("tbody tr").count() == 1
        watched.preview("person-0003")
        page.click("button.danger")
        page.wait_for_selector("text=3 records deleted.")
        watched.open("/page/ledger")
        checkpoint = page.input_value("#checkpoint")
        page.click("summary")
        page.fill("#kept", checkpoint)
        page.click("text=Compare >> nth=-1")
        assert "entries of this checkpoint, unchanged" in page.inner_text("main")
        watched.open("/page/explore?epsilon=3")
        page.click("text=Some points of the curve")
        assert page.locator("table.few tr").count() == 8


def visit_all(watched: Watched, look: Any) -> None:
    """Every kind of page, each looked at."""
    page = watched.page
    watched.open("/page/sign-in")
    look("sign-in")
    watched.sign_in("admin")
    look("decisions")
    page.click("tbody a >> nth=0")
    page.wait_for_selector(".arms")
    look("decision")
    watched.open("/page/forget")
    look("forget")
    watched.preview("PERSON-0011")
    look("spelling")
    watched.preview("nobody of this name")
    look("nothing-held")
    watched.preview(STAR, "person-0011")
    look("preview")
    page.click("button.danger")
    page.wait_for_selector(".good-news")
    look("done")
    watched.open("/page/requests")
    look("requests")
    watched.open("/page/ledger")
    page.wait_for_selector("tbody a")
    look("ledger")
    page.click("tbody a >> nth=0")
    page.wait_for_selector("pre")
    look("entry")
    page.click("text=Certificate >> nth=-1")
    page.wait_for_selector(".certificate")
    look("certificate")
    watched.open("/page/explore")
    page.wait_for_selector("#curve canvas")
    look("explore")
    watched.open("/page/health")
    look("health")


def serious_violations(page: Any, *rules: str) -> list[tuple[str, list[str]]]:
    """What axe finds that keeps people from using a page; by all rules, or by some."""
    from axe_playwright_python.sync_playwright import Axe

    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious]


@pytest.mark.slow
def test_every_page_is_accessible_and_fits(browser: Any, served: Served, tmp_path: Path) -> None:
    """Axe finds nothing serious, nothing is wider than the screen, and pictures are kept of each page."""
    folder, seen = artefacts(tmp_path), []
    with watching(browser, served) as watched:
        page = watched.page

        def look(name: str) -> None:
            seen.append(name)
            for view, options in VIEWS.items():
                page.emulate_media(color_scheme=options["color_scheme"])
                page.set_viewport_size(options["viewport"])
                page.screenshot(path=folder / f"{view}-{name}.png", full_page=True)
                width = page.evaluate("document.documentElement.scrollWidth")
                assert width <= options["viewport"]["width"], f"{view} {name}"
                if view != "phone":
                    rules = ("color-contrast",) if view == "dark" else ()
                    assert serious_violations(page, *rules) == [], f"{view} {name}"
            page.set_viewport_size(VIEWS["light"]["viewport"])

        visit_all(watched, look)
    assert len(seen) == 14
    assert len(list(folder.glob("*.png"))) >= 42


@pytest.mark.slow
def test_long_keys_fit_on_a_phone(browser: Any, sqlite_place: Place) -> None:
    long = {"country": "Saint Vincent and the Grenadines", "device": "telephone-" * 12}
    keys = {name: [value] * len(log()["id"]) for name, value in long.items()}
    configuration = Configuration(actions=ARMS, by=tuple(long), user_type=UserType.TEXT)
    with (
        serving(sqlite_place, configuration, log=log() | keys) as served,
        watching(browser, served) as watched,
    ):
        watched.sign_in()
        watched.page.set_viewport_size(VIEWS["phone"]["viewport"])
        for path in ("/page/decisions", f"/page/decisions/{quote(urlencode(long), safe='')}"):
            watched.open(path)
            width = watched.page.evaluate("document.documentElement.scrollWidth")
            assert width <= VIEWS["phone"]["viewport"]["width"], path


PLANTED_PICTURE = "document.querySelector('main').innerHTML += '<img src=\"/page/static/icon.svg\">'"
PLANTED_SCRIPT = """
    const script = document.createElement('script');
    script.textContent = 'window.planted = 1';
    document.body.append(script);
"""


@pytest.mark.slow
def test_what_must_not_be_is_seen(browser: Any, shared: Served) -> None:
    """A planted picture without words, a script that the policy refuses, and another host."""
    from playwright.sync_api import Error

    with watching(browser, shared) as watched:
        watched.sign_in("reader")
        watched.page.evaluate(PLANTED_PICTURE)
        assert [name for name, _ in serious_violations(watched.page)] == ["image-alt"]
        watched.page.evaluate(PLANTED_SCRIPT)
        assert watched.page.evaluate("window.planted") is None
        assert any("Content Security Policy" in each for each in watched.complaints)
        with pytest.raises(Error, match="ERR_FAILED"):
            watched.page.goto("https://other.example/")
        assert watched.foreign == ["https://other.example/"]
        watched.complaints.clear()
        watched.foreign.clear()
