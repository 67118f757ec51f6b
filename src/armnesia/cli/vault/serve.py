"""The command `serve`."""

import signal
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli.vault.flights_vault import demo_vault
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.errors import InvalidInputError, MissingExtraError


@with_vault_options
def serve(
    context: typer.Context,
    options: VaultOptions,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at; 0: any that is free.")] = 8080,
    behind_tls_proxy: Annotated[
        bool,
        typer.Option("--behind-tls-proxy", help="Only a proxy with TLS, or this machine, can reach it."),
    ] = False,
    host_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name under which clients call it; repeatable."),
    ] = None,
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
    opendsr_sources_erased_elsewhere: Annotated[
        bool,
        typer.Option(
            "--opendsr-sources-erased-elsewhere",
            help="Something else erases rows at the sources: completed says nothing of them.",
        ),
    ] = False,
    callback_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host that may be called back; repeatable.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a new vault of the bundled flights, and print a token.")
    ] = False,
    demo_folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the vault of the demo is; if not given, it is removed."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
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
    _check_demo(context, demo, demo_folder)
    address = server.Address(host, port, behind_tls_proxy, tuple(host_name or ()))
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
            sources_erased_elsewhere=opendsr_sources_erased_elsewhere,
        )
    settings = Settings(verify_hours=verify_hours)
    show = _opened if open_page else _not_opened
    if not demo:
        server.serve(options.open, address, settings, processor, started=show)
        return
    signal.signal(signal.SIGTERM, _end)  # so that the temporary folder is removed
    with demo_vault(demo_folder) as made:
        server.serve(made.open, address, settings, processor, started=_printing(made.words, show))


def _check_demo(given: typer.Context, demo: bool, folder: Path | None) -> None:
    """Refuse what contradicts itself; an address in the environment is that of another vault."""
    if demo:
        for name in ("url", "keys"):
            if getattr(given.get_parameter_source(name), "name", "") == "COMMANDLINE":
                raise InvalidInputError(f"--demo makes a vault of its own: leave out --{name}")
    if folder is not None and not demo:
        raise InvalidInputError("--demo-folder must be given with --demo")


def _printing(words: Callable[[str], str], then: Callable[[str], None]) -> Callable[[str], None]:
    def told(url: str) -> None:
        print(words(url), flush=True)
        then(url)

    return told


def _opened(url: str) -> None:
    """Open a page; in a thread, because some browsers keep their caller."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _not_opened(_: str) -> None:
    pass


def _end(*_: object) -> None:
    sys.exit(0)
