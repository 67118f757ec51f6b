"""What the pages show, compared with what the vault says."""

import hashlib
import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from armnesia.auditing import compare
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB
from armnesia.privacy import Budget, calibrate
from armnesia.service.api.health import health_facts
from armnesia.service.pages import health
from armnesia.service.pages.explore import _explored
from armnesia.service.pages.history import KIND_WORDS
from armnesia.vault import Configuration, UserType
from armnesia.vault.ledger.entry import KINDS
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.pages.clients import PageClient, at_the_page
from tests.service.servers import PEOPLE, Served, fill, let_the_desk_work, serving, serving_existing
from tests.service.test_identifiers import Lines, lines, written  # noqa: F401 (a fixture)
from tests.service.test_opendsr import body, identity

BY_PAGE = Configuration(actions=("A", "B"), by=("page",), user_type=UserType.TEXT)
SECRET = "Zoë Unmistakable-7731"


@pytest.fixture
def client(served: Served) -> Iterator[PageClient]:
    with at_the_page(served) as client:
        yield client


def rows_of(text: str) -> list[str]:
    """The rows of the tables of a page, as text."""
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


def test_the_numbers_of_arms_are_those_of_the_api(served: Served, client: PageClient) -> None:
    with served.http() as http:
        arms = http.get("/v1/decisions/only").json()["arms"]
    rows = rows_of(client.get("/page/decisions").text)
    for arm in arms:
        (row,) = [row for row in rows if row.startswith(f"{arm['action']} ")]
        numbers = [
            f"{arm['count']} ",
            f"{arm['mean']:.4g} ",
            " to ".join(f"{end:.4g}" for end in arm["interval"]),
        ]
        assert all(number in row for number in numbers), row


def test_a_thousand_decisions_are_searched_sorted_and_paged(sqlite_place: Place) -> None:
    number = 1000
    log: dict[str, list[Any]] = {
        "action": ["AB"[place % 2] for place in range(number)],
        "reward": [1] * number,
        "user": [f"user-{place}" for place in range(number)],
        "id": [str(place) for place in range(number)],
        "page": [*(f"page-{place:04}" for place in range(number - 1)), "São Paulo"],
    }
    with serving(sqlite_place, BY_PAGE, log=log) as served, at_the_page(served, "reader") as client:
        first = client.get("/page/decisions").text
        assert "1–50 of 1,000 decisions" in first
        assert len(rows_of(first)) == 51
        last = client.post("/page/decisions", {"page": "20", "sort": "decision"}).text
        assert "951–1,000 of 1,000 decisions" in last
        assert "page-0998" in rows_of(last)[-2]
        assert "1–1 of 1 decision<" in client.post("/page/decisions", {"search": "sao"}).text
        found = client.post("/page/decisions", {"search": "PAGE-07 B"}).text
        assert "1–50 of 50 decisions" in found
        assert all(" B " in row for row in rows_of(found)[1:])
        by_arm = rows_of(client.post("/page/decisions", {"sort": "arm"}).text)[1:]
        assert all(" A " in row for row in by_arm)
        none = client.post("/page/decisions", {"search": "<script>"}).text
        assert "No decision has “&lt;script&gt;”" in none
        odd = client.post("/page/decisions", {"page": "-7", "sort": "x"})
        assert "1–50 of" in odd.text
        (address,) = re.findall(r'href="(/page/decisions/page%3Dpage-0000)"', first)
        assert "page-0000" in client.get(address).text.replace("</span>", "")


def test_a_hundred_arms_are_folded(sqlite_place: Place) -> None:
    arms = tuple(f"arm-{place:03}" for place in range(100))
    log: dict[str, list[Any]] = {
        "action": [arm for arm in arms for _ in range(3)],
        "reward": [place % 2 for place in range(300)],
        "user": [f"user-{place}" for place in range(300)],
        "id": [str(place) for place in range(300)],
    }
    configuration = Configuration(actions=arms, user_type=UserType.TEXT)
    with serving(sqlite_place, configuration, log=log) as served, at_the_page(served) as client:
        folded = client.get("/page/decisions/only?sort=arm").text
        assert 26 <= len(rows_of(folded)) <= 27
        assert re.search(r"Show the other 7\d arms", folded)
        every = rows_of(client.get("/page/decisions/only?sort=arm&every=1").text)[1:]
        assert [row.split()[0] for row in every] == list(arms)
        by_mean = rows_of(client.get("/page/decisions/only?every=1").text)[1:]
        means = [float(re.sub("served", "", row).split()[2]) for row in by_mean]
        assert means == sorted(means, reverse=True)


def test_a_vault_without_records_says_what_to_do_next(sqlite_place: Place) -> None:
    with sqlite_place.create(Configuration(actions=None)) as vault:
        token = vault.create_token("operator").text
    with serving_existing(sqlite_place, {"operator": token}) as served, at_the_page(served) as client:
        assert "armnesia ingest" in client.get("/page/decisions").text
        assert "Nobody was forgotten yet." in client.get("/page/requests").text


