"""What `/health` says when something beside the database is wrong."""

import json
import logging
from typing import Any

import pytest

from armnesia.core.errors import DamagedDatabaseError, VaultError
from armnesia.vault import Vault
from armnesia.vault.ledger.journal import Journal
from tests.databases import Place
from tests.service.pages.clients import at_the_page
from tests.service.servers import PEOPLE, Served, serving


def test_a_verification_that_fails_is_not_one_that_holds(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "armnesia.service")
    monkeypatch.setattr(logging.getLogger("armnesia.service"), "propagate", True)
    verify = Vault.verify

    def fail(*_: Any, **__: Any) -> Any:
        raise DamagedDatabaseError("the vault is damaged")

    with serving(sqlite_place) as served, served.http() as http:
        service = served.app.state.service
        service.verify_once()
        assert http.get("/health").json()["verified"]["holds"] is True
        monkeypatch.setattr(Vault, "verify", fail)
        service.verify_once()
        assert http.get("/health").status_code == 503
        found = http.get("/health").json()
        assert (found["status"], found["verified"]["holds"]) == ("failing", False)
        assert found["verified"]["failure"] == "vault-unreadable"
        assert "verified" in {each.msg for each in caplog.records if each.levelno == logging.WARNING}
        monkeypatch.setattr(Vault, "verify", verify)
        service.verify_once()
        assert http.get("/health").status_code == 200


def test_a_damaged_file_is_a_vault_that_cannot_be_read(sqlite_place: Place) -> None:
    with serving(sqlite_place) as served, served.http() as http:
        assert http.get("/health").status_code == 200
        with sqlite_place.open() as vault:
            vault.compact()
        path = sqlite_place.url.removeprefix("sqlite:///")
        with open(path, "r+b") as file:
            size = int.from_bytes(file.read(18)[16:], "big")
            for start in range(size, file.seek(0, 2), size):
                file.seek(start)
                file.write(b"\xff")
        answer = http.get("/health")
        assert answer.status_code == 503
        told = answer.json()
        assert told.get("database", told.get("type", "")).endswith("vault-unreadable"), told


def test_keys_that_are_gone_are_told_by_every_thread(served: Served) -> None:
    keys = served.place.keys
    with served.http() as http:
        assert http.get("/health").json()["keys"] == "ok"
        kept = keys.read_bytes()
        keys.unlink()
        for _ in range(8):
            answer = http.get("/health")
            assert answer.status_code == 503
        other = {**json.loads(kept), "digest_key": json.loads(kept)["signing_keys"][0]}
        keys.touch(mode=0o600)
        keys.write_text(json.dumps(other))
        assert http.get("/health").status_code == 503
        keys.write_bytes(kept)
        assert http.get("/health").json()["status"] == "ok"


def test_what_is_done_is_never_said_not_to_be_if_the_journal_cannot_be_written(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up = Journal.catch_up

    def fail(*_: Any) -> None:
        raise VaultError("the journal cannot be used: Read-only file system")

    with served.http() as http, at_the_page(served) as page:
        previewed = page.preview(PEOPLE[1])
        monkeypatch.setattr(Journal, "catch_up", fail)
        answer = http.post("/v1/deletions", json={"users": [PEOPLE[2]]})
        assert answer.status_code == 409
        assert "nothing was changed" not in answer.json()["detail"]
        assert http.get("/health").status_code == 503
        monkeypatch.setattr(Journal, "catch_up", catch_up)
        done = http.post("/v1/deletions", json={"users": [PEOPLE[2]]})
        assert (done.status_code, done.json()["repeated"]) == (200, True)
        assert done.json()["certificate"] is not None
        forget = served.app.state.service.worker.forget

        def then_fail(request: Any) -> Any:
            forget(request).result()
            fail()

        monkeypatch.setattr(served.app.state.service.worker, "forget", then_fail)
        shown = page.confirm(previewed)
        assert "Perhaps not forgotten" in shown.text
        assert "Not forgotten" not in shown.text
