"""A head that cannot be pinned: what is done is told as done, and the answer comes later."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from armnesia.core.errors import CommittedUnpinnedError, SimilarNameError, UnpinnedError
from armnesia.service.settings import Settings
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import ForgetRequest
from armnesia.vault.ledger.pinned_head import PinnedHead
from tests.databases import Place
from tests.service.pages.clients import at_the_page, prepared_in
from tests.service.servers import PEOPLE, Served, fill
from tests.service.test_vault_worker import Held, results


@pytest.fixture
def read_only_pin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Makes the file of the pinned head one for reading only, or not."""
    opened, state = PinnedHead._open, {"read-only": False}

    def open_it(self: PinnedHead, flags: int) -> int:
        if state["read-only"] and flags & os.O_RDWR:
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(self, flags)

    monkeypatch.setattr(PinnedHead, "_open", open_it)
    return lambda is_so: state.update({"read-only": is_so})


def kind_of(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).rpartition(":")[2]


def test_a_deletion_whose_head_is_not_pinned_is_told_as_done(
    served: Served, read_only_pin: Callable[[bool], None]
) -> None:
    asked: dict[str, Any] = {"json": {"users": [PEOPLE[2]]}, "headers": {"Idempotency-Key": "k-1"}}
    rows = {"rows": [{"id": "new", "user": "new", "action": "A", "reward": 1, "page": "home"}]}
    with served.http() as http:
        before = http.get("/health").json()["ledger_length"]
        read_only_pin(True)
        first = http.post("/v1/deletions", **asked)
        assert (first.status_code, kind_of(first)) == (500, "done-unpinned")
        assert "is done" in first.json()["detail"]
        assert "nothing was changed" not in first.json()["detail"]
        refused = [
            http.post("/v1/deletions", **asked),
            http.post("/v1/records", json=rows),
            http.get("/health"),
        ]
        for again in refused:
            assert (again.status_code, kind_of(again)) == (503, "head-not-pinned")
            assert again.headers["retry-after"] == "5"
        read_only_pin(False)
        done = http.post("/v1/deletions", **asked)
        assert (done.status_code, done.json()["repeated"]) == (200, True)
        assert done.json()["sequence"] == before + 1
        assert done.json()["certificate"]
        assert http.post("/v1/records", json=rows).json()["added"] == 1


def test_everybody_in_a_group_is_told_the_truth(
    sqlite_place: Place, read_only_pin: Callable[[bool], None]
) -> None:
    fill(sqlite_place)
    names = [*PEOPLE[2:], PEOPLE[0].upper()]
    asked = [ForgetRequest(users=[name]) for name in names]
    with VaultWorker(sqlite_place.open, Settings()) as worker:
        held = Held(worker)
        answers = [worker.forget(request) for request in asked]
        read_only_pin(True)
        held.release()
        told = [type(result) for result in results(answers)]
        assert told == [CommittedUnpinnedError] * 3 + [SimilarNameError]
        alone = results([worker.forget(request) for request in asked[:1]])
        assert [type(result) for result in alone] == [UnpinnedError]
        read_only_pin(False)
        with ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda request: worker.forget(request).result(60), asked[:3]))
        assert all(result.repeated for result in done)
        assert {result.erasure for result in done} == {"complete"}
    with sqlite_place.open() as vault:
        assert sum(entry.kind == "forget" for entry in vault.ledger()) == 3
        assert vault.verify().holds


def test_the_page_says_that_it_is_done(served: Served, read_only_pin: Callable[[bool], None]) -> None:
    with at_the_page(served) as client:
        previewed = client.preview(PEOPLE[0])
        read_only_pin(True)
        shown = client.post("/page/forget/confirm", {"prepared": prepared_in(previewed)})
        assert shown.status_code == 503
        read_only_pin(False)
        answer = client.http.get(shown.url)
        assert "Forgotten, without a certificate yet" in answer.text
        assert "Not forgotten" not in answer.text
