"""Guards the suite itself: tests that silently disappear make the run fail. Runs commands as a user does."""

import json
import os
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest

from armnesia.cli.main import main

# The same examples in every run, so that a failure is of the change at hand; HYPOTHESIS_PROFILE=search looks
# for new ones.
hypothesis.settings.register_profile("fixed", derandomize=True)
hypothesis.settings.register_profile("search")
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

FEWEST_TESTS = 5080
"""How many tests a full run must have at least. Raise it when you add tests; never lower it unexplained."""


def _lost(config: pytest.Config) -> str | None:
    """Say what is missing from a full run; nothing to say of a partial one, or in a worker process."""
    partial = config.option.keyword or config.option.markexpr or config.option.collectonly
    if partial or config.args != config.getini("testpaths") or hasattr(config, "workerinput"):
        return None
    stats = config.pluginmanager.get_plugin("terminalreporter").stats  # type: ignore[union-attr]
    ran = sum(len(stats.get(outcome, [])) for outcome in ("passed", "failed", "skipped"))
    if ran >= FEWEST_TESTS:
        return None
    return f"only {ran} tests ran, expected at least {FEWEST_TESTS}: some are lost"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _lost(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(config: pytest.Config) -> None:
    message = _lost(config)
    if message:
        config.pluginmanager.get_plugin("terminalreporter").write_line(message, red=True)  # type: ignore[union-attr]


class Outcome:
    """What a command printed, and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run_command(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return Outcome(code, captured.out, captured.err)

    return run_command
