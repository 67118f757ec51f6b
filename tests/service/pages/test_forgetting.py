"""Forgetting by the page, without a browser: previews, spellings, certificates and lists."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import DatabaseError, VaultBusyError
from armnesia.privacy import Guarantee, Level
from armnesia.service.pages import forget as forget_page
from armnesia.service.pages.preview import guarantee_sentence, preview_request
from armnesia.service.pages.work import Prepared
from armnesia.service.vault_worker import VaultWorker
from armnesia.unlearners import UNLEARNERS
from armnesia.vault import Certificate, Configuration, Policy, UserType
from tests.databases import Place
from tests.service.pages.clients import PageClient, at_the_page, prepared_in
from tests.service.servers import CONFIGURATION, PEOPLE, Served, held_writer, log_of, serving

ANY_METHOD = Policy(2.0, 1e-3, tuple(Level))
BY_PAGE = Configuration(actions=("A", "B"), by=("page",), user_type=UserType.TEXT, policy=ANY_METHOD)
ONE = replace(CONFIGURATION, policy=ANY_METHOD)
MANY = tuple(f"person-{number:03}" for number in range(60))


@pytest.fixture
def client(served: Served) -> Iterator[PageClient]:
    with at_the_page(served) as client:
        yield client


def test_one_person_from_preview_to_certificate(served: Served, client: PageClient, tmp_path: Path) -> None:
    previewed = client.preview(PEOPLE[0])
    with served.place.open() as vault:
        assert vault.head.size == 1, "a preview writes nothing"
        expected = vault.preview(users=[PEOPLE[0]])
    assert "Forget 1 person?" in previewed.text
    assert f"<dd>{expected.records}</dd>" in previewed.text
    assert "says nothing of these records, nor of how many they were" in previewed.text
    answer = client.confirm(previewed)
    assert f"{expected.records} records deleted." in answer.text
    file = client.get(f"{answer.url.path}/certificate.json")
    assert file.headers["content-disposition"] == 'attachment; filename="certificate-2.json"'
    certificate = Certificate.read(file.content)
    assert certificate.person is not None
    assert certificate.person.text == PEOPLE[0]
    assert {each.mention.text for each in certificate.openings} == {PEOPLE[0], "test of operator"}
    with served.place.open() as vault:
        assert certificate.verify(vault.public_keys().keys) == []
        assert vault.forget(users=[PEOPLE[0]]).repeated
        assert vault.verify().holds
    shown = client.get(f"{answer.url.path}/certificate").text
    printed = client.get(f"{answer.url.path}/certificate.html")
    assert printed.headers["content-disposition"] == 'attachment; filename="certificate-2.html"'
    assert printed.text == certificate.words().html()
    for words in (*certificate.words().said, certificate.entry.signer):
        assert escape(words) in shown


def test_the_button_answers_once(served: Served, client: PageClient) -> None:
    previewed = client.preview(PEOPLE[1])
    first, second = client.confirm(previewed), client.confirm(previewed)
    assert first.url == second.url
    with served.place.open() as vault:
        assert vault.head.size == 2
    again = client.preview(PEOPLE[1])
    assert "This name was forgotten before." in again.text
    done = client.confirm(again).text
    assert "Forgotten before" in done
    assert f"1 was forgotten on {datetime.now(UTC):%-d %b %Y}" in done
    assert "othing was held" not in done
    with served.place.open() as vault:
        assert vault.head.size == 2


@pytest.mark.parametrize("choice", ["vault", "typed"])
def test_another_spelling_is_a_question(served: Served, client: PageClient, choice: str) -> None:
    asked = client.preview("CEM-4711", PEOPLE[3])
    assert "Is this how the vault spells it?" in asked.text
    assert '<span class="who">cem-4711</span>' in asked.text
    assert "forget/confirm" not in asked.text
    previewed = client.post("/page/forget/spelling", {"prepared": prepared_in(asked), "choice": choice})
    client.confirm(previewed)
    with served.place.open() as vault:
        held = {
            name: certificate.person and certificate.person.outcome
            for name, certificate in vault.certificates(users=[PEOPLE[3]])
            if certificate
        }
        assert held == {PEOPLE[3]: "deleted"}
        left = vault.preview(users=["cem-4711"])
        assert left.repeated == (choice == "vault")
        assert (left.held > 0) == (choice == "typed")


@pytest.mark.filterwarnings("ignore:user column")
def test_nobody_of_this_name(served: Served, client: PageClient) -> None:
    previewed = client.preview("quite somebody else")
    assert "The vault holds nothing under this name." in previewed.text
    answer = client.confirm(previewed)
    assert "The vault held nothing." in answer.text
    with served.place.open() as vault:
        assert [each.kind for each in vault.ledger(after=1)] == ["forget"]
    assert "held nothing under the identifier" in client.get(f"{answer.url.path}/certificate").text


def test_a_list_is_one_request_and_everybody_gets_a_certificate(sqlite_place: Place) -> None:
    with serving(sqlite_place, ONE, log=log_of(MANY)) as served, at_the_page(served) as client:
        table = "who,number\n" + "".join(f"{name},{place}\n" for place, name in enumerate(MANY[:40]))
        previewed = client.post(
            "/page/forget/preview",
            {"column": "who", "kind": "users"},
            files={"file": ("list.csv", (table + "nobody-here,1\n").encode(), "text/csv")},
        )
        assert "Forget 41 people?" in previewed.text
        assert "1 name of which the vault holds nothing" in previewed.text
        answer = client.confirm(previewed)
        assert "160 records deleted." in answer.text
        file = client.get(f"{answer.url.path}/certificates.zip")
        assert file.headers["content-disposition"] == 'attachment; filename="certificates-2.zip"'
        archive = zipfile.ZipFile(io.BytesIO(file.content))
        index = list(csv.DictReader(io.StringIO(archive.read("index.csv").decode())))
        assert [row["name"] for row in index] == ["nobody-here", *MANY[:40]]
        with served.place.open() as vault:
            assert vault.head.size == 2
            keys = vault.public_keys().keys
        for row in index:
            certificate = Certificate.read(archive.read(row["file"]))
            assert certificate.verify(keys) == []
            assert certificate.person is not None
            assert certificate.person.text == row["name"]
            assert row["outcome"] == certificate.person.outcome
            assert (row["outcome"] == "deleted") == (row["name"] != "nobody-here")


def test_it_is_said_who_was_forgotten_before_and_who_was_never_held(client: PageClient) -> None:
    client.confirm(client.preview(PEOPLE[0], PEOPLE[1]))
    previewed = client.preview(PEOPLE[0], PEOPLE[1], PEOPLE[2], "quite somebody else")
    assert "2 of them were forgotten before" in previewed.text
    assert "1 name of which the vault holds nothing" in previewed.text
    done = client.confirm(previewed).text
    assert "4 records deleted." in done
    assert f"2 were forgotten on {datetime.now(UTC):%-d %b %Y}" in done
    assert 'href="/page/ledger/2"' in done
    assert "Nothing was held under 1 name." in done
    none_held = client.confirm(client.preview(PEOPLE[0], "yet another one")).text
    assert "The vault held nothing under the other names." in none_held


FORMULAS = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-1": "'-1",
    "@a": "'@a",
    "x;=2": "x;'=2",
    "x, =3": "x, '=3",
    "\uff1d4": "'\uff1d4",
}


def test_the_index_has_no_formulas(served: Served, client: PageClient) -> None:
    answer = client.confirm(client.preview(*FORMULAS, "'=1+1", "'t", "cem-4711"))
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"{answer.url.path}/certificates.zip").content))
    index = list(csv.DictReader(io.StringIO(archive.read("index.csv").decode())))
    shown = {row["name"] for row in index}
    assert shown == {*FORMULAS.values(), "''=1+1", "'t", "cem-4711"}
    content = archive.read("index.csv").decode()
    assert all(line.startswith('"') and line.endswith('"') for line in content.splitlines())
    assert not re.search('[;,\t|"][=+@\uff1d-]', content)


def test_names_are_split_at_the_ends_of_lines_only(client: PageClient) -> None:
    """Not at others that Unicode has."""
    assert "Forget 2 people?" in client.preview("zoe", "bob\r", "").text
    assert "Forget 2 people?" in client.preview("ann\u2028marie\u2029x", "bob\r", "").text


def test_records_by_their_ids(served: Served, client: PageClient) -> None:
    previewed = client.preview("record-3", "record-4", kind="records")
    assert "Forget 2 records?" in previewed.text
    assert "2 records deleted." in client.confirm(previewed).text
    with served.place.open() as vault:
        assert vault.n_records == 18


@pytest.mark.parametrize(
    ("fields", "file", "sentence"),
    [
        ({}, None, "Type or paste at least one name, or choose a file."),
        ({"names": " \n "}, None, "Type or paste at least one name"),
        ({"names": "\n".join(map(str, range(1001)))}, None, "At most 1,000 names are taken at once"),
        ({"names": "a"}, b"b\n", "Give names or a file, not both"),
        ({}, b"a,b\n1,2\n", "The file has 2 columns: a, b; say which of them has the names, and choose"),
        ({}, b"\xef\xbb\xbfcustomer;reason\n1;2\n", "2 columns: customer, reason; say which"),
        ({}, b"customer\treason\n1\t2\n", "2 columns: customer, reason; say which"),
        ({"column": "c"}, b"a,b\n1,2\n", "none of them is called “c”"),
        ({"column": "a"}, b"a,a\n1,2\n", "several of them are called “a”"),
        ({"column": "a"}, b"a,b\n1\n", "line 2 has not."),
        ({"column": "a"}, b"a,b\n,2\n", "line 2 has none."),
        ({}, b"\xff\xfe\x00", "must be text or CSV, in UTF-8"),
        ({}, b"", "The file is empty"),
        ({"names": "x" * 70_000}, None, "longer than any name"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    shared_client: PageClient, fields: dict[str, str], file: bytes | None, sentence: str
) -> None:
    files = {} if file is None else {"files": {"file": ("list.csv", file, "text/csv")}}
    answer = shared_client.post("/page/forget/preview", fields, **files)
    assert answer.status_code == 422
    (error,) = re.findall(r'<p class="error" id="error" role="alert">(.*?)</p>', answer.text)
    assert sentence in error.replace("&#39;", "'")
    assert f">{fields.get('names', '').strip()}</textarea>" in answer.text
    assert f'name="column" value="{fields.get("column", "")}"' in answer.text
    assert not re.search("--|exactly|=True", error), "options of programs mean nothing here"
    beside = re.search(
        r'id="(\w+)" [^>]*aria-describedby="(?:hint )?error" aria-invalid="true"', answer.text, re.S
    )
    assert beside is not None
    assert beside[1] == (
        "names" if file is None else "column" if "called" in error or "say" in error else "file"
    )


@pytest.mark.parametrize("file", ["id;who\r\n1;{}\r\n", "\ufeffid\twho\n1\t{}\n", 'id,"who, then"\n1,{}\n'])
def test_lists_of_any_spreadsheet(shared_client: PageClient, file: str) -> None:
    column = "who, then" if "then" in file else "who"
    files = {"files": {"file": ("list.csv", file.format(PEOPLE[4]).encode(), "text/csv")}}
    answer = shared_client.post("/page/forget/preview", {"column": column}, **files)
    assert f'<span class="who">{PEOPLE[4]}</span>' in answer.text
    assert "Forget 1 person" in answer.text


def test_one_can_come_back_to_a_preview(served: Served, client: PageClient) -> None:
    previewed = client.preview(PEOPLE[0])
    assert previewed.history[0].status_code == 303
    assert previewed.url.path == f"/page/forget/previews/{prepared_in(previewed)}"
    assert client.get(previewed.url.path).text == previewed.text
    done = client.confirm(previewed)
    assert client.get(previewed.url.path).url == done.url, "it was confirmed"
    with at_the_page(served) as other:
        assert other.get(previewed.url.path).status_code == 409


def test_decisions_that_change_come_first(sqlite_place: Place) -> None:
    """In the last of 40 decisions, one person's records alone make B better."""
    log: dict[str, list[Any]] = {"action": [], "reward": [], "user": [], "page": []}
    for page in range(40):
        rows = [("A", 1.0, "other")] * 60 + [("B", 0.0, "other")] * 60 + [("A", 1.0, "star")]
        if page == 39:
            rows = [("A", 0.5, "other")] * 60 + [("B", 0.0, "other")] * 60 + [("B", 1.0, "star")] * 400
        for action, reward, user in rows:
            for name, value in zip(log, (action, reward, user, f"page {page}"), strict=True):
                log[name].append(value)
    log["id"] = list(range(len(log["user"])))
    with serving(sqlite_place, BY_PAGE, log=log) as running, at_the_page(running) as client:
        previewed = client.preview("star")
        body = previewed.text.split("<h2>Records by decision and arm</h2>")[1]
        assert "page 39" in re.findall(r'<th scope="row">(.*?)</th>', body, re.S)[0]
        assert "and 20 more decisions." in body
        answer = client.confirm(previewed)
        first = re.findall(r"<tr>(.*?)</tr>", answer.text.split("<tbody>")[1], re.S)[0]
        assert "page 39" in first
        assert "changed" in first


