"""How long `import armnesia` takes, beside an empty Python start and `import numpy, scipy.special`."""

import statistics
import subprocess
import sys
import time

RUNS = 11


def median_seconds(code: str) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    empty = median_seconds("pass")
    core = median_seconds("import numpy, scipy.special") - empty
    whole = median_seconds("import armnesia") - empty
    print(f"import time, median of {RUNS}, less an empty start of {empty:.3f} s")
    print(f"  numpy and scipy.special  {core:.3f} s")
    print(f"  armnesia                 {whole:.3f} s ({whole / core:.2f}x)")


if __name__ == "__main__":
    main()
