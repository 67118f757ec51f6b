"""What an import loads: `armnesia` nothing, its names numpy and scipy, a feature its own extra."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

FORBIDDEN = {
    "duckdb",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "typer",
    "rich",
    "scipy.optimize",
    "scipy.stats",
    "cryptography",
}
ALLOWED_THIRD_PARTY = {"armnesia", "numpy", "scipy"}

PROGRAM = """
import json, sys
before = set(sys.modules)
{statement}
new = set(sys.modules) - before
print(json.dumps({{name: getattr(sys.modules[name], "__file__", None) for name in new}}))
"""


def modules_loaded_by(statement: str) -> dict[str, str | None]:
    """What a fresh interpreter loads for a statement, and from where; this one has loaded the whole suite."""
    program = PROGRAM.format(statement=statement)
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules: dict[str, str | None] = json.loads(finished.stdout)
    return modules


def third_party(modules: dict[str, str | None]) -> set[str]:
    """The installed packages among them, by where they lie: compiled parts register under odd names."""
    files = [Path(file) for file in modules.values() if file]
    installed = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return {
        file.relative_to(folder).parts[0].removesuffix(".py")
        for file in files
        for folder in installed
        if file.is_relative_to(folder)
    }


def test_the_package_alone_loads_nothing() -> None:
    assert third_party(modules_loaded_by("import armnesia")) <= {"armnesia"}


def test_all_its_names_load_none_of_the_extras_and_nothing_unknown() -> None:
    loaded = modules_loaded_by("from armnesia import *")
    assert "armnesia.unlearners.base" in loaded  # the measurement works
    assert sorted(set(loaded) & FORBIDDEN) == []
    assert sorted(third_party(loaded) - ALLOWED_THIRD_PARTY) == []


def test_the_measurement_sees_what_is_loaded() -> None:
    """The planted fault: a statement that does load an extra is caught."""
    loaded = modules_loaded_by("import armnesia, scipy.optimize, narwhals")
    assert {"scipy.optimize", "narwhals"} <= set(loaded)
    assert "narwhals" in third_party(loaded)


def test_a_decision_and_its_unlearning_need_no_extra() -> None:
    loaded = modules_loaded_by(
        "import armnesia as am\n"
        "log = am.ArmStatistics.from_rewards({'A': [1] * 40, 'B': [0, 1] * 20})\n"
        "learner = am.LCB().bind(log)\n"
        "request = am.DeletionRequest.from_rewards({'A': [1], 'B': []})\n"
        "am.Adaptive().release(learner, log, request, am.Budget(epsilon=1.0, delta=1e-5)).draw()"
    )
    assert sorted(third_party(loaded) - ALLOWED_THIRD_PARTY) == []