def test_a_preview_is_kept_by_its_session_only(served: Served, client: PageClient) -> None:
    previewed = client.preview(PEOPLE[0])
    with at_the_page(served) as other:
        for path in ("confirm", "spelling"):
            answer = other.post(f"/page/forget/{path}", {"prepared": prepared_in(previewed)})
            assert answer.status_code == 409
            assert "no longer kept" in answer.text
        done = client.confirm(previewed)
        for rest in ("", "/certificate", "/certificate.json", "/certificates.zip"):
            assert other.get(done.url.path + rest).status_code == 404
    for _ in range(6):
        client.preview(PEOPLE[1])
    assert client.post("/page/forget/confirm", {"prepared": prepared_in(previewed)}).status_code == 409


def test_a_refusal_is_told_in_one_sentence(
    served: Served, client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise VaultBusyError(f"because of {PEOPLE[0]}")

    monkeypatch.setattr(VaultWorker, "forget", refuse)
    answer = client.confirm(client.preview(PEOPLE[0]))
    assert "Another process is changing the vault" in answer.text
    assert PEOPLE[0] not in answer.text
    monkeypatch.setattr(VaultWorker, "forget", lambda *_: 1 / 0)
    assert "The service failed" in client.confirm(client.preview(PEOPLE[0])).text


def test_what_is_not_known_is_said_not_to_be(client: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object) -> None:
        raise DatabaseError("the connection was lost, perhaps after the commit")

    monkeypatch.setattr(VaultWorker, "forget", lose)
    answer = client.confirm(client.preview(PEOPLE[0]))
    assert "<h1>Perhaps not forgotten</h1>" in answer.text
    assert "the ledger says whether the request was answered" in answer.text
    assert "nothing was changed" not in answer.text


def test_progress_is_shown_until_it_is_done(
    served: Served, client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget_page, "_SECONDS_TO_WAIT", 0.0)
    previewed = client.preview(*PEOPLE[:3])
    with held_writer(served):
        answer = client.post("/page/forget/confirm", {"prepared": prepared_in(previewed)})
        assert "<progress" in answer.text
        part = client.get(answer.url.path, headers={"HX-Request": "true"})
        assert "<html" not in part.text
        assert "<progress" in part.text
    assert f'hx-get="{answer.url.path}"' in answer.text
    part = client.once_done(answer.url.path, headers={"HX-Request": "true"})
    assert "<html" not in part.text
    assert "12 records deleted." in part.text


@pytest.mark.parametrize("configuration", [ONE, BY_PAGE], ids=["one decision", "by page"])
def test_the_methods_beside_the_own_are_those_of_the_policy(
    sqlite_place: Place, configuration: Configuration
) -> None:
    """Their chances are those of `Vault.preview`, asked for each method."""
    with serving(sqlite_place, configuration, log=log_of(MANY)) as served, served.place.open() as vault:
        found = preview_request(vault, Prepared("users", ("person-001",)))
        assert found.own is not None
        assert found.own.name == "rollback"
        allowed = {}
        for name in UNLEARNERS:
            try:
                preview = vault.preview(users=["person-001"], unlearner=name, epsilon=2.0, delta=1e-3)
            except Exception:  # whatever it is, the method is not shown
                continue
            allowed[name] = preview
        assert {method.name for method in found.methods} == set(allowed)
        assert len(allowed) >= 6
        for method in found.methods[1:]:
            facts = allowed[method.name].to_dict()
            places = facts.get("decisions") or [{**facts, "key": {}}]
            assert [dict(place.chances) for place in method.places] == [
                each["probabilities"] for each in places
            ]
            for place, each in zip(method.places, places, strict=True):
                assert place.change == pytest.approx(1 - each["probabilities"][each["served_before"]])
        with at_the_page(served) as client:
            text = client.preview("person-001").text
            assert all(method.name in text for method in found.methods)
            assert "would void its guarantee" in text


def test_a_strict_policy_shows_its_own_method_only(client: PageClient) -> None:
    assert "The policy of the vault allows no other." in client.preview(PEOPLE[0]).text


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 1e-4)])
def test_a_guarantee_is_one_sentence(level: Level, epsilon: float, delta: float) -> None:
    sentence = guarantee_sentence(Guarantee(epsilon, delta, level))
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
    assert ("ε" in sentence, "δ" in sentence) == (epsilon > 0, delta > 0)
    assert ("not concealed" in sentence) == level.sees_shape
    assert ("served before" in sentence) == level.sees_decision


