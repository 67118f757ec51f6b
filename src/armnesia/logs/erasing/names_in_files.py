"""Names of people in files that DuckDB reads: which there are, which rows have them, and which do not."""

from collections.abc import Iterator

from armnesia.logs.erasing.people import People
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.formats import LogFiles
from armnesia.logs.files.label_lookup import Lookup, look_up
from armnesia.logs.files.source import FileSource
from armnesia.logs.limits import CHUNK
from armnesia.logs.rows import Selection


def names_in(source: FileSource, people: People) -> frozenset[str]:
    """The names of people as they are spelled in the files."""
    people.check_column(source)
    source.check_sizes(people.role)
    return people.among_all(_labels(source.files, source.named_column(people.role), people.selection))


def _labels(files: LogFiles, column: FileColumn, selection: Selection | None) -> Iterator[list[str]]:
    """The distinct texts of a column; with a selection, those that may be names of it."""
    wanted = condition_of(column, selection)
    distinct = f"SELECT DISTINCT {column.name} FROM {files.table} WHERE {wanted.condition}"
    sql = f"SELECT {column.text()} FROM ({distinct})"
    for rows in files.stream(sql, CHUNK, **wanted.parameters):
        yield [text for (text,) in rows if text is not None]


def condition_of(column: FileColumn, selection: Selection | None) -> Lookup:
    """The rows that have names; with a selection, those that may be names of it."""
    if selection is None:
        return Lookup(f"{column.name} IS NOT NULL", {})
    found = look_up(column, selection.texts)
    # Other spellings of a name are among the texts that are not plain.
    if selection.plain is None or column.type != "VARCHAR":
        return found
    condition = f"{found.condition} OR NOT regexp_full_match({column.text()}, $plain)"
    return Lookup(condition, {**found.parameters, "plain": selection.plain})


def checksum(files: LogFiles, left_out: Lookup | None = None, *, ordered: bool = False) -> tuple[int, int]:
    """The number of rows, and a sum over them that another value in any column changes.

    Rows of a lookup are left out. If `ordered`, which is for a single Parquet file, another order of the rows
    changes the sum too.
    """
    columns = ", ".join(f"c{place}" for place in range(len(files.columns)))
    condition = "true" if left_out is None else f"NOT coalesce({left_out.condition}, false)"
    place = ", file_row_number AS place" if ordered else ""
    rows, hashed = f"SELECT hash({columns}) AS h{place} FROM {files.table} WHERE {condition}", "h"
    if ordered:  # by what the file says: rows that pass a condition come in any order
        rows, hashed = f"SELECT h, row_number() OVER (ORDER BY place) AS n FROM ({rows})", "hash(h, n)"
    ((count, total),) = files.query(
        f"SELECT count(*), coalesce(sum(CAST({hashed} AS HUGEINT)), 0) FROM ({rows})",
        **({} if left_out is None else left_out.parameters),
    )
    return int(count), int(total)
