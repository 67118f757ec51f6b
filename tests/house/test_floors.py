"""The house stands on its floors: a module imports from its own package or a floor below, never upwards."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "armnesia"

# From the ground up. What shares a floor does not know of each other. "__init__" is the package itself: it
# gathers what is below it, and only what people touch may stand on it. A new module must be placed here.
FLOORS = (
    ("core",),
    ("logs",),
    ("datasets",),
    ("learners", "privacy"),
    ("unlearners",),
    ("auditing",),
    ("__init__",),
    ("simulation", "theory"),
    ("plotting",),
    ("paper",),
    ("vault",),
    ("cli",),
)
FLOOR_OF = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

# Modules whose use anywhere else would be a second source of randomness.
RANDOM_MODULES = {"random", "secrets", "numpy.random"}


def room_of(module: Path) -> str:
    """The top-level module or package that a file belongs to."""
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Every dotted name that a source imports, at its top or inside a function, relative ones resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*above, *filter(None, [node.module])))
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def rooms_used(source: str, package: tuple[str, ...]) -> set[str]:
    """The top-level modules of armnesia that a source imports from."""
    rooms = set()
    for name in imported_names(source, package):
        parts = name.split(".")
        if parts[0] == "armnesia":
            # A name that is no room (`from armnesia import __version__`) is one of the package itself.
            rooms.add(parts[1] if len(parts) > 1 and parts[1] in FLOOR_OF else "__init__")
    return rooms


def wrong_imports(room: str, source: str, package: tuple[str, ...] = ("armnesia",)) -> list[str]:
    """The rooms that `room` may not know of but imports from."""
    return sorted(
        used for used in rooms_used(source, package) if used != room and FLOOR_OF[used] >= FLOOR_OF[room]
    )


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


def test_every_module_has_its_floor() -> None:
    unplaced = {room_of(module) for module in modules()} - set(FLOOR_OF)
    assert sorted(unplaced) == [], "give every new module its place in FLOORS"


def test_every_floor_has_its_modules() -> None:
    assert sorted(set(FLOOR_OF) - {room_of(module) for module in modules()}) == []


@pytest.mark.parametrize("module", [file for file in modules() if room_of(file) in FLOOR_OF], ids=name_of)
def test_imports_go_down(module: Path) -> None:
    package = ("armnesia", *module.relative_to(SOURCE).parts[:-1])
    assert wrong_imports(room_of(module), module.read_text("utf-8"), package) == []


@pytest.mark.parametrize(
    ("room", "source", "wrong"),
    [
        ("core", "from armnesia.unlearners.base import Release", ["unlearners"]),
        ("core", "import armnesia.auditing as audits", ["auditing"]),
        ("core", "from armnesia import logs, core", ["logs"]),
        ("core", "def late():\n    from armnesia.cli.main import main", ["cli"]),
        ("core", "if TYPE_CHECKING:\n    from armnesia.logs import Log", ["logs"]),
        ("core", "from .logs import Log", ["logs"]),
        ("core", "from armnesia import ArmStatistics", ["__init__"]),
        ("learners", "from armnesia.privacy import Budget", ["privacy"]),
        (
            "__init__",
            "from armnesia import plotting\nfrom armnesia.cli.main import main",
            ["cli", "plotting"],
        ),
        ("cli", "from armnesia import __version__, plotting, core", []),
        ("learners", "from armnesia.learners.base import Learner\nimport numpy", []),
    ],
)
def test_the_checker_sees_planted_faults(room: str, source: str, wrong: list[str]) -> None:
    assert wrong_imports(room, source) == wrong


def test_the_checker_resolves_relative_imports_from_inside_a_package() -> None:
    inside = ("armnesia", "learners")
    assert wrong_imports("learners", "from .base import Learner\nfrom ..core import units", inside) == []
    assert wrong_imports("learners", "from ..unlearners import base", inside) == ["unlearners"]


def sources_of_randomness(source: str) -> list[str]:
    """Random modules that a source imports or reaches for through numpy; naming a type is not using it."""
    found = {name for name in imported_names(source, ()) if name.rpartition(".")[0] in RANDOM_MODULES}
    found |= {name for name in imported_names(source, ()) if name in RANDOM_MODULES}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"np.random", "numpy.random"}:
            found.add(ast.unparse(node))
    return sorted(found - {"np.random.Generator", "numpy.random.Generator"})


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_only_one_module_makes_randomness(module: Path) -> None:
    used = sources_of_randomness(module.read_text("utf-8"))
    assert bool(used) == (name_of(module) == "core/randomness.py")


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
    assert sources_of_randomness(source)
    assert not sources_of_randomness("import numpy as np\ndef f(rng: np.random.Generator) -> None: ...")
