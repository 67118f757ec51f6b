"""The threads behind the service: groups, refusals, failures, and the end."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, DatabaseError, InvalidInputError, SimilarNameError
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.service.vault_worker import Gate, VaultWorker
from armnesia.vault import ForgetRequest, Forgotten, Vault
from tests.databases import Place
from tests.service.servers import PEOPLE, fill, log_of


@pytest.fixture
def filled(place: Place) -> Place:
    people = tuple(f"person {number}" for number in range(60))
    fill(place, log=log_of(people))
    return place


@pytest.fixture
def worker(filled: Place) -> Iterator[VaultWorker]:
    with VaultWorker(filled.open, Settings(group=16)) as running:
        yield running


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


def test_requests_that_wait_are_answered_together(worker: VaultWorker, filled: Place) -> None:
    sizes: list[int] = []
    worker.observe_group = sizes.append
    held = Held(worker)
    answers = [worker.forget(request) for request in people(*range(40))]
    after = worker.write(lambda vault: vault.n_records)
    more = [worker.forget(request) for request in people(40, 41)]
    held.release()
    done = results([*answers, *more])
    assert sizes == [16, 16, 10]
    assert after.result() == 18 * 4  # other work is done after those who wait at the same time
    entries = [result.certificate.body["sequence"] for result in done]
    assert entries == list(range(entries[0], entries[0] + 42))
    with filled.open() as vault:
        assert vault.n_records == 18 * 4
        assert vault.verify().holds
        keys = vault.public_keys()
        assert all(result.certificate.verify(keys) == [] for result in done)


def test_a_refused_request_is_refused_alone(worker: VaultWorker) -> None:
    held = Held(worker)
    requests = [*people(1), ForgetRequest(users=["PERSON 2"]), ForgetRequest(users=[]), *people(3)]
    answers = [worker.forget(request) for request in requests]
    held.release()
    kinds = [type(result) for result in results(answers)]
    assert kinds == [Forgotten, SimilarNameError, InvalidInputError, Forgotten]


def test_a_failure_of_the_group_harms_only_who_causes_it(
    worker: VaultWorker, filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget = Vault.forget

    def fail(vault: Vault, *arguments: Any) -> Any:
        raise ZeroDivisionError

    def fail_for_one(vault: Vault, users: Any = None, **options: Any) -> Any:
        if users == ["person 2"]:
            raise ZeroDivisionError
        return forget(vault, users, **options)

    monkeypatch.setattr(Vault, "forget_many", fail)
    monkeypatch.setattr(Vault, "forget", fail_for_one)
    held = Held(worker)
    answers = [worker.forget(request) for request in people(1, 2, 3)]
    held.release()
    assert [type(result) for result in results(answers)] == [Forgotten, ZeroDivisionError, Forgotten]
    monkeypatch.undo()
    assert worker.forget(people(2)[0]).result(60).records == 4


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
    with VaultWorker(filled.open, Settings(waiting=3)) as worker:
        held = Held(worker)
        answers = [worker.forget(request) for request in people(1, 2, 3)]
        with pytest.raises(Problem, match="too-busy"):
            worker.forget(people(4)[0])
        assert worker.waiting == 3
        held.release()
        assert all(isinstance(result, Forgotten) for result in results(answers))


def test_what_was_accepted_is_done_before_the_end(filled: Place) -> None:
    with VaultWorker(filled.open, Settings()) as worker:
        held = Held(worker)
        answers = [worker.forget(request) for request in people(*range(20))]
        threading.Timer(0.2, held.release).start()
    assert all(answer.done() for answer in answers)
    assert not worker.is_alive
    with filled.open() as vault:
        assert vault.n_records == 40 * 4


def test_a_request_that_was_given_up_is_not_answered(worker: VaultWorker, filled: Place) -> None:
    held = Held(worker)
    answers = [worker.forget(request) for request in people(1, 2)]
    assert answers[0].cancel()
    held.release()
    assert answers[1].result(60).records == 4
    with filled.open() as vault:
        assert vault.n_records == 59 * 4


def test_a_vault_that_does_not_open_is_refused_at_once(sqlite_place: Place) -> None:
    with pytest.raises(ArmnesiaError, match="there is no vault"), VaultWorker(sqlite_place.open, Settings()):
        pass


def test_erasure_is_complete_while_others_read(sqlite_place: Place) -> None:
    """Readers of the same process are kept out while bytes leave the files."""
    fill(sqlite_place, log=log_of(tuple(f"person {number}" for number in range(60))))
    with VaultWorker(sqlite_place.open, Settings()) as worker, ThreadPoolExecutor(4) as pool:
        ended = threading.Event()

        def read() -> int:
            number = 0
            while not ended.is_set():
                worker.read(lambda vault: vault.decisions()).result(60)
                number += 1
            return number

        readers = [pool.submit(read) for _ in range(4)]
        done = [worker.forget(request).result(60) for request in people(*range(30))]
        ended.set()
        assert sum(reader.result() for reader in readers) > 0
        assert {result.erasure for result in done} == {"complete"}


def test_erasures_that_another_process_held_back_are_completed_later(sqlite_place: Place) -> None:
    fill(sqlite_place)
    with VaultWorker(sqlite_place.open, Settings()) as worker, sqlite_place.open() as other:
        with other._connection.reading():
            result = worker.forget(ForgetRequest(users=[PEOPLE[0]])).result(60)
            assert result.erasure == "pending"
        number = result.certificate.body["sequence"]
        for _ in range(100):
            if worker.read(lambda vault: vault.pending_erasures().number).result(60) == 0:
                break
            threading.Event().wait(0.1)
        assert worker.write(lambda vault: vault.certificate_of_entry(number)).result(60).erasure == "complete"


def test_whoever_is_alone_is_alone() -> None:
    gate, inside, most, wrong = Gate(), [0], [0], []

    def come_in(number: int) -> None:
        for _ in range(200):
            if number % 4 == 0:
                with gate.alone():
                    wrong.extend([1] * bool(inside[0]))
            else:
                with gate.shared():
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    inside[0] -= 1

    threads = [threading.Thread(target=come_in, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert most[0] >= 1


def test_other_work_is_done_in_its_order_and_to_the_end(filled: Place) -> None:
    done: list[int] = []

    def note(number: int, _: Vault) -> None:
        done.append(number)

    with VaultWorker(filled.open, Settings(group=16)) as worker:
        held = Held(worker)
        answers = []
        for number in range(10):
            answers.append(worker.forget(people(number)[0]))
            worker.write(partial(note, number))
        assert worker.waiting == 20
        held.release()
    assert done == list(range(10))
    assert all(answer.result().held == 1 for answer in answers)


def test_the_facts_of_a_deletion_are_those_of_its_certificate(worker: VaultWorker, place: Place) -> None:
    number = worker.forget(people(1)[0]).result(60).certificate.body["sequence"]
    before = worker.write(lambda vault: vault.deletion(number)).result(60)
    with place.open() as vault:
        head = vault.head
        assert vault.certificate_of_entry(number).summary() == before == vault.deletion(number)
        assert vault.head == head
