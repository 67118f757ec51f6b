"""Running the service on this machine."""

import asyncio
import ipaddress
import logging
import socket
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn

from armnesia.core.errors import InvalidInputError
from armnesia.service.app import create_app
from armnesia.service.frame import HEADERS
from armnesia.service.host_names import LOOPBACK, checked_name
from armnesia.service.newcomers import Newcomers
from armnesia.service.opendsr.processor import Processor
from armnesia.service.protocol import Protocol
from armnesia.service.settings import Settings
from armnesia.service.structured_log import log, log_to
from armnesia.vault import Vault

with suppress(ImportError):  # absent on Windows
    import resource

_HSTS = {"Strict-Transport-Security": "max-age=31536000"}
_CONNECTIONS = 2_000
_FILES = 8_192
"""Open files that the process asks for, if the system allows it as many."""
_FILES_OF_VAULT = 150
"""Of the databases, keys and callbacks; connections leave so many to them."""
_BACKLOG = 128
"""So many connections are accepted in one step, before any of them can be closed again."""
_HANDSHAKE_SECONDS = 5.0
_NEWCOMERS, _NEWCOMERS_OF_ONE = 500, 100
"""Connections on which no token was accepted yet, in all and of one address; the others are for callers."""
_SECONDS_TO_ANSWER = 20
"""How long the end waits for answers; the threads and tasks of the service have their own time after that."""


@dataclass(frozen=True)
class Address:
    """Where the service listens, with which certificate, and under which names it is called.

    >>> Address("0.0.0.0", 8080)
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: host '0.0.0.0' can be reached from other machines, which would
    read tokens on their way: give --tls-certificate and --tls-key, or --behind-tls-proxy if only a proxy with
    TLS can reach it
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_tls_proxy: bool = False
    names: tuple[str, ...] = ()
    """Names of this host, beside `host` itself and those of loopback; requests to others are refused."""

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise InvalidInputError(f"port must be from 0 to 65535; got {self.port}")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise InvalidInputError("--tls-certificate and --tls-key must be given together")
        for path in (self.tls_certificate, self.tls_key):
            if path is not None and not path.is_file():
                raise InvalidInputError(f"{str(path)!r} must be a file")
        if not (self.has_tls or self.behind_tls_proxy or _is_loopback(self.host)):
            raise InvalidInputError(
                f"host {self.host!r} can be reached from other machines, which would read tokens on their"
                " way: give --tls-certificate and --tls-key, or --behind-tls-proxy if only a proxy with TLS"
                " can reach it"
            )
        if _is_any(self.host) and not self.names:
            raise InvalidInputError(
                f"host {self.host!r} is every address of this machine: give each name under which clients"
                " call it by --host-name"
            )
        for name in self.names:
            checked_name(name)

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which requests are answered.

        >>> sorted(Address(names=("Vault.example.org",)).hosts)
        ['127.0.0.1', '::1', 'localhost', 'vault.example.org']
        """
        own = () if _is_any(self.host) else (self.host,)
        return LOOPBACK | {checked_name(name) for name in (*own, *self.names)}

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted here."""
        return self.tls_certificate is not None


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
    headers = _HSTS if address.has_tls else {}
    domains = () if processor is None else (processor.domain,)
    hosts = address.hosts | {checked_name(name) for name in domains}
    app = create_app(
        open_vault,
        settings,
        headers=headers,
        processor=processor,
        hosts=hosts,
        secure_cookies=address.has_tls or address.behind_tls_proxy,
    )
    _Server(_configuration(app, address, headers), started).run()


class _Server(uvicorn.Server):
    """A server that says when it listens, and why it cannot."""

    def __init__(self, config: uvicorn.Config, told: Callable[[str], None]) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        if self.config.is_ssl:
            loop = asyncio.get_running_loop()  # uvicorn has no setting for this
            handshaking = partial(loop.create_server, ssl_handshake_timeout=_HANDSHAKE_SECONDS)
            loop.create_server = handshaking  # type: ignore[method-assign]
        try:
            await super().startup(sockets)
        except SystemExit:  # it has logged the reason
            raise InvalidInputError(
                f"port {self.config.port} of {self.config.host!r} cannot be used, perhaps because another"
                " process listens there; --port 0 takes one that is free"
            ) from None
        if self.started:
            self._told(self._url())

    def _url(self) -> str:
        host, port, *_ = self.servers[0].sockets[0].getsockname()
        scheme = "https" if self.config.is_ssl else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _log_warning(message: object, category: type[Warning], *_: object, **__: object) -> None:
    """Log that there was a warning; its words may name somebody."""
    log("warning", {"category": category.__name__})


def _raised_file_limit() -> int:
    """Raise the limit of open files towards what the system allows; returns how many there may be."""
    if "resource" not in globals():
        return _FILES
    with suppress(OSError, ValueError):  # a sandbox may forbid it
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return _FILES
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    with suppress(OSError, ValueError):
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1_024


def _connection_limits(files: int) -> tuple[int, int]:
    """How many connections there may be with so many open files, and how many of them without a token.

    >>> _connection_limits(8_192), _connection_limits(1_024), _connection_limits(256)
    ((2000, 500), (618, 154), (50, 12))
    """
    room = max(50, files - _FILES_OF_VAULT - 2 * _BACKLOG)
    return min(_CONNECTIONS, room), min(_NEWCOMERS, room // 4)


def _configuration(app: object, address: Address, headers: Mapping[str, str]) -> uvicorn.Config:
    logging.getLogger("uvicorn.access").disabled = True  # it has paths and query strings
    most, most_new = _connection_limits(_raised_file_limit())
    newcomers = Newcomers(most_new, None if address.behind_tls_proxy else _NEWCOMERS_OF_ONE)
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        host=address.host,
        port=address.port,
        ssl_certfile=None if address.tls_certificate is None else str(address.tls_certificate),
        ssl_keyfile=None if address.tls_key is None else str(address.tls_key),
        http=partial(Protocol, headers={**HEADERS, **headers}, newcomers=newcomers),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whoever can connect could write them
        loop="asyncio",
        backlog=_BACKLOG,
        limit_concurrency=most,
        timeout_graceful_shutdown=_SECONDS_TO_ANSWER,
    )
