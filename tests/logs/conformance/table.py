"""The table itself: every kind of source × every case."""

from typing import Any

import pytest

from tests.logs.conformance.cases import CASES, Outcome
from tests.logs.conformance.file_cases import FILE_CASES
from tests.logs.conformance.lake_cases import LAKE_CASES
from tests.logs.conformance.sources import KINDS
from tests.logs.spark import OF_SPARK

ALL = [*CASES, *FILE_CASES, *LAKE_CASES]
TABLE: dict[str, dict[str, Outcome]] = {
    case.name: {kind: case.outcome_in(kind) for kind in KINDS} for case in ALL
}
assert len(TABLE) == len(ALL), "two cases have one name"


def cells() -> list[Any]:
    """The cells that are tested, as parameters."""
    found = []
    for case in ALL:
        for kind in KINDS:
            if TABLE[case.name][kind].status != "n.a.":
                marks = list(OF_SPARK) if kind == "Spark" else []
                if kind in case.wrong:
                    marks.append(pytest.mark.xfail(strict=True, reason=case.wrong[kind]))
                found.append(pytest.param(case, kind, id=f"{case.name}-{kind}", marks=marks))
    return found


def printed() -> str:
    """The table in Markdown."""
    lines = [f"| case | {' | '.join(KINDS)} |", f"| --- |{' --- |' * len(KINDS)}"]
    for case in ALL:
        row = TABLE[case.name]
        words = [f"{row[kind].status}{' (not yet)' if kind in case.wrong else ''}" for kind in KINDS]
        lines.append(f"| {case.name.replace('|', chr(92) + '|')} | {' | '.join(words)} |")
    return "\n".join(lines)
