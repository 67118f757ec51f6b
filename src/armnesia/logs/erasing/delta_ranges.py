"""Deleting rows of a large Delta table by several merges, each of which reads only some of its files.

deltalake's merge holds the rows of every file in which it has found nobody yet. A log that was appended over
time has a column whose values tell its files apart: conditions on it make merges leave files out, by the
lowest and highest values that the table's log has of each file. They state thresholds between files, never a
value that only rows to be deleted have. If the log misleads, rows are left, which a merge without conditions
deletes. Worse, deltalake takes a column that a condition compares to be constant in a file if the log says
so, and writes that value into all rows of it that stay: so the log must agree with the files themselves.
"""

import glob
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from armnesia.logs.columns import quoted
from armnesia.logs.files.duckdb_engine import query
from armnesia.logs.files.formats import LogFiles
from armnesia.logs.files.label_lookup import Lookup
from armnesia.logs.lakes.delta import DeltaSource
from armnesia.logs.lakes.snapshot import DataFile

MOST_BYTES = 128 * 2**20
"""Files that take more memory together are not read by one merge, if they can be told apart."""
_INTEGERS = {"byte", "short", "integer", "long"}
_PER_VALUE = 16
"""Bytes of a text in memory besides its own: without them, files with dictionaries would seem small."""
_PER_BYTE_ON_DISK = 4
"""Bytes in memory that are assumed for each byte of a compressed file that does not say it."""
_MILLISECOND = 1000
"""In microseconds. The log may have timestamps without the parts of it."""
_DAY = len("1970-01-01")
_FIRST_DAY = date(1970, 1, 1)
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_ZONES = {"timestamp": 'Some("UTC")', "timestamp_ntz": "None"}
_TYPES = {*_INTEGERS, "date", *_ZONES}
"""Types whose values are integers, days or microseconds, and of which a literal is one value everywhere."""


class Footer(NamedTuple):
    """What a Parquet file says of itself: about how much memory its rows take, and bounds by column."""

    size: int
    bounds: Mapping[str, "FooterBounds"]


class FooterBounds(NamedTuple):
    """The lowest and the highest values of a column in the row groups of a file, as DuckDB writes them.

    None stands for a row group that has values and does not say which.
    """

    lowest: Sequence[str | None]
    highest: Sequence[str | None]
    n_missing: int | None
    """How many rows have no value."""


class FileRange(NamedTuple):
    """The lowest and the highest value of a column in a file, as integers, and the size of the file."""

    lowest: int
    highest: int
    size: int


@dataclass(frozen=True)
class Part:
    """The rows of which a column is at least `start` and below `end`; None stands for no such bound."""

    column: str
    type: str
    start: int | None
    end: int | None

    @property
    def condition(self) -> str:
        """The rows in the SQL of deltalake.

        >>> Part("time", "long", 3, 7).condition
        't."time" >= 3 AND t."time" < 7'
        >>> Part("day", "date", None, 1).condition
        't."day" < DATE \\'1970-01-02\\''
        """
        bounds = ((">=", self.start), ("<", self.end))
        return " AND ".join(
            f"t.{quoted(self.column)} {compared} {_literal(self.type, bound)}"
            for compared, bound in bounds
            if bound is not None
        )

    def rows_in(self, files: LogFiles) -> Lookup:
        """The same in the SQL of DuckDB."""
        column, type_ = _column(files, self.column)
        bounds = (("start", ">=", self.start), ("end", "<", self.end))
        given = [(name, compared, bound) for name, compared, bound in bounds if bound is not None]
        conditions = [f"{column} {compared} CAST(${name} AS {type_})" for name, compared, _ in given]
        return Lookup(" AND ".join(conditions), {name: _text(self.type, bound) for name, _, bound in given})


