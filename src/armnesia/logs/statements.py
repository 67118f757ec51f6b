"""The statements over the rows of a source: one counts them, one names the first wrong ones, one reads them.

They are written once, for all kinds of sources. Rounding, types, missing values, names, conditions and keys
mean what `sql.Column` says of them; Spark has a column of its own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from armnesia.core.identifiers import UserType
from armnesia.core.units import UNIT
from armnesia.logs.conditions import Condition
from armnesia.logs.engine import Connection
from armnesia.logs.keys import KeyColumn
from armnesia.logs.sql import Column, NameColumn

_SHOWN = 200
"""How many characters of a wrong value a message can show."""


@dataclass(frozen=True)
class Relation:
    """The rows of a source as a table in SQL, with typed columns that are named by their roles.

    These are action, reward, user, id, key_0, key_1, …, where_0, …, and those of `whole_rows`, other_0, ….
    """

    table: str
    columns: Mapping[str, Column]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def several(self, role: str) -> list[Column]:
        """The columns of a numbered role, in order."""
        return [column for name, column in self.columns.items() if name.startswith(f"{role}_")]

    def is_wrong_name(self) -> str:
        """Whether a row has a user who cannot be one of the vault's, in SQL."""
        users = self.columns.get("user")
        return users.is_wrong() if isinstance(users, NameColumn) else "false"

    def units(self, reward_range: tuple[float, float]) -> str:
        """The reward in units; NULL where a row cannot be counted, for its reward or its user."""
        wrong, units = self.is_wrong_name(), self.columns["reward"].units(reward_range)
        return units if wrong == "false" else f"CASE WHEN NOT {wrong} THEN {units} END"

    def among(self, chosen: "Chosen | None") -> tuple[str, dict[str, list[str]]]:
        """Whether a row is one of those chosen, in SQL, and its parameters."""
        conditions, parameters = [], {}
        for role, texts in (("user", chosen.users), ("id", chosen.ids)) if chosen else ():
            if texts:
                name = f"chosen_{role}s"
                condition, parameters[name] = self.columns[role].among(name, texts)
                conditions.append(condition)
        return f"({' OR '.join(conditions) or 'false'})", parameters


class Tally(NamedTuple):
    """Rows that were added up: the labels that they share, and their sums."""

    action: str | None
    key: tuple[str | None, ...]
    user: str | None
    """None as well where users are not told apart."""
    id: str | None
    chosen: bool
    """Whether they are rows that were asked for, if others were added up too."""
    number: int
    units: int
    valid: int
    """How many of them have a number of the reward range as their reward, and a user who can be one."""
    products: int
    """The sum of u·(10⁹ − u) over the units u of each row."""

    @property
    def is_binary(self) -> bool:
        """Whether every reward is the lowest or the highest."""
        return not self.products


class Wrong(Enum):
    """What can be wrong with the value of a column."""

    MISSING = "missing"
    UNDECLARED = "among given texts, which are not declared"
    NO_NUMBER = "there, and no number"
    NOT_FINITE = "missing, NaN or infinite"
    OUTSIDE = "outside the reward range"
    NO_NAME = "no name of the type that the vault's people have"


class Chosen(NamedTuple):
    """Rows of these users, or with these ids, by their texts in the source."""

    users: Collection[str] = ()
    ids: Collection[str] = ()


