"""Compute the figures, tables and claims of the paper, and write results, pictures and the report."""

import glob
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.files import atomic_write
from armnesia.logs.engine import connected
from armnesia.paper.beyond import beyond_section
from armnesia.paper.bounds import bounds_section
from armnesia.paper.claims import claims_section
from armnesia.paper.dependent_requests import dependent_requests_section
from armnesia.paper.figures import figure_1_section, figure_2_section, figure_3_section
from armnesia.paper.level_costs import level_costs_section
from armnesia.paper.many_decisions import many_decisions_section
from armnesia.paper.phase import phase_section
from armnesia.paper.report import write_report
from armnesia.paper.section import Claim, Section
from armnesia.paper.settings import Plan, Progress, Run
from armnesia.paper.table_1 import table_1_section
from armnesia.paper.table_2 import table_2_section
from armnesia.paper.tradeoff import tradeoff_section
from armnesia.paper.year import year_section
from armnesia.plotting.panels import for_print as with_letters
from armnesia.plotting.style import save
from armnesia.simulation import CellStore, Row, Sweep
from armnesia.simulation.parallel import workers

PARTS: dict[str, tuple[str, Callable[[Run], Section]]] = {
    "1": ("Figure 1", figure_1_section),
    "2": ("Figure 2", figure_2_section),
    "3": ("Figure 3", figure_3_section),
    "table1": ("Table 1", table_1_section),
    "table2": ("Table 2", table_2_section),
    "bounds": ("bounds", bounds_section),
    "phase": ("phase", phase_section),
    "dependent_requests": ("dependent requests", dependent_requests_section),
    "claims": ("claims", claims_section),
    "beyond": ("beyond", beyond_section),
    "level_costs": ("level costs", level_costs_section),
    "tradeoff": ("tradeoff", tradeoff_section),
    "year": ("year", year_section),
    "many_decisions": ("many decisions", many_decisions_section),
}
"""In the order of the report: the key that selects a part, its label for the progress, and its function."""
PART_KEYS = tuple(PARTS)
PROTOCOLS = ("exact", "sampled", "paper")
_TEXTS = "environment figure panel varied model arms choice learner method protocol note"
_TYPES = dict.fromkeys(_TEXTS.split(), "VARCHAR") | dict.fromkeys(("n", "k", "datasets", "seed"), "BIGINT")
"""Columns of the results that hold no floats."""


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` wrote, and how each claim of the paper fared."""

    report: Path
    files: tuple[Path, ...]
    claims: tuple[Claim, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        files = [str(file) for file in self.files]
        return asdict(self) | {"report": str(self.report), "files": files}


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
    for_print: bool = False,
) -> Reproduction:
    """Reproduce parts of the paper into a folder; an interrupted run keeps its finished points.

    `exact` draws data sets for the distribution model only, `sampled` for both models. `paper` repeats the
    paper's own protocol. `for_print` gives the panels of
    the pictures letters in place of titles, which stand in the report's captions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(Path(folder), parts=["table2"], datasets=100, n_jobs=1)
    ...     [file.name for file in found.files]
    ['report.html', 'results.csv', 'results.parquet']
    """
    for part in parts:
        if part not in PARTS:
            raise InvalidInputError(f"part must be one of {', '.join(PARTS)} or all; got {part!r}")
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}")
    started = time.perf_counter()
    plan = Plan(protocol, datasets or (20_000 if quick else 200_000), quick, seed)
    sections, files = [], []
    with workers(n_jobs or os.cpu_count() or 1) as those:
        run = Run(plan, those, CellStore(out / "cells.jsonl"), progress)
        for key in dict.fromkeys(parts):
            run.label, make_section = PARTS[key]
            section = make_section(run)
            if for_print and section.pictures:
                words = [section.caption, *(with_letters(each) for each in section.pictures.values())]
                section = replace(section, caption=" ".join(filter(None, words)))
            for name, picture in section.pictures.items():
                for ending in ("png", "svg", "pdf"):
                    files.append(out / "figures" / f"{name}.{ending}")
                    save(picture, files[-1])
            sections.append(section)
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
    if run.rows:
        files += write_results(run.rows, out)
    return Reproduction(report, (report, *files), tuple(run.claims), time.perf_counter() - started)


def write_results(rows: Sequence[Row], out: Path) -> list[Path]:
    """Write rows as CSV for people and as Parquet for programs."""
    table = Sweep(tuple(rows))
    table.write_csv(out / "results.csv")
    types = {name: _TYPES.get(name, "DOUBLE") for name in table.to_dict()["rows"][0]}
    columns = ", ".join(f"'{name}': '{type_}'" for name, type_ in types.items())
    with connected("results.csv") as connection, atomic_write(out / "results.parquet", replace=True) as new:
        source, target = (str(path).replace("'", "''") for path in (out / "results.csv", new))
        rows_of_csv = (
            f"read_csv('{glob.escape(source)}', columns = {{{columns}}}, auto_detect = false, header = true)"
        )
        connection.rows(f"COPY (FROM {rows_of_csv}) TO '{target}' (FORMAT parquet, USE_TMP_FILE false)")
    return [out / "results.csv", out / "results.parquet"]
