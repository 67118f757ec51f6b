"""The order of imports: scripts/house.py holds the floors, these tests fail on what goes against them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.house import FLOORS, House
from tests.house.this_house import HOUSE


def test_every_file_and_folder_has_a_floor() -> None:
    assert HOUSE.unplaced() == [], "give it a place in FLOORS"


def test_every_place_is_taken() -> None:
    assert HOUSE.unused_places() == []


def test_rooms_import_from_lower_floors() -> None:
    assert [str(found) for found in HOUSE.upward("armnesia")] == []


@pytest.mark.parametrize(
    "package",
    [package for package in FLOORS if package != "armnesia"],
)
def test_folders_of_a_room_import_from_lower_floors(package: str) -> None:
    assert [str(found) for found in HOUSE.upward(package)] == []


def test_operations_of_the_vault_do_not_import_each_other() -> None:
    assert [str(found) for found in HOUSE.sideways()] == []


def test_no_modules_import_each_other() -> None:
    """Also not by an import inside a function or under TYPE_CHECKING, which would hide the cycle."""
    assert HOUSE.cycles() == []


# Planted faults, in a house of a few files.

SMALL: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "house": (("core",), ("learners", "privacy"), ("__init__",), ("vault",), ("cli",)),
    "house.vault": (("keys",), ("*",), ("operations", "exports"), ("__init__",)),
}
FILES = {
    "__init__.py": "from house.core.units import UNIT\nfrom house.learners import lcb\n",
    "core/units.py": "import numpy\nfrom typing import Any\nUNIT = 1\n",
    "core/sums.py": "from house.core.units import UNIT\nfrom . import units\n",
    "learners/__init__.py": "from house.learners.lcb import LCB\n",
    "learners/lcb.py": "from ..core import sums\nLCB = 1\n",
    "privacy/budget.py": "import house.core.units as units\n",
    "vault/__init__.py": "from house.vault.operations.forget import forget\n",
    "vault/keys/ring.py": "from house.core import units\n",
    "vault/state.py": "from house.vault.keys import ring\nfrom house import core\n",
    "vault/results.py": "from house.vault.state import State\n",
    "vault/operations/forget.py": "from house.vault import state\nfrom house.vault.keys.ring import Ring\n",
    "vault/exports/text.py": "",
    "cli/main.py": "from house import UNIT, vault\n",
}


def small_house(folder: Path, **changed: str) -> House:
    """A house of the files above; `vault__state="…"` adds lines to vault/state.py."""
    added = {f"{name.replace('__', '/')}.py": lines for name, lines in changed.items()}
    for name in {**FILES, **added}:
        path = folder / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(FILES.get(name, "") + added.get(name, ""), encoding="utf-8")
    return House(folder / "house", SMALL, apart=("house.vault.operations",))


def test_an_import_between_files_that_stand_apart_is_found(tmp_path: Path) -> None:
    readmit = (
        "from house.vault import state\ndef late():\n    from house.vault.operations.forget import forget\n"
    )
    house = small_house(tmp_path, vault__operations__readmit=readmit)
    assert house.upward() == []
    assert [(found.importer, found.imported) for found in house.sideways()] == [
        ("house.vault.operations.readmit", "house.vault.operations.forget")
    ]


def test_the_small_house_is_in_order(tmp_path: Path) -> None:
    house = small_house(tmp_path)
    assert (house.upward(), house.sideways(), house.cycles()) == ([], [], [])
    assert (house.unplaced(), house.unused_places()) == ([], [])
    edges = {(found.importer, found.imported) for found in house.imports}
    assert {
        ("house.__init__", "house.learners.lcb"),
        ("house.core.sums", "house.core.units"),
        ("house.learners.lcb", "house.core.sums"),
        ("house.privacy.budget", "house.core.units"),
        ("house.cli.main", "house.vault.__init__"),
        ("house.cli.main", "house.__init__"),
    } <= edges
    assert not any("numpy" in imported for _, imported in edges)


@pytest.mark.parametrize(
    ("module", "line", "imported"),
    [
        ("core__units", "from house.privacy.budget import Budget", "house.privacy.budget"),
        ("core__units", "import house.cli.main as cli", "house.cli.main"),
        ("core__units", "from house import cli, core", "house.cli.__init__"),
        ("core__units", "def late():\n    from house.cli.main import main", "house.cli.main"),
        ("core__units", "if TYPE_CHECKING:\n    from house.vault.state import S", "house.vault.state"),
        ("core__units", "from ..vault import state", "house.vault.state"),
        ("core__units", "from house import UNIT", "house.__init__"),
        (
            "core__units",
            "import importlib\nKINDS = [('house.vault.state', 'S')]\nimportlib.import_module(KINDS[0][0])",
            "house.vault.state",
        ),
        (
            "core__units",
            "from importlib import import_module\nimport_module('house.cli')",
            "house.cli.__init__",
        ),
        ("learners__lcb", "from house.privacy.budget import Budget", "house.privacy.budget"),
        ("vault__keys__ring", "from house.vault.state import State", "house.vault.state"),
        ("vault__keys__ring", "from house.vault import forget", "house.vault.__init__"),
        ("vault__state", "def late():\n    from .operations import forget", "house.vault.operations.forget"),
        (
            "vault__operations__forget",
            "from house.vault.exports.text import TEXT",
            "house.vault.exports.text",
        ),
        ("vault__operations__forget", "if TYPE_CHECKING:\n    from ...cli import main", "house.cli.main"),
    ],
)
def test_a_planted_upward_import_is_seen(tmp_path: Path, module: str, line: str, imported: str) -> None:
    house = small_house(tmp_path, **{module: f"{line}\n"})
    found = {(one.importer, one.imported) for one in house.upward()}
    assert found == {(f"house.{module.replace('__', '.')}", imported)}


@pytest.mark.parametrize(
    "line",
    [
        "from house.vault import results",
        "from .results import Result",
        "def late():\n    from house.vault.results import Result",
        "if TYPE_CHECKING:\n    from house.vault.results import Result",
        "import importlib\nMODULE = 'house.vault.results'\nimportlib.import_module(MODULE)",
    ],
)
def test_a_planted_cycle_is_seen(tmp_path: Path, line: str) -> None:
    house = small_house(tmp_path, vault__state=f"{line}\n")
    assert house.upward() == []
    assert house.cycles() == [["house.vault.results", "house.vault.state"]]


def test_a_class_may_know_what_returns_it(tmp_path: Path) -> None:
    eraser = "from house.vault.state import State\n"
    house = small_house(
        tmp_path,
        vault__erase__table=eraser,
        vault__erase__log="from house.vault.erase import table\n",
        vault__state="def eraser():\n    from house.vault.erase.table import Eraser\n",
    )
    assert house.cycles() == [["house.vault.erase.table", "house.vault.state"]]
    assert replace(house, returned=("house.vault.erase",)).cycles() == []
    (tmp_path / "house" / "vault" / "erase" / "table.py").write_text(
        f"{eraser}from house.vault.erase import log\n", encoding="utf-8"
    )
    changed = House(house.source, SMALL, returned=("house.vault.erase",))
    assert changed.cycles() == [["house.vault.erase.log", "house.vault.erase.table"]]


def test_a_text_is_no_import_where_nothing_is_imported_by_name(tmp_path: Path) -> None:
    house = small_house(tmp_path, core__units="TEXT = 'house.cli.main'\n")
    assert house.upward() == []


def test_a_cycle_through_a_package_is_seen(tmp_path: Path) -> None:
    house = small_house(tmp_path, learners__lcb="from house.learners import LCB\n")
    assert house.cycles() == [["house.learners.__init__", "house.learners.lcb"]]


def test_imports_inside_functions_are_listed(tmp_path: Path) -> None:
    house = small_house(tmp_path, cli__main="def late():\n    from house.vault import state\n")
    assert [str(found) for found in house.imports_in_functions()] == [
        "house.cli.main:3 imports house.vault.state"
    ]


def test_what_has_no_floor_is_named(tmp_path: Path) -> None:
    house = small_house(tmp_path, service__app="", core__new="", vault__new="", vault__new_folder__file="")
    assert house.unplaced() == ["house.service", "house.vault.new_folder"]


def test_a_floor_without_files_is_named(tmp_path: Path) -> None:
    house = House(small_house(tmp_path).source, {"house": (*SMALL["house"], ("attic",))})
    assert house.unused_places() == ["house.attic"]


def test_what_is_long_is_measured_without_docstrings(tmp_path: Path) -> None:
    long = 'def f(\n    x,\n):\n    """One\n\n    two.\n    """\n    y = x\n    return y\n'
    house = small_house(tmp_path, core__long=long, core__short="def g(): pass\n")
    assert [(function.name, function.lines) for function in house.functions()] == [("f", 5), ("g", 1)]
    assert house.lines("house.core.long") == 9


def test_fan_in_and_fan_out_count_folders(tmp_path: Path) -> None:
    house = small_house(tmp_path)
    assert house.fan("house.core") == (5, 0)  # house, learners, privacy, vault, vault.keys
    assert house.fan("house.vault.keys") == (2, 1)