def test_decisions_by_key_without_records(sqlite_place: Place) -> None:
    with sqlite_place.create(BY_PAGE) as vault:
        token = vault.create_token("operator").text
    with serving_existing(sqlite_place, {"operator": token}) as served, at_the_page(served) as client:
        assert "There are no decisions yet" in client.get("/page/decisions").text


def test_the_ledger_is_listed_searched_and_checked(served: Served, client: PageClient) -> None:
    for name in ("x-1", "x-2", PEOPLE[0]):
        client.confirm(client.preview(name))
    with served.place.open() as vault:
        entries, checkpoint = list(vault.ledger()), vault.checkpoint()
    text = client.get("/page/ledger").text
    rows = rows_of(text)[1:]
    assert [row.split()[1] for row in rows] == ["4", "3", "2", "1"]
    assert escape(checkpoint) in text
    for search, numbers in {
        "3": ["3"],
        "99": [],
        "forgotten": ["4", "3", "2"],
        "init": ["1"],
        entries[0].time[:10]: ["4", "3", "2", "1"],
        "<b>": [],
    }.items():
        found = rows_of(client.post("/page/ledger", {"search": search}).text)[1:]
        assert [row.split()[1] for row in found] == numbers, search
    for kept in (checkpoint, checkpoint.replace("\n", "\r\n")):
        compared = client.post("/page/ledger/check", {"checkpoint": kept}).text
        assert "The ledger has all 4 entries of this checkpoint, unchanged." in compared
    forged = client.post("/page/ledger/check", {"checkpoint": checkpoint.replace("\n4\n", "\n3\n")}).text
    assert "the ledger was changed" in forged
    assert "This is no checkpoint" in client.post("/page/ledger/check", {"checkpoint": "x"}).text
    entry = client.get("/page/ledger/4").text
    assert entries[3].subject.hex() in entry
    assert 'href="/page/certificates/4"' in entry
    assert "certificates" not in client.get("/page/ledger/1").text
    assert client.get("/page/certificates/1").status_code == 404


def test_a_long_ledger_is_paged(served: Served, client: PageClient) -> None:
    with served.place.open() as vault:
        for number in range(59):
            vault.forget(users=[f"x-{number}"], exactly=True)
    first, second = (rows_of(client.post("/page/ledger", {"page": page}).text)[1:] for page in "12")
    assert [row.split()[1] for row in first + second] == [str(number) for number in range(60, 0, -1)]
    assert len(first) == 50


def test_every_kind_of_entry_has_words() -> None:
    assert set(KIND_WORDS) == set(KINDS)


def test_requests_of_controllers_are_listed_with_their_due_dates(sqlite_place: Place, tmp_path: Path) -> None:
    made = processor(tmp_path)
    with serving_existing(sqlite_place, fill(sqlite_place), made=made) as served:
        with served.http("operator") as http:
            sent = http.post("/v2/requests", json=body(subject_identities=[identity(PEOPLE[0])]))
            assert sent.status_code == 201
        with at_the_page(served, "operator") as client, at_the_page(served, "admin") as admin:
            for each in (client, admin):
                text = each.get("/page/requests").text
                assert sent.json()["subject_request_id"] in text
                assert "test of operator" in text
                assert PEOPLE[0] not in text
        with served.place.open() as vault:
            other = vault.create_token("operator", name="another").text
        with at_the_page(served, None) as client:
            client.sign_in(other)
            assert "No requests yet." in client.get("/page/requests").text


def test_what_is_in_the_way_of_a_request_is_said(sqlite_place: Place, tmp_path: Path) -> None:
    made = processor(tmp_path)
    with (
        serving_existing(sqlite_place, fill(sqlite_place), made=made) as served,
        served.http("operator") as http,
        at_the_page(served) as client,
    ):
        http.post("/v2/requests", json=body(subject_identities=[identity("CEM-4711")]))
        words = "records under a nearly equal spelling"
        let_the_desk_work(served, lambda: words in client.get("/page/requests").text)
        text = client.get("/page/requests").text
        assert "It is tried again after a further deletion, and at <time" in text
        assert "in 29 days" in text
        assert "4711" not in text


