"""How long a start takes: `armnesia --version` beside `import typer`, the library beside numpy and scipy."""

import statistics
import subprocess
import sys
import time

RUNS = 15
LIBRARY = {
    "numpy and scipy.special": "import numpy, scipy.special",
    "import armnesia": "import armnesia",
    "from armnesia import *": "from armnesia import *",
}
COMMANDS = {
    "import typer": "import typer",
    "armnesia --version": "from armnesia.cli.main import main; main(['--version'])",
    "armnesia --help": "from armnesia.cli.main import main; main(['--help'])",
    "armnesia forget --help": "from armnesia.cli.main import main; main(['forget', '--help'])",
}


def median_seconds(programs: dict[str, str]) -> dict[str, float]:
    """The median over runs in turn, so that a busy moment of the machine hits all programs alike."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(RUNS):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def print_ratios(title: str, seconds: dict[str, float]) -> None:
    """Print each time, and how many times the first one it is."""
    print(title)
    reference = next(iter(seconds.values()))
    for name, value in seconds.items():
        print(f"  {name:<24} {value:.3f} s ({value / reference:.2f}x)")


def main() -> None:
    measured = median_seconds({"an empty start": "pass", **LIBRARY, **COMMANDS})
    empty = measured["an empty start"]
    print_ratios(
        f"import time, median of {RUNS}, less an empty start of {empty:.3f} s",
        {name: measured[name] - empty for name in LIBRARY},
    )
    print_ratios(
        f"command line, whole processes, median of {RUNS}; target: --version at most 2x",
        {name: measured[name] for name in COMMANDS},
    )


if __name__ == "__main__":
    main()
