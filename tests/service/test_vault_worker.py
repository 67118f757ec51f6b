"""The threads behind the service: groups, refusals, failures, and the end."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, DatabaseError, InvalidNameError, SimilarNameError
from armnesia.service.metrics import Metrics
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import ForgetRequest, Forgotten, Vault
from tests.databases import Place
from tests.service.servers import fill, log_of


@pytest.fixture
def filled(place: Place) -> Place:
    people = tuple(f"person {number}" for number in range(60))
    fill(place, log=log_of(people))
    return place


@pytest.fixture
def worker(filled: Place) -> Iterator[VaultWorker]:
    with worker_of(filled) as running:
        yield running


def worker_of(place: Place, settings: Settings = Settings()) -> VaultWorker:  # noqa: B008 (it is frozen)
    return VaultWorker(place.open, settings, Metrics())


class Held:
    """Keeps the writer busy, so that requests come to wait together."""

    def __init__(self, worker: VaultWorker) -> None:
        self._go_on, begun = threading.Event(), threading.Event()

        def hold(_: Vault) -> None:
            begun.set()
            self._go_on.wait(30)

        worker.write(hold)
        assert begun.wait(30)

    def release(self) -> None:
        self._go_on.set()


def people(*numbers: int) -> list[ForgetRequest]:
    return [ForgetRequest(users=[f"person {number}"]) for number in numbers]


def results(answers: "list[Future[Forgotten]]") -> list[Any]:
    return [answer.exception(60) or answer.result() for answer in answers]


def test_requests_that_wait_are_answered_together(
    worker: VaultWorker, filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    forget_many = Vault.forget_many

    def noted(vault: Vault, requests: Any) -> Any:
        sizes.append(len(requests))
        return forget_many(vault, requests)

    monkeypatch.setattr(Vault, "forget_many", noted)
    held = Held(worker)
    answers = [worker.forget(request) for request in people(*range(40))]
    after = worker.write(lambda vault: vault.n_records)
    answers += [worker.forget(request) for request in people(40, 41)]
    held.release()
    done = results(answers)
    assert sizes == [42]
    assert after.result() == 18 * 4  # other work is done after those who wait at the same time
    entries = [result.entry for result in done]
    assert entries == list(range(entries[0], entries[0] + 42))
    with filled.open() as vault:
        assert vault.n_records == 18 * 4
        assert vault.verify().holds
        keys = vault.public_keys().keys
        assert all(result.certificate.verify(keys) == [] for result in done)


def test_a_refused_request_is_refused_alone(worker: VaultWorker) -> None:
    held = Held(worker)
    requests = [*people(1), ForgetRequest(users=["PERSON 2"]), ForgetRequest(users=[]), *people(3)]
    answers = [worker.forget(request) for request in requests]
    held.release()
    kinds = [type(result) for result in results(answers)]
    assert kinds == [Forgotten, SimilarNameError, InvalidNameError, Forgotten]


@pytest.mark.parametrize("error", [OSError("disk full"), DatabaseError("gone"), KeyboardInterrupt()])
def test_a_failure_is_told_to_all_and_the_writer_goes_on(
    worker: VaultWorker, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    held = Held(worker)
    answers = [worker.forget(request) for request in people(1, 2, 3)]
    with monkeypatch.context() as patched:
        patched.setattr(Vault, "forget_many", fail)
        held.release()
        told = error if isinstance(error, Exception) else RuntimeError()
        assert [type(result) for result in results(answers)] == [type(told)] * 3
    assert all(result.held == 1 for result in results([worker.forget(each) for each in people(1, 2, 3)]))


def test_a_lost_connection_is_made_again(worker: VaultWorker) -> None:
    def lose(vault: Vault) -> None:
        vault.close()
        raise DatabaseError("lost")

    for use in (worker.read, worker.write):
        for _ in range(6):
            with pytest.raises(DatabaseError):
                use(lose).result(60)
        assert use(lambda vault: vault.n_records).result(60) == 240


def test_too_many_that_wait_are_asked_to_come_back(filled: Place) -> None:
    with worker_of(filled, Settings(waiting=3)) as worker:
        held = Held(worker)
        answers = [worker.forget(request) for request in people(1, 2, 3)]
        with pytest.raises(Problem, match="too-busy"):
            worker.forget(people(4)[0])
        assert worker.waiting == 3
        held.release()
        assert all(isinstance(result, Forgotten) for result in results(answers))


def test_what_was_accepted_is_done_in_its_order_before_the_end(filled: Place) -> None:
    done: list[int] = []

    def note(number: int, _: Vault) -> None:
        done.append(number)

    worker = worker_of(filled)
    with worker:
        held = Held(worker)
        answers = []
        for number in range(10):
            answers.append(worker.forget(people(number)[0]))
            worker.write(partial(note, number))
        held.release()
    assert done == list(range(10))
    assert all(answer.result(0).held == 1 for answer in answers)
    assert not worker.is_alive
    with pytest.raises(Problem, match="too-busy"):
        worker.forget(people(11)[0])


def test_a_request_that_was_given_up_is_not_answered(worker: VaultWorker, filled: Place) -> None:
    held = Held(worker)
    answers = [worker.forget(request) for request in people(1, 2)]
    assert answers[0].cancel()
    held.release()
    assert answers[1].result(60).records == 4
    with filled.open() as vault:
        assert vault.n_records == 59 * 4


def test_a_vault_that_does_not_open_is_refused_at_once(sqlite_place: Place) -> None:
    with pytest.raises(ArmnesiaError, match="there is no vault"), worker_of(sqlite_place):
        pass
