"""A server that is killed: no deletion that it has acknowledged is lost, and none is there twice."""

import json
import signal
import threading
from collections import Counter
from typing import Any

import pytest

from armnesia.service.client import Client, ServiceError
from tests.databases import Place
from tests.service.processes import serve_process
from tests.service.servers import fill, log_of

ENDED = (0, -signal.SIGTERM)
"""The exit codes of a server that was told to end."""
NAMES = [f"person {number}" for number in range(200)]


def forget_all(url: str, token: str, names: list[str], acknowledged: dict[str, int]) -> None:
    """Forget people one after another until the server does not answer."""
    with Client(url, token, retries=0) as client:
        for name in names:
            try:
                acknowledged[name] = client.forget([name])["entry"]
            except ServiceError as error:
                if error.status is None:
                    return
                raise


def deletions(place: Place) -> Counter[Any]:
    """How many deletions each commitment in the ledger stands for."""
    with place.open() as vault:
        return Counter(entry.subject for entry in vault.ledger() if entry.kind == "forget")


@pytest.mark.slow  # tests/promises kills a server after three requests
def test_acknowledged_deletions_survive_a_kill(place: Place) -> None:
    token = fill(place, log=log_of(tuple(NAMES), 2))["operator"]
    acknowledged: dict[str, int] = {}
    rest = list(NAMES)
    for enough in (20, 50, 90):
        with serve_process(place) as running:
            parts = [rest[start::8] for start in range(8)]
            threads = [
                threading.Thread(target=forget_all, args=(running.url, token, part, acknowledged))
                for part in parts
            ]
            for thread in threads:
                thread.start()
            running.wait_for_answers(enough - len(acknowledged))
            running.kill()
            for thread in threads:
                thread.join(60)
        rest = [name for name in NAMES if name not in acknowledged]
    assert 0 < len(acknowledged) < len(NAMES)
    with place.open() as vault:
        assert vault.verify().problems == ()
        for name, number in acknowledged.items():
            assert vault.certificate([name]).entry.number == number
        assert set(deletions(place).values()) == {1}
        forgotten = sum(deletions(place).values())
        assert len(acknowledged) <= forgotten
        assert vault.n_records == 2 * (len(NAMES) - forgotten)
    # Whoever was not told sends the same request again: nobody is in the ledger twice.
    with serve_process(place) as running, Client(running.url, token) as client:
        for name in rest:
            client.forget([name])
        assert running.end() in ENDED
    assert sum(deletions(place).values()) == len(NAMES)
    with place.open() as vault:
        assert (vault.n_records, vault.verify().problems) == (0, ())


@pytest.mark.slow  # tests/service/test_ending.py ends one of this process
def test_a_server_that_is_told_to_end_answers_first(sqlite_place: Place) -> None:
    token = fill(sqlite_place, log=log_of(tuple(NAMES[:50]), 2))["operator"]
    acknowledged: dict[str, int] = {}
    with serve_process(sqlite_place) as running:
        thread = threading.Thread(target=forget_all, args=(running.url, token, NAMES[:50], acknowledged))
        thread.start()
        running.wait_for_answers(5)
        assert running.end() in ENDED
        thread.join(60)
    assert sum(deletions(sqlite_place).values()) == len(acknowledged)
    with sqlite_place.open() as vault:
        assert next(token.uses for token in vault.tokens() if token.number == 2) == len(acknowledged)
    lines = [json.loads(line) for line in running.lines]
    assert sum(line.get("route") == "/v1/deletions" for line in lines) == len(acknowledged)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines"),
        (["--port", "70000"], "port must be from 0 to 65535; got 70000"),
        (["--verify-hours", "-1"], "verify_hours must be 0 or more; got -1.0"),
        (["--url", "sqlite:///nothing.db"], "there is no vault at 'nothing.db'"),
    ],
)
def test_a_mistake_is_refused_in_one_sentence(
    sqlite_place: Place, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from armnesia.cli.main import main

    fill(sqlite_place)
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--url", sqlite_place.url, *options])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
