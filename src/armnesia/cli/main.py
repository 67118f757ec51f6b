"""The entry point of `armnesia`: every error becomes one sentence on stderr and an exit code."""

import codecs
import io
import sys
import warnings
from difflib import get_close_matches
from typing import Any

from armnesia.cli.interrupts import INTERRUPTED, Interrupted, exiting_on_interrupt
from armnesia.core.errors import ArmnesiaError, MissingExtraError, UnfinishedError, VaultBusyError
from armnesia.core.messages import system_failure

UNFINISHED, REFUSED = 1, 2
BUSY = 75  # EX_TEMPFAIL: a script may try again
_ASCII = {"ε": "epsilon", "δ": "delta", "τ": "tau", "γ": "gamma", "σ": "sigma", "Δ": "Delta", "π": "pi"}
_ASCII |= {"→": "->", "←": "<-", "–": "-", "…": "...", "±": "+-", "∖": "\\"}
_INSTEAD_OF_ARGUMENTS = {
    "forget": "name people with --user",
    "readmit": "name people with --user",
    "certificate show": "name people with --user; a certificate in a FILE is for certificate verify FILE",
}
"""What is said of an argument to commands that take none, where people expect one."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    with exiting_on_interrupt():
        _replace_unprintable_characters()
        try:
            import typer  # noqa: PLC0415 (an extra)
        except ImportError:
            sys.exit(_report(MissingExtraError.naming("The command line", "cli")))
        from armnesia.cli.app import make_app  # noqa: PLC0415 (an extra)
    sys.exit(_exit_code(make_app(), typer.Abort, arguments))


def _exit_code(app: Any, abort: type[Exception], arguments: list[str] | None) -> int:
    """Run the command; report what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: _print_error(f"warning: {message}")
            code = app.main(arguments, prog_name="armnesia", standalone_mode=False)
    except (KeyboardInterrupt, abort):
        code = INTERRUPTED
    except Interrupted as stopped:
        return _report(stopped, INTERRUPTED)
    except ArmnesiaError as error:
        return _report(error, _code_of(error))
    except (OSError, MemoryError) as error:
        return _report(_failure_of_system(error))
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's usage errors have it, in every version
            raise
        message = _usage_message(error)
        return _report(message) if message else 0  # without a command, the help has been printed
    if code == INTERRUPTED:  # some versions of typer turn Ctrl-C into this exit code, without a message
        return _report("interrupted; finished work is kept", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _code_of(error: ArmnesiaError) -> int:
    if isinstance(error, VaultBusyError):
        return BUSY
    return UNFINISHED if isinstance(error, UnfinishedError) else REFUSED


def _usage_message(error: Any) -> str:
    """Typer's message, with the help of what is missing, or the value that was refused."""
    if getattr(error, "possibilities", None):
        error.possibilities = _similar_options(error.option_name, error.possibilities)
    message: str = error.format_message()
    described = getattr(getattr(error, "param", None), "help", None)
    if type(error).__name__ == "MissingParameter" and described and error.ctx is not None:
        return f"{message.rstrip('.')} ({described.rstrip('.')}); see {error.ctx.command_path} --help"
    if message.startswith("Got unexpected extra argument") and error.ctx is not None:
        _, _, command = error.ctx.command_path.partition(" ")
        hint = _INSTEAD_OF_ARGUMENTS.get(command, f"see {error.ctx.command_path} --help")
        return f"{message}; {hint}"
    return message + _refused_value(error)


def _similar_options(given: str, options: list[str]) -> list[str]:
    """Those that are spelled like the one that was given, apart from the dashes that all of them have.

    >>> _similar_options("--bogus", ["--user"]), _similar_options("--usr", ["--user", "--url"])
    ([], ['--user', '--url'])
    """
    name = given.strip("-")
    return [option for option in options if get_close_matches(name, [option.strip("-")])]


def _failure_of_system(error: OSError | MemoryError) -> str:
    """What the operating system did not grant."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this command"
    return system_failure(error)


def _refused_value(error: Exception) -> str:
    """The value that was refused, where typer's message does not quote it: newer versions do not."""
    faults: Any = getattr(error.__cause__, "errors", None)
    return f"; got {faults()[0]['input']!r}" if callable(faults) else ""


def _replace_unprintable_characters() -> None:
    """Print what an encoding lacks in ASCII, so that no character makes a finished command fail."""
    codecs.register_error("armnesia", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="armnesia")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Greek letters and arrows by name; any other character as Python escapes it.

    >>> codecs.register_error("armnesia", _in_ascii)
    >>> "ε → ł".encode("latin-1", errors="armnesia")
    b'epsilon -> \\\\u0142'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    escaped = (each.encode("ascii", "backslashreplace").decode("ascii") for each in lacking)
    return "".join(_ASCII.get(each, other) for each, other in zip(lacking, escaped, strict=True)), error.end


def _print_error(message: object) -> None:
    print(f"armnesia: {message}", file=sys.stderr)


def _report(message: object, code: int = REFUSED) -> int:
    _print_error(message)
    return code
