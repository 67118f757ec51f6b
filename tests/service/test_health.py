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
from armnesia.service import running
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


@pytest.mark.parametrize("is_finished", [False, True])
@pytest.mark.parametrize("hours", [0.0, 24.0])
def test_damage_that_a_request_meets_is_told_until_a_verification_has_passed(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, hours: float, is_finished: bool
) -> None:
    """Health itself reads little of the file, and verifications are a day apart."""
    monkeypatch.setattr(running, "_SECONDS_TO_VERIFY_AGAIN", 2.0)
    forget_many, verify, verified = Vault.forget_many, Vault.verify, list[float]()

    def fail(*_: Any, **__: Any) -> Any:
        raise DamagedDatabaseError("the vault is damaged")

    def count(vault: Vault, **named: Any) -> Any:
        verified.append(time.monotonic())
        return verify(vault, **named)

    def find_problems(vault: Vault, **named: Any) -> Any:
        return replace(verify(vault, **named), problems=("the tables are damaged",))

    monkeypatch.setattr(Vault, "verify", count)
    with (
        serving(sqlite_place, settings=replace(SETTINGS, verify_hours=hours)) as served,
        served.http() as http,
    ):
        if hours:
            wait_for(lambda: http.get("/health").json()["verified"] is not None)
        assert http.get("/health").json()["status"] == "ok"
        monkeypatch.setattr(Vault, "verify", find_problems if is_finished else fail)
        monkeypatch.setattr(Vault, "forget_many", fail)
        assert http.post("/v1/deletions", json={"users": [PEOPLE[2]]}).status_code == 503
        found = http.get("/health")
        assert found.status_code == 503
        assert (found.json()["status"], found.json()["database"]) == ("failing", "vault-unreadable")
        wait_for(lambda: (http.get("/health").json()["verified"] or {}).get("holds") is False)
        before = len(verified)
        monkeypatch.setattr(Vault, "verify", count)
        monkeypatch.setattr(Vault, "forget_many", forget_many)
        wait_for(lambda: http.get("/health").status_code == 200)
        assert len(verified) > before
        assert http.get("/health").json()["database"] == "ok"


def test_damage_met_again_and_again_begins_no_verification_after_another(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify, verified = Vault.verify, list[float]()

    def fail(*_: Any, **__: Any) -> Any:
        raise DamagedDatabaseError("the vault is damaged")

    def count(vault: Vault, **named: Any) -> Any:
        verified.append(time.monotonic())
        return verify(vault, **named)

    monkeypatch.setattr(Vault, "verify", count)
    with serving(sqlite_place) as served, served.http() as http:
        before = len(verified)
        monkeypatch.setattr(Vault, "forget_many", fail)
        for _ in range(20):
            assert http.post("/v1/deletions", json={"users": [PEOPLE[2]]}).status_code == 503
            time.sleep(0.05)
        assert http.get("/health").json()["status"] == "failing"
        assert len(verified) <= before + 1


def test_six_pages_of_zeros_are_noticed_without_waiting_for_the_next_verification(
    sqlite_place: Place,
) -> None:
    with (
        serving(sqlite_place, settings=replace(SETTINGS, verify_hours=24.0)) as served,
        served.http() as http,
    ):
        wait_for(lambda: http.get("/health").json()["verified"] is not None)
        path = sqlite_place.url.removeprefix("sqlite:///")
        with open(path, "r+b") as file:
            file.seek(3 * 4096)
            file.write(bytes(6 * 4096))
        assert http.post("/v1/deletions", json={"users": [PEOPLE[2]]}).status_code == 503
        assert http.get("/health").status_code == 503
        wait_for(lambda: (http.get("/health").json().get("verified") or {}).get("holds") is False)
