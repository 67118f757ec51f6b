"""A service over an external vault, whose rows stay at their source until they are erased there."""

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import httpx
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.service.answer_types import SourceErasures
from armnesia.service.app import create_app
from armnesia.service.client import ServiceError
from armnesia.service.opendsr.processor import Processor
from armnesia.vault import Certificate, Configuration, Role, Vault
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Delta, Folder, Lake, arrow
from tests.service.certificates import DOMAIN, issued, processor
from tests.service.pages.clients import at_the_page
from tests.service.servers import PEOPLE, SETTINGS, Served, let_the_desk_work, listening, serving
from tests.service.test_answer_types import check
from tests.service.test_opendsr import body, is_signed, status_of
from tests.vault.external_vaults import NAMED, PERMITTED
from tests.vault.external_vaults import READING as READING_ONLY

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

ROWS = [Row(f"{person}-{row}", person, "AB"[row % 2], row % 3 * 2) for person in PEOPLE for row in range(4)]


def fill_external(place: Place, log: Lake, configuration: Configuration) -> dict[str, str]:
    """A vault that has counted a log, and a token of each role."""
    log.append(ROWS)
    with place.create(configuration) as vault:
        vault.ingest(log.source, **NAMED)
        return {str(role): vault.create_token(role, name=f"test of {role}").text for role in Role}


def served_over(place: Place, log: Lake, configuration: Configuration, made: Processor) -> Iterator[Served]:
    tokens = fill_external(place, log, configuration)
    app = create_app(place.open, SETTINGS, processor=made)
    with listening(app) as url:
        yield Served(url, place, tokens, app)


