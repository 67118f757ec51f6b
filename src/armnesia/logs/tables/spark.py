"""Decisions in a table of Spark: of a catalog, a view, or files that Spark reads.

Rows stay in Spark, which adds them up. Names of people are joined from a small table of their own: they stand
in no statement and no plan.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import SHORT_FLOATS_EXACT_BELOW
from armnesia.logs import rules
from armnesia.logs.columns import Columns
from armnesia.logs.conditions import Condition
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.limits import CHUNK, in_chunks
from armnesia.logs.log import Log
from armnesia.logs.rows import Selection
from armnesia.logs.tables.source import TableSource, no_order, no_table
from armnesia.logs.tables.spark_session import spark_session
from armnesia.logs.tables.spark_values import SparkColumn
from armnesia.logs.values import label_text

_PREFIX = "spark:"
_ORDERED = {"tinyint", "smallint", "int", "bigint", "string", "date", "timestamp"}
"""Types of a column by which rows may be ordered: their text reads as the same value again."""
_PIECE = 256
"""How many rows become Python values at a time."""
_ANY_RANGE = (0.0, 1.0)
"""Where rows are grouped and rewards do not matter."""


class SparkSource(TableSource):
    """A table or view by its name in Spark, `spark:catalog.database.table`."""

    _parameter_mark = ":p{}"
    _divided = "div"

    def __init__(self, name: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        rules.refuse_table(table)
        self._spark_name = name.removeprefix(_PREFIX)
        if not self._spark_name.strip():
            raise InvalidInputError(
                f"a table of Spark must be named, such as spark:catalog.database.table; got {name!r}"
            )
        self._session = spark_session()
        self._column_of: dict[str, SparkColumn] = {}
        super().__init__(name, columns, table=self._spark_name, whole_rows=whole_rows)
        self._named = "{log}"  # stands for the table in a statement, without its name
        for role, column in self.columns.named().items():
            self._column_of[column].check(role, self.described(role))
        for column in self._others or ():
            self._column_of[column].check("", f"column {column!r}, without an id column,")
        user = self.columns.named().get("user")
        if user is not None and self._column_of[user].type == "float":
            self.user_integers_below = SHORT_FLOATS_EXACT_BELOW

    @property
    def description(self) -> Mapping[str, Any]:
        """The name of the table, which is part of the location."""
        return {**super().description, "table": None}

    def _available(self) -> list[str]:
        with self._readable():
            try:
                table = self._session.table(self._spark_name)
                fields = table.schema.fields
            except self._errors() as error:
                if getattr(error, "getCondition", lambda: None)() == "TABLE_OR_VIEW_NOT_FOUND":
                    existing = sorted(each.name for each in self._session.catalog.listTables())
                    raise no_table(self._spark_name, self._location, existing) from None
                raise
        names = [field.name for field in fields]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise InvalidLogError(f"column {repeated[0]!r} is in the source more than once")
        # Spark takes names that differ in case for the same; numbers have no case.
        self._frame = table.toDF(*(f"c{place}" for place in range(len(names))))
        for place, field in enumerate(fields):
            self._column_of[field.name] = SparkColumn.of(f"c{place}", field)
        return names

    def read(self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]) -> Log:
        """Check every row by one group-by, which also gives the statistics; the rows stay in Spark."""
        return self.tallied_log(actions, reward_range)

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> "SparkSource":
        """The same table with key columns."""
        keyed = super().keyed_by(keys)
        for key in keys:
            self._column_of[key.name].check("reward" if key.edges else "key", key.described)
        return keyed

    def filtered(self, where: tuple[Condition, ...]) -> "SparkSource":
        """The same table without the rows that do not satisfy these conditions."""
        chosen = super().filtered(where)
        for condition in where:
            self._column_of[condition.column].check("where", condition.described)
        return chosen

    def distinct_actions(self) -> Iterable[Any]:
        """Ask Spark for the distinct actions."""
        return (
            (each.action for each in self.tallies(_ANY_RANGE)) if self.where else super().distinct_actions()
        )

    def has_several_values(self, name: str) -> bool:
        """Ask Spark."""
        if not self.where:
            return super().has_several_values(name)
        found = self.keyed_by((KeyColumn(name),)).tallies(_ANY_RANGE)
        return len({each.keys for each in found} - {(None,)}) > 1

    def user_texts(self) -> Iterator[list[str | None]]:
        """Ask Spark for the distinct users."""
        if not all(map(self._decides, self.where)):
            yield from super().user_texts()
            return
        user = self.selected(self.columns.named()["user"])
        sql = self._filtered_sql(f"SELECT DISTINCT {user} FROM {self._quoted}", "", ())
        for rows in in_chunks(self._pieces(*sql), CHUNK):
            yield [label_text(value) for (value,) in rows]

    def _name(self, name: str) -> str:
        return self._column_of[name].name

    def selected(self, name: str) -> str:
        """A column in SQL."""
        return self._column_of[name].selected()

    def _number(self, name: str) -> str:
        return self._column_of[name].number()

    def _float(self, name: str) -> str:
        return self._column_of[name].number()

    def _size(self, name: str) -> str:
        return self._column_of[name].size()

    def _mark(self, number: int) -> str:
        return f":p{number}"

    def _rounded(self, number: str) -> str:
        return f"CAST(rint({number}) AS BIGINT)"

    def _sum(self, number: str) -> str:
        return f"try_sum({number})"  # NULL, not a wrong number, if it is too large

    def _own_names(self) -> tuple[str, str | None]:
        try:
            found = self._session.catalog.getTable(self._spark_name)
        except self._errors():  # files, which are named by a path
            return f"{_PREFIX}{self._spark_name}", None
        parts = (found.catalog, *(found.namespace or ()), found.name)
        name = ".".join(part for part in parts if part)
        distinguishes_case = self._session.conf.get("spark.sql.caseSensitive") == "true"
        return f"{_PREFIX}{name if distinguishes_case else name.lower()}", None

    def _stored_value(self, column: str, highest: str) -> str:
        type_ = self._column_of[column].type
        if type_ not in _ORDERED:
            raise no_order(rules.described("ordered-by", column), f"the type {type_}")
        # The text of a timestamp depends on the time zone of the session.
        return f"CAST({f'unix_micros({highest})' if type_ == 'timestamp' else highest} AS STRING)"

    def _order_faults(self, column: str) -> tuple[str, ...]:
        return (f"count(*) - count({self._name(column)})",)

    def _refuse_order(self, column: str, *faults: Any) -> None:
        if any(faults):
            raise no_order(rules.described("ordered-by", column), "a missing value")

    def _compared(self, column: str, operator: str, value: str) -> str:
        assert self._order is not None  # it is the column
        type_ = self._column_of[self._order].type
        if type_ == "timestamp":
            return f"{column} {operator} timestamp_micros(CAST({value} AS BIGINT))"
        return f"{column} {operator} CAST({value} AS {type_})"

    def _pieces(
        self, sql: str, parameters: tuple[Any, ...] = (), *, by_index: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        sql, parameters = self._bounded(sql, parameters)
        numbered = {f"p{number}": value for number, value in enumerate(parameters, start=1)}
        frames = {name: value for name, value in numbered.items() if isinstance(value, type(self._frame))}
        values = {name: value for name, value in numbered.items() if name not in frames}
        with self._readable():
            rows = self._session.sql(sql, args=values, log=self._frame, **frames).toLocalIterator()
            while piece := [_plain(row) for row in islice(rows, _PIECE)]:
                yield piece

    def _selected_values(self, column: SparkColumn, texts: Iterable[str]) -> Any:
        """A table of the values that have these texts, which Spark sends to every worker.

        It is told so: it does not know how small the table is, and would sort all rows of the log instead.
        """
        values = {value for text in texts if (value := column.value_of(text)) is not None}
        _, type_ = column.compared()
        with self._readable():
            frame = self._session.createDataFrame([(value,) for value in values], f"value {type_}")
            return frame.hint("broadcast")

    def _user_if_selected(
        self, user: str, selection: Selection | None, parameter: int
    ) -> tuple[str, str, tuple[Any, ...]]:
        column = self._column_of[user]
        if selection is None:
            return column.selected(), self._quoted, ()
        compared, _ = column.compared()
        joined = f"{self._quoted} LEFT JOIN {{p{parameter}}} AS chosen ON {compared} = chosen.value"
        return "chosen.value", joined, (self._selected_values(column, selection.texts),)

    def _condition(
        self, column: str, selection: Selection, parameter: int = 1
    ) -> tuple[str, tuple[Any, ...]]:
        chosen = self._column_of[column]
        if selection.plain is not None and chosen.type == "binary":
            return f"{chosen.name} IS NOT NULL", ()
        compared, _ = chosen.compared()
        found = f"{compared} IN (SELECT value FROM {{p{parameter}}})"
        values = self._selected_values(chosen, selection.texts)
        if selection.plain is None or chosen.type != "string":
            return found, (values,)
        other = f" OR NOT {compared} RLIKE :p{parameter + 1}"
        return found + other, (values, rf"\A({selection.plain})\z")

    def _decides(self, condition: Condition) -> bool:
        column = self._column_of[condition.column]
        return column.holds_numbers if condition.compares_numbers else column.has_text

    def _satisfied(self, condition: Condition, parameter: int) -> tuple[str, str, tuple[Any, ...]]:
        column = self._column_of[condition.column]
        present = f"{column.name} IS NOT NULL"
        if not self._decides(condition):
            return present, present if condition.compares_numbers else "", ()
        compared = column.number() if condition.compares_numbers else column.text()
        marks = ", ".join(f":p{parameter + place}" for place in range(len(condition.values)))
        marks = f"({marks})" if condition.operator == "in" else marks
        return f"{compared} {condition.operator} {marks}", "", condition.values

    def _errors(self) -> tuple[type[Exception], ...]:
        """What pyspark raises, whatever it is connected by."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 (an extra)
        from pyspark.errors import PySparkException  # noqa: PLC0415 (an extra)

        return PySparkException, Py4JError

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except self._errors() as error:
            # Spark's own message may quote a row.
            condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
            raise InvalidLogError(
                f"source {self._location!r} cannot be read by Spark ({condition})"
            ) from None


def _plain(row: Any) -> tuple[Any, ...]:
    """A row without types of Python that change."""
    return tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)
