"""Decisions in CSV and Parquet files: aggregated by DuckDB for a log, streamed by it for a vault.

A log stays in its files. Rewards become units before they are added: a sum of floats depends on the order of
addition, which differs from run to run when several threads read; a sum of integers does not.
"""

import copy
import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Self

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidLogError
from armnesia.core.files import Stamp
from armnesia.core.identifiers import SHORT_FLOATS_EXACT_BELOW, UserType
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.columns import Columns
from armnesia.logs.conditions import Condition
from armnesia.logs.counting import NOTHING_LEFT_OUT, CountedRows, FoundRows, LeftOut, RowRules
from armnesia.logs.files.conditions import FileConditions
from armnesia.logs.files.counting import count_files, find_in_files, labels_like, user_type_of
from armnesia.logs.files.decisions import interval_sql
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.formats import LogFiles, open_files
from armnesia.logs.files.label_lookup import Lookup, finds_by_value, look_up
from armnesia.logs.files.log import FileLog
from armnesia.logs.files.text_sizes import check_text_sizes, content_size
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.limits import CHUNK, LONGEST_TEXT, columns_of
from armnesia.logs.log import Log
from armnesia.logs.manifests import Changes, FileManifest, Manifest
from armnesia.logs.rows import RawRows, Selection
from armnesia.logs.source import Source, heading_of, place_of_user
from armnesia.logs.tallies import SUM_OF_PRODUCTS, statistics_of_sums
from armnesia.logs.values import arm_of_text, label_text, sorted_if_comparable

# The arithmetic of armnesia.core.units.to_units, operation by operation, in float64 and with ties to even.
_UNITS = (
    "CASE WHEN reward BETWEEN $low AND $high"
    f" THEN CAST(round_even((reward - $low) / ($high - $low) * {UNIT}::DOUBLE, 0) AS BIGINT) END"
)
_LONGEST_REFUSED = 200
"""How many characters of a reward that is no number are read, for the message."""