@pytest.fixture
def log(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def served(sqlite_place: Place, log: Folder, tmp_path: Path) -> Iterator[Served]:
    """A service that may erase rows at their source."""
    yield from served_over(sqlite_place, log, PERMITTED, processor(tmp_path))


@pytest.fixture
def over_delta(sqlite_place: Place, tmp_path: Path) -> Iterator[Served]:
    """A service over a table of which earlier versions are kept for longer than a request may take."""
    log = Delta(tmp_path)
    kept = {"delta.deletedFileRetentionDuration": "interval 40 days"}
    deltalake.write_deltalake(str(log.folder), arrow(ROWS).slice(0, 0), configuration=kept)
    yield from served_over(sqlite_place, log, PERMITTED, processor(tmp_path))


@pytest.fixture
def elsewhere(sqlite_place: Place, log: Folder, tmp_path: Path) -> Iterator[Served]:
    """A service that only reads its source, which something else erases."""
    made = processor(tmp_path, sources_erased_elsewhere=True)
    yield from served_over(sqlite_place, log, READING_ONLY, made)


def wait_for_answer(served: Served, id_: str) -> dict[str, Any]:
    """The status once the people of a request are forgotten, and the desk has looked at it again."""
    with served.place.open() as vault:

        def is_forgotten() -> bool:
            found = vault.subject_request(id_)
            return found is not None and found.sequence is not None

        let_the_desk_work(served, is_forgotten)
    asyncio.run(served.app.state.desk.work())
    with served.http() as http:
        return dict(http.get(f"/v2/requests/{id_}").json())


def test_a_request_is_completed_when_its_rows_are_purged_at_the_source(served: Served, log: Folder) -> None:
    sent = body()
    with served.http() as http:
        http.post("/v2/requests", json=sent)
    id_ = sent["subject_request_id"]
    assert wait_for_answer(served, id_)["request_status"] == "in_progress"
    assert PEOPLE[0] in {person for _, person, *_ in log.values()}
    with served.place.open() as vault:
        vault.erase_at_sources(purge=True)
    served.app.state.desk.wake.set()
    assert status_of(served, id_, until="completed") == "completed"
    assert PEOPLE[0] not in {person for _, person, *_ in log.values()}


def test_a_request_waits_for_the_retention_of_the_source(over_delta: Served) -> None:
    """What readers no longer see is in files of earlier versions, and the person is not erased there."""
    sent = body()
    with over_delta.http() as http:
        http.post("/v2/requests", json=sent)
    id_ = sent["subject_request_id"]
    assert wait_for_answer(over_delta, id_)["request_status"] == "in_progress"
    with over_delta.place.open() as vault:
        vault.erase_at_sources(purge=True)
        (source,) = vault.source_erasures().sources
        assert (source.to_erase, source.to_purge) == (False, True)
    with at_the_page(over_delta, "admin") as page:
        shown = page.get("/page/requests").text
    assert "in progress: forgotten, and not erased everywhere yet" in shown
    with over_delta.place.open() as vault:
        vault.erase_at_sources(purge=True, ignore_retention=True)
    over_delta.app.state.desk.wake.set()
    assert status_of(over_delta, id_, until="completed") == "completed"


def test_a_vault_that_only_reads_its_sources_takes_no_requests(
    sqlite_place: Place, log: Folder, tmp_path: Path, run: Any
) -> None:
    fill_external(sqlite_place, log, READING_ONLY)
    certificate, key = issued(tmp_path)
    asked = ["serve", "--url", sqlite_place.url, "--keys", str(sqlite_place.keys), "--port", "0"]
    asked += [
        "--opendsr-domain",
        DOMAIN,
        "--opendsr-certificate",
        str(certificate),
        "--opendsr-key",
        str(key),
    ]
    refused = run(*asked)
    assert refused.code == 2
    assert "may not erase rows at their sources" in refused.err
    assert refused.err.count(". ") == 0


def test_the_statement_about_sources_is_refused_where_the_vault_has_the_rows(tmp_path: Path) -> None:
    made = processor(tmp_path, sources_erased_elsewhere=True)
    with pytest.raises(InvalidInputError, match="is about an external vault"):
        made.check_vault(Configuration(actions=("A", "B")))


def test_sources_that_are_erased_elsewhere_are_not_spoken_of(elsewhere: Served, log: Folder) -> None:
    sent = body()
    with elsewhere.http() as http:
        http.post("/v2/requests", json=sent)
        discovered = http.get("/v2/discovery")
    assert status_of(elsewhere, sent["subject_request_id"], until="completed") == "completed"
    assert PEOPLE[0] in {person for _, person, *_ in log.values()}
    assert "is not erased by it, but elsewhere" in discovered.json()["completed_means"]
    assert is_signed(discovered, elsewhere)


def kind_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    problem = answer.json()
    return answer.status_code, problem["type"].rpartition(":")[2], problem.get("source")


def test_a_source_that_has_changed_is_named_by_its_id(served: Served, log: Folder) -> None:
    (path,) = log.folder.glob("*.parquet")
    pq.write_table(arrow(ROWS[1:]), path)
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": PEOPLE[:1], "dry_run": True})
        done = http.post("/v1/deletions", json={"users": PEOPLE[:1]})
    assert kind_of(refused) == (409, "changed-source", source_id(served))
    for answer in (refused, done):
        assert str(log.folder) not in answer.text
    assert PEOPLE[0] not in refused.text
    assert (done.status_code, done.json()["records"]) == (201, 3)  # it is counted again first


def test_a_source_that_is_gone_is_named_by_its_id(served: Served, log: Folder) -> None:
    shutil.rmtree(log.folder)
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": PEOPLE[:1]})
    assert kind_of(refused) == (409, "unreadable-source", source_id(served))
    assert str(log.folder) not in refused.text
    with (
        served.client(retries=0) as client,
        pytest.raises(ServiceError, match=rf"\(source {source_id(served)}\)") as error,
    ):
        client.forget(PEOPLE[:1])
    assert error.value.kind == "unreadable-source"
    with at_the_page(served) as page:
        assert f"It is source {source_id(served)}." in page.preview(PEOPLE[0]).text
    with served.http() as http:
        http.post("/v2/requests", json=body())
    with at_the_page(served, "admin") as page:
        let_the_desk_work(served, lambda: "A source of the vault is gone" in page.get("/page/requests").text)
        assert "Forget them here" not in page.get("/page/requests").text


def test_a_source_with_damaged_rows_is_unreadable(served: Served, log: Folder) -> None:
    """Its footer is whole, and so are its size and its time."""
    (path,) = log.folder.glob("*.parquet")
    before = path.stat()
    content = path.read_bytes()
    with path.open("r+b") as file:
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        file.write(content[:4] + bytes(byte ^ 255 for byte in content[4:footer]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": PEOPLE[:1]})
    assert kind_of(refused) == (409, "unreadable-source", source_id(served))


def source_id(served: Served) -> str:
    """By which the one source is named."""
    with served.place.open() as vault:
        (source,) = vault.source_erasures().sources
        return source.id


def wait_for_erasure(served: Served) -> SourceErasures:
    assert served.app.state.service.erasing.end(60)
    with served.client("reader") as client:
        return client.source_erasures()


def test_what_is_due_at_the_source_is_told_and_erased_through_the_api(served: Served, log: Folder) -> None:
    with served.client() as client, served.http() as http:
        health = client.health()["sources"]
        assert health == {
            "may_erase": True,
            "erasures_due": 0,
            "purges_due": 0,
        }
        done = client.forget(PEOPLE[:1])
        check("DeletionDone", done)
        own = Certificate.read(json.dumps(done["certificate"])).person
        assert own is not None
        assert own.outcome == "uncounted"
        assert client.deletion(done["entry"])["later"] == []
        check("Health", client.health())
        health = client.health()["sources"]
        assert health is not None
        assert health["erasures_due"] == 1
        assert "armnesia_source_erasures_due 1.0" in http.get("/metrics").text
        check("SourceErasures", client.erase_at_sources())
        found = wait_for_erasure(served)
        check("SourceErasures", found)
        check("SourceErasure", found["sources"][0])
        assert str(log.folder) not in str(found)
        assert found["last_run"] is not None
        assert found["last_run"]["state"] == "done"
        assert not any(each["to_erase"] or each["to_purge"] for each in found["sources"])
        assert client.deletion(done["entry"])["later"] == ["erased"]
        assert "armnesia_source_erasures_due 0.0" in http.get("/metrics").text
    assert PEOPLE[0] not in {person for _, person, *_ in log.values()}


def test_the_page_says_what_is_due_at_the_source_and_erases(served: Served, log: Folder) -> None:
    with at_the_page(served) as page:
        answered = page.confirm(page.preview(PEOPLE[0])).text
        assert "Their rows are still at the source until they are erased there." in answered
        requests = page.get("/page/requests").text
        assert "Sources where rows are to be erased" in requests
        assert "Rows of forgotten people may still lie at 1 source" in page.get("/page/health").text
        assert page.post("/page/requests/erase").status_code == 200
        wait_for_erasure(served)
        requests = page.get("/page/requests").text
        assert "No rows are left to erase at a source." in requests
        assert "No rows of forgotten people are left" in page.get("/page/health").text
    assert PEOPLE[0] not in {person for _, person, *_ in log.values()}


def test_the_page_says_that_rows_wait_for_a_purge(over_delta: Served) -> None:
    with over_delta.client() as client:
        client.forget(PEOPLE[:1])
        client.erase_at_sources()
        wait_for_erasure(over_delta)
        due = client.health()["sources"]
    assert due is not None
    assert (due["erasures_due"], due["purges_due"]) == (0, 1)
    with at_the_page(over_delta) as page:
        assert "still hold them until their retention is over" in page.get("/page/requests").text
        assert "Files of 1 source still hold erased rows" in page.get("/page/health").text


def test_a_vault_without_the_permission_says_that_rows_stay(elsewhere: Served) -> None:
    with elsewhere.client() as client:
        client.forget(PEOPLE[:1])
        with pytest.raises(ServiceError) as refused:
            client.erase_at_sources()
        assert refused.value.kind == "no-permission"
    with at_the_page(elsewhere) as page:
        assert "this vault may not erase them" in page.get("/page/requests").text
        assert "this vault may not erase them" in page.get("/page/health").text
        assert page.post("/page/requests/erase").status_code == 409


def test_a_managed_vault_has_no_sources(sqlite_place: Place) -> None:
    with serving(sqlite_place) as served, served.client() as client:
        assert client.health()["sources"] is None
        with pytest.raises(ServiceError) as refused:
            client.erase_at_sources()
        assert refused.value.kind == "no-permission"


@pytest.mark.parametrize(("content", "purge"), [(b"", True), (b"{}", True), (b'{"purge": false}', False)])
def test_an_erasure_without_a_body_has_the_defaults(
    served: Served, monkeypatch: pytest.MonkeyPatch, content: bytes, purge: bool
) -> None:
    asked: list[dict[str, Any]] = []
    erase = Vault.erase_at_sources

    def noted(vault: Vault, **options: Any) -> Any:
        asked.append(options)
        return erase(vault, **options)

    monkeypatch.setattr(Vault, "erase_at_sources", noted)
    with served.client() as client, served.http() as http:
        client.forget(PEOPLE[:1])
        assert http.post("/v1/erasures", content=b"purge=false").status_code == 422
        headers = {"Content-Type": "application/json"} if content else {}
        assert http.post("/v1/erasures", content=content, headers=headers).status_code == 202
        assert not any(each["to_erase"] for each in wait_for_erasure(served)["sources"])
    assert [options["purge"] for options in asked] == [purge]


def test_the_writer_does_not_wait_for_an_erasure(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    erase = Vault.erase_at_sources

    def slowly(vault: Vault, **options: Any) -> Any:
        go_on.wait(30)
        return erase(vault, **options)

    monkeypatch.setattr(Vault, "erase_at_sources", slowly)
    with served.client() as client, served.http() as http:
        client.erase_at_sources()
        assert client.forget(PEOPLE[:1])["entry"] > 0
        again = http.post("/v1/erasures", json={})
        assert kind_of(again) == (409, "erasure-running", None)
        assert http.post("/v1/erasures", json={}, headers=served.headers("reader")).status_code == 403
        go_on.set()
        assert not any(each["to_erase"] for each in wait_for_erasure(served)["sources"])


def test_an_erasure_that_fails_says_why(served: Served, log: Folder) -> None:
    with served.client() as client:
        client.forget(PEOPLE[:1])
        shutil.rmtree(log.folder)
        client.erase_at_sources()
        run = wait_for_erasure(served)["last_run"]
        assert run is not None
        assert (run["state"], run["problem"], run["source"]) == (
            "failed",
            "unreadable-source",
            source_id(served),
        )
    with at_the_page(served) as page:
        assert "failed. A source of the vault is gone" in page.get("/page/requests").text


def test_an_erasure_that_was_interrupted_is_run_again(
    served: Served, log: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are gone at the source, and the vault does not know it yet."""
    monkeypatch.setattr("armnesia.vault.operations.erase.ErasureRun.record", interrupt)
    with served.client() as client:
        client.forget(PEOPLE[:1])
        client.erase_at_sources()
        run = wait_for_erasure(served)["last_run"]
        assert run is not None
        assert (run["state"], run["problem"]) == ("failed", "internal-error")
        assert client.forget(PEOPLE[1:2])["held"] == 1
        monkeypatch.undo()
        client.erase_at_sources()
        assert not any(each["to_erase"] for each in wait_for_erasure(served)["sources"])
    assert not {person for _, person, *_ in log.values()} & set(PEOPLE[:2])


def interrupt(*_: object) -> None:
    raise RuntimeError