def test_requests_of_the_session_and_the_last_deletions(served: Served, client: PageClient) -> None:
    client.confirm(client.preview(PEOPLE[0], PEOPLE[1]))
    client.confirm(client.preview("nobody-at-all"))
    text = client.get("/page/requests").text
    assert "2 people" in text
    assert [row for row in rows_of(text) if row.startswith("Entry 3")]
    assert [row for row in rows_of(text) if row.endswith("2 people done entry 2")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "its ledger has 1 entry"),
        ({"keys": "unreadable"}, "Their file is gone"),
        (
            {
                "verified": {
                    "time": "2026-11-16T10:00:00.000000Z",
                    "holds": False,
                    "problems": 0,
                    "failure": "x",
                }
            },
            "could not be finished",
        ),
        (
            {
                "verified": {
                    "time": "2026-11-16T10:00:00.000000Z",
                    "holds": False,
                    "problems": 2,
                    "failure": None,
                }
            },
            "found 2 problems",
        ),
        (
            {
                "verified": {
                    "time": "2026-11-16T10:00:00.000000Z",
                    "holds": True,
                    "problems": 0,
                    "failure": None,
                }
            },
            "found no problem",
        ),
        ({"database": "vault-busy", "keys": "unknown", "status": "failing"}, "could not be checked"),
        ({"waiting": 200}, "200 requests wait"),
    ],
)
def test_health_is_told_in_words(
    shared_client: PageClient, changes: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def facts(service: object) -> dict[str, object]:
        return {**await health_facts(service), **changes}  # type: ignore[arg-type]

    monkeypatch.setattr(health, "health_facts", facts)
    text = shared_client.get("/page/health").text
    assert words in text
    assert ("Something is wrong" in text) == ("status" in changes)


def test_exploring_shows_what_the_library_computes(shared_client: PageClient) -> None:
    text = shared_client.get("/page/explore?epsilon=2&delta=-4&share=50&records=100").text
    assert f"noise of {calibrate(epsilon=2.0, delta=1e-4):.4g} times" in text
    means = {"A": 60, "B": 55, "C": 50, "D": 40}
    statistics = ArmStatistics.from_rewards({arm: [1] * n + [0] * (100 - n) for arm, n in means.items()})
    deleted = {arm: [1] * 30 + [0] * 20 if arm == "A" else [] for arm in means}
    request = DeletionRequest.from_rewards(deleted)
    expected = compare(LCB().bind(statistics), statistics, request, Budget(epsilon=2.0, delta=1e-4))
    shown = {row.split()[0]: row for row in rows_of(text)}
    for each in expected:
        if each.guarantee is not None:
            assert f"{each.expected_loss:.4f}" in shown[each.name]
    part = shared_client.get("/page/explore?epsilon=2", headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert 'data-curve="{' in part


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
@pytest.mark.parametrize("exponent", [-10.0, -1.0])
@pytest.mark.parametrize("share", [1, 90])
@pytest.mark.parametrize("records", [100, 10_000])
def test_every_corner_of_the_sliders_has_an_answer(
    epsilon: float, exponent: float, share: int, records: int
) -> None:
    found = _explored(epsilon, exponent, share, records)
    assert {"rollback", "gaussian", "tilt"} <= {cost.name for cost in found.costs}
    assert all(0 <= cost.change <= 1 for cost in found.costs)
    assert "NaN" not in found.curve


def test_files_are_kept_by_browsers_until_they_change(shared_client: PageClient) -> None:
    page = shared_client.get("/page/explore").text
    addresses = set(re.findall(r'(?:src|href)="(/page/static/[^"]+)"', page))
    assert len(addresses) == 6
    for address in addresses:
        answer = httpx.get(str(shared_client.http.base_url.join(address)), trust_env=False)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_name_is_in_an_address_or_in_the_log(served: Served, lines: Lines) -> None:  # noqa: F811
    with served.http() as http:
        row = {"id": "r-7", "action": "A", "reward": 1, "user": SECRET}
        http.post("/v1/records", json={"rows": [row]})
    seen: list[httpx.Response] = []
    with at_the_page(served) as client:
        client.http.event_hooks["response"] = [seen.append]
        client.preview(SECRET.upper())
        client.preview("a\x01" + SECRET)
        done = client.confirm(client.preview(SECRET))
        for rest in ("", "/certificate", "/certificate.json", "/certificate.html", "/certificates.zip"):
            assert client.get(done.url.path + rest).status_code == 200
        client.post("/page/decisions", {"search": SECRET})
        client.post("/page/ledger", {"search": SECRET})
        client.post("/page/ledger/check", {"checkpoint": SECRET})
        client.get("/page/requests")
        client.post(
            "/page/forget/preview", {}, files={"file": (f"{SECRET}.csv", SECRET.encode(), "text/csv")}
        )
    logged = written(lines, '"event": "request"', len(seen))
    everything = logged + "".join(str(each.url) + str(each.headers) for each in seen)
    for form in (SECRET, SECRET.upper(), "Unmistakable", "UNMISTAKABLE", "%C3%AB", "\\u00eb"):
        assert form not in everything


VENDORED = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""The digests of the files as their projects have published them."""


def test_the_files_of_others_are_unchanged_and_have_their_licences() -> None:
    folder = files("armnesia.service.pages") / "static" / "vendor"
    for name, digest in VENDORED.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert 'version:"2.0.11"' in (folder / "htmx.min.js").read_text()
    for name in ("htmx", "uPlot"):
        assert "THE SOFTWARE IS PROVIDED" in (folder / f"{name}.LICENSE").read_text()
