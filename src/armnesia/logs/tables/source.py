"""Decisions in a table of a database: what all databases have in common.

A log is added up by the database, in one statement that all of them understand; a vault reads the rows by a
cursor. No statement reads an index, because one that is damaged, or was made by another version of a
collation, would hide rows; except that a server looks people up by an index where names are no text.
"""

import copy
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

from armnesia.core.actions import checked_actions
from armnesia.core.errors import ChangedSourceError, InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.files import Stamp
from armnesia.core.identifiers import UserType, are_plain
from armnesia.core.messages import listed
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.columns import Columns, quoted
from armnesia.logs.conditions import Condition, rows_that_satisfy
from armnesia.logs.counting import NOTHING_LEFT_OUT, CountedRows, LeftOut, RowRules
from armnesia.logs.key_columns import KeyCodes, KeyColumn
from armnesia.logs.limits import CHUNK, LONGEST_TEXT, in_chunks
from armnesia.logs.manifests import Changes, Manifest, TableRange
from armnesia.logs.propensities import Ranges
from armnesia.logs.rows import RawRows, Selection, raw_rows_of
from armnesia.logs.rules import check_found
from armnesia.logs.source import Source
from armnesia.logs.tables.log import TableLog
from armnesia.logs.tallies import Tally, statistics_of_tallies
from armnesia.logs.values import arm_of_text, label_text, sorted_if_comparable, with_decimals_as_written

_TINY = 1e-12
"""A smaller part of the range is rounded to 0 units. Not computed: PostgreSQL refuses to underflow."""

_ABOVE, _UP_TO = "\0above", "\0up_to"
"""Stand for parameters in SQL until it is run: no name can have such characters."""


_HIGH = 2**30
"""Products of rewards are added up in two parts: multiples of this, and rests."""


class _Extent(NamedTuple):
    """The highest value of the column that rows are ordered by, as a manifest holds it, and their number."""

    highest: str | int | None
    n_rows: int


