"""Decisions in a table of Spark: of a catalog, a view, or files that Spark reads.

Rows stay in Spark, which runs the statements of `statements.py` on its cluster. Names of people are a small
table of their own there: they stand in no statement and no plan.
"""

import atexit
import os
import re
import shutil
import tempfile
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.core.messages import listed
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, Row
from armnesia.logs.source import Scan, Source
from armnesia.logs.sql import Column, by_name
from armnesia.logs.values import is_unicode, label_text

_PREFIX = "spark:"
_TYPES = {
    **{"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"},
    **{"float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN", "void": '"NULL"', "binary": "BLOB"},
    **{"date": "DATE", "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ntz": "TIMESTAMP"},
}
"""Types of Spark whose values mean the same as those of a type of DuckDB."""
_FLOATS = {"FLOAT", "DOUBLE"}
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
_PIECE = 256
"""How many rows become Python values at a time."""
_FUNCTIONS: dict[str, Callable[[Any], str]] = {
    "armnesia_repr": repr,  # of a float: Java's text of it is another
    "armnesia_composed": lambda text: unicodedata.normalize("NFC", text or ""),
}
"""Functions of Python in a session, which Spark has none of."""


@dataclass(frozen=True)
class SparkColumn(Column):
    """A column in Spark's SQL, with the type of DuckDB that means the same.

    >>> SparkColumn("c0", "DECIMAL(9,2)").text()
    "format_number(c0, '0.##')"
    """

    half_even: ClassVar[str] = "rint({})"
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
        if self.type in _FLOATS:
            whole = f"{self.sql} = rint({self.sql}) AND abs({self.sql}) < {2**53}"
            return (
                f"CASE WHEN {self.sql} IS NULL OR isnan({self.sql}) THEN NULL"
                f" WHEN {whole} THEN CAST(CAST({self.sql} AS BIGINT) AS STRING)"
                f" ELSE armnesia_repr(CAST({self.sql} AS DOUBLE)) END"
            )
        if self.type == "BOOLEAN":
            return f"CASE WHEN {self.sql} THEN 'True' WHEN NOT {self.sql} THEN 'False' END"
        if self.type == "DECIMAL":  # not Spark's own text, which has an exponent in some sessions
            scale = int(self.full_type.rstrip(")").partition(",")[2])
            return f"format_number({self.sql}, '0{'.' * bool(scale)}{'#' * scale}')"
        if self.type == "TIMESTAMP WITH TIME ZONE":  # its own text is in the zone of the session
            moment = (
                f"timestampadd(MICROSECOND, unix_micros({self.sql}), TIMESTAMP_NTZ '1970-01-01 00:00:00')"
            )
            return f"CAST({moment} AS STRING) || '+00:00'"
        text = f"CAST({self.sql} AS STRING)"
        if self.type == "BLOB":
            plain = "byte BETWEEN '20' AND '7E' AND byte NOT IN ('22', '27', '5C')"
            shown = f"CASE WHEN {plain} THEN decode(unhex(byte), 'US-ASCII') ELSE char(92) || 'x' || byte END"
            text = f"array_join(transform(regexp_extract_all(hex({self.sql}), '..', 0), byte -> {shown}), '')"
        return text

    def reward(self) -> str:
        """The reward as a float."""
        return f"CAST({self.sql} AS DOUBLE)"

    def among(self, parameter: str, texts: Collection[str]) -> tuple[str, list[str]]:
        """Whether the label is one of these, in SQL, and the parameter; floats are compared as such.

        >>> SparkColumn("c0", "BIGINT").among("names", ["7", "ann"])
        ('CAST(c0 AS STRING) IN (SELECT value FROM {names})', ['7', 'ann'])
        """
        wanted = [text for text in texts if is_unicode(text)]
        if self.type not in _FLOATS:
            return self.named(self.text()).is_in(parameter), wanted
        numbers = f"SELECT CAST(value AS DOUBLE) FROM {{{parameter}}}"
        return f"CAST({self.sql} AS DOUBLE) IN ({numbers})", [text for text in wanted if _is_of_float(text)]


