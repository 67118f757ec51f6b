"""Requests to forget on their way from the event loop to the vault and back."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from armnesia.core.errors import SimilarNameError
from armnesia.service.problems import Problem
from armnesia.service.running import Service
from armnesia.service.settings import Settings
from armnesia.vault import ForgetRequest
from tests.databases import Place
from tests.service.servers import fill, log_of
from tests.service.test_vault_worker import Held, people


@pytest.fixture
def service(sqlite_place: Place) -> Service:
    fill(sqlite_place, log=log_of(tuple(f"person {number}" for number in range(60))))
    return Service(sqlite_place.open, Settings(group=16, waiting=20, verify_hours=0))


def run(service: Service, work: Coroutine[Any, Any, None]) -> None:
    async def running() -> None:
        async with service.running():
            await work

    asyncio.run(running())


def test_requests_of_one_step_are_one_group(service: Service) -> None:
    sizes: list[int] = []
    service.worker.observe_group = sizes.append

    async def work() -> None:
        found = await asyncio.gather(*map(service.forget, people(*range(10))))
        assert [result.held for result in found] == 10 * [1]
        sequences = [result.certificate.body["sequence"] for result in found]
        assert sequences == list(range(sequences[0], sequences[0] + 10))

    run(service, work())
    assert sizes == [10]


def test_each_request_gets_its_own_answer_or_refusal(service: Service) -> None:
    async def work() -> None:
        asked = [*people(1), ForgetRequest(users=["Person 2"]), *people(3)]
        first, refused, last = await asyncio.gather(*map(service.forget, asked), return_exceptions=True)
        assert isinstance(refused, SimilarNameError)
        assert not isinstance(first, BaseException)
        assert not isinstance(last, BaseException)
        assert (first.held, last.held) == (1, 1)

    run(service, work())


def test_more_than_may_wait_are_refused_and_the_others_answered(service: Service) -> None:
    async def work() -> None:
        held = Held(service.worker)
        asking = [asyncio.ensure_future(service.forget(request)) for request in people(*range(25))]
        done, _ = await asyncio.wait(asking, timeout=0.2)
        held.release()
        found = await asyncio.gather(*asking, return_exceptions=True)
        refused = [each for each in found if isinstance(each, Problem)]
        assert (len(done), [each.kind for each in refused]) == (5, 5 * ["too-busy"])
        assert found.index(refused[0]) == 20

    run(service, work())


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_what_nobody_waits_for_is_not_begun(
    service: Service, sqlite_place: Place, is_handed_over: bool
) -> None:
    async def work() -> None:
        held = Held(service.worker)
        first, second = (asyncio.ensure_future(service.forget(each)) for each in people(1, 2))
        for _ in range(5 if is_handed_over else 1):
            await asyncio.sleep(0)
        assert service.worker.waiting == (2 if is_handed_over else 0)
        first.cancel()
        for _ in range(3):
            await asyncio.sleep(0)  # the writer is told in a later step of the loop
        held.release()
        assert (await second).held == 1

    run(service, work())
    with sqlite_place.open() as vault:
        assert vault.n_records == 59 * 4
