"""Guards the suite itself: tests that silently disappear make the run fail."""

import pytest

FEWEST_TESTS = 400
"""How many tests a full run must collect at least. Raise it when you add tests; never lower it unexplained."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_full_run = (
        config.args == config.getini("testpaths") and not config.option.keyword and not config.option.markexpr
    )
    if is_full_run and len(items) < FEWEST_TESTS:
        raise pytest.UsageError(f"collected {len(items)} tests, expected at least {FEWEST_TESTS}: some are lost")
