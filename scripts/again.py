"""Runs the quick tests many times beside busy loops: a test that depends on luck or on time fails once.

    python -m scripts.again [--times 20] [--busy 2] [-- ARGUMENTS OF PYTEST]

Ends with 1 at the first run that fails, whose output is left in the file that it names.
"""

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def spin() -> None:
    """Keep one processor busy."""
    while True:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--busy", type=int, default=2, help="how many busy loops run beside the tests")
    parser.add_argument("arguments", nargs="*", default=["-m", "not slow"])
    given = parser.parse_args()
    loops = [multiprocessing.Process(target=spin, daemon=True) for _ in range(given.busy)]
    for loop in loops:
        loop.start()
    for number in range(1, given.times + 1):
        start = time.monotonic()
        with tempfile.NamedTemporaryFile("wb", suffix=".txt", delete=False) as output:
            command = [sys.executable, "-m", "pytest", "-q", *given.arguments]
            code = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False).returncode
        printed = Path(output.name)
        last = printed.read_text(errors="replace").strip().splitlines()[-1]
        print(f"{number} of {given.times}: {last} ({time.monotonic() - start:.0f} s)", flush=True)
        if code:
            print(f"the output is in {printed}")
            return 1
        printed.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
