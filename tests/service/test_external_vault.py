"""A service over an external vault, whose rows stay at their source until they are erased there."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import httpx
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.service.app import create_app
from armnesia.service.client import ServiceError
from armnesia.service.opendsr.processor import Processor
from armnesia.vault import Configuration, Role, UserType
from tests.databases import Place
from tests.logs.erasing.stores import DeltaStore, ParquetStore, Row, Store, arrow_rows
from tests.service.certificates import DOMAIN, issued, processor
from tests.service.pages.clients import at_the_page
from tests.service.servers import PEOPLE, SETTINGS, Served, listening
from tests.service.test_opendsr import body, is_signed, status_of

PERMITTED = Configuration(
    actions=("A", "B"), mode="external", may_erase_at_source=True, user_type=UserType.TEXT
)
READING_ONLY = Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT)
ROWS: list[Row] = [
    (person, "AB"[row % 2], float(row % 3) / 2, "home") for person in PEOPLE for row in range(4)
]


def fill_external(place: Place, log: Store, configuration: Configuration) -> dict[str, str]:
    """A vault that has counted a log, and a token of each role."""
    log.append(ROWS)
    with place.create(configuration) as vault:
        vault.ingest(log.open().description["location"], user="user")
        return {str(role): vault.create_token(role, name=f"test of {role}").text for role in Role}


def served_over(place: Place, log: Store, configuration: Configuration, made: Processor) -> Iterator[Served]:
    tokens = fill_external(place, log, configuration)
    app = create_app(place.open, SETTINGS, processor=made)
    with listening(app) as url:
        yield Served(url, place, tokens, app)


@pytest.fixture
def log(tmp_path: Path) -> ParquetStore:
    return ParquetStore(tmp_path / "clicks")


@pytest.fixture
def served(sqlite_place: Place, log: ParquetStore, tmp_path: Path) -> Iterator[Served]:
    """A service that may erase rows at their source."""
    yield from served_over(sqlite_place, log, PERMITTED, processor(tmp_path))


@pytest.fixture
def over_delta(sqlite_place: Place, tmp_path: Path) -> Iterator[Served]:
    """A service over a table of which earlier versions are kept for longer than a request may take."""
    log = DeltaStore(tmp_path / "lake")
    kept = {"delta.deletedFileRetentionDuration": "interval 40 days"}
    deltalake.write_deltalake(str(log.folder), arrow_rows([]), configuration=kept)
    yield from served_over(sqlite_place, log, PERMITTED, processor(tmp_path))


@pytest.fixture
def elsewhere(sqlite_place: Place, log: ParquetStore, tmp_path: Path) -> Iterator[Served]:
    """A service that only reads its source, which something else erases."""
    made = processor(tmp_path, sources_erased_elsewhere=True)
    yield from served_over(sqlite_place, log, READING_ONLY, made)


def wait_for_answer(served: Served, id_: str) -> dict[str, Any]:
    """The status once the people of a request are forgotten, and the desk has looked at it again."""
    with served.place.open() as vault:
        for _ in range(200):
            found = vault.subject_request(id_)
            if found is not None and found.sequence is not None:
                break
            time.sleep(0.05)
    time.sleep(0.3)
    with served.http() as http:
        return dict(http.get(f"/v2/requests/{id_}").json())


def test_a_request_is_completed_when_its_rows_are_purged_at_the_source(
    served: Served, log: ParquetStore
) -> None:
    sent = body()
    with served.http() as http:
        http.post("/v2/requests", json=sent)
    id_ = sent["subject_request_id"]
    assert wait_for_answer(served, id_)["request_status"] == "in_progress"
    assert PEOPLE[0] in {row[0] for row in log.rows()}
    with served.place.open() as vault:
        vault.erase_at_sources(purge=True)
    served.app.state.desk.wake.set()
    assert status_of(served, id_, until="completed") == "completed"
    assert PEOPLE[0] not in {row[0] for row in log.rows()}


def test_a_request_waits_for_the_retention_of_the_source(over_delta: Served) -> None:
    """What readers no longer see is in files of earlier versions, and the person is not erased there."""
    sent = body()
    with over_delta.http() as http:
        http.post("/v2/requests", json=sent)
    id_ = sent["subject_request_id"]
    before = datetime.fromisoformat(wait_for_answer(over_delta, id_)["expected_completion_time"])
    assert before < datetime.now(UTC) + timedelta(days=31)
    with over_delta.place.open() as vault:
        vault.erase_at_sources(purge=True)
        (source,) = vault.source_erasures().sources
        assert (source.state, source.due is None) == ("logically deleted", False)
        over_delta.app.state.desk.wake.set()
        for _ in range(200):
            if (stored := vault.subject_request(id_)) is not None and stored.purge_from:
                break
            time.sleep(0.05)
    with over_delta.http() as http:
        found = http.get(f"/v2/requests/{id_}").json()
    assert found["request_status"] == "in_progress"
    expected = datetime.fromisoformat(found["expected_completion_time"])
    assert expected == datetime.fromisoformat(source.due or "")
    with over_delta.place.open() as vault:
        vault.erase_at_sources(purge=True, ignore_retention=True)
    over_delta.app.state.desk.wake.set()
    assert status_of(over_delta, id_, until="completed") == "completed"


def test_a_vault_that_only_reads_its_sources_takes_no_requests(
    sqlite_place: Place, log: ParquetStore, tmp_path: Path, run: Any
) -> None:
    fill_external(sqlite_place, log, READING_ONLY)
    certificate, key = issued(tmp_path)
    asked = ["serve", "--url", sqlite_place.url, "--keys", str(sqlite_place.keys), "--port", "0"]
    asked += ["--opendsr-domain", DOMAIN, "--opendsr-certificate", str(certificate), "--opendsr-key", str(key)]
    refused = run(*asked)
    assert refused.code == 2
    assert "may not erase rows at their sources" in refused.err
    assert refused.err.count(". ") == 0


def test_the_statement_about_sources_is_refused_where_the_vault_has_the_rows(tmp_path: Path) -> None:
    made = processor(tmp_path, sources_erased_elsewhere=True)
    with pytest.raises(InvalidInputError, match="is about an external vault"):
        made.check_vault(Configuration(actions=("A", "B")))


def test_sources_that_are_erased_elsewhere_are_not_spoken_of(elsewhere: Served, log: ParquetStore) -> None:
    sent = body()
    with elsewhere.http() as http:
        http.post("/v2/requests", json=sent)
        discovered = http.get("/v2/discovery")
    assert status_of(elsewhere, sent["subject_request_id"], until="completed") == "completed"
    assert PEOPLE[0] in {row[0] for row in log.rows()}
    assert "is not erased by it, but elsewhere" in discovered.json()["completed_means"]
    assert is_signed(discovered, elsewhere)


def kind_of(answer: httpx.Response) -> tuple[int, str, int | None]:
    problem = answer.json()
    return answer.status_code, problem["type"].rpartition(":")[2], problem.get("source")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_source_that_has_changed_is_named_by_its_number(
    served: Served, log: ParquetStore, dry_run: bool
) -> None:
    (path,) = log.folder.glob("*.parquet")
    pq.write_table(arrow_rows(ROWS[1:]), path)
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": PEOPLE[:1], "dry_run": dry_run})
    assert kind_of(refused) == (409, "changed-source", 1)
    assert str(log.folder) not in refused.text
    assert PEOPLE[0] not in refused.text


def test_a_source_that_is_gone_is_named_by_its_number(served: Served, log: ParquetStore) -> None:
    shutil.rmtree(log.folder)
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": PEOPLE[:1]})
    assert kind_of(refused) == (409, "unreadable-source", 1)
    assert str(log.folder) not in refused.text
    with served.client(retries=0) as client, pytest.raises(ServiceError, match=r"\(source 1\)") as error:
        client.forget(PEOPLE[:1])
    assert error.value.kind == "unreadable-source"
    with at_the_page(served) as page:
        assert "It is source 1." in page.preview(PEOPLE[0]).text


def test_a_source_with_damaged_rows_is_unreadable(served: Served, log: ParquetStore) -> None:
    """Its footer is whole, and so are its size and its time."""
    (path,) = log.folder.glob("*.parquet")
    before = path.stat()
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content[:4] + bytes(byte ^ 255 for byte in content[4:200]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with served.http() as http:
        refused = http.post("/v1/deletions", json={"users": PEOPLE[:1]})
    assert kind_of(refused) == (409, "unreadable-source", 1)
