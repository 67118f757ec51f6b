"""Slices depend on the shared files, and on each other only where one builds on another."""

import re
from pathlib import Path

import armnesia.paper

FOLDER = Path(armnesia.paper.__file__).parent
SLICES = {path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists()}
BUILDS_ON = {
    ("claims", "figures"): "the claims are about the points of the figures",
    ("beyond", "bounds"): "bounds over ε extend the bounds over N",
}


def slices_imported_by(module: Path) -> set[str]:
    return SLICES & set(re.findall(r"^from armnesia\.paper\.(\w+)", module.read_text("utf-8"), re.MULTILINE))


def test_a_slice_imports_another_only_where_it_builds_on_it() -> None:
    found = {
        (name, other)
        for name in SLICES
        for module in (FOLDER / name).glob("*.py")
        for other in slices_imported_by(module) - {name}
    }
    assert found == set(BUILDS_ON)


def test_only_the_registry_knows_the_slices() -> None:
    knowing = {module.name: slices_imported_by(module) for module in FOLDER.glob("*.py")}
    assert {name: found for name, found in knowing.items() if found} == {"parts.py": SLICES}
