"""Compute the figures, tables and claims of the paper, and write results, pictures and the report."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.paper.parts import OLD_KEYS, PARTS
from armnesia.paper.plan import Plan
from armnesia.paper.report import write_report
from armnesia.paper.results import write_csv, write_parquet
from armnesia.paper.run import Progress, Run
from armnesia.paper.section import Claim

PART_KEYS = tuple(PARTS)
PROTOCOLS = ("exact", "sampled", "paper")


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` wrote, and how each claim of the paper fared."""

    report: Path
    files: tuple[Path, ...]
    claims: tuple[Claim, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "report": str(self.report),
            "files": [str(file) for file in self.files],
            "seconds": self.seconds,
            "claims": [asdict(claim) for claim in self.claims],
        }


def reproduce(
    out: Path,
    *,
    parts: Sequence[str] = PART_KEYS,
    protocol: str = "exact",
    quick: bool = False,
    datasets: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce parts of the paper into a folder; an interrupted run keeps its finished points.

    `exact` computes the fixed-sample model without sampling and draws data sets for the distribution model;
    `sampled` draws them for both; `paper` repeats the paper's own protocol.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(Path(folder), parts=["table2"], datasets=100, n_jobs=1)
    ...     [file.name for file in found.files]
    ['report.html', 'results.csv', 'results.parquet']
    """
    keys = tuple(dict.fromkeys(OLD_KEYS.get(part, part) for part in parts))
    for part in keys:
        if part not in PARTS:
            raise InvalidInputError(f"part must be one of {', '.join(PARTS)} or all; got {part!r}")
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}")
    started = time.perf_counter()
    plan = Plan(protocol, datasets or (20_000 if quick else 200_000), quick, seed)
    run = Run(out, plan, n_jobs or os.cpu_count() or 1, progress)
    sections = []
    for key in keys:
        run.label, make_section = PARTS[key]
        sections.append(make_section(run))
    facts = {
        "protocol": protocol,
        "data sets where sampled": f"{plan.datasets:,}",
        "seed": seed,
        "grid": "coarse (--quick)" if quick else "full",
        "duration": f"{time.perf_counter() - started:.0f} s, less what an earlier run had finished",
    }
    report = out / "report.html"
    title = "Unlearning Offline Stochastic Multi-Armed Bandits, reproduced"
    write_report(report, sections, title=title, facts=facts)
    files = [report]
    if run.rows:
        write_csv(run.rows, out / "results.csv")
        write_parquet(run.rows, out / "results.parquet")
        files += [out / "results.csv", out / "results.parquet"]
    return Reproduction(report, tuple(files), tuple(run.claims), time.perf_counter() - started)