def parts_with(
    source: DeltaSource, files: Sequence[DataFile], rows: Lookup, names: Collection[str]
) -> list[Part]:
    """The parts that have any of these rows, which are in these files; none if one merge is to delete them.

    That is so if it reads few enough bytes, or if no column tells files apart.
    """
    footers = _footers(source, files)
    if sum(footer.size for footer in footers.values()) <= MOST_BYTES:
        return []
    found = [(each, each.cuts(names)) for each in _ranges(source, footers)]
    if not any(cuts for _, cuts in found):
        return []
    # Of several columns, the one by which the largest part is smallest.
    ranges, cuts = min(found, key=lambda each: (largest_between(each[0].files, each[1]), len(each[1])))
    return ranges.parts_with(source.reading(files), rows, cuts)


@dataclass(frozen=True)
class ColumnRanges:
    """What the log of a table says of a column in each of its files."""

    column: str
    type: str
    files: tuple[FileRange, ...]
    is_partition: bool = False

    def cuts(self, names: Collection[str]) -> list[int]:
        """Thresholds between files, without those that read as one of the names: the log would say it.

        >>> ranges = ColumnRanges("day", "date", (FileRange(0, 9, 2**30), FileRange(11, 19, 2**30)))
        >>> ranges.cuts({"ann"}), ranges.cuts({"1970-01-11"})
        ([10], [])
        """
        found = cuts_between(self.files, MOST_BYTES)
        return [
            cut for cut in found if not {_text(self.type, cut), _text(self.type, cut)[:_DAY]} & set(names)
        ]

    def parts_with(self, source: DeltaSource, rows: Lookup, cuts: Sequence[int]) -> list[Part]:
        """The parts between thresholds that have any of these rows; none if a row is in no part.

        Thresholds that are values of these rows and of no others are left out. If another row has the value,
        the log has it anyway: it is the lowest of a file, also without these rows. So it has the values of
        partitions, which are in the paths of files.
        """
        found = self._places(source, rows.condition, rows, cuts)
        dropped = set[int]()
        if not self.is_partition and any(is_at_cut for _, is_at_cut in found):
            others = self._places(source, f"NOT coalesce({rows.condition}, false)", rows, cuts)
            at_cuts = ({place - 1 for place, is_at_cut in each if is_at_cut} for each in (found, others))
            dropped = set.difference(*at_cuts)
        chosen = [cut for place, cut in enumerate(cuts) if place not in dropped]
        if not chosen or any(place is None for place, _ in found):
            return []
        with_rows = {place - sum(each < place for each in dropped) for place, _ in found}
        bounds = [None, *chosen, None]
        return [Part(self.column, self.type, *bounds[place : place + 2]) for place in sorted(with_rows)]

    def _places(
        self, source: DeltaSource, condition: str, rows: Lookup, cuts: Sequence[int]
    ) -> list[tuple[Any, Any]]:
        """How many thresholds are not above a row, and whether it is at one, without repetition."""
        files = source.compared_files
        column, type_ = _column(files, self.column)
        thresholds = f"CAST(CAST($cuts AS VARCHAR[]) AS {type_}[])"
        number = f"len([cut FOR cut IN {thresholds} IF cut <= {column}])"
        sql = (
            f"SELECT DISTINCT CASE WHEN {column} IS NOT NULL THEN {number} END,"
            f" list_contains({thresholds}, {column}) FROM {files.table} WHERE {condition}"
        )
        return files.query(sql, **rows.parameters, cuts=[_text(self.type, cut) for cut in cuts])


def cuts_between(files: Iterable[FileRange], most: int) -> list[int]:
    """Thresholds that no file has values on both sides of; no more than `most` is between two, if possible.

    >>> cuts_between([FileRange(0, 9, 50), FileRange(20, 29, 50), FileRange(36, 39, 50)], 100)
    [32]
    >>> cuts_between([FileRange(0, 9, 50), FileRange(20, 29, 50), FileRange(5, 39, 50)], 60)
    []
    """
    apart: list[FileRange] = []
    for file in sorted(files):
        if apart and file.lowest <= apart[-1].highest:
            lowest, highest, size = apart.pop()
            apart.append(FileRange(lowest, max(highest, file.highest), size + file.size))
        else:
            apart.append(file)
    cuts, size = list[int](), 0
    for place, each in enumerate(apart):
        if size and size + each.size > most:
            cuts.append(_roundest_between(apart[place - 1].highest, each.lowest))
            size = 0
        size += each.size
    return cuts


