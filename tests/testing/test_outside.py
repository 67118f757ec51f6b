"""A learner and an unlearner in a folder outside of the project: checked, and simulated."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import armnesia

ROOT = Path(__file__).parents[2]
PROGRAM = """
import math

import armnesia as am
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from armnesia.testing import check_learner, check_unlearner
from my_learner import RootPenalty
from my_unlearner import RandomisedResponse

learner = RootPenalty(width=0.3)
check_learner(learner)
check_unlearner(RandomisedResponse(), [learner, am.Imitation()])

case = Environment.bernoulli([0.5, 0.4]), FixedSample((30, 30)), OneArm(0, 10)
budget = am.Budget(epsilon=1.0, delta=0.0)
old = evaluate(*case, None, budget, learner=learner)
new = evaluate(*case, RandomisedResponse(), budget, learner=learner, protocol="sampled", datasets=20_000)
keep = math.e / (math.e + 1)  # the old decision is kept, or the other arm is served
truth = keep * old.suboptimality + (1 - keep) * (0.1 - old.suboptimality)
print(old.protocol, (new.suboptimality - truth) / new.standard_error)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "examples" / "root_penalty.py", tmp_path / "my_learner.py")
    shutil.copy(ROOT / "tests" / "testing" / "randomised_response.py", tmp_path / "my_unlearner.py")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(Path(armnesia.__file__).parents[1]))
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_folder_of_ones_own_is_checked_and_simulated(folder: Path) -> None:
    """The seed is fixed; another would be further off than 4 standard errors once in 16,000 times."""
    result = run(folder, "-c", PROGRAM)
    assert result.returncode == 0, result.stderr
    protocol, standard_errors = result.stdout.split()
    assert protocol == "exact"
    assert abs(float(standard_errors)) < 4


def test_the_command_line_simulates_them_by_module_and_class(folder: Path) -> None:
    chosen = ("--unlearner", "my_unlearner:RandomisedResponse", "--learner", "my_learner:RootPenalty")
    setting = ("--n", "100", "--deletions", "10", "--epsilon", "1", "--delta", "0", "--datasets", "2000")
    program = "from armnesia.cli.main import main; main()"
    result = run(folder, "-c", program, "research", "evaluate", *chosen, *setting, "--json")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["learner"], facts["datasets"]) == ("root_penalty", 2000)
    assert 0.01 < facts["suboptimality"] < 0.08  # 0.04 where all five arms are equally likely


@pytest.mark.slow
def test_a_fault_there_is_named(folder: Path) -> None:
    """The planted fault: the old decision is as likely as at twice the ε that is claimed."""
    file = folder / "my_unlearner.py"
    text = file.read_text("utf-8")
    assert "np.exp(budget.epsilon)" in text
    file.write_text(text.replace("np.exp(budget.epsilon)", "np.exp(2 * budget.epsilon)"), "utf-8")
    result = run(folder, "-c", PROGRAM)
    assert result.returncode == 1
    assert "δ at ε = 1 is 0.176, more than is claimed: (ε = 1, δ = 0)" in result.stderr
    assert "in the check the_audit_holds[root_penalty]" in result.stderr
