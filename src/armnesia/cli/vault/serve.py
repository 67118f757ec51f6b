"""The command `serve`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.errors import InvalidInputError, MissingExtraError


@with_vault_options
def serve(
    options: VaultOptions,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at; 0: any that is free.")] = 8080,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate of the host, with its chain, as PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, as PEM.")] = None,
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Other machines connect without TLS: a proxy in front has it."),
    ] = False,
    rate: Annotated[float, typer.Option(help="Requests per second of one token.")] = 50.0,
    verify_hours: Annotated[
        float, typer.Option(help="How often to verify the vault while serving; 0: never.")
    ] = 24.0,
    opendsr_domain: Annotated[
        str | None, typer.Option(metavar="DOMAIN", help="Also take requests of controllers, by OpenDSR.")
    ] = None,
    opendsr_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate of that domain, as PEM.")
    ] = None,
    opendsr_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private RSA key, as PEM, which signs answers.")
    ] = None,
    opendsr_names: Annotated[
        str,
        typer.Option(metavar="raw|sha256", help="The vault names people by their id, or its SHA-256."),
    ] = "raw",
    opendsr_delay_hours: Annotated[
        float, typer.Option(help="How long a request of a controller can be cancelled.")
    ] = 24.0,
    callback_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host that may be called back; repeatable.")
    ] = None,
) -> None:
    """Serve the vault over HTTP to holders of tokens.

    Listens on this machine only, unless told otherwise. The log on stderr has one JSON object per line.
    """
    try:
        from armnesia.service import server  # noqa: PLC0415 (an extra)
        from armnesia.service.opendsr.processor import Processor  # noqa: PLC0415 (an extra)
        from armnesia.service.settings import Settings  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("armnesia"):
            raise
        raise MissingExtraError.naming("The service", "service") from None
    address = server.Address(host, port, tls_certificate, tls_key, plain_http)
    processor = None
    if opendsr_domain is not None:
        if opendsr_certificate is None or opendsr_key is None:
            raise InvalidInputError("--opendsr-domain needs --opendsr-certificate and --opendsr-key")
        processor = Processor(
            opendsr_domain,
            opendsr_certificate,
            opendsr_key,
            tuple(callback_host or ()),
            opendsr_names,  # type: ignore[arg-type]
            opendsr_delay_hours,
        )
    server.serve(options.open, address, Settings(rate=rate, verify_hours=verify_hours), processor)
