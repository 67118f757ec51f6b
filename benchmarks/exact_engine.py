"""Figure 1 under the fixed-sample model: the exact engine beside the paper's protocol at the same accuracy.

Every point of the M_f panels is evaluated exactly. The paper's protocol (drawn data, drawn noise) is timed
on a few of them; its standard error falls as one over the square root of the time, so that reaching 10⁻⁵
takes (error/10⁻⁵)² times as long. The error of an exact value is below 10⁻¹¹. Both use one core. Exits
with 1 below 1000x.
"""

import os
import statistics
import sys
import time
from dataclasses import replace

for library in ("OPENBLAS", "OMP", "MKL"):  # before numpy is loaded
    os.environ[f"{library}_NUM_THREADS"] = "1"

from armnesia.paper.figures import figure_1_cells  # noqa: E402
from armnesia.paper.protocol import paper_protocol  # noqa: E402
from armnesia.paper.settings import Plan  # noqa: E402
from armnesia.simulation import Cell, FixedSample, Row  # noqa: E402

TARGET_ERROR, FEWEST = 1e-5, 1000
TIMED = 12
"""Points on which the paper's protocol is timed, spread evenly over the panels."""


def timed(cell: Cell) -> tuple[float, list[Row]]:
    start = time.perf_counter()
    rows = cell.rows()
    return time.perf_counter() - start, rows


def setting(row: Row) -> str:
    return f"{row['panel']:9}  N = {row['n']:4}  k = {row['k']:3}  γ = {row['gamma']:<4g}"


def main() -> int:
    cells = [cell for cell in figure_1_cells(Plan()) if isinstance(cell.model, FixedSample)]
    cells[0].rows()  # loads what is loaded once
    results = [timed(cell) for cell in cells]
    exact = [seconds for seconds, _ in results]

    print(f"Figure 1, M_f: {len(cells)} points, {len(cells[0].unlearners)} methods")
    print(f"  exact engine  {sum(exact):.2f} s in all, {1000 * statistics.mean(exact):.1f} ms a point\n")
    print(f"  the paper's protocol{'seconds':>29}  {'mean error':>10}  {'hours to 1e-5':>13}  {'off':>8}")
    needed, off = [], []
    for position in range(TIMED):
        number = round(position * (len(cells) - 1) / (TIMED - 1))
        seconds, rows = timed(replace(cells[number], evaluate=paper_protocol, seed=position))
        # Each method's error, squared and averaged: what the five of them need on average.
        squared = statistics.mean(row["standard_error"] ** 2 for row in rows)
        needed.append(seconds * squared / TARGET_ERROR**2)
        pairs = zip(rows, results[number][1], strict=True)
        off.append(max(abs(a["suboptimality"] - b["suboptimality"]) for a, b in pairs))
        print(
            f"  {setting(rows[0])}{seconds:10.2f}  {squared**0.5:10.1e}"
            f"  {needed[-1] / 3600:13.4f}  {off[-1]:8.1e}"
        )
    whole = statistics.mean(needed) * len(cells)
    ratio = whole / sum(exact)
    print(f"\n  to the same accuracy: {whole / 3600:.1f} h against {sum(exact):.2f} s")
    print(f"  ratio  {ratio:,.0f}x (at least {FEWEST:,}x)")
    return 0 if ratio >= FEWEST else 1


if __name__ == "__main__":
    sys.exit(main())
