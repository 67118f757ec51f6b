"""The command `serve`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.errors import MissingExtraError


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
) -> None:
    """Serve the vault over HTTP to holders of tokens.

    Listens on this machine only, unless told otherwise. The log on stderr has one JSON object per line.
    """
    try:
        from armnesia.service import server  # noqa: PLC0415 (an extra)
        from armnesia.service.settings import Settings  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("armnesia"):
            raise
        raise MissingExtraError.naming("The service", "service") from None
    address = server.Address(host, port, tls_certificate, tls_key, plain_http)
    server.serve(options.open, address, Settings(rate=rate, verify_hours=verify_hours))
