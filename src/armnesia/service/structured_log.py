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

_LINES_PER_MINUTE = 10
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


class Limited(logging.Filter):
    """Lets so many lines of each other library through in a minute: some repeat themselves.

    >>> limited = Limited()
    >>> record = logging.makeLogRecord({"name": "asyncio", "created": 1.0})
    >>> [limited.filter(record) for _ in range(12)].count(True)
    10
    """

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        place = (record.name, int(record.created // 60))
        if place not in self._written:
            self._written = {each: n for each, n in self._written.items() if each[1] == place[1]}
        self._written[place] = self._written.get(place, 0) + 1
        return self._written[place] <= _LINES_PER_MINUTE


def log(event: str, facts: Mapping[str, Any], level: int = logging.INFO) -> None:
    """Write a line."""
    if LOGGER.isEnabledFor(level):  # not by Logger.log, which looks for the caller in the stack
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"facts": facts}))


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
    handler, of_others = logging.StreamHandler(stream), logging.StreamHandler(stream)
    for each in (handler, of_others):
        each.setFormatter(JsonLines())
    of_others.addFilter(Limited())
    of_others.setLevel(logging.WARNING)
    logging.getLogger().handlers = [of_others]
    logging.raiseExceptions = False  # it would print what could not be written
    sys.unraisablehook = lambda failed: _log_uncaught(failed.exc_value)
    threading.excepthook = lambda failed: _log_uncaught(failed.exc_value)
    for name in ("armnesia.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def _log_uncaught(error: BaseException | None) -> None:
    """Python would print its message, and where it was raised, to stderr."""
    log("uncaught", {} if error is None else described(error), logging.ERROR)
