"""Decisions in a table of Spark: of a catalog, a view, or files that Spark reads.

Rows stay in Spark, which runs the statements of `statements.py` on its cluster. Names of people are a small
table of their own there: they stand in no statement and no plan.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.logs.columns import Columns
from armnesia.logs.engine import PIECE, Connection, Row
from armnesia.logs.refusals import in_words
from armnesia.logs.source import Scan, Source
from armnesia.logs.sql import INTEGERS, Column, by_name
from armnesia.logs.values import is_unicode, label_text

_PREFIX = "spark:"
_TYPES = {
    **{"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"},
    **{"float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN", "void": '"NULL"', "binary": "BLOB"},
    **{"date": "DATE", "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ntz": "TIMESTAMP"},
}
"""Types of Spark whose values mean the same as those of a type of DuckDB."""
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
_FUNCTIONS: dict[str, Callable[[Any], str | None]] = {
    "armnesia_label": label_text,
    "armnesia_composed": lambda text: unicodedata.normalize("NFC", text or ""),
}
"""Functions of Python in a session: Spark writes values in other ways, and composes no characters."""


@dataclass(frozen=True)
class SparkColumn(Column):
    """A column in Spark's SQL, with the type of DuckDB that means the same.

    >>> SparkColumn("c0", "DECIMAL(9,2)").text()
    'armnesia_label(c0)'
    """

    half_even: ClassVar[str] = "rint({})"
    number_of_text: ClassVar[str] = (
        "TRY_CAST(CASE WHEN NOT {0} RLIKE '[0-9.] *[dDfF]' THEN {0} END AS DOUBLE)"
    )
    """For Java 5d is a number."""
    is_finite: ClassVar[str] = "abs({}) < CAST('Infinity' AS DOUBLE)"
    """Spark takes NaN for larger than infinity."""
    total: ClassVar[str] = " + ".join(
        f"sum(shiftright({{0}}, {bits}) & 1048575) * CAST({2**bits} AS DECIMAL(38, 0))"
        for bits in (0, 20, 40)
    )
    """Added up by 20 bits of each number: three times as fast as decimals, and exact up to 2⁴³ rows."""
    matches: ClassVar[str] = "{} RLIKE '(?is)^({})(?!.)'"
    list_of: ClassVar[str] = "${}"
    first_of: ClassVar[str] = "{}[0]"
    each_of: ClassVar[str] = "SELECT value FROM {{{}}}"
    n_bytes: ClassVar[str] = "octet_length({})"
    last: ClassVar[str] = "right({}, 1)"
    composed: ClassVar[str] = "armnesia_composed({})"

    @classmethod
    def of(cls, name: str, field: Any) -> "SparkColumn":
        """The column of a field of a schema, by the name that it has in statements."""
        type_ = field.dataType.simpleString()
        declared = field.metadata.get(_PADDED, type_)
        if declared.startswith(("string", "char", "varchar")):
            # A collation may take texts that differ for equal, and the padding of CHAR(n) is no part of it.
            text = f"collate({name}, 'UTF8_BINARY')" if " collate " in type_ else name
            return cls(f"rtrim({text})" if declared.startswith("char") else text, "VARCHAR")
        if type_.startswith("decimal"):
            return cls(name, type_.upper())
        return cls(name, _TYPES.get(type_, type_))

    def text(self) -> str:
        """The text that `label_text` writes; NULL where the value is missing."""
        if self.type == "VARCHAR":
            return self.sql
        if self.type in INTEGERS:
            return f"CAST({self.sql} AS STRING)"
        if self.type == "TIMESTAMP WITH TIME ZONE":  # Python would have it in the zone of the session
            start = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
            return f"armnesia_label(timestampadd(MICROSECOND, unix_micros({self.sql}), {start})) || '+00:00'"
        return f"armnesia_label({self.sql})"

    def number(self) -> str:
        """The number that a value reads as, as a float."""
        return f"CAST({self.sql} AS DOUBLE)" if self.holds_numbers else super().number()

    def among(self, parameter: str, texts: Collection[str]) -> tuple[str, list[str]]:
        """Whether the label is one of these, in SQL, and the parameter.

        >>> SparkColumn("c0", "BIGINT").among("names", ["7", "ann"])
        ('CAST(c0 AS STRING) IN (SELECT value FROM {names})', ['7', 'ann'])
        """
        return self.named(self.text()).is_in(parameter), [text for text in texts if is_unicode(text)]


@dataclass(frozen=True, eq=False)
class SparkSource(Source):
    """A table or view by its name in Spark."""

    position: ClassVar[str] = "0"

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "SparkSource":
        """The table at spark:NAME."""
        if not location.removeprefix(_PREFIX).strip():
            raise InvalidInputError(
                f"a table of Spark must be named, such as spark:catalog.database.table; got {location!r}"
            )
        return cls(location, columns)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection to the session, and the table as it is now."""
        yield SparkConnection(spark_session(), self.location)

    def scan(self, connection: Connection) -> Scan:
        """The columns, in which names that differ in case differ: they are numbered."""
        assert isinstance(connection, SparkConnection)
        fields = connection.fields
        columns = [SparkColumn.of(f"c{at}", field) for at, field in enumerate(fields)]
        return Scan("{log}", by_name([field.name for field in fields], columns))


