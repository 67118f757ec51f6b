"""Key columns: the columns by which the rows of a log are parted into decisions."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed
from armnesia.logs.values import label_text, number_of


@dataclass(frozen=True)
class KeyColumn:
    """A column whose values tell decisions apart: each value, or each interval between declared edges.

    >>> KeyColumn.parse("country")
    KeyColumn(name='country', edges=())
    >>> KeyColumn.parse("age:18,30,50").intervals
    ('<18', '18..30', '30..50', '>=50')
    """

    name: str
    edges: tuple[float, ...] = ()
    """In rising order. An interval begins at its lower edge, and ends before the next one."""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise InvalidInputError(
                f"a key must be the name of a column, such as country or age:18,30; got {self.name!r}"
            )
        edges = tuple(map(float, self.edges))
        if not all(map(math.isfinite, edges)) or any(left >= right for left, right in pairwise(edges)):
            raise InvalidInputError(
                f"edges of key {self.name!r} must be finite numbers that rise; got {_shown(edges)}"
            )
        object.__setattr__(self, "edges", edges)

    @classmethod
    def parse(cls, key: "str | KeyColumn") -> "KeyColumn":
        """Read a name, or a name with edges behind a colon; a colon without numbers is part of the name.

        >>> KeyColumn.parse("utm:source").name
        'utm:source'
        """
        if not isinstance(key, str):
            return key if isinstance(key, KeyColumn) else cls(key)
        name, colon, edges = key.rpartition(":")
        numbers = list(map(number_of, edges.split(",")))
        if not colon or all(number is None for number in numbers):
            return cls(key)
        if None in numbers:
            raise InvalidInputError(f"edges of key {name!r} must be numbers such as 18,30,50; got {edges!r}")
        return cls(name, tuple(number for number in numbers if number is not None))

    @property
    def intervals(self) -> tuple[str, ...]:
        """The values that the key takes, if it has edges."""
        texts = list(map(_text, self.edges))
        between = [f"{left}..{right}" for left, right in pairwise(texts)]
        return (f"<{texts[0]}", *between, f">={texts[-1]}") if texts else ()

    def interval_of(self, text: str) -> str | None:
        """The interval that a text names, or in which the number lies that it reads as; None if neither.

        >>> age = KeyColumn("age", (18, 30))
        >>> age.interval_of("17.5"), age.interval_of("18..30"), age.interval_of("old")
        ('<18', '18..30', None)
        """
        number = number_of(text)
        return text if text in self.intervals else self.interval(math.nan if number is None else number)

    def interval(self, number: float) -> str | None:
        """The interval in which a number lies; None for NaN.

        >>> KeyColumn("age", (18, 30)).interval(18.0)
        '18..30'
        """
        return None if math.isnan(number) else self.intervals[bisect_right(self.edges, number)]

    def interval_sql(self, number: str) -> str:
        """The interval of a number, in SQL; NULL where it is missing.

        >>> print(KeyColumn("age", (18, 30)).interval_sql("c0"))
        CASE WHEN c0 IS NULL OR isnan(c0) THEN NULL WHEN c0 < 18.0 THEN '<18' WHEN c0 < 30.0 THEN '18..30'
        ELSE '>=30' END
        """
        *below, last = self.intervals
        cases = " ".join(
            f"WHEN {number} < {edge!r} THEN '{text}'" for edge, text in zip(self.edges, below, strict=True)
        )
        return f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL {cases} ELSE '{last}' END"

    def __str__(self) -> str:
        return f"{self.name}:{_shown(self.edges)}" if self.edges else self.name


def checked_keys(keys: Iterable["str | KeyColumn"]) -> tuple[KeyColumn, ...]:
    """Read key columns; refuse none, and one that is named twice.

    >>> [str(key) for key in checked_keys(["country", "age:18,30"])]
    ['country', 'age:18,30']
    """
    columns = tuple(map(KeyColumn.parse, keys))
    if not columns:
        raise InvalidInputError("decisions need at least one key, such as log.by('country'); got none")
    names = [column.name for column in columns]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise InvalidInputError(f"keys must be different columns; got {listed(repeated, 3)} more than once")
    return columns


def _text(edge: float) -> str:
    return str(label_text(edge))


def _shown(edges: Iterable[float]) -> str:
    return ",".join(map(_text, edges))
