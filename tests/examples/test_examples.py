"""The examples of the guides, put into a scratch copy of the package as a contributor would put them.

The generic tests run over them there; nothing but the new file and its registry entry is changed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from armnesia import LCB, Adaptive, ArmStatistics, Budget, DeletionRequest, audit
from armnesia.core.errors import UnsupportedError
from armnesia.simulation import Environment, exact_release
from armnesia.unlearners import FrozenRollback, Gaussian, MultiSource, Rollback, Tilt, Unlearner
from armnesia.vault import Certificate
from examples.root_penalty import RootPenalty
from tests.simulation.all_data_sets import AllDataSets

ROOT = Path(__file__).parents[2]
EXAMPLES = {"lottery": ("unlearners", "Lottery"), "root_penalty": ("learners", "RootPenalty")}
KIND = '"duckdb": ("duckdb_file", "DuckDBSource"),'
QUIET_PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", "-n0", "-q")


def register(package: Path, room: str, name: str, kind: str) -> None:
    """Import the class in the registry's module, and list it there."""
    module = package / room / "__init__.py"
    text = module.read_text("utf-8")
    text, listed = re.subn(r"(for \w+ in \([\w\s,]*\w),?(\s*\))", rf"\1, {kind}\2", text)
    text, imported = re.subn(r"\nfrom ", f"\nfrom armnesia.{room}.{name} import {kind}\nfrom ", text, count=1)
    assert (listed, imported) == (1, 1)
    module.write_text(text, "utf-8")


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from, in which the package has the examples."""
    folder = tmp_path_factory.mktemp("scratch")
    package = folder / "armnesia"
    shutil.copytree(ROOT / "src" / "armnesia", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (room, kind) in EXAMPLES.items():
        shutil.copy(ROOT / "examples" / f"{name}.py", package / room)
        register(package, room, name, kind)
    shutil.copy(ROOT / "examples" / "duckdb_file.py", package / "logs")
    kinds = package / "logs" / "source.py"
    named, how_often = re.subn(r"\n_KINDS = {\n", f"\\g<0>    {KIND}\n", kinds.read_text("utf-8"))
    assert how_often == 1
    kinds.write_text(named, "utf-8")
    return folder


def run(scratch: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python with the scratch package instead of the installed one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(scratch), str(ROOT)])
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_they_work_everywhere(scratch: Path) -> None:
    result = run(scratch, ROOT / "tests" / "examples" / "everywhere.py", scratch)
    assert result.returncode == 0, result.stderr


OVER_ALL_REGISTERED = (
    "tests/testing",
    "tests/unlearners/test_registry.py",
    "tests/unlearners/test_refusals.py",
    "tests/auditing/test_comparison.py",
)


@pytest.mark.slow
def test_what_runs_over_all_registered_passes(scratch: Path) -> None:
    result = run(scratch, *QUIET_PYTEST, "-m", "not slow", *OVER_ALL_REGISTERED)
    assert result.returncode == 0, result.stdout
    assert " passed" in result.stdout


CASE = ("unlearn", "flights", "--rows", "1,2,3", "--epsilon", "1", "--delta", "0.3", "--json")


def command(scratch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(scratch, "-c", "from armnesia.cli.main import main; main()", *arguments)


def test_the_command_line_offers_them(scratch: Path) -> None:
    result = command(scratch, *CASE, "--unlearner", "lottery", "--learner", "root_penalty")
    facts = json.loads(result.stdout)
    assert (facts["unlearner"], facts["learner"]["name"]) == ("lottery", "root_penalty")
    assert facts["guarantee"]["delta"] == 0.1


HELP = """
import sys
from armnesia.cli.main import main
for command in ("unlearn", "audit", "compare", "research levels", "research evaluate"):
    try:
        main([*command.split(), "--help"])
    except SystemExit:
        pass
