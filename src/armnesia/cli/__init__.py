"""The `armnesia` command."""

import sys
import warnings

from armnesia.errors import ArmnesiaError, MissingExtraError

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: bad input is answered by one sentence on stderr and exit code 2."""
    try:
        import typer  # noqa: PLC0415 (typer and rich are an extra)

        from armnesia.cli.app import app  # noqa: PLC0415
    except ImportError:
        sys.exit(_complain(MissingExtraError.naming("The command line", "cli")))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
            code = app(arguments, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (ArmnesiaError, OSError) as error:
        sys.exit(_complain(error))
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's usage errors have it, in every version
            raise
        message = error.format_message()
        sys.exit(_complain(message) if message else 2)  # without a command, the help has been shown
    if code == INTERRUPTED:  # which some versions of typer answer by themselves, without a word
        _say("interrupted; what was finished is kept")
    sys.exit(code if isinstance(code, int) else 0)


def _say(message: object) -> None:
    print(f"armnesia: {message}", file=sys.stderr)


def _complain(message: object) -> int:
    _say(message)
    return 2
