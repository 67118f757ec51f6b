"""Certificates of tests: an authority, and certificates that it has issued."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from armnesia.service.opendsr.processor import Processor

DOMAIN = "opendsr.processor.example"
HOST = "controller.example"


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


AUTHORITY, KEY = rsa_key(), rsa_key()


def issued(
    folder: Path,
    *,
    names: tuple[str, ...] = (DOMAIN,),
    days: int = 10,
    key: Any = KEY,
    self_signed: bool = False,
    other_key: Any = None,
) -> tuple[Path, Path]:
    """The files of a certificate and its key."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, DOMAIN)])
    issuer = subject if self_signed else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=20))
        .not_valid_after(now + timedelta(days=days))
    )
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternative, critical=False)
    made = builder.sign(key if self_signed else AUTHORITY, hashes.SHA256())
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        (other_key or key).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, private


def processor(folder: Path, **options: Any) -> Processor:
    certificate, key = issued(folder)
    return Processor(DOMAIN, certificate, key, **{"callback_hosts": (HOST,), "delay_hours": 0.0, **options})


def elliptic_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
