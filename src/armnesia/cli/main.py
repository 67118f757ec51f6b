"""The `armnesia` command."""

import codecs
import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from armnesia.core.errors import ArmnesiaError, MissingExtraError, VaultBusyError

INTERRUPTED = 130
BUSY = 75  # EX_TEMPFAIL: a script may try again
_SPELLED_OUT = {"ε": "epsilon", "δ": "delta", "τ": "tau", "γ": "gamma", "σ": "sigma", "Δ": "Delta", "π": "pi"}
_SPELLED_OUT |= {"→": "->", "←": "<-", "–": "-", "…": "...", "±": "+-", "∖": "\\"}


class Interrupted(Exception):  # noqa: N818 (nothing went wrong)
    """Somebody pressed Ctrl-C, and the command knows what came of its work so far: its message says it.

    No KeyboardInterrupt, because typer answers that by itself, without a word.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: what is refused is answered by one sentence on stderr and exit code 2."""
    with nothing_begun():
        _print_whatever_comes()
        try:
            import typer  # noqa: PLC0415 (typer and rich are an extra)

            from armnesia.cli.app import app  # noqa: PLC0415
        except ImportError:
            sys.exit(_complain(MissingExtraError.naming("The command line", "cli")))
    sys.exit(_answered(app, typer.Abort, arguments))


def load_beforehand(module: str) -> None:
    """Load a compiled module, if it is installed, while Ctrl-C still does no harm."""
    with nothing_begun(), suppress(ImportError):
        importlib.import_module(module)


@contextmanager
def nothing_begun() -> Iterator[None]:
    """While modules are loaded, before there is any work to lose: Ctrl-C ends the process at once.

    Not by an exception: some compiled modules that are being loaded, DuckDB among them, swallow it, and some
    abort the process. Where something else listens to Ctrl-C, or ignores it, that is left as it is.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        before = signal.signal(signal.SIGINT, _leave) if ours else None
    except ValueError:  # not the main thread, which alone is interrupted
        before = None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _leave(*_: object) -> None:
    _say("interrupted; nothing was done")
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _answered(app: Any, abort: type[Exception], arguments: list[str] | None) -> int:
    """Run the command, and say what went wrong: the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
            code = app(arguments, standalone_mode=False)
    except (KeyboardInterrupt, abort):
        code = INTERRUPTED
    except Interrupted as told:
        return _complain(told, INTERRUPTED)
    except ArmnesiaError as error:
        return _complain(error, BUSY if isinstance(error, VaultBusyError) else 2)
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _complain(f"{error.filename!r} cannot be used: {error.strerror}" if named else error)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's usage errors have it, in every version
            raise
        message = error.format_message()
        # Without a command, the help has been shown and there is nothing to say.
        return _complain(message + _value_refused(error)) if message else 2
    if code == INTERRUPTED:  # which some versions of typer answer by themselves, without a word
        return _complain("interrupted; what was finished is kept", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _value_refused(error: Exception) -> str:
    """What an option was given, where typer's message does not quote it: newer versions keep it behind."""
    faults: Any = getattr(error.__cause__, "errors", None)
    return f"; got {faults()[0]['input']!r}" if callable(faults) else ""


def _print_whatever_comes() -> None:
    """Let no letter stop a command that has done its work: what an encoding lacks is written otherwise."""
    codecs.register_error("armnesia", _written_otherwise)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="armnesia")


def _written_otherwise(error: UnicodeError) -> tuple[str, int]:
    """Greek letters and arrows in ASCII; anything else as Python escapes it.

    >>> codecs.register_error("armnesia", _written_otherwise)
    >>> "ε → ł".encode("latin-1", errors="armnesia")
    b'epsilon -> \\\\u0142'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    escaped = (each.encode("ascii", "backslashreplace").decode("ascii") for each in lacking)
    return "".join(_SPELLED_OUT.get(each, way) for each, way in zip(lacking, escaped, strict=True)), error.end


def _say(message: object) -> None:
    print(f"armnesia: {message}", file=sys.stderr)


def _complain(message: object, code: int = 2) -> int:
    _say(message)
    return code
