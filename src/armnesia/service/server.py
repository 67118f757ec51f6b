"""Running the service on this machine, by uvicorn."""

import ipaddress
import logging
import re
import socket
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn

from armnesia.core.errors import InvalidInputError
from armnesia.service.app import create_app
from armnesia.service.opendsr.processor import Processor
from armnesia.service.settings import Settings
from armnesia.service.structured_log import log, log_to
from armnesia.vault import Vault

_NAME = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_CONNECTIONS = 500
"""More get 503 by uvicorn. With the files of the vault they are fewer than the 1,024 that are usual."""
_HEAD_BYTES = 65_536
_KEEP_ALIVE_SECONDS = 75
"""Longer than the proxies of `packaging/` keep a connection: they never send into one that is closing."""
_SECONDS_TO_ANSWER = 20
"""How long the end waits for answers; the threads and tasks of the service have their own time after that."""


@dataclass(frozen=True)
class Address:
    """Where the service listens, and under which names it is called.

    >>> Address("0.0.0.0", 8080)
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: host '0.0.0.0' can be reached from other machines, which would
    read tokens on their way: let only a proxy with TLS reach it, and say so by --behind-tls-proxy
    """

    host: str = "127.0.0.1"
    port: int = 8080
    behind_tls_proxy: bool = False
    names: tuple[str, ...] = ()
    """Names of this host, beside `host` itself and those of loopback; requests to others are refused."""

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise InvalidInputError(f"port must be from 0 to 65535; got {self.port}")
        if not (self.behind_tls_proxy or _is_loopback(self.host)):
            raise InvalidInputError(
                f"host {self.host!r} can be reached from other machines, which would read tokens on their"
                " way: let only a proxy with TLS reach it, and say so by --behind-tls-proxy"
            )
        if _is_any(self.host) and not self.names:
            raise InvalidInputError(
                f"host {self.host!r} is every address of this machine: give each name under which clients"
                " call it by --host-name"
            )
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise InvalidInputError(
                    "a host name must be a name or an address, without scheme and port, and an address of"
                    f" IPv6 in brackets; got {name!r}"
                )

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which requests are answered.

        >>> sorted(Address(names=("Vault.example.org",)).hosts)
        ['127.0.0.1', 'Vault.example.org', '[::1]', 'localhost']
        """
        own = () if _is_any(self.host) else (f"[{self.host}]" if ":" in self.host else self.host,)
        return frozenset({"localhost", "127.0.0.1", "[::1]", *own, *self.names})


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [_is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "10.0.0.1", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    """Whether an address stands for all of this machine, as 0.0.0.0 does."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def serve(
    open_vault: Callable[[], Vault],
    address: Address,
    settings: Settings,
    processor: Processor | None = None,
    *,
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until the process is told to end; then answer what was accepted.

    `started` is told the URL as soon as requests are accepted.
    """
    log_to(sys.stderr)
    warnings.showwarning = _log_warning
    with open_vault() as vault:  # refused before anything listens
        if processor is not None:
            processor.check_vault(vault.configuration)
        if not len(vault.tokens()):
            log("no tokens", {"hint": "make one with armnesia token create --role operator"})
    domains = () if processor is None else (processor.domain,)
    app = create_app(
        open_vault,
        settings,
        processor=processor,
        hosts=address.hosts.union(domains),
        behind_tls_proxy=address.behind_tls_proxy,
    )
    Server(configuration(app, address), started).run()


class Server(uvicorn.Server):
    """A server that says when it listens, and why it cannot."""

    def __init__(self, config: uvicorn.Config, told: Callable[[str], None]) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        try:
            await super().startup(sockets)
        except SystemExit:  # it has logged the reason
            raise InvalidInputError(
                f"port {self.config.port} of {self.config.host!r} cannot be used, perhaps because another"
                " process listens there; --port 0 takes one that is free"
            ) from None
        if self.started:
            host, port, *_ = self.servers[0].sockets[0].getsockname()
            self._told(f"http://{f'[{host}]' if ':' in host else host}:{port}")


def _log_warning(message: object, category: type[Warning], *_: object, **__: object) -> None:
    """Log that there was a warning; its words may name somebody."""
    log("warning", {"category": category.__name__})


def configuration(app: object, address: Address) -> uvicorn.Config:
    """The settings of uvicorn; docs/service.md explains them."""
    logging.getLogger("uvicorn.access").disabled = True  # it has paths and query strings
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        host=address.host,
        port=address.port,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whoever can connect could write them
        limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SECONDS_TO_ANSWER,
    )
