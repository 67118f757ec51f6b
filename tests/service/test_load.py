"""200 clients that read and forget at the same time, also when the server is killed meanwhile."""

from collections import Counter

import pytest

from tests.databases import Place
from tests.service.load import Load, Plan, loading
from tests.service.processes import Process, serve_process
from tests.service.servers import fill, log_of

pytestmark = pytest.mark.slow

CLIENTS = 200
NAMES = [f"person {number}" for number in range(4_000)]


def load_on(running: Process, token: str, names: list[str], seconds: float, kill_after: int = 0) -> Load:
    """Let all clients work; the server is killed after so many deletions, if asked for."""
    with loading(Plan(running.url, token, names, CLIENTS, seconds, period=4)) as load:
        if kill_after:
            running.wait_for_answers(kill_after)
            running.kill()
        return load.result(seconds + 120)


def assert_in_the_ledger_once(place: Place, acknowledged: dict[str, int], *, lost: bool) -> None:
    """Everybody who was acknowledged, with the entry that was told; others only if answers were lost."""
    with place.open() as vault:
        assert vault.verify().problems == ()
        entries = {entry.number: entry.subject for entry in vault.ledger() if entry.kind == "forget"}
        assert set(Counter(entries.values()).values()) == {1}
        assert len(set(acknowledged.values())) == len(acknowledged)
        for name, number in acknowledged.items():
            assert vault.certificate([name]).entry.number == number
            assert number in entries
        assert len(entries) == len(acknowledged) or (lost and len(entries) > len(acknowledged))
        assert vault.n_records == 2 * (len(NAMES) - len(entries))


def test_many_clients_at_once(place: Place) -> None:
    token = fill(place, log=log_of(tuple(NAMES), 2))["operator"]
    with serve_process(place) as running:
        load = load_on(running, token, NAMES, 10)
    assert (load.other, load.broken) == ([], 0)
    assert load.refused == []
    assert len(load.acknowledged) > 50
    assert len(load.reading) > len(load.acknowledged)
    assert_in_the_ledger_once(place, load.acknowledged, lost=False)


def test_many_clients_of_a_server_that_is_killed(place: Place) -> None:
    token = fill(place, log=log_of(tuple(NAMES), 2))["operator"]
    acknowledged: dict[str, int] = {}
    for _ in range(2):
        with serve_process(place) as running:
            rest = [name for name in NAMES if name not in acknowledged]
            load = load_on(running, token, rest, 30, kill_after=200)
        assert load.broken == CLIENTS
        assert load.other == []
        assert load.acknowledged
        acknowledged |= load.acknowledged
        assert_in_the_ledger_once(place, acknowledged, lost=True)
    # Whoever was not told asks again: the rest is answered, and nobody is in the ledger twice.
    with serve_process(place) as running:
        rest = [name for name in NAMES if name not in acknowledged][:400]
        load = load_on(running, token, rest, 60)
    assert (load.other, load.broken, set(load.acknowledged)) == ([], 0, set(rest))
    assert_in_the_ledger_once(place, acknowledged | load.acknowledged, lost=True)
