"""Ctrl-C while modules are imported, and during work whose state the command can report."""

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class Interrupted(Exception):  # noqa: N818 (not an error)
    """Ctrl-C during a command; the message says what was done before it.

    Not a KeyboardInterrupt, which typer would answer itself, without a message.
    """


@contextmanager
def exiting_on_interrupt() -> Iterator[None]:
    """End the process at once on Ctrl-C while modules are imported: no work has begun.

    A KeyboardInterrupt is not enough: some compiled modules, DuckDB among them, suppress one that is raised
    during their import, and others abort the process. A signal handler that was installed before stays.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        before = signal.signal(signal.SIGINT, _exit) if ours else None
    except ValueError:  # only the main thread can set a handler, and only it is interrupted
        before = None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def import_before_work(module: str) -> None:
    """Import a compiled module, if it is installed, before a transaction that Ctrl-C must be able to end."""
    with exiting_on_interrupt(), suppress(ImportError):
        importlib.import_module(module)


def _exit(*_: object) -> None:
    print("armnesia: interrupted; nothing was done", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)