def test_a_decision_changes_on_the_page(sqlite_place: Place) -> None:
    """B is served because of one person; once they are forgotten, A is."""
    people = ["ann"] * 300 + ["bob"] * 300
    log: dict[str, list[Any]] = {
        "action": ["A"] * 300 + ["B"] * 300,
        "reward": [number % 2 for number in range(300)] + [1] * 300,
        "user": people,
        "id": [str(number) for number in range(600)],
    }
    with serving(sqlite_place, log=log) as served, at_the_page(served) as client:
        assert (
            '<span class="arm">B</span> <span class="tag">served</span>' in client.get("/page/decisions").text
        )
        previewed = client.preview("bob")
        assert "<dd>100\u00a0%</dd>" in previewed.text
        assert '<span class="arm">A</span> now' in client.confirm(previewed).text
        after = client.get("/page/decisions").text
        assert '<span class="arm">A</span> <span class="tag">served</span>' in after
        assert "drawn after a deletion" in after
        assert 'href="/page/ledger/2"' in after


def test_the_api_and_the_page_certify_the_same(served: Served, client: PageClient) -> None:
    client.confirm(client.preview(PEOPLE[0]))
    with served.http("reader") as http:
        by_api = http.get("/v1/certificates/2").json()
    by_page = json.loads(client.get("/page/certificates/2/certificate.json").content)
    assert by_page == by_api
    assert by_page["opening"] == []
