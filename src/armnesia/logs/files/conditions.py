"""Conditions on the rows of files, in DuckDB's SQL."""

from dataclasses import dataclass
from typing import Any

from armnesia.logs.conditions import Condition
from armnesia.logs.files.duckdb_values import FileColumn


@dataclass(frozen=True)
class FileConditions:
    """Conditions and the columns that they are on; what they compare with is handed to DuckDB as parameters.

    >>> chosen = FileConditions((Condition.parse("page = home"),), (FileColumn("c0", "VARCHAR", True),))
    >>> chosen.satisfied, chosen.parameters
    ('coalesce(CAST(c0 AS VARCHAR) = CAST($where_0 AS VARCHAR[])[1], false)', {'where_0': ['home']})
    """

    where: tuple[Condition, ...] = ()
    columns: tuple[FileColumn, ...] = ()
    prefix: str = "where"
    """The beginning of the names of the parameters."""

    @property
    def satisfied(self) -> str:
        """Whether a row satisfies all conditions."""
        return self._first_satisfied(len(self.where))

    @property
    def parameters(self) -> dict[str, Any]:
        """What the conditions compare with."""
        return {f"{self.prefix}_{place}": list(each.values) for place, each in enumerate(self.where)}

    def no_numbers(self) -> dict[int, str]:
        """By condition: whether a row that satisfies those before it has no number to compare."""
        return {
            place: f"{self._first_satisfied(place)} AND {column.text()} IS NOT NULL"
            f" AND {column.number()} IS NULL"
            for place, (column, condition) in enumerate(zip(self.columns, self.where, strict=True))
            if condition.compares_numbers
        }

    def _first_satisfied(self, number: int) -> str:
        pairs = zip(self.columns[:number], self.where, strict=False)
        held = [column.holds(each, f"{self.prefix}_{place}") for place, (column, each) in enumerate(pairs)]
        return " AND ".join(held) or "true"
