"""For all tests: fixed examples of property tests, commands run in process."""

import gc
import json
import logging
import os
import warnings
from collections.abc import Callable, Generator
from typing import Any

import hypothesis
import pytest

from tests.scratch import write_to_memory

# The same examples in every run, so that a failure comes from the change at hand; HYPOTHESIS_PROFILE=search
# looks for new ones.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_configure() -> None:
    write_to_memory(os.environ)  # before the workers start, which inherit it


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What ten thousand tests are made of stays to the end: the collector of garbage need not look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else libraries complain at the end about what is left of them


@pytest.fixture(autouse=True)
def log_of_the_service() -> Generator[None]:
    """What `serve` sets for its process is set back: the stream of its log is closed after a test."""
    loggers = [logging.getLogger(name) for name in ("armnesia.service", "uvicorn")]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    shown = warnings.showwarning
    yield
    if warnings.showwarning.__module__.startswith("armnesia."):
        warnings.showwarning = shown
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        if logger.level != level:  # setting it clears a cache
            logger.setLevel(level)


class Outcome:
    """The output and exit code of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run_command(*arguments: object) -> Outcome:
        from armnesia.cli.main import main

        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return Outcome(code, captured.out, captured.err)

    return run_command
