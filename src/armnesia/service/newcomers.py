"""Connections on which no token was accepted yet: strangers cannot hold them all.

Whoever has a token sends a request as soon as they are connected. So if there are too many newcomers, the
one that has waited longest is closed, and whoever comes next is answered.
"""

import ipaddress
from typing import Protocol

TOKEN = "armnesia.token"
"""Where the scope of a request has its token, once it was accepted."""
_SHARED = ""
"""Stands for this machine, and for all who come through a proxy: no limit of one address applies."""


class Connection(Protocol):
    """A connection, as far as it matters here."""

    @property
    def is_waited_for(self) -> bool:
        """Whether it has not sent a whole request, or does not read the answer, and has no accepted token."""

    def give_up(self) -> None:
        """Close it at once."""


class Newcomers:
    """The connections without an accepted token, by the address of the peer, each in the order they came.

    `most` is how many there may be, and `most_of_one` how many of one address; None: behind a proxy, which
    is the peer of all connections.
    """

    def __init__(self, most: int, most_of_one: int | None) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._by_peer: dict[str, dict[Connection, None]] = {}
        self._peers: dict[Connection, str] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, connection: Connection, host: str | None) -> None:
        """Let a connection in; if there are too many now, one that is waited for is closed."""
        peer = _SHARED if host is None or self._most_of_one is None else peer_of(host)
        own = self._by_peer.setdefault(peer, {})
        own[connection], self._peers[connection] = None, peer
        if peer != _SHARED and self._most_of_one is not None and len(own) > self._most_of_one:
            self._close_one(own)
        elif len(self) > self._most:
            self._close_one(max(self._by_peer.values(), key=len))

    def discard(self, connection: Connection) -> None:
        """It has ended, or a token was accepted on it."""
        peer = self._peers.pop(connection, None)
        if peer is not None:
            del self._by_peer[peer][connection]
            if not self._by_peer[peer]:
                del self._by_peer[peer]

    def _close_one(self, some: dict[Connection, None]) -> None:
        """Close the one that has been waited for longest: the new one itself, if all others are answered."""
        for connection in some:
            if connection.is_waited_for:
                self.discard(connection)
                connection.give_up()
                return


def peer_of(host: str) -> str:
    """Whom an address stands for: of IPv6, one customer has a whole network.

    >>> peer_of("192.0.2.7"), peer_of("::ffff:192.0.2.7"), peer_of("2001:db8::1:2:3:4"), peer_of("127.0.0.1")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64', '')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _SHARED
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback:
        return _SHARED
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
