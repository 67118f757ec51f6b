"""What an import loads: `armnesia` nothing, its names numpy and scipy, a feature its own extra."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from armnesia.vault import Configuration, Vault

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
    "deltalake",
    "fsspec",
    "pyiceberg",
}
ALLOWED_THIRD_PARTY = {"armnesia", "numpy", "scipy", "charset_normalizer"}
"""numpy.f2py loads charset_normalizer where it is installed, as with pyiceberg."""

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
    loaded = modules_loaded_by("import armnesia, scipy.optimize, duckdb")
    assert {"scipy.optimize", "duckdb"} <= set(loaded)
    assert "duckdb" in third_party(loaded)


def test_a_decision_and_its_unlearning_need_no_extra() -> None:
    loaded = modules_loaded_by(
        "import armnesia as am\n"
        "log = am.ArmStatistics.from_rewards({'A': [1] * 40, 'B': [0, 1] * 20})\n"
        "learner = am.LCB().bind(log)\n"
        "request = am.DeletionRequest.from_rewards({'A': [1], 'B': []})\n"
        "am.Adaptive().release(learner, log, request, am.Budget(epsilon=1.0, delta=1e-5)).draw()"
    )
    assert sorted(third_party(loaded) - ALLOWED_THIRD_PARTY) == []


def loaded_by_command(*arguments: str) -> dict[str, str | None]:
    """What a command loads, after it has printed and exited."""
    return modules_loaded_by(
        "import contextlib, io\n"
        "from armnesia.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({list(arguments)!r})"
    )


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), (), ("certificate", "--help")])
def test_the_command_line_starts_without_numpy(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by_command(*arguments)
    assert "armnesia.cli.app" in loaded
    assert not any(name.partition(".")[0] in {"numpy", "scipy", "duckdb", "psycopg"} for name in loaded)
    assert not {name for name in loaded if name.startswith(("armnesia.cli.log.", "armnesia.vault"))}


def test_forgetting_in_a_vault_on_sqlite_loads_no_other_engine(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/vault.db"
    with Vault.create(url, Configuration(actions=("A", "B"))) as vault:
        log = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"]}
        vault.ingest(log, user="user")
    loaded = loaded_by_command("forget", "--url", url, "--user", "ann")
    assert "armnesia.vault.operations.forget" in loaded
    assert sorted(third_party(loaded) & {"duckdb", "psycopg", "matplotlib", "pandas", "polars"}) == []
    with Vault.open(url) as vault:
        assert vault.status().suppressed == 1
