"""Nobody's name is in a log line, a problem, or an address; searched for byte by byte."""

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.service import structured_log
from armnesia.service.structured_log import JsonLines
from armnesia.vault import Vault
from tests.service.servers import Served

SECRET = "Zoë Unmistakable-qzxj"  # no digits: times and counts have any of them
LOGGERS = ("armnesia.service", "uvicorn", "uvicorn.access", "asyncio")
FORMS = [SECRET, SECRET.lower(), SECRET.upper(), "Unmistakable", "%20Unmist", "Zo\\u00eb", "qzxj"]


class Lines(io.StringIO):
    """A log that tells of every line."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Condition()

    def write(self, text: str) -> int:
        with self.came:
            self.came.notify_all()
            return super().write(text)


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What the service and its server write to the log."""
    stream = Lines()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    loggers = [
        logging.getLogger(name) for name in ("armnesia.service", "uvicorn", "uvicorn.access", "asyncio")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    yield stream
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def written(lines: Lines, text: str, times: int = 1) -> str:
    """The log, once it has a text so often: the line of a request is written after its answer."""
    with lines.came:
        assert lines.came.wait_for(lambda: lines.getvalue().count(text) >= times, 60)
    return lines.getvalue()


def calls(served: Served) -> Iterator[Any]:
    """Requests that have a name in every place that a caller can write to."""
    row = {"id": SECRET, "action": "A", "reward": 1, "user": SECRET}
    bodies: list[Any] = [
        {"users": [SECRET]},
        {"users": [SECRET.upper()]},
        {"users": [SECRET], "records": [SECRET]},
        {"users": SECRET},
        {SECRET: [SECRET]},
        {"users": [SECRET, None]},
        {"users": [SECRET], "unlearner": SECRET},
        {"users": [SECRET], "unlearner_options": {SECRET: SECRET}},
        {"rows": [row, {**row, SECRET: SECRET}]},
        {"rows": [{**row, "reward": SECRET}]},
        {"rows": [{**row, "action": SECRET}]},
        {"rows": [row], "user": SECRET, "id": SECRET},
        {"rows": [row, {**row, "user": f"{SECRET} again"}]},
        SECRET,
        [SECRET],
    ]
    with served.http() as http:
        http.post("/v1/records", json={"rows": [row]})
        for path in ("/v1/deletions", "/v1/records"):
            for body in bodies:
                yield http.post(path, json=body)
                yield http.post(path, json=body, headers={b"Idempotency-Key": SECRET.encode()})
            yield http.post(path, content=SECRET.encode() + b"{")
        for path in (f"/{SECRET}", f"/v1/decisions/{SECRET}", f"/v1/decisions/user={SECRET}"):
            yield http.get(path)
            yield http.request("DELETE", path)
        for path in (f"/v1/deletions/{SECRET}", f"/v1/certificates/{SECRET}"):
            yield http.get(path)
        yield http.get("/v1/decisions", params={"where": f"user={SECRET}", "limit": SECRET})
        yield http.get("/v1/ledger", params={"after": SECRET, SECRET: SECRET})
        yield http.get("/health", headers={b"Authorization": f"Bearer {SECRET}".encode()})
        yield http.request("PROPFIND", "/healthz")
        yield http.get("/metrics")


def test_no_name_is_logged_or_repeated(served: Served, lines: Lines) -> None:
    answered = 0
    for answer in calls(served):
        answered += 1
        if answer.is_success and "deletions" in str(answer.url):
            continue  # its certificate names the person to whoever asked
        for form in FORMS:
            assert form.encode() not in answer.content, answer.request.url
            assert form not in str(answer.headers)
    logged = written(lines, '"event": "request"', answered + 1)
    for form in FORMS:
        assert form not in logged
    for line in logged.splitlines():
        assert {"time", "level", "logger"} <= set(json.loads(line))


def test_a_failure_is_logged_by_its_place(
    served: Served, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(f"because of {SECRET}")

    monkeypatch.setattr(Vault, "decisions", fail)
    with served.http("reader") as http:
        answer = http.get("/v1/decisions")
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (500, "internal-error")
    assert "Unmistakable" not in answer.text + written(lines, '"level": "error"')
    (line,) = [json.loads(line) for line in lines.getvalue().splitlines() if '"level": "error"' in line]
    assert (line["error"], line["problem"], line["route"]) == (
        "ZeroDivisionError",
        "internal-error",
        "/v1/decisions",
    )
    assert line["at"].startswith("test_identifiers.py:")


def test_a_refusal_of_the_vault_is_logged_by_its_class(
    served: Served, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise VaultError(f"because of {SECRET}")

    monkeypatch.setattr(Vault, "decisions", refuse)
    with served.http("reader") as http:
        answer = http.get("/v1/decisions")
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "refused-by-vault")
    assert "Unmistakable" not in answer.text + written(lines, '"error": "VaultError"')


def test_an_error_of_another_library_is_logged_without_its_message(lines: Lines) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    assert '"error": "ValueError"' in lines.getvalue()
    assert "Unmistakable" not in lines.getvalue()


@pytest.mark.slow
def test_a_warning_is_logged_by_its_category() -> None:
    program = (
        "import sys, warnings; from armnesia.service import server, structured_log;"
        " structured_log.log_to(sys.stderr); warnings.showwarning = server._log_warning;"
        f" warnings.warn({SECRET!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr)["category"] == "UserWarning"
    assert "Unmistakable" not in done.stderr


def test_the_log_of_another_stream(capsys: pytest.CaptureFixture[str]) -> None:
    loggers = [logging.getLogger(name) for name in ("", "armnesia.service", "uvicorn")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    stream = io.StringIO()
    structured_log.log_to(stream)
    structured_log.log("event", {"number": 1})
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
    assert json.loads(stream.getvalue())["number"] == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", ["/healthz", "/v1/decisions", "/v1/deletions/7", "/page/forget", "/nothing"])
def test_a_method_is_not_repeated(served: Served, lines: Lines, path: str) -> None:
    with served.http(None) as http:
        answer = http.request("UNMISTAKABLE-QZXJ", path)
        assert answer.status_code == (404 if path == "/nothing" else 405)
    found = written(lines, '"event": "request"')
    with served.http() as http:
        found += http.get("/metrics").text
    assert "qzxj" not in (found + answer.text).lower()
    assert '"method": ""' in found