class FileSource(Source):
    """CSV or Parquet files, by a path, folder or glob; several files follow each other in sorted order."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Columns,
        *,
        table: str | None,
        whole_rows: bool,
        only: Sequence[str] | None = None,
    ) -> None:
        """With `only`, some of the files that the path, folder or glob stands for."""
        rules.refuse_table(table, path)
        self._only = only
        self._location = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._files = self._opened(path, None if whole_rows and columns.id is None else columns.wanted())
        self._files.partitions.check(columns.wanted())
        self._files.check_names(columns.wanted())
        names = [name for name, _ in self._files.columns]
        super().__init__(columns, names, whole_rows=whole_rows)
        self._is_csv = self._files.format.delimiter is not None
        for role, name in self.columns.named().items():
            if names.count(name) > 1:
                raise InvalidLogError(f"{self.described(role)} is in the source more than once")
        self._set_columns()
        for role, column in self._column_of.items():
            column.check(role, self.described(role))
        if "user" in self._column_of and self._column_of["user"].type == "FLOAT":
            self.user_integers_below = SHORT_FLOATS_EXACT_BELOW
        every = self._every_column()
        self._propensity_of = {name: every[names.index(name)] for name in self._propensities}
        self._known_ranges: dict[str, list[tuple[float | None, float | None]]] = {}
        self._others: list[FileColumn] | None = None
        self._set_contents()
        self._sizes_checked: set[str] = set()
        self._keys: tuple[tuple[FileColumn, KeyColumn], ...] = ()
        self._further: list[str] = []
        self._conditions = FileConditions()
        self._left_out: tuple[Lookup, ...] = ()
        self._n_rows = self._files.n_rows

    def _set_columns(self) -> None:
        """Find the columns of the roles among those of the files."""
        every, names = self._every_column(), [name for name, _ in self._files.columns]
        self._column_of = {role: every[names.index(name)] for role, name in self.columns.named().items()}

    def _every_column(self) -> list[FileColumn]:
        return [
            self._as_written(
                FileColumn(
                    f"c{at}",
                    type_,
                    self._files.is_text(at),
                    signed_bounds=name in self._files.signed_bounds,
                    is_rounded=name in self._files.rounded,
                )
            )
            for at, (name, type_) in enumerate(self._files.columns)
        ]

    def _set_contents(self) -> None:
        """Fix the columns by which a row without an id is known.

        Of names of folders only those that are named: others may change when a file is moved, and were not
        looked at by earlier versions, whose vaults know rows without them.
        """
        if not self.reads_whole_rows:
            return
        named = {*self.columns.named().values(), *self.keys}
        left_out = self._files.partition_names - named
        columns = zip([name for name, _ in self._files.columns], self._every_column(), strict=True)
        known_by = sorted((each for each in columns if each[0] not in left_out), key=itemgetter(0))
        names = [name for name, _ in known_by]
        self._heading, self._user_place = heading_of(self.columns, names), place_of_user(self.columns, names)
        reward = self._column_of["reward"].name
        self._others = [column for _, column in known_by if column.name != reward]

    def with_decimals_as_written(self) -> Self:
        """The same files, with the other text of decimals in SQL."""
        written = super().with_decimals_as_written()
        written._column_of = {role: written._as_written(column) for role, column in self._column_of.items()}
        written._set_contents()
        return written

    def _as_written(self, column: FileColumn) -> FileColumn:
        return replace(column, decimals_as_written=self.decimals_as_written)

    def _opened(self, path: str | os.PathLike[str], wanted: set[str] | None) -> LogFiles:
        """Find the files, of which the `wanted` columns are read; None stands for all."""
        return open_files(path, wanted, self._only)

    def filtered(self, where: tuple[Condition, ...]) -> Self:
        """The same files without the rows that do not satisfy these conditions, which one query counts."""
        chosen = copy.copy(self)
        chosen.where, chosen._known_ranges = (*self.where, *where), {}
        columns = chosen._further_columns("where", [condition.column for condition in chosen.where])
        for column, condition in zip(columns, chosen.where, strict=True):
            column.check("key", condition.described)
        chosen._conditions = FileConditions(chosen.where, tuple(columns))
        wrong = chosen._conditions.no_numbers()
        asked = ["count(*)", f"count(*) FILTER ({chosen._kept})"]
        asked += [f"count(*) FILTER ({condition})" for condition in wrong.values()]
        sql, parameters = f"SELECT {', '.join(asked)} FROM {chosen._files.table}", chosen._where_parameters
        ((n_read, n_kept, *n_wrong),) = chosen._files.query(sql, **parameters)
        chosen._files.check_count(n_read)
        for (place, is_wrong), number in zip(wrong.items(), n_wrong, strict=True):
            if number:
                offences = chosen._files.query(
                    f"SELECT position, {columns[place].text()} FROM (SELECT *, row_number() OVER () - 1 AS"
                    f" position FROM {chosen._files.table}) WHERE {is_wrong} ORDER BY position LIMIT 4",
                    **{name: parameters[name] for name in list(parameters)[:place]},
                )
                raise chosen.where[place].no_numbers([(row, text) for row, text in offences])
        chosen._n_rows = n_kept
        return chosen

    @property
    def _kept(self) -> str:
        """Whether a row is read, in SQL; its parameters are `_where_parameters`."""
        others = [f"NOT coalesce({each.condition}, false)" for each in self._left_out]
        return " AND ".join([self._conditions.satisfied, *others])

    @property
    def _where_parameters(self) -> dict[str, Any]:
        parameters = self._conditions.parameters
        for each in self._left_out:
            parameters |= each.parameters
        return parameters

    @property
    def _chooses(self) -> bool:
        """Whether some rows are not read."""
        return bool(self.where or self._left_out)

    @property
    def _table(self) -> str:
        """The rows that are read, in SQL."""
        return self._table_where(self._kept) if self._chooses else self._files.table

    def _table_where(self, condition: str) -> str:
        return f"(SELECT * FROM {self._files.table} WHERE {condition})"

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> Self:
        """The same files with key columns; refuse files that have changed."""
        if not keys:
            return self
        keyed = super().keyed_by(keys)
        columns = keyed._further_columns("key", [key.name for key in keys])
        for column, key in zip(columns, keys, strict=True):
            column.check("reward" if key.edges else "key", key.described)
        keyed._keys, keyed._known_ranges = tuple(zip(columns, keys, strict=True)), {}
        keyed._set_contents()
        if not self._is_csv:
            check_text_sizes(keyed._files, {key.name: key.described for key in keys})
        return keyed

    def _further_columns(self, role: str, wanted: Sequence[str]) -> list[FileColumn]:
        """Find further columns; Parquet files, which need not agree in all columns, are opened again."""
        if not self._is_csv and not self.reads_whole_rows:
            before, others = self._files, [*self._further, *wanted]
            self._files = self._opened(self._location, {*self.columns.wanted(), *others})
            self._further = others
            if (self._files.paths, self._files.stamps) != (before.paths, before.stamps):
                raise InvalidLogError(
                    f"source {self._location!r} has changed since the log was read; read it again"
                )
        self._files.partitions.check(wanted)
        self._files.check_names(wanted)
        names = [name for name, _ in self._files.columns]
        rules.check_found(role, wanted, names)
        found = []
        for name in wanted:
            if names.count(name) > 1:
                raise InvalidLogError(f"{rules.described(role, name)} is in the source more than once")
            place = names.index(name)
            found.append(self._every_column()[place])
        return found

    @property
    def description(self) -> Mapping[str, Any]:
        """The absolute path or glob."""
        place = {"kind": "file", "location": self._location, "table": None}
        return {**place, "columns": vars(self.columns), **self.described_filter()}

    @property
    def columns_in_paths(self) -> frozenset[str]:
        """The partition columns."""
        return self._files.partition_names

    @property
    def files(self) -> LogFiles:
        """The files, as they were when the source was opened."""
        return self._files

    def named_column(self, role: str) -> FileColumn:
        """The column of a role among the columns of `files`."""
        return self._column_of[role]

    def n_rows(self) -> int:
        """Take what was counted when the files were opened."""
        return self._n_rows

    def distinct_actions(self) -> Iterable[Any]:
        """Ask DuckDB for the distinct actions, in an order that does not depend on its threads."""
        self.check_sizes("action")
        label = self._column_of["action"].label()
        sql = f"SELECT DISTINCT {label} AS label FROM {self._table} ORDER BY label"
        return [label for (label,) in self._files.query(sql, **self._where_parameters)]

    def has_several_values(self, name: str) -> bool:
        """Ask DuckDB, which stops at the second value."""
        other = copy.copy(self)
        (column,) = other._further_columns("key", [name])
        text = column.text()
        sql = f"SELECT DISTINCT {text} FROM {other._table} WHERE {text} IS NOT NULL LIMIT 2"
        return len(other._files.query(sql, **other._where_parameters)) > 1

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Stream the rows in the order of the files."""
        if selection is not None and self._finds_by_value(selection):
            return self._rows_by_value(chunk, selection)
        return self._rows_in_order(chunk, selection)

    def _rows_in_order(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Read every row, and give all or those of a selection."""
        self.check_sizes(*self._column_of.keys() - {"reward"}, whole_rows=self.reads_whole_rows)
        columns = ", ".join([*self._streamed(), *([self._kept] if self._chooses else [])])
        if selection is None:
            first = 0
            # All rows, also those that are not kept: their number shows that all were read.
            sql = f"SELECT {columns} FROM {self._files.table}"
            for rows in self._files.stream(sql, chunk, **self._where_parameters):
                raw = self._kept_raw(range(first, first + len(rows)), rows)
                first += len(rows)
                if raw is not None:
                    yield raw
            self._files.check_count(first)
            return
        # Rows in another spelling of a user are among those that are not plain; `selected` finds them.
        other_spellings = "" if selection.plain is None else " OR NOT regexp_full_match(user_text, $plain)"
        parameters: dict[str, Any] = {} if selection.plain is None else {"plain": selection.plain}
        # Numbered before they are selected: a message must name the row of the file.
        numbered = f"SELECT *, row_number() OVER () - 1 AS position FROM {self._files.table}"
        # The last row is read in any case, and shows that all were.
        chosen = f"({selection.role}_text IN (SELECT unnest($texts)){other_spellings}) AND {self._kept}"
        sql = (
            f"SELECT {columns}, position FROM ({numbered})"
            f" WHERE {chosen} OR position >= $last ORDER BY position"
        )
        n_read = 0
        parameters |= {"last": self._files.n_rows - 1, **self._where_parameters}
        for rows in self._files.stream(sql, chunk, texts=sorted(selection.texts), **parameters):
            n_read = rows[-1][-1] + 1
            raw = self._kept_raw([row[-1] for row in rows], [row[:-1] for row in rows])
            if raw is not None and (raw := raw.selected(selection)).positions:
                yield raw
        if n_read != self._files.n_rows:
            ((n_read,),) = self._files.query(f"SELECT coalesce(max(position) + 1, 0) FROM ({numbered})")
        self._files.check_count(n_read)

    def _finds_by_value(self, selection: Selection) -> bool:
        """Whether the rows of a selection are found in the column's own type, in Parquet files.

        That is so if a value has one text, which no other spelling of a name can be: numbers and UUIDs have
        no leading zeros and no spaces.
        """
        column = self._column_of[selection.role]
        one_spelling = selection.plain is None or column.type != "VARCHAR"
        return self._files.knows_positions and one_spelling and finds_by_value(column, selection.texts)

    def _rows_by_value(self, chunk: int, selection: Selection) -> Iterator[RawRows]:
        """Read what the statistics of Parquet files do not rule out, and give the rows of a selection."""
        found = self.of_labels(selection.role, selection.texts)
        columns = ", ".join(self._streamed(bounded=True))
        sql = (
            f"SELECT {columns}, position FROM (SELECT *, {self._files.position} AS position"
            f" FROM {self._files.table}) WHERE {found.condition} AND {self._kept} ORDER BY position"
        )
        parameters = found.parameters | self._where_parameters
        if "$first_rows" in sql:
            parameters["first_rows"] = self._files.first_rows
        for rows in self._files.stream(sql, chunk, **parameters):
            raw = self._raw([row[-1] for row in rows], [row[:-1] for row in rows]).selected(selection)
            if raw.positions:
                yield raw
        ((n_rows,),) = self._files.query(f"SELECT count(*) FROM {self._files.table}")
        self._files.check_count(n_rows)

    def manifest(self) -> FileManifest:
        """The paths, sizes and times of change of all files, as they were when they were opened."""
        files = zip(self._files.paths, self._files.stamps, strict=True)
        return FileManifest(tuple(sorted((path, *stamp) for path, stamp in files)))

    @staticmethod
    def manifest_from(values: Mapping[str, Any]) -> Manifest:
        """Read a manifest from its JSON."""
        return FileManifest.from_dict(values)

    def changes_since(self, manifest: Manifest) -> Changes:
        """Compare the files with those of a manifest."""
        assert isinstance(manifest, FileManifest)
        return manifest.changes_to(self.manifest())

    def counted_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The rows of the files of a manifest."""
        assert isinstance(manifest, FileManifest)
        return self._with_files(manifest.paths)

    def manifest_after(self, counted: Manifest, replaced: Mapping[str, Stamp]) -> Manifest:
        """The same files, of which those that were replaced have other stamps."""
        assert isinstance(counted, FileManifest)
        return counted.with_stamps(replaced)

    def new_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The rows of the files that were added."""
        return self._with_files(changes.added)

    def _with_files(self, paths: Sequence[str]) -> Self:
        """The same source with some of its files, which need not have their columns in the same order."""
        if set(paths) == set(self._files.paths):
            return self
        part = type(self)(
            self._location, self.columns, table=None, whole_rows=self.reads_whole_rows, only=sorted(paths)
        )
        if self.decimals_as_written:
            part = part.with_decimals_as_written()
        part = part.filtered(self.where) if self.where else part
        return part.keyed_by(self.key_columns)

    def without(self, left_out: LeftOut) -> Self:
        """The same files without rows of people or with ids whose texts these are."""
        given = {"user": left_out.users, "id": left_out.ids}
        if not any(given.values()):
            return self
        part = copy.copy(self)
        part._known_ranges = {}
        part._left_out = tuple(
            look_up(self._column_of[role], texts, f"without_{role}") for role, texts in given.items() if texts
        )
        counted = part._files.query(f"SELECT count(*) FROM {part._table}", **part._where_parameters)
        ((part._n_rows,),) = counted
        return part

    def count_rows(
        self, row_rules: RowRules, left_out: LeftOut = NOTHING_LEFT_OUT, *, checked_before: bool = False
    ) -> CountedRows:
        """Check every row and add them up by one group-by."""
        part = self.without(left_out)
        totals = ArmStatistics.empty(row_rules.actions, row_rules.reward_range)
        if part._n_rows:
            totals = part.read(row_rules.actions, row_rules.reward_range).statistics()
        return count_files(part, totals, row_rules, self._n_rows, checked_before=checked_before)

    def found_rows(
        self, role: str, texts: Collection[str], row_rules: RowRules, *, every_spelling: bool, with_ids: bool
    ) -> list[FoundRows]:
        """Look rows up by values of the column's own type, and add them up."""
        return find_in_files(self, role, texts, row_rules, every_spelling=every_spelling, with_ids=with_ids)

    def labels_like(self, role: str, texts: Collection[str], user_type: UserType) -> set[str]:
        """Compare the text of every row, whatever the statistics of a file say."""
        return labels_like(self, role, texts, user_type)

    def distinct_labels(self, role: str) -> Iterator[Collection[str]]:
        """Ask DuckDB for the distinct users or ids."""
        self.check_sizes(role)
        column = self._column_of[role]
        # A text is made of each value once, not of each row.
        sql = f"SELECT {column.text()} FROM (SELECT DISTINCT {column.name} FROM {self._table})"
        for rows in self._files.stream(sql, CHUNK, in_order=False, **self._where_parameters):
            yield [label for (label,) in rows if label is not None]

    def stream_texts(self, sql: str, *, role: str, **parameters: Any) -> Iterator[list[str]]:
        """Run SQL with one column over `labels`, the texts `label` of a column that are not missing."""
        sql = f"{self._labels(role)} {sql}"
        for rows in self._files.stream(sql, CHUNK, in_order=False, **self._where_parameters, **parameters):
            yield [label for (label,) in rows]

    def query_texts(self, sql: str, *, role: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run SQL over `labels`, as `stream_texts` does, all at once."""
        return self._files.query(f"{self._labels(role)} {sql}", **self._where_parameters, **parameters)

    def _labels(self, role: str) -> str:
        texts = f"SELECT {self._column_of[role].text()} AS label FROM {self._table}"
        return f"WITH labels AS (SELECT label FROM ({texts}) WHERE label IS NOT NULL)"

    def holds_bytes(self, role: str) -> bool:
        """Whether the column is of bytes."""
        column = self.column_of(role)
        return column is not None and column.type == "BLOB"

    def column_of(self, role: str) -> FileColumn | None:
        """The column of a role; None if there is none."""
        return self._column_of.get(role)

    def user_type(self) -> UserType | None:
        """Ask DuckDB whether all users are integers."""
        return user_type_of(self)

    def read(self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]) -> Log:
        """Check every row by one group-by, which also gives the statistics."""
        declared = None if actions is None else arm_of_text(actions)
        found = self._sums_of_actions(reward_range)
        if not found:
            raise rules.empty_log(self.where)
        what = self.described("action")
        labels = [label for label, *_ in found if label is not None]
        if len(labels) < len(found):
            self._refuse_missing_actions(reward_range)
        if actions is None:
            actions = checked_actions(sorted_if_comparable(labels))
        arm_of = declared or arm_of_text(actions)
        undeclared = [text for text in map(label_text, labels) if text not in arm_of]
        if undeclared:
            condition = "action_text IN (SELECT unnest($texts))"
            label = self.label_of("action")
            offences = self.first_rows(label, condition, reward_range, texts=undeclared)
            raise rules.undeclared_actions(what, offences, actions)
        if any(count > valid for _, count, _, valid, _ in found):
            raise self._refused_rewards(reward_range)
        sums = ((label, count, units, products) for label, count, units, _, products in found)
        totals = statistics_of_sums(sums, actions, reward_range)
        return FileLog(actions, reward_range, self.columns.user is not None, self, totals)

    def _sums_of_actions(self, reward_range: tuple[float, float]) -> list[tuple[Any, int, int, int, int]]:
        """Per action: label, rows, the sum of their units, rows with a valid reward, the sum of products."""
        # Of Parquet files, users are not read here. Long actions are left out, so that they take no memory,
        # and missing ones with them: the number of rows shows that there are some.
        sized = [role for role in ("action", "user") if role in self._column_of and self._is_csv]
        asked = [self.label_of("action"), "count(*)", "sum(units)", "count(units)", SUM_OF_PRODUCTS]
        asked += [f"max(strlen({role}_text))" for role in sized]
        asked += [f"min({name}), max({name})" for name in self._propensity_names().values()]
        size = None if self._is_csv else self._of_decisions("action").size()
        short = "" if size is None else f"WHERE {size} <= {LONGEST_TEXT}"
        sql = f"SELECT {', '.join(asked)} FROM decisions {short} GROUP BY action_value"
        found = self.query(sql, reward_range)
        n_read = sum(count for _, count, *_ in found)
        if n_read < self._n_rows and short:
            self.check_sizes("action")
            self._refuse_missing_actions(reward_range)
        self._files.check_count(n_read, self._n_rows)
        for at, role in enumerate(sized):
            if max((row[5 + at] or 0 for row in found), default=0) > LONGEST_TEXT:
                condition = f"strlen({role}_text) > {LONGEST_TEXT}"
                ((first, _), *_) = self.first_rows("NULL", condition, reward_range)
                raise rules.long_label(self.described(role), first)
        for at, name in enumerate(self._propensities):
            self._known_ranges[name] = [row[5 + len(sized) + 2 * at :][:2] for row in found]
        return [row[:5] for row in found]

    def _refuse_missing_actions(self, reward_range: tuple[float, float]) -> None:
        offences = self.first_rows("NULL", "action_text IS NULL", reward_range)
        if offences:
            raise rules.missing_actions(self.described("action"), offences)

    def _of_decisions(self, role: str) -> FileColumn:
        """The column of a role among the decisions of `query`."""
        return replace(self._column_of[role], name=f"{role}_value")

    def label_of(self, role: str) -> str:
        """The label of a decision, in SQL, also of decisions that are grouped by `action_value`."""
        return self._of_decisions(role).label()

    def text_of(self, role: str) -> str:
        """The text of a label, in SQL, also of decisions that are grouped by `user_value`."""
        return self._of_decisions(role).text()

    def of_labels(self, role: str, texts: Collection[str]) -> Lookup:
        """The rows with these users or ids, for `query`."""
        return look_up(self._column_of[role], texts)

    def query(
        self, sql: str, reward_range: tuple[float, float], *, found: Lookup | None = None, **parameters: Any
    ) -> list[tuple[Any, ...]]:
        """Run SQL that reads from `decisions`, or from `numbered`, which adds the position of a row.

        A decision has action_value (as it is in the file), action_text, reward, reward_text, units and, if
        there is a user column, user_value and user_text; with key columns also key_0, key_0_text, key_1, ….
        A text is NULL where the label is missing; `units` is NULL where the reward is not a number of the
        range. A text is made row by row: group by values, and make `text_of` or `label_of` of the groups.
        Numbering reads the files in order; leave it out where order does not matter. With `found`, the
        decisions are those rows only.
        """
        reward = self._column_of["reward"]
        refused = f"left(CAST({reward.name} AS VARCHAR), {_LONGEST_REFUSED})"
        expressions = {"reward": reward.reward(), "reward_text": refused}
        for role in self._column_of.keys() - {"reward"}:
            expressions[f"{role}_value"] = self._column_of[role].name
            expressions[f"{role}_text"] = self._column_of[role].text()
        for place, (column, key) in enumerate(self._keys):
            expressions[f"key_{place}_text"] = column.text()
            expressions[f"key_{place}"] = _key_sql(column, key)
        for propensity, name in self._propensity_names().items():
            expressions[name] = self._propensity_of[propensity].propensity()
        columns = ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())
        low, high = reward_range
        numbered = "SELECT *, row_number() OVER () - 1 AS position FROM decisions"
        if self._chooses:  # numbered before they are chosen: a message must name the row of the file
            in_order = f"SELECT *, row_number() OVER () - 1 AS position FROM {self._files.table}"
            chosen = f"SELECT {columns}, position FROM ({in_order}) WHERE {self._kept}"
            numbered = f"SELECT *, {_UNITS} AS units FROM ({chosen})"
        table, how = self._table, ""
        if found is not None:  # before anything is made of the rows
            table = self._table_where(f"{found.condition} AND {self._kept}")
            parameters |= found.parameters
            how = "MATERIALIZED"  # otherwise DuckDB groups a sorted file by ranges, and reads it for each
        return self._files.query(
            f"WITH parsed AS {how} (SELECT {columns} FROM {table}),"
            f" decisions AS (SELECT *, {_UNITS} AS units FROM parsed), numbered AS ({numbered}) {sql}",
            low=low,
            high=high,
            **self._where_parameters,
            **parameters,
        )

    def first_rows(
        self, value: str, condition: str, reward_range: tuple[float, float], **parameters: Any
    ) -> list[tuple[int, Any]]:
        """Find the first rows that satisfy a condition, and the value of a column there."""
        sql = f"SELECT position, {value} FROM numbered WHERE {condition} ORDER BY position LIMIT 4"
        return [(row, found) for row, found in self.query(sql, reward_range, **parameters)]

    def propensity_ranges(self, name: str) -> Iterable[tuple[float | None, float | None]]:
        """Ask DuckDB, if `read` has not done so."""
        if name not in self._known_ranges:
            value, label = self._propensity_of[name].propensity(), self._column_of["action"].label()
            groups = ", ".join([label, *(_key_sql(column, key) for column, key in self._keys)])
            sql = f"SELECT min({value}), max({value}) FROM {self._table} GROUP BY {groups}"
            found = self._files.query(sql, **self._where_parameters)
            self._known_ranges[name] = [(low, high) for low, high in found]
        return self._known_ranges[name]

    def _propensity_names(self) -> dict[str, str]:
        """The columns of propensities, and their names among the decisions."""
        return {name: f"propensity_{at}" for at, name in enumerate(self._propensities)}

    def check_sizes(self, *roles: str, whole_rows: bool = False) -> None:
        """Refuse Parquet files with long texts before what reads them, once; CSV files have short lines.

        `whole_rows` are all columns together.
        """
        missing = {*roles, *(["content"] if whole_rows else [])} - self._sizes_checked
        if self._is_csv or not missing:
            return
        named = self.columns.named()
        described = {named[role]: self.described(role) for role in named if role in missing}
        check_text_sizes(self._files, described, whole_rows="content" in missing)
        self._sizes_checked |= missing

    def _refused_rewards(self, reward_range: tuple[float, float]) -> InvalidLogError:
        """Name the first refused rewards: those that are no numbers, else not finite, else out of range."""
        what = self.described("reward")
        not_numbers = "reward IS NULL AND reward_text IS NOT NULL"
        offences = self.first_rows("reward_text", not_numbers, reward_range)
        if offences:
            return rules.not_numbers(what, offences)
        offences = self.first_rows("reward", "reward IS NULL OR NOT isfinite(reward)", reward_range)
        if offences:
            return rules.not_finite(what, offences)
        offences = self.first_rows("reward", "units IS NULL", reward_range)
        return rules.outside_range(what, offences, reward_range)

    def _streamed(self, *, bounded: bool = False) -> Iterator[str]:
        """The columns of `_raw`, in SQL; if bounded, of a long text just enough to refuse it."""

        def limited(column: FileColumn, text: str) -> str:
            return f"left({text}, {LONGEST_TEXT + 1})" if bounded and column.size() else text

        reward, action = self._column_of["reward"], self._column_of["action"]
        yield limited(action, action.label())
        yield reward.reward()
        refused = f"left(CAST({reward.name} AS VARCHAR), {_LONGEST_REFUSED})"
        yield f"CASE WHEN {reward.reward()} IS NULL THEN {refused} END"
        for role in ("user", "id"):
            column = self._column_of.get(role)
            yield f"{'NULL' if column is None else limited(column, column.text())} AS {role}_text"
        if self._others is not None:
            texts = [column.text() for column in self._others]
            # A missing value is left out by concat. Not an expression per column: each would be a copy.
            parts = ", ".join(f"coalesce(length({text}) || ':', '-'), {text}" for text in texts)
            size = content_size(self._others) if bounded else None
            content = f"concat({parts})"
            too_long = f"WHEN {size} > {LONGEST_TEXT} THEN repeat('x', {LONGEST_TEXT + 1})"
            yield content if size is None else f"CASE {too_long} ELSE {content} END"
        for column, key in self._keys:
            yield column.reward() if key.edges else column.text()
            yield f"CASE WHEN {column.reward()} IS NULL THEN {column.text()} END" if key.edges else "NULL"

    def _kept_raw(self, positions: range | list[int], rows: list[tuple[Any, ...]]) -> RawRows | None:
        """The rows of a chunk that satisfy the conditions, as the last column says; None if none does."""
        if self._chooses:
            places = [place for place, row in enumerate(rows) if row[-1]]
            positions, rows = [positions[place] for place in places], [rows[place][:-1] for place in places]
        return self._raw(positions, rows) if rows else None

    def _raw(self, positions: range | list[int], rows: list[tuple[Any, ...]]) -> RawRows:
        actions, rewards, refused, users, ids, *rest = columns_of(rows)
        others = rest.pop(0) if self._others is not None else None
        return RawRows(
            positions,
            actions,
            _with_refused(rewards, refused),
            users,
            None if self.columns.id is None else ids,
            others,
            tuple(map(_with_refused, rest[::2], rest[1::2])),
        )


def _key_sql(column: FileColumn, key: KeyColumn) -> str:
    """The key of a row in SQL; NULL where it has none."""
    return interval_sql(key, column.reward()) if key.edges else column.text()


def _with_refused(numbers: list[Any], texts: list[str | None]) -> list[Any]:
    """Numbers, and in the place of those that are none the text that a message quotes."""
    if texts.count(None) == len(texts):
        return numbers
    return [number if text is None else text for number, text in zip(numbers, texts, strict=True)]