"""


@pytest.mark.slow
def test_every_command_that_takes_them_lists_their_parameters(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    shown = run(scratch, "-c", HELP).stdout
    assert shown.count("--keep") == 5
    assert shown.count("The probability of the old decision; at most δ is used.") == 5


@pytest.mark.slow
def test_the_command_line_has_their_options(scratch: Path) -> None:
    result = command(scratch, *CASE, "--unlearner", "lottery", "--keep", "0.25")
    assert json.loads(result.stdout)["guarantee"]["delta"] == 0.25
    result = command(scratch, *CASE, "--learner", "root_penalty", "--width", "0.7")
    assert json.loads(result.stdout)["learner"]["name"] == "root_penalty"


@pytest.mark.slow
def test_a_vault_keeps_their_parameters(scratch: Path, tmp_path: Path) -> None:
    at = ("--url", f"sqlite:///{tmp_path}/vault.db", "--json")
    chosen = ("--learner", "root_penalty", "--width", "0.3", "--unlearner", "lottery", "--keep", "0.2")
    budget = ("--epsilon", "1", "--delta", "0.3")
    made = command(scratch, "init", *at, "--actions", "AA,B6,DL,UA,VX", *chosen, *budget)
    configuration = json.loads(made.stdout)["configuration"]
    assert (configuration["learner_options"], configuration["options"]) == ({"width": 0.3}, {"keep": 0.2})
    assert command(scratch, "ingest", "flights", *at).returncode == 0
    forgotten = json.loads(command(scratch, "forget", "--user", "N711ZX", *at).stdout)
    entry = Certificate.read(json.dumps(forgotten["certificate"])).entry.facts
    assert (entry["learner"]["width"], entry["unlearner"]["keep"]) == (0.3, 0.2)
    assert json.loads(command(scratch, "verify", *at).stdout)["holds"]


@pytest.mark.parametrize(
    "unlearner",
    [None, Rollback(), FrozenRollback(), Gaussian(), MultiSource(threshold_scale=20.0), Tilt()],
    ids=lambda one: "oracle" if one is None else one.name,
)
@pytest.mark.parametrize("width", [0.0, 0.7])
def test_exact_evaluation_works_with_a_learner_that_it_has_never_seen(
    unlearner: Unlearner | None, width: float
) -> None:
    """Against the average over every data set; a width of 0 has ties everywhere."""
    means, counts, deleted = [0.6, 0.4, 0.5], [4, 3, 3], [2, 0, 0]
    budget, learner = Budget(epsilon=1.0, delta=0.2), RootPenalty(width=width)
    exact = exact_release(
        Environment.bernoulli(means), np.array(counts), np.array(deleted), unlearner, learner, budget
    )
    brute = AllDataSets(means, counts, deleted).released(unlearner, learner, budget)
    assert exact == pytest.approx(brute, abs=1e-10)


def test_the_paper_s_constants_are_refused_for_another_penalty() -> None:
    statistics = ArmStatistics.from_rewards({"A": [1] * 30 + [0] * 20, "B": [1] * 20 + [0] * 20})
    request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    learner, budget = RootPenalty(width=0.5), Budget(epsilon=20.0, delta=0.01)
    with pytest.raises(UnsupportedError, match="penalty of 'lcb'; got 'root_penalty': use threshold 'exact'"):
        Adaptive(threshold="paper").release(learner, statistics, request, budget)
    assert audit(Gaussian(sensitivity="paper"), learner, statistics, request, budget).holds


@pytest.mark.slow
def test_a_source_of_ones_own_is_a_log_and_comes_into_vaults(scratch: Path, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "clicks.db") as file:
        rows = "('A', 1, 7), ('A', 1, 8), ('B', 0, 8)"
        file.execute(f'CREATE TABLE clicks AS FROM (VALUES {rows}) AS clicks (action, reward, "user")')
    source = (f"duckdb:///{tmp_path}/clicks.db", "--table", "clicks")
    assert KIND in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    forgotten = command(scratch, "unlearn", *source, "--actions", "A,B", "--user", "8", "--json")
    assert json.loads(forgotten.stdout)["request"]["counts"] == {"A": 1, "B": 1}
    for kind in ((), ("--external",)):
        at = ("--url", f"sqlite:///{tmp_path}/vault{len(kind)}.db", "--json")
        assert command(scratch, "init", *at, "--actions", "A,B", *kind).returncode == 0
        assert json.loads(command(scratch, "ingest", *source, *at).stdout)["added"] == 3
        assert json.loads(command(scratch, "forget", "--user", "8", *at).stdout)["records"] == 2


def block_after(heading: str) -> str:
    """The first block of code after a line of the guide."""
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return guide[guide.index(heading) :].split("```python\n")[1].split("```")[0]


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("## Adding an unlearner", "lottery"),
        ("## Adding a learner", "root_penalty"),
        ("## Adding a log source", "duckdb_file"),
    ],
)
def test_the_guide_shows_the_file(heading: str, name: str) -> None:
    assert block_after(heading) == (ROOT / "examples" / f"{name}.py").read_text("utf-8")


def test_lcb_is_the_example_with_its_own_width() -> None:
    """√(L/2)/√N is Hoeffding's penalty: a second way to the scores of LCB."""
    statistics = ArmStatistics.from_rewards({"A": [1] * 30 + [0] * 20, "B": [1] * 5, "C": []})
    learner = LCB(confidence=0.1)
    width = float(np.sqrt(np.log(3 / 0.1) / 2))
    scores = RootPenalty(width=width).unit_scores(statistics)
    np.testing.assert_allclose(scores, learner.unit_scores(statistics), rtol=0, atol=1e-15)
