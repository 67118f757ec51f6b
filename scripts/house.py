"""The import graph of src/armnesia: floors, folders, upward imports, cycles, long files and functions.

`make house` prints it, with the walks of scripts/trace_walk.py; tests/house fails on what must not be there.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from scripts import trace_walk

SOURCE = Path(__file__).parents[1] / "src" / "armnesia"

# The order of imports, from the ground up. Modules import from lower floors only; rooms on the same floor do
# not import each other. A package that is not listed here needs no order: cycles are found without it.
# "__init__" is the package's own file, and "*" stands for the files (not the folders) that are not named.
FLOORS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "armnesia": (
        ("core",),
        ("logs",),
        ("datasets", "joining"),
        ("learners", "privacy"),
        ("unlearners",),
        ("auditing",),
        ("plotting",),
        ("simulation", "theory", "testing"),
        ("paper",),
        ("__init__",),
        ("vault",),
        ("service",),
        ("cli",),
    ),
    "armnesia.paper": (
        ("__init__",),
        ("section", "protocol"),
        ("comparisons", "settings", "pictures", "report"),
        ("*",),
        ("beyond",),
        ("claims",),
        ("reproduce",),
    ),
    "armnesia.vault": (
        ("keys",),
        ("storage",),
        ("arm_rules",),
        ("configuration", "erasure_target"),
        ("ledger",),
        ("results", "tokens", "subject_requests"),
        ("state",),
        ("operations",),
        ("vault",),
        ("__init__",),
    ),
    "armnesia.service": (
        ("host_names", "problems", "settings", "structured_log", "metrics", "newcomers", "answer_types"),
        ("source_erasing", "vault_worker", "idempotency", "frame", "protocol"),
        ("tokens",),
        ("running",),
        ("api",),
        ("direct",),
        ("opendsr",),
        ("pages",),
        ("app", "client"),
        ("server",),
        ("__init__",),
    ),
    "armnesia.cli": (
        ("__init__",),
        ("interrupts", "output", "parameters", "penalty_warning"),
        ("options",),
        ("names",),
        ("vault", "research"),
        ("log",),
        ("demo_steps",),
        ("demo",),
        ("app",),
        ("main",),
    ),
}

APART = ("armnesia.vault.operations",)
"""Folders whose files do not import each other: what two of them need stands on a lower floor."""

RETURNED = ("armnesia.logs.erase",)
"""Folders whose classes are returned by what they know: a source returns its eraser."""

SQL = re.compile("SELECT|INSERT|UPDATE|DELETE FROM")
"""Statements in capitals, as everywhere in this project."""
SQL_FOLDERS = ("armnesia.logs", "armnesia.joining", "armnesia.vault.storage")

LONGEST = 12
"""How many of the longest files and functions are printed."""


class Import(NamedTuple):
    """One import of a module by another, both by their dotted names; a package is "package.__init__"."""

    importer: str
    imported: str
    line: int
    in_function: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


class Function(NamedTuple):
    """A function or method and its length in lines, without its docstring."""

    module: str
    name: str
    lines: int


@dataclass(frozen=True)
class House:
    """The modules of a package and what they import of it."""

    source: Path = SOURCE
    floors: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=lambda: FLOORS)
    apart: tuple[str, ...] = APART
    returned: tuple[str, ...] = RETURNED

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The file of every module."""
        package = self.source.parent
        paths = sorted(self.source.rglob("*.py"))
        return {".".join(path.relative_to(package).with_suffix("").parts): path for path in paths}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        return {module: ast.parse(path.read_text("utf-8")) for module, path in self.modules.items()}

    @cached_property
    def imports(self) -> list[Import]:
        """Every import of a module by another: also in functions, under `if TYPE_CHECKING`, and by name."""
        return list(dict.fromkeys(found for module in self.modules for found in self._imports_of(module)))

    def _imports_of(self, module: str) -> Iterator[Import]:
        inside = {
            id(node)
            for function in ast.walk(self.trees[module])
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
        }
        for node, name in imported_names(self.trees[module], module):
            imported = self._module_of(name)
            if imported not in {None, module}:
                yield Import(module, str(imported), node.lineno, id(node) in inside)
        for line, name in self._registered_names(module):
            yield Import(module, name, line, in_function=False)

    def _registered_names(self, module: str) -> Iterator[tuple[int, str]]:
        """The texts that name a module of this house, in a module that imports by name: its registries."""
        nodes = list(ast.walk(self.trees[module]))
        called = {getattr(node, "attr", getattr(node, "id", None)) for node in nodes}
        if "import_module" not in called:
            return
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in (node.value, f"{node.value}.__init__"):
                    if name in self.modules and name != module:
                        yield node.lineno, name

    def _module_of(self, name: str) -> str | None:
        """The module that a name is, or is defined in; nothing if it is of another package."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            start = ".".join(parts[:length])
            for module in (start, f"{start}.__init__"):
                if module in self.modules:
                    return module
        return None

    def floor(self, package: str, child: str) -> int | None:
        """The height of a file or folder within its package; nothing if it has no place there."""
        floors = self.floors[package]
        is_file = f"{package}.{child}" in self.modules
        for names in ((child,), ("*",) if is_file else ()):
            for height, rooms in enumerate(floors):
                if any(name in rooms for name in names):
                    return height
        return None

    def unplaced(self) -> list[str]:
        """Files and folders without a floor, in packages that have floors."""
        return [
            f"{package}.{child}"
            for package in self.floors
            for child in sorted(self._children(package))
            if self.floor(package, child) is None
        ]

    def unused_places(self) -> list[str]:
        """Names in `floors` that no file or folder has."""
        return [
            f"{package}.{name}"
            for package, floors in self.floors.items()
            for rooms in floors
            for name in rooms
            if name != "*" and name not in self._children(package)
        ]

    def _children(self, package: str) -> set[str]:
        depth = package.count(".") + 1
        return {module.split(".")[depth] for module in self.modules if module.startswith(f"{package}.")}

    def upward(self, package: str | None = None) -> list[Import]:
        """Imports from the same floor or a higher one, within a package, or in all."""
        return [found for found in self.imports if self._is_upward(found, package)]

    def _is_upward(self, found: Import, package: str | None) -> bool:
        here, there = found.importer.split("."), found.imported.split(".")
        common = next(number for number, (a, b) in enumerate(zip(here, there, strict=False)) if a != b)
        shared = ".".join(here[:common])
        if shared not in self.floors or package not in {None, shared}:
            return False
        importer, imported = self.floor(shared, here[common]), self.floor(shared, there[common])
        if importer is None or imported is None:
            return False
        unnamed = self._unnamed(shared)
        beside = here[common] in unnamed and there[common] in unnamed
        return importer < imported or (importer == imported and not beside)

    def _unnamed(self, package: str) -> set[str]:
        """The files that "*" stands for; they may import each other."""
        named = {name for rooms in self.floors[package] for name in rooms}
        return self._children(package) - named

    def sideways(self) -> list[Import]:
        """Imports between the files of a folder whose files do not import each other."""
        return [
            found
            for found in self.imports
            if folder_of(found.importer) == folder_of(found.imported)
            and folder_of(found.importer) in self.apart
        ]

    def cycles(self) -> list[list[str]]:
        """Groups of modules that import each other, directly or not, by whatever kind of import.

        Only what returns a class of `returned` may import it, and be imported by it.
        """
        reached = self._reached()
        groups = {
            frozenset({module} | {other for other in others if module in reached.get(other, set())})
            for module, others in reached.items()
            if module in others
        }
        return sorted(sorted(group) for group in groups)

    def _reached(self) -> dict[str, set[str]]:
        """The modules that each module imports, directly or through others."""
        direct: dict[str, set[str]] = {}
        for found in self.imports:
            into = [f"{each}." for each in self.returned if found.imported.startswith(f"{each}.")]
            if into and not found.importer.startswith(into[0]):
                continue
            direct.setdefault(found.importer, set()).add(found.imported)
        reached = {}
        for module, imported in direct.items():
            seen: set[str] = set()
            waiting = [*imported]
            while waiting:
                other = waiting.pop()
                if other not in seen:
                    seen.add(other)
                    waiting.extend(direct.get(other, ()))
            reached[module] = seen
        return reached

    def imports_in_functions(self) -> list[Import]:
        return [found for found in self.imports if found.in_function]

    def folders(self) -> dict[str, list[str]]:
        """The modules of every folder."""
        folders: dict[str, list[str]] = {}
        for module in self.modules:
            folders.setdefault(folder_of(module), []).append(module)
        return folders

    def lines(self, module: str) -> int:
        return len(self.modules[module].read_text("utf-8").splitlines())

    def fan(self, folder: str) -> tuple[int, int]:
        """How many other folders import from a folder, and how many it imports from."""
        pairs = {(folder_of(found.importer), folder_of(found.imported)) for found in self.imports}
        return (
            len({importer for importer, imported in pairs if imported == folder != importer}),
            len({imported for importer, imported in pairs if importer == folder != imported}),
        )

    def functions(self) -> list[Function]:
        """All functions and methods, the longest first."""
        found = [
            Function(module, node.name, _code_lines(node))
            for module, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        return sorted(found, key=lambda function: -function.lines)

    def misplaced_sql(self) -> dict[str, int]:
        """How many lines have SQL, per module outside the folders that SQL belongs in."""
        found = {
            module: sum(bool(SQL.search(line)) for line in path.read_text("utf-8").splitlines())
            for module, path in self.modules.items()
            if not module.startswith(tuple(f"{folder}." for folder in SQL_FOLDERS))
        }
        return {module: lines for module, lines in found.items() if lines}


def imported_names(tree: ast.AST, module: str) -> Iterator[tuple[ast.stmt, str]]:
    """Every dotted name that a source imports, at its top or inside a function, relative ones resolved."""
    package = module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join((*above, *filter(None, [node.module])))
            yield from ((node, f"{origin}.{alias.name}") for alias in node.names)


def folder_of(module: str) -> str:
    return module.rpartition(".")[0]


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def _section(title: str, lines: Iterable[str]) -> None:
    print(f"\n{title}")
    for line in lines:
        print(f"  {line}")


def main() -> None:
    house = House()
    for package, floors in house.floors.items():
        _section(f"Floors of {package}, from the ground up", (", ".join(rooms) for rooms in floors))
    folders = [f"{'files':>5} {'lines':>6} {'fan-in':>6} {'fan-out':>7}  folder"]
    for folder, modules in sorted(house.folders().items()):
        fan_in, fan_out = house.fan(folder)
        lines = sum(map(house.lines, modules))
        folders.append(f"{len(modules):5} {lines:6} {fan_in:6} {fan_out:7}  {folder}")
    files = sum(map(len, house.folders().values()))
    folders.append(f"{files:5} {sum(map(house.lines, house.modules)):6} {'':14}  in all")
    _section("Folders (fan-in: folders that import from it; fan-out: folders it imports from)", folders)
    longest = sorted(house.modules, key=house.lines, reverse=True)[:LONGEST]
    _section("Longest files", (f"{house.lines(module):4}  {module}" for module in longest))
    _section(
        "Longest functions, without their docstrings",
        (f"{lines:4}  {module}.{name}" for module, name, lines in house.functions()[:LONGEST]),
    )
    _section("Imports of armnesia inside functions", map(str, house.imports_in_functions()))
    problems = {
        "Cycles": [" <-> ".join(cycle) for cycle in house.cycles()],
        "Upward imports": [str(found) for found in house.upward()],
        f"Imports between the files of {' and '.join(APART)}": [str(found) for found in house.sideways()],
        "Without a floor": house.unplaced(),
        f"Files with SQL outside {' and '.join(SQL_FOLDERS)}": [
            f"{module}: {lines} lines" for module, lines in house.misplaced_sql().items()
        ],
    }
    for title, found in problems.items():
        _section(f"{title}: {len(found) or 'none'}", found)
    _section("Walks of the vault's commands on SQLite", trace_walk.table(trace_walk.walks()))


if __name__ == "__main__":
    main()
