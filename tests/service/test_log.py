"""The log: one JSON object per line, whoever writes it, and without anybody's words."""

import json
import subprocess
import sys

_PROGRAM = """
import asyncio, logging, sys, threading, warnings
from armnesia.service.structured_log import log_to
from armnesia.service.server import _log_warning
log_to(sys.stderr)
warnings.showwarning = _log_warning
for name in ("python_multipart.multipart", "psycopg", "asyncio", "another.library"):
    logging.getLogger(name).warning("of %s", "ann-marie")
try:
    int("ann-marie")
except ValueError:
    logging.getLogger("asyncio").exception("ann-marie")
warnings.warn("ann-marie")
thread = threading.Thread(target=lambda: int("ann-marie"))
thread.start(); thread.join()
class Failing:
    def __del__(self): raise ValueError("ann-marie")
Failing()
logging.getLogger("psycopg").warning("%d", "ann-marie")
"""


def test_every_line_is_json_and_quotes_nobody() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert "ann-marie" not in done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    loggers = [line["logger"] for line in lines]
    assert {"python_multipart.multipart", "psycopg", "asyncio", "another.library"} <= set(loggers)
    assert [line["error"] for line in lines if line.get("event") == "uncaught"] == ["ValueError"] * 2
    assert any(line.get("error") == "ValueError" and line["logger"] == "asyncio" for line in lines)