class Reading:
    """One reading of a source: its relation, and the connection that runs statements over it."""

    def __init__(
        self,
        connection: Connection,
        relation: Relation,
        where: Sequence[Condition],
        keys: Sequence[KeyColumn],
        position: str,
    ) -> None:
        self._connection, self.relation = connection, relation
        self._where, self._key_columns, self._position = where, keys, position

    def tallies(
        self,
        reward_range: tuple[float, float],
        *,
        chosen: Chosen | None = None,
        others: bool = False,
        by: Collection[str] = (),
        positions: Sequence[int] = (),
    ) -> list[Tally]:
        """Add up all rows by action and key, or those that are chosen; with `others`, these and the rest.

        Chosen rows are told apart by the roles `by`, "user" or "id"; without a choice, all rows are.
        """
        columns = self.relation.columns
        is_chosen, parameters = self.relation.among(chosen)
        total = columns["action"].total
        groups = {"g_action": columns["action"], **self._keys()}
        for role in by:
            one = columns[role]
            groups[f"g_{role}"] = one.named(f"CASE WHEN {is_chosen} THEN {one.sql} END") if others else one
        if others:
            groups["g_chosen"] = Column(f"coalesce({is_chosen}, false)", "BOOLEAN")
        table, kept = self.relation.table, self._kept()
        if positions:
            table, kept = f"({self._with_positions()})", "position IN (SELECT unnest($positions))"
        if chosen is not None and not others:
            kept = f"{is_chosen} AND {kept}"
        valued = ", ".join(f"{each.sql} AS {name}" for name, each in groups.items())
        names = ", ".join(groups)
        texts = [each.named(name).text() for name, each in groups.items() if name != "g_chosen"]
        texts.append("g_chosen" if others else "true")
        found = self._connection.rows(
            f"SELECT {', '.join(texts)}, n, units, valid, products FROM ("
            f"SELECT {names}, count(*) AS n, {total.format('units')} AS units, count(units) AS valid,"
            f" {total.format(f'units * ({UNIT} - units)')} AS products FROM ("
            f"SELECT {valued}, {self.relation.units(reward_range)} AS units FROM {table} WHERE {kept}"
            f") AS valued GROUP BY {names}) AS added",
            {**self._parameters(), **parameters, "positions": list(positions)},
        )
        tallies, n_keys = [], len(self._key_columns)
        for action, *rest in found:
            labels = dict(zip(by, rest[n_keys:], strict=False))
            is_asked_for, *sums = rest[n_keys + len(by) :]
            named = (tuple(rest[:n_keys]), labels.get("user"), labels.get("id"), bool(is_asked_for))
            tallies.append(Tally(action, *named, *(int(each or 0) for each in sums)))
        return tallies

    def labels(self, role: str, among: Collection[str] | None = None) -> Iterator[list[str]]:
        """The distinct texts of a role, or those of some texts that it has, in pieces; one may come twice."""
        column = self.relation.columns[role]
        distinct = f"SELECT DISTINCT {column.sql} AS v FROM {self.relation.table} WHERE {self._kept()}"
        texts = f"SELECT {column.named('v').text()} AS label FROM ({distinct}) AS found"
        wanted = "true" if among is None else column.named("label").is_in("labels")
        sql = f"SELECT label FROM ({texts}) AS texts WHERE label IS NOT NULL AND {wanted}"
        for piece in self._connection.stream(sql, {**self._parameters(), "labels": sorted(among or ())}):
            yield [label for (label,) in piece]

    def rows(self, reward_range: tuple[float, float]) -> Iterator[list[tuple[Any, ...]]]:
        """All rows in pieces: position, action, units, user, id, key texts, and if read the other columns.

        Of a source with ids, or whose other columns are read, equal rows are one, with their number at the
        end; its position is the first. Such rows come by their positions.
        """
        columns = self.relation.columns
        none = Column("NULL", "VARCHAR")
        labels = [columns.get(role, none) for role in ("user", "id")]
        keys = [each.text() for each in self._keys().values()]
        texts = [
            columns["action"].text(),
            self.relation.units(reward_range),
            *(each.text() for each in labels),
            *keys,
        ]
        others = [_told(each) for each in self.relation.several("other")]
        if others:  # each text with its length, so that they can be joined
            sized = (f"coalesce(length({text}) || ':' || {text}, '-')" for text in others)
            texts.append(f"concat({', '.join(sized)})")
        named = ", ".join(f"{text} AS r{place}" for place, text in enumerate(texts))
        sql = f"SELECT position, {named} FROM ({self._with_positions()}) AS log WHERE {self._kept()}"
        if others or "id" in columns:
            names = ", ".join(f"r{place}" for place in range(len(texts)))
            grouped = f"SELECT min(position) AS place, {names}, count(*) FROM ({sql}) AS log GROUP BY {names}"
            sql = f"{grouped} ORDER BY place"
        yield from self._connection.stream(sql, self._parameters())

    def first(
        self,
        value: str,
        condition: str,
        n_conditions: int | None = None,
        **parameters: Any,
    ) -> list[tuple[int, Any]]:
        """The first rows that satisfy a condition, and a value of each."""
        sql = (
            f"SELECT position, {value} FROM ({self._with_positions()}) AS log"
            f" WHERE {self._kept(n_conditions)} AND {condition} ORDER BY position LIMIT 4"
        )
        found = self._connection.rows(sql, {**self._parameters(), **parameters})
        return [(int(position), each) for position, each in found]

    def first_wrong(
        self, role: str, fault: Wrong, reward_range: tuple[float, float], texts: Collection[str] = ()
    ) -> list[tuple[int, Any]]:
        """The first rows with a fault in a column, and the value there."""
        column = self.relation.columns[role]
        text, number = column.text(), column.reward()
        shown, condition = {
            Wrong.MISSING: ("NULL", f"{text} IS NULL"),
            Wrong.UNDECLARED: (f"left({text}, {_SHOWN})", column.named(text).is_in("undeclared")),
            Wrong.NO_NUMBER: (f"left({text}, {_SHOWN})", f"{text} IS NOT NULL AND {number} IS NULL"),
            Wrong.NOT_FINITE: (number, f"({number} IS NULL OR NOT {column.is_finite.format(number)})"),
            Wrong.OUTSIDE: (number, f"{column.units(reward_range)} IS NULL"),
            Wrong.NO_NAME: ("'a name'", self.relation.is_wrong_name()),
        }[fault]
        return self.first(shown, condition, undeclared=list(texts))

    def user_type(self) -> UserType | None:
        """INTEGER if all users are integers as usually written, TEXT if not; None if there are none."""
        if "user" not in self.relation.columns:
            return None
        users = NameColumn.of(self.relation.columns["user"], UserType.TEXT)
        is_integer = f"SELECT bool_and({users.is_usual_integer()}) FROM {self.relation.table}"
        sql = f"{is_integer} WHERE {self._kept()} AND {users.text()} IS NOT NULL"
        ((found,),) = self._connection.rows(sql, self._parameters())
        return None if found is None else UserType.INTEGER if found else UserType.TEXT

    def odd_names(self) -> tuple[int | None, int | None]:
        """The first row whose user looks like a float, and the first whose user has blanks around it."""
        users = self.relation.columns.get("user")
        if not isinstance(users, NameColumn) or users.user_type is UserType.INTEGER:
            return None, None
        odd = [users.looks_like_float(), users.has_blanks()]
        some = ", ".join(f"coalesce(bool_or({each}), false)" for each in odd)
        sql = f"SELECT {some} FROM {self.relation.table} WHERE {self._kept()}"
        (found,) = self._connection.rows(sql, self._parameters())
        looks_like_float, has_blanks = (
            self.first("NULL", each)[0][0] if is_there else None
            for each, is_there in zip(odd, found, strict=True)
        )
        return looks_like_float, has_blanks

    def contradicting_ids(self, reward_range: tuple[float, float] = (0.0, 1.0)) -> tuple[int, int] | None:
        """The first row that has the id of an earlier one and another action, reward, user or key.

        Both positions, that of the earlier row first.
        """
        columns, kept = self.relation.columns, self._kept()
        users = [columns["user"].text()] if "user" in columns else []
        keys = [each.text() for each in self._keys().values()]
        told = ", ".join([columns["action"].text(), self.relation.units(reward_range), *users, *keys])
        own_id = columns["id"].text()
        repeated = f"SELECT {own_id} FROM {self.relation.table} WHERE {kept} GROUP BY ALL HAVING count(*) > 1"
        rows = (
            f"SELECT position, {own_id} AS own_id, ({told}) AS told"
            f" FROM ({self._with_positions()}) AS log WHERE {kept} AND {own_id} IN ({repeated})"
        )
        in_order = "OVER (PARTITION BY own_id ORDER BY position)"
        sql = (
            f"SELECT earlier, position FROM (SELECT *, first_value(position) {in_order} AS earlier,"
            f" told IS DISTINCT FROM first_value(told) {in_order} AS differs FROM ({rows}) AS log) AS log"
            " WHERE differs ORDER BY position LIMIT 1"
        )
        found = self._connection.rows(sql, self._parameters())
        return (int(found[0][0]), int(found[0][1])) if found else None

    def check_conditions(self) -> None:
        """Refuse a value that is compared with a number and is none; a condition sees what others left."""
        for place, (condition, column) in enumerate(self._conditions()):
            if condition.compares_numbers and not column.holds_numbers:
                offences = self.first(column.text(), column.is_no_number(), n_conditions=place)
                if offences:
                    raise condition.no_numbers(offences)

    def ranges(self, column: Column) -> list[tuple[float | None, float | None]]:
        """The lowest and the highest number of a column, for each action and key."""
        groups = ", ".join(
            [self.relation.columns["action"].sql, *(each.sql for each in self._keys().values())]
        )
        value = column.propensity()
        rows = f"{self.relation.table} WHERE {self._kept()}"
        sql = f"SELECT min({value}), max({value}) FROM {rows} GROUP BY {groups}"
        return [(low, high) for low, high in self._connection.rows(sql, self._parameters())]

    def _keys(self) -> dict[str, Column]:
        """The key columns: values, or the interval that a number lies in."""
        pairs = zip(self._key_columns, self.relation.several("key"), strict=True)
        return {
            f"g_key_{place}": Column(key.interval_sql(each.reward()), "VARCHAR") if key.edges else each
            for place, (key, each) in enumerate(pairs)
        }

    def _conditions(self) -> list[tuple[Condition, Column]]:
        return list(zip(self._where, self.relation.several("where"), strict=True))

    def _kept(self, number: int | None = None) -> str:
        """Whether a row satisfies the conditions, or so many of them."""
        pairs = enumerate(self._conditions()[:number])
        held = [column.holds(each, f"where_{place}") for place, (each, column) in pairs]
        return " AND ".join(held) or "true"

    def _with_positions(self) -> str:
        return f"SELECT *, {self._position} AS position FROM {self.relation.table}"

    def _parameters(self) -> dict[str, Any]:
        compared = {f"where_{place}": list(each.values) for place, each in enumerate(self._where)}
        return {**self.relation.parameters, **compared}


def _told(column: Column) -> str:
    """The text of a value by which a row is known: a boolean is the same in every program's spelling."""
    text = column.text()
    if isinstance(column, NameColumn) or column.type not in ("BOOLEAN", "VARCHAR"):
        return text
    return f"CASE lower({text}) WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END"
