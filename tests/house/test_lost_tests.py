"""The guard against lost tests, on a small suite of its own, run as `make test` runs this one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lost_tests import COUNTS, counted, fewest, folder_of, losses

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.lost_tests import LostTests

def pytest_configure(config):
    config.pluginmanager.register(LostTests(config))
"""
SETTINGS = """
[pytest]
testpaths = tests
markers = slow: takes long
"""
SUITE = {"small": {"one": 3}, "large": {"one": 20, "two": 20}}


def write(suite: Path, folder: str, name: str, tests: int) -> None:
    """A file of tests, the last of which is slow."""
    lines = [f"def test_{number}():\n    assert True" for number in range(tests)]
    lines[-1] = f"@pytest.mark.slow\n{lines[-1]}"
    (suite / "tests" / folder).mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(["import pytest", *lines])
    (suite / "tests" / folder / f"test_{folder}_{name}.py").write_text(text, encoding="utf-8")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for folder, files in SUITE.items():
        for name, tests in files.items():
            write(tmp_path, folder, name, tests)
    (tmp_path / "pytest.ini").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    table = {f"tests/{folder}": sum(files.values()) for folder, files in SUITE.items()}
    (tmp_path / COUNTS).write_text(json.dumps(table), encoding="utf-8")
    return tmp_path


def run(suite: Path, *arguments: str) -> tuple[int, str]:
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=suite,
        # Only the plugins that are asked for: the others take longer to load than these tests to run.
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.returncode, finished.stdout


IN_PARALLEL = ("-p", "xdist", "-n2")
SELECTIONS = [(), (*IN_PARALLEL, "-m", "not slow"), ("-m", "slow")]


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS, ids=" ".join)
def test_a_lost_file_is_seen_in_every_selection(suite: Path, selection: tuple[str, ...]) -> None:
    code, printed = run(suite, *selection)
    assert (code, "lost" in printed) == (0, False), printed
    (suite / "tests" / "large" / "test_large_two.py").rename(suite / "tests" / "large" / "large_two.py")
    code, printed = run(suite, *selection)
    assert code == 1
    assert "tests/large: 20 tests, expected at least 38" in printed
    assert "tests/small" not in printed


def test_merged_files_and_a_shorter_list_of_parameters_are_not_punished(suite: Path) -> None:
    write(suite, "large", "one", 38)
    (suite / "tests" / "large" / "test_large_two.py").unlink()
    write(suite, "small", "one", 2)
    assert run(suite)[0] == 0


@pytest.mark.parametrize("selection", [("tests/small",), ("-k", "test_1"), ("--ignore", "tests/large")])
def test_a_partial_run_is_not_judged(suite: Path, selection: tuple[str, ...]) -> None:
    assert run(suite, *selection)[0] == 0


def test_a_failure_stays_a_failure(suite: Path) -> None:
    (suite / "tests" / "small" / "test_small_one.py").write_text("def test_wrong():\n    assert False\n")
    code, printed = run(suite)
    assert code == 1
    assert "1 failed" in printed


def test_the_last_test_of_a_folder_may_not_go() -> None:
    assert [fewest(count) for count in (1, 2, 10, 100, 1000)] == [1, 1, 9, 95, 950]
    assert losses({"docs": 1}, {"docs": 1}) == []
    assert losses({"docs": 1}, {}) == ["docs: 0 tests, expected at least 1"]


def test_every_folder_with_tests_is_in_the_table() -> None:
    table = json.loads((ROOT / COUNTS).read_text("utf-8"))
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    assert counted(files).keys() - table.keys() == set(), "run `make count-tests`"
    assert folder_of("tests/house/test_lost_tests.py") in table