class SparkConnection(Connection):
    """What runs statements in a session of Spark; `{log}` in them is the table."""

    def __init__(self, session: Any, source: str) -> None:
        self._session, self._source = session, source
        with _in_words(source):
            table = session.table(source.removeprefix(_PREFIX))
            self.fields = table.schema.fields
            self._log = table.toDF(*(f"c{at}" for at in range(len(self.fields))))

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run a statement and give all rows: in one job, where a stream has one for each partition."""
        with _in_words(self._source):
            return list(map(tuple, self._frame(sql, parameters or {}).collect()))

    def stream(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[list[Row]]:
        """Run a statement and give its rows in pieces."""
        with _in_words(self._source):
            rows = self._frame(sql, parameters or {}).toLocalIterator()
            while piece := list(map(tuple, islice(rows, PIECE))):
                yield piece

    def _frame(self, sql: str, parameters: dict[str, Any]) -> Any:
        """The result of a statement; `$name` stands for a number or a list, `{name}` for a table of texts.

        Spark is told to send such a table to every worker: it does not know how small it is, and would sort
        all rows of the log instead.
        """
        for name, function in _FUNCTIONS.items():
            if f"{name}(" in sql:
                self._session.udf.register(name, function, "string")
        frames = {"log": self._log}
        for name in set(re.findall(r"\{(\w+)\}", sql)) - {"log"}:
            texts = [(text,) for text in parameters[name]]
            frames[name] = self._session.createDataFrame(texts, "value string").hint("broadcast")
        values = {name: parameters[name] for name in re.findall(r"\$(\w+)", sql)}
        return self._session.sql(re.sub(r"\$(\w+)", r":\1", sql), args=values, **frames)


_REASONS = {
    "TABLE_OR_VIEW_NOT_FOUND": "it has no such table or view",
    "JAVA_GATEWAY_EXITED": "it needs Java 17 or newer, such as Debian's openjdk-17-jre-headless, and"
    " JAVA_HOME if that is not on the PATH",
    "COLUMN_ALREADY_EXISTS": "names of its columns differ in upper and lower case only: set"
    " spark.sql.caseSensitive to true in the session, or rename one",
}


def _in_words(source: str) -> AbstractContextManager[None]:
    return in_words(f"source {source!r} cannot be read by Spark", "{}", _REASONS)


def spark_session() -> Any:
    """The session of the program; else a new one, as Spark is configured.

    Labels are written by armnesia on Spark's workers: those of a new session have this Python.
    """
    with MissingExtraError.unless_installed("A table of Spark", "spark"):
        from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _in_words("spark"):
        return SparkSession.builder.getOrCreate()
