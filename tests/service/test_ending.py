"""The end of the service: within its time, with what was begun, and without what is stuck."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from armnesia.service import running
from armnesia.service.pages import forget as forget_page
from armnesia.vault import Vault
from tests.databases import Place
from tests.service.pages.clients import at_the_page, prepared_in
from tests.service.servers import PEOPLE, SETTINGS, held_writer, serving


def test_the_end_does_not_wait_for_a_writer_that_is_stuck(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SECONDS_TO_END", 1.0)
    go_on, begun = threading.Event(), threading.Event()

    def hold(_: Vault) -> None:
        begun.set()
        go_on.wait()

    with serving(sqlite_place) as served:
        served.app.state.service.worker.write(hold)
        assert begun.wait(30)
    assert not go_on.is_set()  # it has ended all the same
    go_on.set()
    assert served.app.state.service.worker.end(30)


def test_a_request_of_the_page_is_answered_before_the_end(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nobody waits for the answer."""
    monkeypatch.setattr(forget_page, "_SECONDS_TO_WAIT", 0.0)
    with serving(sqlite_place) as served, at_the_page(served) as client:
        previewed = client.preview(PEOPLE[0])
        with held_writer(served):
            client.post("/page/forget/confirm", {"prepared": prepared_in(previewed)})
            (session,) = served.app.state.sessions._sessions.values()
            ((_, job),) = session.jobs
            assert job.stage == "waiting"
    assert job.stage == "done"
    with sqlite_place.open() as vault:
        assert vault.forget(users=[PEOPLE[0]]).repeated


def test_a_verification_is_given_up_at_the_end(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, given_up = threading.Event(), threading.Event()

    def verify(vault: Vault, *, progress: Any) -> Any:
        begun.set()
        try:
            while True:
                progress(10_000)
        finally:
            given_up.set()

    monkeypatch.setattr(Vault, "verify", verify)
    with serving(sqlite_place, settings=replace(SETTINGS, verify_hours=24.0)):
        assert begun.wait(30)
    assert given_up.is_set()
    assert "vault-verifier" not in {thread.name for thread in threading.enumerate()}
