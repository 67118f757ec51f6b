"""One report of all benchmarks: the machine, then what each program prints, with its title.

    python -m benchmarks.report [NAME ...]

A name is that of a program in this folder, such as `lakes`; without names all of them run, which takes hours.
Numbers are ratios of two sides that ran in turn on this machine, unless the program says otherwise. The exit
code is 1 if a program misses a goal of its own; the others run all the same.
"""

import ast
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measuring import machine

FOLDER = Path(__file__).parent


def programs() -> dict[str, Path]:
    """The programs by their names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.py")) if path != Path(__file__)}


def title(path: Path) -> str:
    """The first line of what a program says of itself."""
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or path.stem).splitlines()[0]


def main(names: list[str]) -> int:
    known = programs()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"a benchmark must be one of {', '.join(known)}; got {unknown[0]!r}", file=sys.stderr)
        return 2
    print(machine(), flush=True)
    missed = []
    for name in names or known:
        print(f"\n## {name}: {title(known[name])}\n", flush=True)
        start = time.perf_counter()
        if subprocess.run([sys.executable, known[name]], check=False).returncode:
            missed.append(name)
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)
    print(f"\nmissed a goal: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
