"""The log of the service: one JSON object per line, without identifiers.

A line has no query string, no body and no message of an error, all of which may name somebody. It names the
route, not the path, and an error by its class and the place in the code where it was raised.
"""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from armnesia.vault.keys.canonical_json import utc_now

LOGGER = logging.getLogger("armnesia.service")


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The event and its facts; of other libraries their words, but not what made them fail."""
        facts = getattr(record, "facts", None)
        line = {"time": utc_now(), "level": record.levelname.lower(), "logger": record.name}
        if facts is not None:
            return json.dumps({**line, "event": record.msg, **facts})
        if record.name.partition(".")[0] == "uvicorn":
            line["message"] = record.getMessage()
        else:  # its words may quote what was sent
            line |= {"event": "message of a library", "at": f"{record.filename}:{record.lineno}"}
        if record.exc_info and record.exc_info[1] is not None:
            line |= described(record.exc_info[1])
        return json.dumps(line)


def log(event: str, facts: Mapping[str, Any], level: int = logging.INFO) -> None:
    """Write a line."""
    LOGGER.log(level, event, extra={"facts": facts})


def described(error: BaseException) -> dict[str, str]:
    """The class of an error, and where it was raised; never its message.

    >>> try:
    ...     int("ann")
    ... except ValueError as error:
    ...     described(error)["error"]
    'ValueError'
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "at": place}


def log_to(stream: Any) -> None:
    """Send the log of the service, that of its server and those of all libraries to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logging.getLogger().handlers = [handler]
    logging.raiseExceptions = False  # it would print what could not be written
    sys.unraisablehook = lambda failed: _log_uncaught(failed.exc_value)
    threading.excepthook = lambda failed: _log_uncaught(failed.exc_value)
    for name in ("armnesia.service", "uvicorn"):
        logging.getLogger(name).setLevel(logging.INFO)


def _log_uncaught(error: BaseException | None) -> None:
    """Python would print its message, and where it was raised, to stderr."""
    log("uncaught", {} if error is None else described(error), logging.ERROR)
