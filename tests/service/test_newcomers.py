"""Whoever connects and says nothing is in nobody's way."""

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import pytest

from armnesia.service import server
from armnesia.service.app import create_app
from armnesia.service.newcomers import Newcomers
from tests.databases import Place
from tests.service.servers import SETTINGS, fill, listening


@dataclass(eq=False)
class Fake:
    is_waited_for: bool = True
    closed: bool = False

    def give_up(self) -> None:
        self.closed = True


def test_of_one_address_the_oldest_is_closed() -> None:
    newcomers = Newcomers(most=10, most_of_one=2)
    answered, first, second, other = Fake(is_waited_for=False), Fake(), Fake(), Fake()
    newcomers.add(answered, "192.0.2.1")
    newcomers.add(first, "192.0.2.1")
    newcomers.add(other, "192.0.2.2")
    newcomers.add(second, "::ffff:192.0.2.1")
    assert [each.closed for each in (answered, first, second, other)] == [False, True, False, False]
    assert len(newcomers) == 3


def test_of_all_addresses_that_with_most_gives_way() -> None:
    newcomers = Newcomers(most=3, most_of_one=3)
    alone, *flood = (Fake() for _ in range(4))
    newcomers.add(alone, "192.0.2.1")
    for number, each in enumerate(flood):
        newcomers.add(each, f"2001:db8::{number}")
    assert (alone.closed, [each.closed for each in flood]) == (False, [True, False, False])


def test_the_new_one_is_closed_if_all_others_are_being_answered() -> None:
    newcomers = Newcomers(most=10, most_of_one=2)
    for _ in range(2):
        newcomers.add(Fake(is_waited_for=False), "192.0.2.1")
    new = Fake()
    newcomers.add(new, "192.0.2.1")
    assert new.closed
    assert len(newcomers) == 2


@pytest.mark.parametrize(
    ("most_of_one", "host"), [(None, "192.0.2.1"), (2, "127.0.0.1"), (2, None), (2, "x")]
)
def test_a_proxy_and_this_machine_are_many_peers(most_of_one: int | None, host: str | None) -> None:
    newcomers = Newcomers(most=5, most_of_one=most_of_one)
    connections = [Fake() for _ in range(6)]
    for each in connections:
        newcomers.add(each, host)
    assert [each.closed for each in connections] == [True] + 5 * [False]


def test_one_that_has_ended_or_has_a_token_does_not_count() -> None:
    newcomers = Newcomers(most=1, most_of_one=1)
    one, other = Fake(), Fake()
    newcomers.add(one, "192.0.2.1")
    newcomers.discard(one)
    newcomers.discard(one)
    newcomers.add(other, "192.0.2.1")
    assert (one.closed, other.closed) == (False, False)


def test_strangers_who_hold_connections_do_not_keep_others_out(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_NEWCOMERS", 10)
    tokens = fill(sqlite_place)
    headers = {"Authorization": f"Bearer {tokens['operator']}"}
    with (
        listening(create_app(sqlite_place.open, SETTINGS)) as url,
        httpx.Client(base_url=url, headers=headers, trust_env=False) as known,
        httpx.Client(base_url=url, headers=headers, trust_env=False) as new,
    ):
        assert known.get("/v1/decisions").status_code == 200
        parts, begun = urlsplit(url), time.monotonic()
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(40)]
        assert new.post("/v1/deletions", json={"users": ["nobody-here"]}).status_code == 201
        assert known.get("/v1/decisions").status_code == 200
        assert time.monotonic() - begun < 5.0, "nobody waited until the strangers' time was over"
        assert _closed(idle) >= 29
        for each in idle:
            each.close()


def _closed(connections: list[socket.socket]) -> int:
    """How many of them the server has closed."""
    number = 0
    for each in connections:
        each.settimeout(0.05)
        with suppress(TimeoutError):
            try:
                number += each.recv(1) == b""
            except ConnectionError:
                number += 1
    return number
