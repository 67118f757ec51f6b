"""What `/health` says when something beside the database is wrong."""

import errno
import json
import logging
import shutil
import time
from dataclasses import replace
from typing import Any

import pytest

from armnesia.core.errors import DamagedDatabaseError
from armnesia.service.problems import problem_of
from armnesia.vault import Vault
from armnesia.vault.ledger.pinned_head import PinnedHead
from tests.databases import Place
from tests.service.servers import PEOPLE, SETTINGS, Served, serving


def test_a_verification_that_fails_is_not_one_that_holds(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "armnesia.service")
    monkeypatch.setattr(logging.getLogger("armnesia.service"), "propagate", True)
    verify = Vault.verify

    def fail(*_: Any, **__: Any) -> Any:
        raise DamagedDatabaseError("the vault is damaged")

    with (
        serving(sqlite_place, settings=replace(SETTINGS, verify_hours=0.0001)) as served,
        served.http() as http,
    ):
        wait_for(lambda: (http.get("/health").json()["verified"] or {}).get("holds") is True)
        monkeypatch.setattr(Vault, "verify", fail)
        wait_for(lambda: http.get("/health").status_code == 503)
        found = http.get("/health").json()
        assert (found["status"], found["verified"]["holds"]) == ("failing", False)
        assert found["verified"]["failure"] == "vault-unreadable"
        assert "not verified" in {each.msg for each in caplog.records if each.levelno == logging.WARNING}
        monkeypatch.setattr(Vault, "verify", verify)
        wait_for(lambda: http.get("/health").status_code == 200)


def wait_for(is_so: Any) -> None:
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_damaged_file_is_a_vault_that_cannot_be_read(sqlite_place: Place) -> None:
    with serving(sqlite_place) as served, served.http() as http:
        assert http.get("/health").status_code == 200
        with sqlite_place.open() as vault:
            vault.finish()
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
            found = answer.json()
            assert (answer.status_code, found["status"], found["keys"]) == (503, "failing", "unreadable")
        other = {**json.loads(kept), "digest_keys": json.loads(kept)["signing_keys"]}
        keys.touch(mode=0o600)
        keys.write_text(json.dumps(other))
        assert http.get("/health").json()["keys"] == "unreadable"
        keys.write_bytes(kept)
        assert http.get("/health").json()["status"] == "ok"


def test_a_pin_that_is_removed_and_written_anew_is_told(served: Served) -> None:
    pin = served.place.keys.with_name(served.place.keys.name + ".head")
    with served.http() as http:
        assert http.get("/health").json()["pin"] == "ok"
        shutil.copy(pin, pin.with_name("kept"))
        pin.unlink()
        found = http.get("/health").json()
        assert (found["status"], found["pin"]) == ("degraded", "missing")
        assert http.post("/v1/deletions", json={"users": [PEOPLE[2]]}).status_code == 201
        found = http.get("/health").json()
        assert (found["status"], found["pin"]) == ("degraded", "recreated")


def test_a_vault_without_open_files_is_one_to_try_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the file of the pin or another one cannot be opened."""
    opened = PinnedHead._open

    def exhausted(self: PinnedHead, flags: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with served.http() as http:
        assert http.get("/v1/ledger/head").status_code == 200
        monkeypatch.setattr(PinnedHead, "_open", exhausted)
        answer = http.post("/v1/deletions", json={"users": [PEOPLE[2]]})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        monkeypatch.setattr(PinnedHead, "_open", opened)
        assert http.post("/v1/deletions", json={"users": [PEOPLE[2]]}).status_code == 201
    told = problem_of(OSError(errno.EMFILE, "Too many open files"))
    assert (told.status, told.kind, told.retry_after) == (503, "out-of-files", 1)
