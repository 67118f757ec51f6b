"""A run of the whole suite fails if a folder has lost tests.

`tests/counts.json` holds the number of tests per folder; `make count-tests` renews it. A folder may have 5 %
fewer tests than that, so that merged tests and shorter parameter lists need no new numbers. A test counts if
it ran or was left out by `-m`. A run of some paths, or with -k, --ignore and the like, is not judged.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

COUNTS = Path("tests", "counts.json")
KEPT = 0.95
_PARTIAL = ("keyword", "deselect", "ignore", "ignore_glob", "lf", "collectonly")


def folder_of(test: str) -> str:
    """The folder that a test is counted in: a folder of tests/, a package of armnesia, docs.

    >>> folder_of("tests/vault/keys/test_keyring.py::test_it"), folder_of("README.md::README.md")
    ('tests/vault', '.')
    >>> folder_of("src/armnesia/core/units.py::armnesia.core.units.to_units")
    'src/armnesia/core'
    """
    folders = PurePosixPath(test.partition("::")[0]).parent.parts
    return "/".join(folders[: 3 if folders[:1] == ("src",) else 2]) or "."


def counted(tests: Iterable[str]) -> dict[str, int]:
    """The number of tests per folder."""
    return dict(sorted(Counter(map(folder_of, tests)).items()))


def fewest(count: int) -> int:
    """The number of tests that a folder must have if it once had `count`: at least one."""
    return max(1, math.floor(KEPT * count))


def losses(expected: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """A sentence per folder that has lost tests.

    >>> losses({"tests/core": 100, "tests/vault": 10}, {"tests/core": 95})
    ['tests/vault: 0 tests, expected at least 9']
    """
    return [
        f"{folder}: {found.get(folder, 0)} tests, expected at least {fewest(count)}"
        for folder, count in expected.items()
        if found.get(folder, 0) < fewest(count)
    ]


class LostTests:
    """A pytest plugin that counts the tests of one run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.accounted: set[str] = set()
        """The tests that ran, and those that -m left out."""

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.accounted.update(item.nodeid for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.accounted.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """With pytest-xdist only the workers know what -m left out; a worker that crashed does not report."""
        self.accounted.update(getattr(node, "workeroutput", {}).get("accounted", []))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["accounted"] = sorted(self.accounted)
        elif self._losses() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        found = self._losses()
        for sentence in found:
            terminalreporter.write_line(sentence, red=True)
        if found:
            terminalreporter.write_line(
                "tests are lost; if they were removed on purpose, run `make count-tests`", red=True
            )

    def _losses(self) -> list[str]:
        options = self.config.option
        whole = self.config.args_source == pytest.Config.ArgsSource.TESTPATHS
        if not whole or any(getattr(options, name, None) for name in _PARTIAL):
            return []
        expected = json.loads((self.config.rootpath / COUNTS).read_text("utf-8"))
        return losses(expected, counted(self.accounted))