def _is_of_float(text: str) -> bool:
    """Whether a text is that of a float.

    >>> [_is_of_float(text) for text in ("7", "7.0", "0.1", "nan", "ann")]
    [True, False, True, False, False]
    """
    try:
        return label_text(float(text)) == text
    except ValueError:
        return False


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

    @property
    def ordered(self) -> bool:
        """Its rows come in any order."""
        return False

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


class SparkConnection:
    """What runs statements in a session of Spark; `{log}` in them is the table."""

    server = ""

    def __init__(self, session: Any, source: str) -> None:
        self._session, self._source = session, source
        name = source.removeprefix(_PREFIX)
        with _in_words(source):
            try:
                table = session.table(name)
                self.fields = table.schema.fields
            except _errors() as error:
                raise self._not_found(error, name) or error from None
            self._log = table.toDF(*(f"c{at}" for at in range(len(self.fields))))

    def _not_found(self, error: Any, name: str) -> InvalidLogError | None:
        match _condition(error):
            case "TABLE_OR_VIEW_NOT_FOUND":
                existing = sorted(each.name for each in self._session.catalog.listTables())
                has = listed(existing, 20) if existing else "no tables"
                return InvalidLogError(f"table {name!r} is not in Spark; its current database has {has}")
            case "COLUMN_ALREADY_EXISTS":
                return InvalidLogError(
                    f"source {self._source!r} has columns whose names differ in upper and lower case only:"
                    " set spark.sql.caseSensitive to true in the session, or rename one"
                )
        return None

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run a statement and give all rows."""
        with _in_words(self._source):
            return list(map(tuple, self._frame(sql, parameters or {}).collect()))

    def stream(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[list[Row]]:
        """Run a statement and give its rows in pieces."""
        with _in_words(self._source):
            rows = self._frame(sql, parameters or {}).toLocalIterator()
            while piece := list(map(tuple, islice(rows, _PIECE))):
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


def _errors() -> tuple[type[Exception], ...]:
    """What pyspark raises, whatever it is connected by."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 (an extra)
    from pyspark.errors import PySparkException  # noqa: PLC0415 (an extra)

    return PySparkException, Py4JError


def _condition(error: Any) -> str:
    return getattr(error, "getCondition", lambda: None)() or type(error).__name__


@contextmanager
def _in_words(source: str) -> Iterator[None]:
    try:
        yield
    except _errors() as error:
        # Spark's own message may quote a row.
        raise InvalidLogError(f"source {source!r} cannot be read by Spark ({_condition(error)})") from None


def spark_session() -> Any:
    """The active session; else a new one, by SPARK_REMOTE or SPARK_MASTER, or in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions of libraries that are not used here
        try:
            from pyspark.errors import PySparkException  # noqa: PLC0415 (an extra)
            from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("A table of Spark", "spark") from error
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        try:
            with without_output():
                return _configured(SparkSession.builder).getOrCreate()
        except PySparkException as error:
            raise _not_started(error) from None


def _configured(builder: Any) -> Any:
    master = os.environ.get("SPARK_MASTER") or "local[*]"
    options = {"spark.ui.showConsoleProgress": "false"}
    if master.startswith("local"):  # nobody else uses it: no web page, no folder in the working folder
        folder = tempfile.mkdtemp(prefix="armnesia-spark-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        options |= {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": folder}
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.master(master).appName("armnesia")


def _not_started(error: Any) -> Exception:
    condition = _condition(error)
    if condition == "JAVA_GATEWAY_EXITED":
        return MissingExtraError(
            "A table of Spark needs Java 17 or newer, which did not start: install it, such as Debian's"
            " openjdk-17-jre-headless, and set JAVA_HOME if it is not on the PATH"
        )
    return InvalidInputError(f"Spark did not start ({condition}): is SPARK_MASTER right?")


@contextmanager
def without_output() -> Iterator[None]:
    """Start Java without the terminal: it inherits the two streams, and writes to them as long as it runs."""
    kept = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as nowhere:
        try:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
        finally:
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
