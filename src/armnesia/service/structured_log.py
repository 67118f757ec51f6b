"""The log of the service: one JSON object per line, without identifiers.

A line has no query string, no body and no message of an error, all of which may name somebody. It names the
route, not the path, and an error by its class and the place in the code where it was raised.
"""

import json
import logging
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
        if facts is None:  # of uvicorn
            line["message"] = record.getMessage()
            if record.exc_info and record.exc_info[1] is not None:
                line |= described(record.exc_info[1])
            return json.dumps(line)
        return json.dumps({**line, "event": record.msg, **facts})


def log(event: str, facts: Mapping[str, Any], level: int = logging.INFO) -> None:
    """Write a line."""
    LOGGER.log(level, event, extra={"facts": dict(facts)})


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
    """Send the log of the service and that of its server to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    for name in ("armnesia.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
