"""The processor, in the words of OpenDSR: its domain, its certificate, and whom it calls back."""

import base64
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import httpx
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from armnesia.core.errors import InvalidInputError
from armnesia.vault import EXTERNAL, Configuration

Names = Literal["raw", "sha256"]
IDENTITY_TYPE = "controller_customer_id"
FORMATS: dict[Names, tuple[str, ...]] = {"raw": ("raw",), "sha256": ("raw", "sha256")}
"""Which formats of identities can be answered, by how the vault names people: no digest can be inverted."""
LONGEST_URL = 2_000
"""Characters of an address that is called back."""


@dataclass(frozen=True)
class Processor:
    """What `armnesia serve` is told of OpenDSR."""

    domain: str
    certificate: Path
    key: Path
    callback_hosts: tuple[str, ...] = ()
    """Hosts, or HOST:PORT, that may be called back; no other address is ever called."""
    names: Names = "raw"
    """How the vault names people: by the id of the customer, or by its SHA-256 digest in hexadecimal."""
    delay_hours: float = 24.0
    """How long a request can be cancelled before it is begun."""
    days: int = 30
    """Within how many days a request has to be completed."""
    sources_erased_elsewhere: bool = False
    """Something else erases rows at the sources of an external vault: a completed request says nothing of
    them, and discovery says so."""
    _key: Any = field(init=False, repr=False, compare=False)
    pem: bytes = field(init=False, repr=False, compare=False)
    """The certificate, with its chain."""

    def __post_init__(self) -> None:
        if self.names not in get_args(Names):
            raise InvalidInputError(f"opendsr names must be raw or sha256; got {self.names!r}")
        if not self.delay_hours >= 0:
            raise InvalidInputError(f"opendsr delay must be 0 or more hours; got {self.delay_hours!r}")
        hosts = tuple(_checked_host(host) for host in self.callback_hosts)
        pem, key = _read(self.certificate, "certificate"), _read(self.key, "key")
        try:
            certificate = x509.load_pem_x509_certificates(pem)[0]
            private = serialization.load_pem_private_key(key, None)
        except (ValueError, TypeError, IndexError):
            raise InvalidInputError(
                "the opendsr certificate and key must be PEM, the key without password"
            ) from None
        _check_certificate(certificate, private, self.domain)
        self.__dict__.update(_key=private, pem=pem, callback_hosts=hosts)

    def check_vault(self, configuration: Configuration) -> None:
        """Refuse an external vault of whose sources nobody could truly say that a person is erased there."""
        is_external = configuration.mode == EXTERNAL
        if is_external and not (configuration.may_erase_at_source or self.sources_erased_elsewhere):
            raise InvalidInputError(
                "this vault may not erase rows at their sources, so that no request by OpenDSR would be"
                " completed: leave --opendsr-domain out, use a vault that was created with"
                " --may-erase-at-source, or state by --opendsr-sources-erased-elsewhere that something else"
                " erases them"
            )
        if self.sources_erased_elsewhere and not is_external:
            raise InvalidInputError(
                "--opendsr-sources-erased-elsewhere is about an external vault; this one holds its rows"
            )

    def sign(self, body: bytes) -> str:
        """The signature on a body: RSA (PKCS #1 v1.5) with SHA-256, in Base64."""
        return base64.b64encode(self._key.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()

    def headers(self, body: bytes) -> dict[str, str]:
        """The headers of a signed body, also by their names of before version 2."""
        signed = {"Processor-Domain": self.domain, "Signature": self.sign(body)}
        return {
            f"X-{prefix}-{name}": text for prefix in ("OpenDSR", "OpenGDPR") for name, text in signed.items()
        }

    def name_of(self, value: str, format_: str) -> str:
        """An identity as the vault names it."""
        if self.names == "sha256":
            return hashlib.sha256(value.encode()).hexdigest() if format_ == "raw" else value.lower()
        return value

    def may_call(self, url: str) -> bool:
        """Whether a callback address is one of a declared host, by HTTPS."""
        host = called_host(url)
        return host is not None and host in self.callback_hosts


def called_host(url: str) -> str | None:
    """The host that an address would call by HTTPS, with a port that is not 443; None if it must not be.

    Two programs read the address, and both must find the same host in it.

    >>> called_host("https://Controller.example:443/told"), called_host("https://controller.example:8443/")
    ('controller.example', 'controller.example:8443')
    >>> called_host("http://controller.example/"), called_host("https://a@controller.example/")
    (None, None)
    """
    if len(url) > LONGEST_URL or not url.isprintable():
        return None
    try:
        parts, called = urlsplit(url), httpx.URL(url)
        host, port = parts.hostname or "", parts.port
        called_there = (called.host, called.port or 443)
    except (ValueError, httpx.InvalidURL):  # also a name that IDNA forbids
        return None
    if parts.username is not None or parts.password is not None or parts.fragment or not host:
        return None
    if parts.scheme != "https" or called_there != (host, port or 443):
        return None
    name = f"[{host}]" if ":" in host else host
    return name if port in (None, 443) else f"{name}:{port}"


def _checked_host(text: str) -> str:
    """A host that may be called back, as `called_host` tells it."""
    host = called_host(f"https://{text}/")
    if host is None or urlsplit(f"//{text}").netloc != text:
        raise InvalidInputError(f"a callback host must be HOST or HOST:PORT; got {text!r}")
    return host


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"the opendsr {what} {str(path)!r} cannot be read: {error.strerror}"
        ) from None


def _check_certificate(certificate: x509.Certificate, private: Any, domain: str) -> None:
    """Refuse what controllers could not verify."""
    if not isinstance(private, rsa.RSAPrivateKey) or private.key_size < 2048:
        raise InvalidInputError("the opendsr key must be an RSA key of 2048 bits or more")
    if private.public_key() != certificate.public_key():
        raise InvalidInputError("the opendsr key is not that of the certificate")
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = found.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    if domain not in names:
        raise InvalidInputError(f"the opendsr certificate must be issued to {domain!r} (as alternative name)")
    if not certificate.not_valid_before_utc <= datetime.now(UTC) <= certificate.not_valid_after_utc:
        raise InvalidInputError("the opendsr certificate is not valid today")
    try:
        certificate.verify_directly_issued_by(certificate)
    except (InvalidSignature, ValueError, TypeError):
        return
    raise InvalidInputError("the opendsr certificate is self-signed, which OpenDSR forbids")
