"""The files of a log as one SQL table of decisions, whatever their format and column types."""

from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import InvalidLogError
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.files import LogFiles

_NOTHING = '"NULL"'  # the type of a Parquet column without a single value
_FLOATS = {"FLOAT", "DOUBLE"}
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_WIDE_NUMBERS = {"HUGEINT", "UHUGEINT", "DECIMAL"}
# Types whose text in DuckDB is their str() in Python, so that labels can be matched by text.
_LABELS = {"VARCHAR", "ENUM", "BOOLEAN", "DATE", "UUID", _NOTHING} | _FLOATS | _INTEGERS | _WIDE_NUMBERS

# The arithmetic of armnesia.core.units.to_units, operation by operation, in float64 and with ties to even.
_UNITS = (
    "CASE WHEN reward BETWEEN $low AND $high"
    f" THEN CAST(round_even((reward - $low) / ($high - $low) * {UNIT}::DOUBLE, 0) AS BIGINT) END"
)


@dataclass(frozen=True)
class DecisionView:
    """One row a decision: action, action_text, reward, reward_text, units and, if named, user, user_text.

    A label is missing (NULL) where the file has nothing or NaN. `units` is NULL where the reward is not
    a number of the range, so that one pass finds out whether there is anything to refuse.
    """

    files: LogFiles
    names: dict[str, str]
    reward_range: tuple[float, float]

    def query(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run SQL that reads from `decisions`, or from `numbered`, which adds the row's position.

        Numbering makes the files be read in order; leave it out where order does not matter.
        """
        low, high = self.reward_range
        columns = ", ".join(f"{expression} AS {name}" for name, expression in self._expressions().items())
        return self.files.query(
            f"WITH parsed AS (SELECT {columns} FROM {self.files.table}),"
            f" decisions AS (SELECT *, {_UNITS} AS units FROM parsed),"
            f" numbered AS (SELECT *, row_number() OVER () - 1 AS position FROM decisions) {sql}",
            low=low,
            high=high,
            **parameters,
        )

    def first_rows(self, value: str, condition: str, **parameters: Any) -> list[tuple[int, Any]]:
        """Find the first rows that satisfy a condition, and the value of a column there."""
        sql = f"SELECT position, {value} FROM numbered WHERE {condition} ORDER BY position LIMIT 4"
        return [(row, found) for row, found in self.query(sql, **parameters)]

    def described(self, role: str) -> str:
        """Name a column in a message."""
        return rules.described(role, self.names[role])

    def _expressions(self) -> dict[str, str]:
        reward, _ = self._column("reward")
        expressions = {"reward": self.reward(), "reward_text": f"CAST({reward} AS VARCHAR)"}
        for role in self.names.keys() - {"reward"}:
            expressions[f'"{role}"'] = self.label(role)
            expressions[f"{role}_text"] = self._label_text(role)
        return expressions

    def _column(self, role: str) -> tuple[str, str]:
        """The SQL name of a column and its type without parameters: DECIMAL(9,2) is a DECIMAL."""
        position = self.files.position_of(role, self.names[role])
        type_ = self.files.columns[position][1]
        return f"c{position}", type_ if type_.endswith("]") else type_.partition("(")[0]

    def label(self, role: str) -> str:
        """A label in SQL over the files' columns; NULL where it is missing."""
        column, type_ = self._column(role)
        if type_ not in _LABELS:
            raise InvalidLogError(
                f"{self.described(role)} must hold text, numbers, booleans, dates or UUIDs; it holds {type_}"
            )
        return (
            f"CASE WHEN NOT isnan({column}) THEN CAST({column} AS DOUBLE) END" if type_ in _FLOATS else column
        )

    def _label_text(self, role: str) -> str:
        label, (_, type_) = self.label(role), self._column(role)
        if type_ == "BOOLEAN":
            return f"CASE WHEN {label} THEN 'True' WHEN NOT {label} THEN 'False' END"
        return f"CAST({label} AS VARCHAR)"

    def reward(self) -> str:
        """The reward as a float in SQL over the files' columns; NULL where it is no number."""
        column, type_ = self._column("reward")
        if self.files.format.delimiter is not None:
            number = f"TRY_CAST({column} AS DOUBLE)"
            return f"CASE lower({column}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {number} END"
        if type_ in _WIDE_NUMBERS:  # through text, which is rounded correctly however many digits there are
            return f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
        if type_ not in _FLOATS | _INTEGERS | {"BOOLEAN", _NOTHING}:
            raise InvalidLogError(f"{self.described('reward')} must hold numbers; it holds {type_}")
        return f"CAST({column} AS DOUBLE)"