def _roundest_between(lower: int, upper: int) -> int:
    """The number above one and below another that has most zeros at its end; the upper one without room.

    Many pairs of numbers have the same between them, so that it does not tell what one of them was.

    >>> [_roundest_between(*each) for each in ((29, 36), (-5, 9), (-12, -5), (7, 8))]
    [32, 0, -8, 8]
    """
    found = max(upper - 1, lower + 1)
    while found and found & (found - 1) > lower:  # without its last digit 1, in base two
        found &= found - 1
    return found


def largest_between(files: Iterable[FileRange], cuts: Sequence[int]) -> int:
    """The size of the files of the largest part.

    >>> largest_between([FileRange(0, 9, 50), FileRange(10, 19, 30), FileRange(20, 29, 30)], [10])
    60
    """
    sizes = [0] * (len(cuts) + 1)
    for each in files:
        sizes[bisect_right(cuts, each.lowest)] += each.size
    return max(sizes)


def _column(files: LogFiles, name: str) -> tuple[str, str]:
    """What DuckDB calls a column, and its type."""
    return next((f"c{place}", type_) for place, (each, type_) in enumerate(files.columns) if each == name)


def _footers(source: DeltaSource, files: Sequence[DataFile]) -> dict[str, Footer]:
    """What each file says of itself, by its path in the log."""
    if not files:
        return {}
    is_number = "type IN ('INT32', 'INT64')"  # other columns are not asked for, and have names
    has_values = f"FILTER (WHERE {is_number} AND stats_null_count IS DISTINCT FROM num_values)"
    found = query(
        "SELECT file_name, path_in_schema,"
        f" CAST(sum(total_uncompressed_size + {_PER_VALUE} * num_values) AS BIGINT),"
        f" coalesce(list(coalesce(stats_min_value, stats_min)) {has_values}, []),"
        f" coalesce(list(coalesce(stats_max_value, stats_max)) {has_values}, []),"
        " CASE WHEN count(stats_null_count) = count(*) THEN CAST(sum(stats_null_count) AS BIGINT) END"
        " FROM parquet_metadata($files) GROUP BY file_name, path_in_schema",
        {"files": [glob.escape(file.location) for file in files]},
        shown=source.snapshot.location,
        format_name="Parquet",
    )
    sizes, bounds = defaultdict[str, int](int), defaultdict[str, dict[str, FooterBounds]](dict)
    for location, column, size, *said in found:
        sizes[location] += size
        bounds[location][column] = FooterBounds(*said)
    # Not found are files without rows, and any that DuckDB should call otherwise.
    return {
        file.path: Footer(
            sizes.get(file.location, _PER_BYTE_ON_DISK * file.size), bounds.get(file.location, {})
        )
        for file in files
    }


def _ranges(source: DeltaSource, footers: Mapping[str, Footer]) -> Iterator[ColumnRanges]:
    """The columns of which the log has bounds in each file that agree with those in the file itself."""
    import pyarrow  # noqa: PLC0415 (an extra)

    said = pyarrow.table(source.history.table.get_add_actions(flatten=True))
    paths = said.column("path").to_pylist()
    named = source.columns.named()
    for each in source.snapshot.columns:
        is_name = each.name in (named.get("user"), named.get("id"))
        if each.declared_type not in _TYPES or is_name or "." in each.name:  # that is a field of a structure
            continue
        is_partition = f"partition.{each.name}" in said.schema.names
        kinds = ["partition"] * 2 if is_partition else ["min", "max"]
        columns = [_integers(said, f"{kind}.{each.name}") for kind in (*kinds, "null_count")]
        rows = {path: row for path, *row in zip(paths, *columns, strict=True) if path in footers}
        bounds = [(low, high) for low, high, _ in rows.values() if low is not None and high is not None]
        if len(bounds) < len(rows) or not _are_written(each.declared_type, bounds):
            continue
        if not is_partition and not all(
            agrees(each.declared_type, (*pair, n_missing), footers[path].bounds.get(str(each.stored_as)))
            for (path, (*_, n_missing)), pair in zip(rows.items(), bounds, strict=True)
        ):
            continue
        sizes = [footers[path].size for path in rows]
        files = (FileRange(*pair, size) for pair, size in zip(bounds, sizes, strict=True))
        yield ColumnRanges(each.name, each.declared_type, tuple(files), is_partition)