class TableSource(Source):
    """A table or view."""

    _parameter_mark: ClassVar[str]
    """A parameter in SQL by its number."""
    _divided: ClassVar[str] = "/"
    """The division of integers, without rest."""

    def __init__(self, location: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        if table is None:
            raise InvalidInputError(
                "a database needs the name of a table, such as table='clicks' (--table clicks); got none"
            )
        self._location = location
        self._table = table
        self._named = ".".join(map(quoted, table_parts(table)))
        self._limits: tuple[str, ...] = ()
        available = self._available()
        super().__init__(columns, available, whole_rows=whole_rows)
        self._names = available
        self._order: str | None = None
        self._highest_known: TableRange | None = None
        self._above: str | int | None = None
        self._up_to: str | int | None = None
        whole, reward = self.reads_whole_rows, self.columns.reward
        self._read = available if whole else list(dict.fromkeys(self.columns.named().values()))
        self._others = sorted(name for name in available if name != reward) if whole else None

    def with_keys(self, names: tuple[str, ...]) -> Self:
        """The same table, of which key columns are read as well."""
        keyed = super().with_keys(names)
        check_found("key", names, self._names)
        keyed._read = list(dict.fromkeys([*self._read, *names]))
        return keyed

    @property
    def description(self) -> Mapping[str, Any]:
        """The URL, without a password, and the table."""
        return {
            "kind": "table",
            "location": self._location,
            "table": self._table,
            "columns": vars(self.columns),
            **self.described_filter(),
            **({} if self._order is None else {"ordered_by": self._order}),
        }

    @property
    def quoted_table(self) -> str:
        """The table in SQL."""
        return self._named

    @property
    def _quoted(self) -> str:
        """What rows are selected from, in SQL: the table, or a part of it."""
        table = self.named_to_read()
        if not self._limits:
            return table
        return f"(SELECT * FROM {table} WHERE {' AND '.join(self._limits)}) AS part"

    def named_to_read(self) -> str:
        """The table in SQL, with what else has to stand where it is named."""
        return self._named

    def condition(self, selection: Selection) -> tuple[str, tuple[Any, ...]]:
        """SQL that holds for every row of a selection, and for others, with its parameters."""
        return self._condition(self.columns.named()[selection.role], selection)

    def filtered(self, where: tuple[Condition, ...]) -> Self:
        """The same table without the rows that do not satisfy these conditions."""
        names = [condition.column for condition in where]
        check_found("where", names, self._names)
        chosen = copy.copy(self)
        chosen.where = (*self.where, *where)
        chosen._read = list(dict.fromkeys([*self._read, *names]))
        return chosen

    def ordered_by(self, column: str) -> Self:
        """The same table, whose later rows have greater values in a column."""
        check_found("ordered-by", [column], self._names)
        ordered = copy.copy(self)
        ordered._order, ordered._highest_known = column, None
        return ordered

    @property
    def needs_order(self) -> bool:
        """Whether nothing says which rows are new."""
        return self._order is None

    def manifest(self) -> TableRange:
        """The highest value of the column that rows are ordered by, when it is first asked for."""
        if self._order is None:
            raise InvalidInputError(
                "a vault that holds no rows needs to know which rows of a table of a database are new: name a"
                " column whose values grow with every row that is added, such as an id or a time, with"
                " ordered_by (--ordered-by)"
            )
        if self._highest_known is None:
            name, on_server = self._own_names()
            highest, n_rows = self._extents(self._order, None)[0]
            self._highest_known = TableRange(name, self._order, highest, n_rows, on_server)
        return self._highest_known

    def _extents(self, column: str, up_to: str | int | None) -> "tuple[_Extent, _Extent]":
        """The extent of all rows, and of those up to a value of a column, whatever conditions say of them.

        One statement, so that both are of the same moment.
        """
        asked, name = copy.copy(self), self._name(column)
        asked._up_to = self._up_to if up_to is None else up_to
        within = "1 = 0" if up_to is None else self._compared(name, "<=", _UP_TO)
        extents = [
            f"{self._stored_value(column, f'max({name}){chosen}')}, count(*){chosen}"
            for chosen in ("", f" FILTER (WHERE {within})")
        ]
        sql = f"SELECT {', '.join([*extents, *self._order_faults(column)])} FROM {self._quoted}"
        ((highest, n_rows, highest_within, n_within, *faults),) = next(asked._pieces(sql))
        if n_rows:
            self._refuse_order(column, *faults)
        return _Extent(highest, int(n_rows)), _Extent(highest_within, int(n_within))

    @staticmethod
    def manifest_from(values: Mapping[str, Any]) -> Manifest:
        """Read a manifest from its JSON."""
        return TableRange.from_dict(values)

    def changes_since(self, manifest: Manifest) -> Changes:
        """Tell whether there are rows with greater values than were counted.

        Rows below that were added or removed are noticed by their number; rows that were changed are not.
        """
        assert isinstance(manifest, TableRange)
        if self._order != manifest.column:
            return Changes(recount=f"its rows were ordered by {manifest.column!r}")
        name, on_server = self._own_names()
        now = TableRange(name, manifest.column, None, 0, on_server)
        if not now.parts & manifest.parts:
            return Changes(recount=f"it is another table: it was {manifest.table!r}, and is {now.table!r}")
        every, counted = self._extents(manifest.column, manifest.highest)
        if self._highest_known is None:
            self._highest_known = replace(now, highest=every.highest, n_rows=every.n_rows)
        if counted.highest != manifest.highest:
            return Changes(recount="the last of the rows that were counted is no longer there")
        if counted.n_rows != manifest.n_rows:
            return Changes(recount="rows up to the last one that was counted were added or removed")
        return Changes((now.table,) if self._highest_known.highest != manifest.highest else ())

    def check_still_counted(self, manifest: Manifest) -> None:
        """Refuse if rows were added or removed: each statement reads the table of its own moment."""
        changes = self.changes_since(manifest)
        if changes.recount:
            raise ChangedSourceError(changes.recount)

    def counted_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The rows up to the value of a manifest."""
        assert isinstance(manifest, TableRange)
        return self._between(None, manifest.highest)

    def manifest_after(self, counted: Manifest, replaced: Mapping[str, Stamp]) -> Manifest:
        """The rows up to the same value, of which the last may be gone."""
        return self.counted_part(counted, Changes()).manifest()

    def new_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The rows above the value of a manifest, up to the one that is the highest now."""
        assert isinstance(manifest, TableRange)
        return self._between(manifest.highest, self.manifest().highest)

    def _bounded(self, sql: str, parameters: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """Put parameters in the place of the values that bound the rows."""
        for mark, value in ((_ABOVE, self._above), (_UP_TO, self._up_to)):
            if mark in sql:
                parameters += (value,)
                sql = sql.replace(mark, self._parameter_mark.format(len(parameters)))
        return sql, parameters

    def _between(self, above: str | int | None, up_to: str | int | None) -> Self:
        """The rows with greater values than one, up to another; without the latter there are none."""
        assert self._order is not None  # there is a manifest
        part, column = copy.copy(self), self._name(self._order)
        limits = [self._compared(column, ">", _ABOVE)] if above is not None else []
        limits += [self._compared(column, "<=", _UP_TO) if up_to is not None else "1 = 0"]
        part._limits = tuple(limits)
        part._above, part._up_to, part._highest_known = above, up_to, None
        return part

    def n_rows(self) -> int | None:
        """Ask the database, unless there are conditions: it would have to send all rows."""
        if self.where:
            return None
        ((number,),) = next(self._pieces(f"SELECT count(*) FROM {self._quoted}"))
        return int(number)

    def distinct_actions(self) -> Iterable[Any]:
        """Ask the database for the distinct actions, or read them if there are conditions."""
        if self.where:
            for raw in self.raw_rows(CHUNK, None):
                yield from raw.actions
            return
        action = self.told_apart(self.columns.action)
        for piece in self._pieces(f"SELECT DISTINCT {action} FROM {self._quoted} ORDER BY 1"):
            yield from self._values([label for label, *_ in piece])

    def has_several_values(self, name: str) -> bool:
        """Ask the database, unless there are conditions."""
        if self.where:
            return super().has_several_values(name)
        found: set[str | None] = set()
        for piece in self._pieces(f"SELECT DISTINCT {self.told_apart(name)} FROM {self._quoted}"):
            found |= set(map(label_text, self._values([value for value, *_ in piece]))) - {None}
            if len(found) > 1:
                return True
        return False

    def tallied_log(
        self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]
    ) -> TableLog:
        """Check every row by one group-by, and make a log that the database adds up again for each request.

        Where it finds a fault, the rows are read: so a refusal names a row and a value, as everywhere.
        """
        found = self.tallies(reward_range)
        labels = {label_text(each.action): each.action for each in reversed(found)}
        if actions is None or not found:
            actions = checked_actions(sorted_if_comparable(self._sound_labels(labels)))
        sound = all(each.valid == each.n_rows for each in found)
        if not sound or not labels.keys() <= arm_of_text(actions).keys():
            for _ in self.rows(actions, reward_range):
                pass  # reading refuses the first wrong row
            raise rules.changed_source()
        totals = statistics_of_tallies(found, actions, reward_range)
        return TableLog(actions, reward_range, self.columns.user is not None, self, totals)

    def _sound_labels(self, labels: Mapping[str | None, Any]) -> Iterable[Any]:
        if not labels:
            raise rules.empty_log(self.where)
        if None in labels:
            raise rules.missing_actions(self.described("action"), self._missing_actions())
        return labels.values()

    def tallies(
        self,
        reward_range: tuple[float, float],
        *,
        users: Collection[str] | None = None,
        every_user: bool = False,
    ) -> list[Tally]:
        """Count and add up all rows by action and keys, those of `users` or of every user by user as well.

        One statement, in which the database rounds rewards to units as `to_units` does, bit for bit.
        """
        self._check_types()
        low, high = reward_range
        parameters: tuple[Any, ...] = (low, high, high - low, (high - low) * _TINY, float(UNIT))
        groups = [self.selected(self.columns.action)]
        for key in self.key_columns:
            expression, values = self._key(key, len(parameters) + 1)
            groups.append(expression)
            parameters += values
        compared = [each.column for each in self.where if not self._decides(each)]
        groups += map(self.selected, compared)
        table = self._quoted
        if users is not None or every_user:
            user = self.columns.named()["user"]
            chosen = None if users is None else Selection("user", frozenset(users))
            expression, table, values = self._user_if_selected(user, chosen, len(parameters) + 1)
            groups.append(expression)
            parameters += values
        inner, parameters = self._filtered_sql(
            f"SELECT {', '.join(f'{each} AS g{at}' for at, each in enumerate(groups))},"
            f" {self._reward()} AS reward, {self._user_size()} AS size FROM {table}",
            "",
            parameters,
        )
        names = ", ".join(f"g{at}" for at in range(len(groups)))
        product = f"(units * ({UNIT} - units))"  # its sum may exceed 64 bits: two parts are added
        sql = (
            f"SELECT {names}, count(*), {self._sum('units')}, count(units),"
            f" sum(CASE WHEN units = 0 OR units = {UNIT} THEN 1 ELSE 0 END),"
            f" {self._sum(f'{product} {self._divided} {_HIGH}')}, {self._sum(f'{product} & {_HIGH - 1}')},"
            " max(size)"
            f" FROM (SELECT {names}, size, {self._units()} AS units FROM ({inner}) AS valued) AS rounded"
            f" GROUP BY {names}"
        )
        return list(self._tallies_of(sql, parameters, compared, users))

    def count_rows(
        self, row_rules: RowRules, left_out: LeftOut = NOTHING_LEFT_OUT, *, checked_before: bool = False
    ) -> CountedRows:
        """Let the database add up all rows.

        They are read where it finds a fault, to name the row; where single rows are left out; and where a
        name is not spelled as the vault does.
        """
        counted = None
        if not left_out.ids and (checked_before or self._names_are_plain(row_rules.names.type)):
            counted = self._counted_by_database(row_rules, left_out)
        return counted or super().count_rows(row_rules, left_out, checked_before=checked_before)

    def _counted_by_database(self, row_rules: RowRules, left_out: LeftOut) -> CountedRows | None:
        """What the rows add up to; None if one of them has a fault."""
        try:
            found = self.tallies(row_rules.reward_range, users=left_out.users or None)
        except InvalidLogError:
            return None
        arm_of, sums = arm_of_text(row_rules.actions), dict[tuple[tuple[str, ...], int], tuple[int, int]]()
        for each in found:
            if each.user is not None and each.user in left_out.users:
                continue
            arm = arm_of.get(label_text(each.action) or "")
            key = tuple(text for text in each.keys if text is not None)
            if arm is None or each.valid < each.n_rows or len(key) < len(each.keys):
                return None
            count, units = sums.get((key, arm), (0, 0))
            sums[key, arm] = (count + each.n_rows, units + each.units)
        some_without_user = self.columns.user is None or self._some_missing("user")
        return CountedRows(sums, sum(each.n_rows for each in found), some_without_user=some_without_user)

    def distinct_labels(self, role: str) -> Iterator[Collection[str]]:
        """Ask the database, unless there are conditions."""
        if self.where or not self._types_can_be_compared():
            yield from super().distinct_labels(role)
            return
        column = self.selected(self.columns.named()[role])
        for rows in in_chunks(self._pieces(f"SELECT DISTINCT {column} FROM {self._quoted}"), CHUNK):
            texts = map(label_text, self._values([value for (value,) in rows]))
            yield {text for text in texts if text is not None}

    def _names_are_plain(self, user_type: UserType) -> bool:
        """Whether every user is spelled as the vault does, and every row has an id."""
        named = self.columns.named()
        if "id" in named and (self._some_missing("id") or self._some_long("id")):
            return False
        return "user" not in named or all(
            are_plain(list(labels), user_type) for labels in self.distinct_labels("user")
        )

    def _types_can_be_compared(self) -> bool:
        """Whether equal labels, to the database, have the same text."""
        try:
            self._check_types()
        except InvalidLogError:
            return False
        return True

    def told_apart(self, name: str) -> str:
        """A column in SQL, and what else tells values apart that the database takes for equal."""
        return self.selected(name)

    def _some_missing(self, role: str) -> bool:
        name = self._name(self.columns.named()[role])
        sql = self._filtered_sql(f"SELECT 1 FROM {self._quoted}", f"{name} IS NULL", ())
        return any(self._pieces(*sql))

    def _some_long(self, role: str) -> bool:
        name = self.columns.named()[role]
        sql = f"SELECT 1 FROM {self._quoted} WHERE {self._size(name)} > {LONGEST_TEXT}"
        return any(self._pieces(sql))

    def _units(self) -> str:
        """The arithmetic of armnesia.core.units.to_units, operation by operation, in float64."""
        low, high, width, tiny, unit = (self._mark(number) for number in range(1, 6))
        rounded = self._rounded(f"((reward - {low}) / {width} * {unit})")
        return (
            f"CASE WHEN reward >= {low} AND reward <= {high}"
            f" THEN CASE WHEN reward - {low} < {tiny} THEN 0 ELSE {rounded} END END"
        )

    def _key(self, key: KeyColumn, parameter: int) -> tuple[str, tuple[Any, ...]]:
        """The value of a key, or the number of the interval that it lies in, in SQL."""
        if not key.edges:
            return self.selected(key.name), ()
        number = self._float(key.name)
        cases = " ".join(
            f"WHEN {number} < {self._mark(parameter + at)} THEN {at}" for at in range(len(key.edges))
        )
        return f"CASE WHEN {number} IS NULL THEN NULL {cases} ELSE {len(key.edges)} END", key.edges

    def _tallies_of(
        self, sql: str, parameters: tuple[Any, ...], compared: list[str], users: Collection[str] | None
    ) -> Iterator[Tally]:
        n_keys, n_groups = len(self.key_columns), 1 + len(self.key_columns)
        texts_of = [
            (lambda at, key=key: None if at is None else key.intervals[at]) if key.edges else label_text
            for key in self.key_columns
        ]
        for rows in in_chunks(self._pieces(sql, parameters), CHUNK):
            columns = [self._values(list(column)) for column in zip(*rows, strict=True)]
            values = dict(zip(compared, columns[n_groups:], strict=False))
            places = self._sound_groups(columns[:n_groups], columns[-1], values)
            for place in places:
                row = [column[place] for column in columns]
                n_rows, units, valid, binary, high, low = map(int, (value or 0 for value in row[-7:-1]))
                if valid and None in (row[-6], row[-3], row[-2]):
                    raise UnsupportedError(
                        f"the rewards of {valid:,} rows are more than the database adds up exactly: choose"
                        " parts of the log with where (--where)"
                    )
                user = None if len(row) == n_groups + len(compared) + 7 else label_text(row[-8])
                yield Tally(
                    row[0],
                    tuple(text(value) for text, value in zip(texts_of, row[1 : 1 + n_keys], strict=True)),
                    user if users is None or user in users else None,
                    *(n_rows, units, valid, binary, high * _HIGH + low),
                )

    def _sound_groups(
        self, labels: list[list[Any]], sizes: list[int | None], compared: dict[str, list[Any]]
    ) -> list[int]:
        """The groups that satisfy the conditions; refuse long labels, and what a condition cannot compare."""
        n_groups = range(len(sizes))
        where = [each for each in self.where if each.column in compared]
        try:
            for column in labels:
                rules.check_label_lengths(rules.label_texts(column, "", n_groups), "", n_groups)
            if max(size or 0 for size in sizes) > LONGEST_TEXT:
                raise rules.long_label(self.described("user"), 0)
            return rows_that_satisfy(where, compared, n_groups)
        except InvalidLogError:  # it names a group; to name a row, the rows are read
            what = {role: self.described(role) for role in self.columns.named()}
            for raw in self.raw_rows(CHUNK, None):
                texts = rules.label_texts(raw.actions, what["action"], raw.positions)
                rules.check_label_lengths(texts, what["action"], raw.positions)
                rules.check_label_lengths(raw.users, what.get("user", "user"), raw.positions)
                for key, column in zip(self.key_columns, raw.keys, strict=True):
                    KeyCodes(key).encode(column, raw.positions)
            raise rules.changed_source() from None

    def _check_types(self) -> None:
        """Refuse columns of which the database does not compare values as Python does their texts."""

    def _user_if_selected(
        self, user: str, selection: Selection | None, parameter: int
    ) -> tuple[str, str, tuple[Any, ...]]:
        """The user of a row, in SQL, NULL for most that are not selected; and what to select it from."""
        value = self.selected(user)
        if selection is None:
            return value, self._quoted, ()
        chosen, values = self._condition(user, selection, parameter)
        return f"CASE WHEN {chosen} THEN {value} END", self._quoted, values

    def _decides(self, condition: Condition) -> bool:
        """Whether `_satisfied` holds for no other rows than those that satisfy a condition."""
        return False

    def _reward(self) -> str:
        return self._float(self.columns.reward)

    def _user_size(self) -> str:
        """The number of bytes of a user, in SQL; NULL where a user is never long."""
        user = self.columns.named().get("user")
        return "NULL" if user is None else self._size(user)

    def _sum(self, number: str) -> str:
        """The exact sum of integers, in SQL; NULL if it is too large."""
        return f"sum({number})"

    @abstractmethod
    def _mark(self, number: int) -> str:
        """The parameter of this number in SQL, which is a float."""

    @abstractmethod
    def _rounded(self, number: str) -> str:
        """A float between 0 and 10⁹ as the nearest integer, ties to even, in SQL."""

    @abstractmethod
    def _float(self, name: str) -> str:
        """A column as a float in SQL, as Python would round it; NULL for NaN, and where that is in doubt."""

    @abstractmethod
    def _size(self, name: str) -> str:
        """The number of bytes of a text in SQL; NULL for a type whose values are never long."""

    def propensity_ranges(self, name: str) -> Iterable[tuple[float | None, float | None]]:
        """Ask the database, for each action, key and value that a condition compares."""
        value, keys = self._number(name), self.key_columns
        compared = [condition.column for condition in self.where]
        names = list(dict.fromkeys([self.columns.action, *(key.name for key in keys), *compared]))
        groups = ", ".join(map(self.selected, names))
        asked = f"SELECT min({value}), max({value}), {groups} FROM {self._quoted}"
        sql, parameters = self._filtered_sql(asked, "", ())
        query = f"{sql} GROUP BY {', '.join(map(self.told_apart, names))}", parameters
        ranges = Ranges()
        for rows in in_chunks(self._pieces(*query), CHUNK):
            lows, highs, *columns = map(list, zip(*rows, strict=True))
            values = dict(zip(names, map(self._values, columns), strict=True))
            for place in rows_that_satisfy(self.where, values, range(len(rows))):
                texts = (key.text_of(values[key.name][place]) for key in keys)
                group = (label_text(values[self.columns.action][place]), *texts)
                ranges.include(group, lows[place], highs[place])
        return ranges.values()

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Stream the rows of one snapshot, in the order of the database; positions count what it returns."""
        sql = f"SELECT {', '.join(map(self.selected, self._read))} FROM {self._quoted}"
        condition, parameters = ("", ()) if selection is None else self.condition(selection)
        by_index = selection is not None and self._looks_up_by_index(selection.role)
        sql, parameters = self._filtered_sql(sql, condition, parameters)
        first = 0
        for rows in in_chunks(self._pieces(sql, parameters, by_index=by_index), chunk):
            positions: Sequence[int] = range(first, first + len(rows))
            columns = (self._values(list(column)) for column in zip(*rows, strict=True))
            values = dict(zip(self._read, columns, strict=True))
            first += len(rows)
            if self.where:
                places = rows_that_satisfy(self.where, values, positions)
                positions = [positions[place] for place in places]
                values = {name: [column[place] for place in places] for name, column in values.items()}
            raw = raw_rows_of(values, self.columns, positions, self._others, self.keys).selected(selection)
            if raw.positions:
                yield raw

    def _filtered_sql(
        self, sql: str, condition: str, parameters: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        """Add what the database can tell of the conditions, so that it sends fewer rows.

        A row with a value that a condition refuses is sent whatever the later conditions say of it.
        """
        if not self.where:
            return f"{sql} WHERE {condition}" if condition else sql, parameters
        parts = []
        for each in self.where:
            satisfied, refused, values = self._satisfied(each, len(parameters) + 1)
            parts.append((satisfied, refused))
            parameters += values
        combined = ""
        for satisfied, refused in reversed(parts):
            combined = f"({satisfied}{f' AND {combined}' if combined else ''})"
            combined = f"({refused} OR {combined})" if refused else combined
        return f"{sql} WHERE {f'({condition}) AND ' if condition else ''}{combined}", parameters

    def _values(self, column: list[Any]) -> list[Any]:
        return with_decimals_as_written(column) if self.decimals_as_written else column

    def selected(self, name: str) -> str:
        """A column in SQL, as it is read."""
        return self._name(name)

    def _name(self, name: str) -> str:
        """The name of a column in SQL."""
        return quoted(name)

    @abstractmethod
    def _own_names(self) -> tuple[str, str | None]:
        """The table as the database itself names it, with its address, and as the server names itself."""

    @abstractmethod
    def _stored_value(self, column: str, highest: str) -> str:
        """The highest value of a column, which is given in SQL, as a manifest holds it."""

    @abstractmethod
    def _order_faults(self, column: str) -> tuple[str, ...]:
        """What to ask, in SQL, of the values of a column by which rows are ordered."""

    @abstractmethod
    def _refuse_order(self, column: str, *faults: Any) -> None:
        """Refuse a missing value, or values that cannot be ordered, by the answers to `_order_faults`."""

    @abstractmethod
    def _compared(self, column: str, operator: str, value: str) -> str:
        """Compare a quoted column with a value of a manifest, which stands for a parameter."""

    @abstractmethod
    def _number(self, name: str) -> str:
        """A column as a number in SQL; NULL where it holds none."""

    @abstractmethod
    def _available(self) -> list[str]:
        """The names of the table's columns."""

    def _looks_up_by_index(self, role: str) -> bool:
        """Whether an index may be read to find the rows of people, or those with ids."""
        return False

    @abstractmethod
    def _pieces(
        self, sql: str, parameters: tuple[Any, ...] = (), *, by_index: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query, and yield a few of its rows at a time; `by_index`, if an index may be read."""

    @abstractmethod
    def _satisfied(self, condition: Condition, parameter: int) -> tuple[str, str, tuple[Any, ...]]:
        """SQL that holds for every row that satisfies a condition, with values for its parameters.

        The second is SQL that holds for every row whose value the condition refuses, "" if there is none.
        `parameter` is the number of the first parameter.
        """

    @abstractmethod
    def _condition(
        self, column: str, selection: Selection, parameter: int = 1
    ) -> tuple[str, tuple[Any, ...]]:
        """A condition that holds for every row of a selection; `parameter` is the number of the first.

        It holds for all rows where the database cannot tell.
        """


def no_order(described: str, values: str) -> InvalidLogError:
    """Refuse a column by which rows cannot be told to be new."""
    return InvalidLogError(
        f"{described} must have a value in every row, and values that can be ordered: integers, text, or on"
        f" PostgreSQL also numeric values, dates and times; got {values}"
    )


def no_table(table: str, location: str, existing: Iterable[str]) -> InvalidLogError:
    """Refuse a table that the database does not have, and list those that it has."""
    names = list(existing)
    if table in names:  # with a point, before which a schema is looked for
        return InvalidLogError(
            f"source {location!r} has a table {table!r}, whose name has a point: give it with its schema,"
            " schema.table, which on SQLite is main"
        )
    return InvalidLogError(
        f"source {location!r} has no table {table!r}; it has {listed(names, 20) or 'no tables'}"
    )


def table_parts(table: str) -> list[str]:
    """The schema, if there is one, and the name of a table.

    >>> table_parts("clicks"), table_parts("main.clicks")
    (['clicks'], ['main', 'clicks'])
    """
    parts = table.split(".", 1)
    if not all(parts):
        raise InvalidInputError(f"table must be a name or schema.table; got {table!r}")
    return parts
