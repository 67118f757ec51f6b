"""One module is the source of randomness: core/randomness.py."""

import ast
import re
from pathlib import Path

import pytest

from scripts.house import imported_names
from tests.house.this_house import HOUSE

RANDOM_MODULES = {"random", "secrets", "numpy.random"}


def sources_of_randomness(tree: ast.AST) -> list[str]:
    """Random modules that a source imports or reaches through numpy; naming a type is not using it."""
    names = {name for _, name in imported_names(tree, "armnesia.module")}
    found = {name for name in names if name in RANDOM_MODULES or name.rpartition(".")[0] in RANDOM_MODULES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"np.random", "numpy.random"}:
            found.add(ast.unparse(node))
    return sorted(found - {"np.random.Generator", "numpy.random.Generator"})


def test_only_one_module_makes_randomness() -> None:
    users = [module for module, tree in HOUSE.trees.items() if sources_of_randomness(tree)]
    assert users == ["armnesia.core.randomness"]


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import secrets",
        "from secrets import randbelow",
        "from numpy.random import default_rng",
        "from numpy import random",
        "import numpy as np\nnp.random.default_rng(0)",
    ],
)
def test_the_search_for_randomness_sees_planted_faults(source: str) -> None:
    assert sources_of_randomness(ast.parse(source))
    named = ast.parse("import numpy as np\ndef f(rng: np.random.Generator) -> None: ...")
    assert not sources_of_randomness(named)


ROOMS = ("auditing", "core", "learners", "paper", "privacy", "simulation", "theory", "unlearners")
UNSEEDED = re.compile(
    r"default_rng\(\)|SeedSequence\(\)|\bRandom\(\)|SystemRandom|use_true_random=True"
    r"|np\.random\.(?!default_rng|Generator)"
)


def test_random_tests_of_the_science_have_fixed_seeds() -> None:
    files = [file for room in ROOMS for file in Path(__file__).parents[1].joinpath(room).rglob("*.py")]
    assert len(files) > 80
    assert [str(file) for file in files if UNSEEDED.search(file.read_text("utf-8"))] == []


@pytest.mark.parametrize("drawn", ["np.random.default_rng()", "np.random.normal(3)", "Random().random()"])
def test_a_draw_without_a_seed_is_seen(drawn: str) -> None:
    assert UNSEEDED.search(drawn)
