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
# looks for new ones. How long an example takes says something about the machine only.
TIMELESS: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("fixed", derandomize=True, max_examples=30, **TIMELESS)
hypothesis.settings.register_profile("search", **TIMELESS)
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `sampled(n)`, n of its parameters, evenly spread, are quick; the others are slow."""
    cells: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            cells.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in cells.values():
        sampled = each[0].get_closest_marker("sampled")
        assert sampled is not None
        (number,) = sampled.args
        quick = {place * len(each) // number for place in range(number)}
        for place, item in enumerate(each):
            if place not in quick:
                item.add_marker(pytest.mark.slow)


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
