"""The statements over the rows of a source: one counts them, one names the first wrong ones, one reads them.

They are written once, for all kinds of sources. Rounding, types, missing values, names, conditions and keys
mean what `sql.Column` says of them; Spark has a column of its own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from armnesia.core.identifiers import UserType
from armnesia.core.units import UNIT
from armnesia.logs.conditions import Condition
from armnesia.logs.engine import Connection
from armnesia.logs.keys import KeyColumn
from armnesia.logs.sql import Column

_SHOWN = 200
"""How many characters of a wrong value a message can show."""


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


class Chosen(NamedTuple):
    """Rows of these users, or with these ids, by their texts in the source."""

    users: Collection[str] = ()
    ids: Collection[str] = ()

    def by_role(self) -> dict[str, Collection[str]]:
        """Those that there are, by the role of the column that names them."""
        return {role: names for role, names in zip(("user", "id"), self, strict=True) if names}


@dataclass(frozen=True)
class Reading:
    """One reading of a source: its rows as a table in SQL, and the connection that runs statements over it.

    Columns have types, and are named by their roles: action, reward, user, id, key_0, key_1, …, where_0, …,
    and those of `whole_rows`, other_0, ….
    """

    connection: Connection
    table: str
    columns: Mapping[str, Column]
    parameters: dict[str, Any]
    where: Sequence[Condition] = ()
    keys: Sequence[KeyColumn] = ()
    position: str = "row_number() OVER ()"
    """The position of a row in SQL, from 1."""

    def several(self, role: str) -> list[Column]:
        """The columns of a numbered role, in order."""
        return [column for name, column in self.columns.items() if name.startswith(f"{role}_")]

    def among(self, chosen: Chosen) -> tuple[str, dict[str, Any]]:
        """Whether a row is one of those chosen, in SQL, and the parameters of a statement with it."""
        conditions, parameters = [], dict(self.parameters)
        for role, texts in chosen.by_role().items():
            name = f"chosen_{role}s"
            condition, parameters[name] = self.columns[role].among(name, texts)
            conditions.append(condition)
        return f"({' OR '.join(conditions) or 'false'})", parameters

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
        columns, total = self.columns, self.columns["action"].total
        is_chosen, parameters = self.among(chosen) if chosen else ("false", self.parameters)
        groups = {"g_action": columns["action"], **self._keys()}
        for role in by:
            one = columns[role]
            groups[f"g_{role}"] = one.named(f"CASE WHEN {is_chosen} THEN {one.sql} END") if others else one
        if others:
            groups["g_chosen"] = Column(f"coalesce({is_chosen}, false)", "BOOLEAN")
        table, kept = self.table, self.kept()
        if positions:
            table, kept = f"({self._with_positions()})", "position IN (SELECT unnest($positions))"
        if chosen is not None and not others:
            kept = f"{is_chosen} AND {kept}"
        valued = ", ".join(f"{each.sql} AS {name}" for name, each in groups.items())
        names = ", ".join(groups)
        texts = [each.named(name).text() for name, each in groups.items() if name != "g_chosen"]
        texts.append("g_chosen" if others else "true")
        found = self.connection.rows(
            f"SELECT {', '.join(texts)}, n, units, valid, products FROM ("
            f"SELECT {names}, count(*) AS n, {total.format('units')} AS units, count(units) AS valid,"
            f" {total.format(f'units * ({UNIT} - units)')} AS products FROM ("
            f"SELECT {valued}, {self._units(reward_range)} AS units FROM {table} WHERE {kept}"
            f") AS valued GROUP BY {names}) AS added",
            {**parameters, "positions": list(positions)},
        )
        tallies, n_keys = [], len(self.keys)
        for action, *rest in found:
            labels = dict(zip(by, rest[n_keys:], strict=False))
            is_asked_for, *sums = rest[n_keys + len(by) :]
            named = (tuple(rest[:n_keys]), labels.get("user"), labels.get("id"), bool(is_asked_for))
            tallies.append(Tally(action, *named, *(int(each or 0) for each in sums)))
        return tallies

    def labels(self, role: str, among: Collection[str] | None = None) -> Iterator[list[str]]:
        """The distinct texts of a role, or those of some texts that it has, in pieces; one may come twice."""
        column = self.columns[role]
        distinct = f"SELECT DISTINCT {column.sql} AS v FROM {self.table} WHERE {self.kept()}"
        texts = f"SELECT {column.named('v').text()} AS label FROM ({distinct}) AS found"
        wanted = "true" if among is None else column.named("label").is_in("labels")
        sql = f"SELECT label FROM ({texts}) AS texts WHERE label IS NOT NULL AND {wanted}"
        for piece in self.connection.stream(sql, {**self.parameters, "labels": sorted(among or ())}):
            yield [label for (label,) in piece]

    def rows(self, reward_range: tuple[float, float]) -> Iterator[list[tuple[Any, ...]]]:
        """All rows in pieces: position, action, units, user, id, key texts, and if read the other columns.

        Of a source with ids, or whose other columns are read, equal rows are one, with their number at the
        end; its position is the first. Such rows come by their positions.
        """
        labels = [self.columns.get(role, Column("NULL", "VARCHAR")) for role in ("user", "id")]
        texts = [each.text() for each in (self.columns["action"], *labels, *self._keys().values())]
        texts.insert(1, self._units(reward_range))
        others = [_told(each) for each in self.several("other")]
        if others:  # each text with its length, so that they can be joined
            sized = (f"coalesce(length({text}) || ':' || {text}, '-')" for text in others)
            texts.append(f"concat({', '.join(sized)})")
        named = ", ".join(f"{text} AS r{place}" for place, text in enumerate(texts))
        sql = f"SELECT position, {named} FROM ({self._with_positions()}) AS log WHERE {self.kept()}"
        if others or "id" in self.columns:
            names = ", ".join(f"r{place}" for place in range(len(texts)))
            grouped = f"SELECT min(position) AS place, {names}, count(*) FROM ({sql}) AS log GROUP BY {names}"
            sql = f"{grouped} ORDER BY place"
        yield from self.connection.stream(sql, self.parameters)

    def first(
        self, value: str, condition: str, n_conditions: int | None = None, **parameters: Any
    ) -> list[tuple[int, Any]]:
        """The first rows that satisfy a condition, and a value of each."""
        sql = (
            f"SELECT position, {value} FROM ({self._with_positions()}) AS log"
            f" WHERE {self.kept(n_conditions)} AND {condition} ORDER BY position LIMIT 4"
        )
        found = self.connection.rows(sql, {**self.parameters, **parameters})
        return [(int(position), each) for position, each in found]

    def first_wrong(
        self, role: str, texts: Collection[str] = (), reward_range: tuple[float, float] = (0.0, 1.0)
    ) -> list[tuple[int, Any]]:
        """The first rows without a label, or with one of these, or with no reward; and the value there."""
        column = self.columns[role]
        label = self._keys().get(f"g_{role}", column)
        wrong = column.named(label.text()).is_in("texts") if texts else f"{label.text()} IS NULL"
        if role == "reward":
            wrong = f"{column.units(reward_range)} IS NULL"
        is_number = column.holds_numbers and (role == "reward" or label is not column)
        shown = column.number() if is_number else f"left({column.text()}, {_SHOWN})"
        return self.first(shown, wrong, texts=list(texts))

    def wrong_names(self, role: str) -> list[tuple[int, Any]]:
        """The first rows with a user, or an id, that cannot be one."""
        return self.first("'a name'", self.columns[role].is_wrong()) if role in self.columns else []

    def user_type(self) -> UserType | None:
        """INTEGER if all users are integers as usually written, TEXT if not; None if there are none."""
        if "user" not in self.columns:
            return None
        users = self.columns["user"]
        is_integer = f"SELECT bool_and({users.is_usual_integer()}) FROM {self.table}"
        sql = f"{is_integer} WHERE {self.kept()} AND {users.as_name(UserType.TEXT).text()} IS NOT NULL"
        ((found,),) = self.connection.rows(sql, self.parameters)
        return None if found is None else UserType.INTEGER if found else UserType.TEXT

    def contradicting_id(self, reward_range: tuple[float, float] = (0.0, 1.0)) -> int | None:
        """The first row whose id another row has, with another action, reward, user or key."""
        labels = [self.columns[role] for role in ("action", "user") if role in self.columns]
        texts = [each.text() for each in (*labels, *self._keys().values())]
        told = f"({', '.join([self._units(reward_range), *texts])})"
        found = self.connection.rows(
            f"SELECT min(position) FROM (SELECT position, {self.columns['id'].text()} AS own, {told} AS told"
            f" FROM ({self._with_positions()}) AS log WHERE {self.kept()}) AS log GROUP BY own"
            " HAVING min(told) IS DISTINCT FROM max(told) ORDER BY 1 LIMIT 1",
            self.parameters,
        )
        return int(found[0][0]) if found else None

    def check_conditions(self) -> None:
        """Refuse a value that is compared with a number and is none; a condition sees what others left."""
        for place, (condition, column) in enumerate(zip(self.where, self.several("where"), strict=True)):
            if condition.compares_numbers and not column.holds_numbers:
                is_none = f"{column.text()} IS NOT NULL AND {column.number()} IS NULL"
                offences = self.first(column.text(), is_none, n_conditions=place)
                if offences:
                    raise condition.no_numbers(offences)

    def ranges(self, role: str) -> list[tuple[float, float]]:
        """The lowest and the highest number of a column, for each action and key that has any."""
        column = self.columns[role]
        groups = ", ".join(each.sql for each in (self.columns["action"], *self._keys().values()))
        number = f"CASE WHEN {column.is_finite.format(column.number())} THEN {column.number()} END"
        rows = f"{self.table} WHERE {self.kept()}"
        sql = f"SELECT min({number}), max({number}) FROM {rows} GROUP BY {groups} HAVING count({number}) > 0"
        return [(low, high) for low, high in self.connection.rows(sql, self.parameters)]

    def _units(self, reward_range: tuple[float, float]) -> str:
        """The reward in units; NULL where a row cannot be counted, for its reward, user or id."""
        units, named = self.columns["reward"].units(reward_range), self.columns.keys() & {"user", "id"}
        wrong = sorted({self.columns[role].is_wrong() for role in named} - {"false"})
        return f"CASE WHEN NOT ({' OR '.join(wrong)}) THEN {units} END" if wrong else units

    def _keys(self) -> dict[str, Column]:
        """The key columns: values, or the interval that a number lies in."""
        pairs = zip(self.keys, self.several("key"), strict=True)
        return {
            f"g_key_{place}": Column(key.interval_sql(each.number()), "VARCHAR") if key.edges else each
            for place, (key, each) in enumerate(pairs)
        }

    def kept(self, number: int | None = None) -> str:
        """Whether a row satisfies the conditions, or so many of them."""
        pairs = zip(self.where[:number], self.several("where"), strict=False)
        held = [column.holds(each, f"where_{place}") for place, (each, column) in enumerate(pairs)]
        return " AND ".join(held) or "true"

    def _with_positions(self) -> str:
        return f"SELECT *, {self.position} AS position FROM {self.table}"


def _told(column: Column) -> str:
    """The text of a value by which a row is known: a boolean is the same in every program's spelling."""
    text = column.text()
    if column.wrong is not None or column.type not in ("BOOLEAN", "VARCHAR"):
        return text
    return f"CASE lower({text}) WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END"
