"""The threads behind the service: groups, refusals, failures, and the end."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from armnesia.core.errors import (
    ArmnesiaError,
    DatabaseError,
    InvalidNameError,
    SimilarNameError,
    VaultBusyError,
)
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.service.vault_worker import VaultWorker
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


def many(first: str) -> ForgetRequest:
    return ForgetRequest(users=[first, *(f"stranger {number}" for number in range(10))])


def test_requests_for_many_names_let_others_before_them(worker: VaultWorker, filled: Place) -> None:
    """They were compared, one after another, before anybody of the group was answered."""
    order: list[str] = []

    def noted(name: str, answer: "Future[Any]") -> "Future[Any]":
        answer.add_done_callback(lambda _: order.append(name))
        return answer

    held = Held(worker)
    answers = [noted(f"many {number}", worker.forget(many(f"PERSON {number}"))) for number in range(3)]
    answers += [noted(f"one {number}", worker.forget(people(number)[0])) for number in (4, 5)]
    answers.append(noted("many 3", worker.forget(many("person 6"))))
    answers.append(noted("write", worker.write(lambda vault: vault.n_records)))
    assert worker.waiting == 7
    held.release()
    kinds = [type(result) for result in results(answers)]
    assert kinds == [*[SimilarNameError] * 3, Forgotten, Forgotten, Forgotten, int]
    # In turns: a group, one for many, other work, and then the rest.
    assert order == ["one 4", "one 5", "many 0", "write", "many 1", "many 2", "many 3"]
    with filled.open() as vault:
        assert vault.n_records == 57 * 4
        assert vault.verify().holds


def test_a_group_has_so_many_names_at_most(worker: VaultWorker) -> None:
    sizes: list[int] = []
    worker.observe_group = sizes.append
    held = Held(worker)
    answers = [
        worker.forget(ForgetRequest(users=[f"stranger {number}-{each}" for each in range(10)]))
        for number in range(14)
    ]
    held.release()
    assert all(isinstance(result, Forgotten) for result in results(answers))
    assert sizes == [10, 4]


def test_requests_for_many_names_count_among_those_that_wait(filled: Place) -> None:
    with VaultWorker(filled.open, Settings(waiting=3)) as worker:
        held = Held(worker)
        answers = [worker.forget(many(f"person {number}")) for number in range(3)]
        with pytest.raises(Problem, match="too-busy"):
            worker.forget(people(4)[0])
        held.release()
        assert all(isinstance(result, Forgotten) for result in results(answers))
        assert worker.forget(people(5)[0]).result(60).held == 1


def test_a_refused_request_is_refused_alone(worker: VaultWorker) -> None:
    held = Held(worker)
    requests = [*people(1), ForgetRequest(users=["PERSON 2"]), ForgetRequest(users=[]), *people(3)]
    answers = [worker.forget(request) for request in requests]
    held.release()
    kinds = [type(result) for result in results(answers)]
    assert kinds == [Forgotten, SimilarNameError, InvalidNameError, Forgotten]


def test_a_failure_of_the_group_harms_only_who_causes_it(
    worker: VaultWorker, filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_many = Vault.forget_many

    def fail_for_one(vault: Vault, requests: Any) -> Any:
        if any(request.users == ["person 2"] for request in requests):
            raise ZeroDivisionError
        return forget_many(vault, requests)

    monkeypatch.setattr(Vault, "forget_many", fail_for_one)
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
        answers = [worker.forget(request) for request in [*people(*range(20)), many("person 20")]]
        answers += [worker.forget(many("person 21")), *map(worker.forget, people(22))]
        threading.Timer(0.2, held.release).start()
    assert all(answer.done() for answer in answers)
    assert not worker.is_alive
    with filled.open() as vault:
        assert vault.n_records == 37 * 4


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


def erased_through(place: Place) -> int:
    with place.open() as vault, vault._connection.reading() as transaction:
        return transaction.state.erased_through


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about within 30 seconds")


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_the_writer_survives_whatever_fails(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fill(sqlite_place)
    tried = threading.Event()

    def fail(*_: Any, **__: Any) -> Any:
        tried.set()
        raise error

    with VaultWorker(sqlite_place.open, Settings()) as worker, sqlite_place.open() as other:
        with other._connection.reading():
            assert worker.forget(ForgetRequest(users=[PEOPLE[0]])).result(60).erasure == "pending"
            monkeypatch.setattr(Vault, "finish", fail)
            monkeypatch.setattr(Vault, "pending_erasures", fail)
            assert tried.wait(30)
        with pytest.raises((OSError, RuntimeError)):
            worker.write(fail).result(60)
        monkeypatch.undo()
        assert worker.forget(ForgetRequest(users=[PEOPLE[1]])).result(60).held == 1
        assert worker.is_alive
        wait_until(lambda: not worker._pending)


def test_an_observer_that_fails_withholds_no_answer(worker: VaultWorker) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    worker.observe_group = worker.observe_answer = fail
    assert worker.forget(people(1)[0]).result(60).held == 1
    assert worker.is_alive


def test_a_connection_that_broke_unnoticed_is_made_again(worker: VaultWorker) -> None:
    """A request of many names reads before the transaction begins: also there."""
    worker.write(lambda vault: vault.close()).result(60)
    many = ForgetRequest(users=[f"person {number}" for number in range(12)])
    with pytest.raises(DatabaseError):
        worker.forget(many).result(60)
    assert worker.forget(many).result(60).held == 12


@pytest.mark.parametrize("refused", [DatabaseError, VaultBusyError])
@pytest.mark.parametrize("calls", [[20], [20, 1]], ids=["at once", "after another failure"])
def test_a_database_that_is_gone_is_asked_once(
    filled: Place, monkeypatch: pytest.MonkeyPatch, refused: type[ArmnesiaError], calls: list[int]
) -> None:
    asked: list[int] = []

    def lost(vault: Vault, requests: Any) -> Any:
        asked.append(len(requests))
        raise ZeroDivisionError if len(asked) < len(calls) else refused("gone")

    with VaultWorker(filled.open, Settings()) as worker:
        held = Held(worker)
        answers = [worker.forget(request) for request in people(*range(20))]
        monkeypatch.setattr(Vault, "forget_many", lost)
        held.release()
        assert {type(result) for result in results(answers)} == {refused}
        assert asked == calls


def test_requests_that_are_answered_one_by_one_are_alone_and_completed(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_place)
    forget_many, alone = Vault.forget_many, list[bool]()

    with VaultWorker(sqlite_place.open, Settings()) as worker, sqlite_place.open() as other:

        def fail_together(vault: Vault, requests: Any) -> Any:
            alone.append(worker._gate._is_alone)
            if len(requests) > 1:
                raise ZeroDivisionError
            return forget_many(vault, requests)

        monkeypatch.setattr(Vault, "forget_many", fail_together)
        held = Held(worker)
        answers = [worker.forget(ForgetRequest(users=[name])) for name in PEOPLE[:3]]
        with other._connection.reading():
            held.release()
            assert {result.erasure for result in results(answers)} == {"pending"}
        assert alone == [True] * 4
        number = answers[-1].result().certificate.body["sequence"]
        wait_until(lambda: erased_through(sqlite_place) == number)
