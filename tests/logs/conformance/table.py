"""The table itself: every kind of source × every case."""

from typing import Any

import pytest

from tests.logs.conformance.cases import CASES, Case, Outcome
from tests.logs.conformance.database_cases import DATABASE_CASES
from tests.logs.conformance.file_cases import FILE_CASES
from tests.logs.conformance.lake_cases import LAKE_CASES
from tests.logs.conformance.sources import KINDS
from tests.logs.spark import OF_SPARK

COVERED = {
    "Arrow": "polars",
    "Parquet folder": "Parquet file",
    "partitioned folder": "Parquet file",
    "glob": "Parquet file",
    "Delta": "Parquet file",
    "Iceberg": "Delta",
    "polars": "Parquet file",
    "pandas": "polars",
}
"""Kinds whose cells are slow tests where another kind has the same case."""
ALL = [*CASES, *FILE_CASES, *LAKE_CASES, *DATABASE_CASES]
TABLE: dict[str, dict[str, Outcome]] = {
    case.name: {kind: case.outcome_in(kind) for kind in KINDS} for case in ALL
}
assert len(TABLE) == len(ALL), "two cases have one name"


def is_covered(case: Case, kind: str) -> bool:
    """Whether another kind shows the same of a case: every case has a cell that is tested quickly."""
    covering = COVERED.get(kind, "")
    if kind in ("PostgreSQL table", "SQLite table") and (
        case.where or case.by or case.vault is not None or case.outcome.status == "refused"
    ):
        covering = "Parquet file"  # DuckDB looks at what they send
    if kind == "mapping" and (case.where or case.by):
        covering = "Parquet file"  # of other types than text, as a CSV file has
    return TABLE[case.name].get(covering) == TABLE[case.name][kind]


def cells() -> list[Any]:
    """The cells that are tested, as parameters."""
    found = []
    for case in ALL:
        for kind in KINDS:
            if TABLE[case.name][kind].status != "n.a.":
                marks = list(OF_SPARK) if kind == "Spark" else []
                if is_covered(case, kind):
                    marks.append(pytest.mark.slow)
                found.append(pytest.param(case, kind, id=f"{case.name}-{kind}", marks=marks))
    return found


def printed() -> str:
    """The table in Markdown."""
    lines = [f"| case | {' | '.join(KINDS)} |", f"| --- |{' --- |' * len(KINDS)}"]
    for case in ALL:
        row = TABLE[case.name]
        words = [row[kind].status for kind in KINDS]
        lines.append(f"| {case.name.replace('|', chr(92) + '|')} | {' | '.join(words)} |")
    return "\n".join(lines)