def agrees(type_: str, said: tuple[int, int, int | None], footer: FooterBounds | None) -> bool:
    """Whether the log says of a column in a file what the file does: its bounds, and if it is constant.

    The log may have timestamps in whole milliseconds. Then it says of different values that they are one.

    >>> agrees("long", (3, 7, 0), FooterBounds(["3", "5"], ["4", "7"], 0))
    True
    >>> agrees("long", (3, 3, 0), FooterBounds(["3"], ["7"], 0))
    False
    >>> moments = ["1970-01-01 00:00:00.001007+00"], ["1970-01-01 00:00:01.000999+00"]
    >>> agrees("timestamp", (1000, 1_000_000, 0), FooterBounds(*moments, 0))
    True
    """
    if footer is None or not footer.lowest or None in footer.lowest or None in footer.highest:
        return False
    try:
        low = min(_integer(type_, str(text)) for text in footer.lowest)
        high = max(_integer(type_, str(text)) for text in footer.highest)
    except (ValueError, OverflowError):  # other years than Python has
        return False
    lowest, highest, n_missing = said
    if type_ in _ZONES:
        is_near = max(abs(low - lowest), abs(high - highest)) < _MILLISECOND
        return is_near and (lowest < highest or high - low < _MILLISECOND)
    is_same = (low, high) == (lowest, highest)
    return is_same and (low < high or (n_missing is not None and n_missing == footer.n_missing))


def _integers(said: Any, name: str) -> list[int | None]:
    """What the log says of each file: numbers, days or microseconds."""
    if name not in said.schema.names:
        return [None] * len(said)
    values = said.column(name)
    if str(values.type).startswith("date32"):  # is not converted to longer ones at once
        values = values.cast("int32")
    return list(values.cast("int64").to_pylist())


def _are_written(type_: str, rows: Sequence[Sequence[Any]]) -> bool:
    """Whether all values are dates or times of the years that Python has."""
    try:
        return all(_text(type_, bound) for row in rows for bound in row)
    except OverflowError:
        return False


def _text(type_: str, value: int) -> str:
    """A value as DuckDB and deltalake read it.

    >>> _text("long", 7), _text("date", 31), _text("timestamp", 5), _text("timestamp_ntz", 10**6)
    ('7', '1970-02-01', '1970-01-01T00:00:00.000005+00:00', '1970-01-01T00:00:01')
    """
    if type_ in _INTEGERS:
        return str(value)
    if type_ == "date":
        return (_FIRST_DAY + timedelta(days=value)).isoformat()
    moment = _FIRST_MOMENT + timedelta(microseconds=value)
    return (moment if type_ == "timestamp" else moment.replace(tzinfo=None)).isoformat()


def _integer(type_: str, text: str) -> int:
    """A value as DuckDB writes it.

    >>> _integer("long", "7"), _integer("date", "1970-02-01"), _integer("timestamp", "1970-01-01 01:00:01+01")
    (7, 31, 1000000)
    """
    if type_ in _INTEGERS:
        return int(text)
    if type_ == "date":
        return (date.fromisoformat(text) - _FIRST_DAY).days
    moment = datetime.fromisoformat(text)
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (utc - _FIRST_MOMENT) // timedelta(microseconds=1)


def _literal(type_: str, value: int) -> str:
    """A value in the SQL of deltalake.

    >>> print(_literal("timestamp", 0))
    arrow_cast('1970-01-01T00:00:00+00:00', 'Timestamp(Microsecond, Some("UTC"))')
    """
    text = _text(type_, value)
    if type_ in _INTEGERS:
        return text
    return (
        f"DATE '{text}'"
        if type_ == "date"
        else f"arrow_cast('{text}', 'Timestamp(Microsecond, {_ZONES[type_]})')"
    )
