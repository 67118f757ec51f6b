"""`armnesia` loads its names when they are first used; what type checkers read is what Python finds."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import armnesia

MODULE_OF: dict[str, str] = vars(armnesia)["_MODULE_OF"]
PACKAGES: set[str] = vars(armnesia)["_PACKAGES"]


def static_imports() -> dict[str, str]:
    """The names that the block for type checkers imports, each with its module."""
    tree = ast.parse(Path(armnesia.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_both_lists_and_all_have_the_same_names() -> None:
    unlisted = dict.fromkeys(("datasets", "paper", "simulation", "testing", "theory"), "armnesia")
    assert static_imports() == {**MODULE_OF, **unlisted}
    assert sorted(armnesia.__all__) == sorted({*MODULE_OF, "datasets"})


@pytest.mark.parametrize("name", armnesia.__all__)
def test_every_name_is_that_of_its_module(name: str) -> None:
    found = getattr(armnesia, name)
    if name == "datasets":
        assert found is importlib.import_module("armnesia.datasets")
    else:
        assert found is getattr(importlib.import_module(MODULE_OF[name]), name)
    assert name in dir(armnesia)


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_packages_are_attributes(name: str) -> None:
    assert isinstance(getattr(armnesia, name), ModuleType)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'armnesia' has no attribute 'Nonsense'"):
        armnesia.Nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(armnesia, "Nonsense")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "program",
    [
        "from armnesia import *; LCB, read_log, datasets.flights",
        "import armnesia as am; am.LCB, am.privacy.Budget, am.datasets.flights",
        "import armnesia.logs; armnesia.logs.read_log, armnesia.Tilt",
        "import armnesia as am; am.paper.reproduce.reproduce",
        "import armnesia as am; am.simulation.evaluate, am.theory.bounds, am.testing.check_learner",
    ],
)
def test_names_are_found_in_a_fresh_interpreter(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
