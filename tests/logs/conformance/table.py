"""The table itself: every kind of source × every case."""

from typing import Any

import pytest

from tests.logs.conformance.cases import CASES, Outcome
from tests.logs.conformance.database_cases import DATABASE_CASES
from tests.logs.conformance.file_cases import FILE_CASES
from tests.logs.conformance.lake_cases import LAKE_CASES
from tests.logs.conformance.sources import KINDS
from tests.logs.spark import OF_SPARK

COVERED = {
    "mapping": "arrays",
    "Arrow": "polars",
    "Parquet folder": "Parquet file",
    "partitioned folder": "Parquet file",
    "glob": "Parquet file",
    "Delta": "Parquet file",
    "Iceberg": "Delta",
    "pandas": "polars",
}
"""Kinds whose cells are slow tests where another kind has the same case."""
GUARDS: dict[str, tuple[str, ...]] = {
    "numeric NaN and ±Infinity of PostgreSQL arrive as 0": (
        "PostgreSQL: numeric NaN as a reward",
        "PostgreSQL: numeric Infinity as a reward",
        "PostgreSQL: numeric -Infinity as a reward",
        "PostgreSQL: numeric NaN as a user",
    ),
    "an attached SQLite file loses the locks of Python": (
        "test_a_lock_of_python_on_the_same_sqlite_file_is_kept",
    ),
    "the vault's own file is no source": ("test_a_vault_refuses_its_own_file",),
    "ids become floats": (
        "users: integers around 2^53",
        "users: integers beyond 2^63",
        "users: numeric without a scale, around 2^53",
        "users: floats from 2^53 on",
        "ids: integers around 2^53 and 2^63",
        "ids: decimals without a scale",
        "SQLite: integers in a column NUMERIC",
        "CSV: numbers as they are written",
    ),
    "a glob takes the types of its first file": (
        "files: integers in the first, floats in the second",
        "files: floats in the first, integers in the second",
        "files: integers and text as users",
        "files: columns in another order",
    ),
    "folders override columns of their files": (
        "partitions: a column of the files too, read",
        "partitions: a column of the files too, not read",
    ),
    "brackets in a path are a pattern": (
        "paths: a file with brackets",
        "paths: a CSV file with brackets",
        "paths: a folder with brackets",
    ),
    "dot files and _temporary are read": ("files: dot files, _temporary and others are left out",),
    "names of columns ignore case": (
        "a column of another case",
        "columns: differ in case, the first is read",
        "columns: differ in case, the second is read",
        "partitions: one that differs in case from a column",
    ),
    "CSV: lines with # are dropped": ("CSV: lines that begin with #",),
    "CSV: a name twice is renamed": ("CSV: a name twice in the header",),
    "CSV: columns are bound by position": ("files: CSV with columns in another order",),
    "CSV: blanks around quotes are trimmed": (
        "CSV: a blank before an opening quote",
        "CSV: a blank after a closing quote",
        "CSV: text after a closing quote",
    ),
    "CSV: the separator is guessed": ("CSV: semicolons", "CSV: bars", "CSV: blanks between fields"),
    "CSV: a record whose quote is never closed is lost": (
        "CSV: an open quote",
        "CSV: an open quote after one in a plain field",
    ),
    "Delta: values are cast to the type of the table: 0.7 is 1": ("Delta: a file with another type",),
    "Delta: columns mapped by id have no values": ("Delta: columns mapped by id",),
    "normal forms of Unicode end at a null character": ("test_names_are_normalised_alike",),
    "text of any encoding of a client is taken for UTF-8": ("test_settings_of_a_session_change_nothing",),
    "halves are rounded away from zero": (
        "rewards: floats at ties of rounding",
        "rewards: floats near ties of rounding",
        "rewards: decimals at ties of rounding",
    ),
    "SQLite: text of 15 digits": (
        "SQLite: floats of 17 digits in a column without a type",
        "SQLite: floats of 17 digits as keys",
    ),
    "SQLite: generated columns vanish": ("SQLite: generated columns",),
    "trim keeps tabs and no-break spaces; 7.6 is 8": (
        "users: text with blanks",
        "users: text of numbers",
        "names: integers with blanks, tabs and zeros are one",
        "names: 7.6 is no integer",
    ),
    "sums overflow or become floats": (
        "rewards: sums beyond 2^63 (second moment)",
        "test_the_sums_of_a_hundred_million_rows",
    ),
    "names stand in the log of a server": (
        "test_a_request_names_nobody_in_the_log_of_a_server",
        "test_a_forget_names_nobody_in_the_log_of_a_server",
    ),
    "messages quote names and passwords": ("test_a_message_has_no_name_of_a_person_and_no_password",),
    "files are left in the working folder, extensions install themselves": (
        "test_reading_leaves_no_file_in_the_working_folder_and_installs_nothing",
    ),
}
"""What was seen in engines, and the cases or tests (of three modules) that notice it."""
ALL = [*CASES, *FILE_CASES, *LAKE_CASES, *DATABASE_CASES]
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
                covering = COVERED.get(kind, "")
                if kind == "PostgreSQL table" and (case.where or case.by):  # DuckDB looks at what it sends
                    covering = "Parquet file"
                if TABLE[case.name].get(covering) == TABLE[case.name][kind]:
                    marks.append(pytest.mark.slow)
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
    lines += ["", "| refused, and read rightly by 0.1.0 | why |", "| --- | --- |"]
    lines += [f"| {case.name} | {case.once_right} |" for case in ALL if case.once_right]
    lines += ["", "| seen in engines | noticed by |", "| --- | --- |"]
    lines += [f"| {seen} | {'; '.join(names)} |" for seen, names in GUARDS.items()]
    return "\n".join(lines)
