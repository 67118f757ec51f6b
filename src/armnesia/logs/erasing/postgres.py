"""Erasing rows of a table on a PostgreSQL server: by one transaction; a purge writes the table again.

Names reach the server by COPY into a temporary table. Unlike parameters of a statement, what is copied is in
no log of the server, whatever its settings.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs.columns import quoted
from armnesia.logs.erasing.eraser import OTHER_COLUMNS, not_applied, rows_left
from armnesia.logs.erasing.names_in_texts import named_in
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.erasing.table_eraser import NAMED_BY_DEFINITION, TableEraser
from armnesia.logs.limits import CHUNK
from armnesia.logs.tables.postgres import (
    OLDER_VIEWS,
    WITHOUT_INDEXES,
    PostgresSource,
    connected,
    fix_settings,
    not_plain,
)
from armnesia.logs.values import label_text

_TEXTS = {"text", "varchar"}
_COMPARED_AS = {
    "text": "text",
    "varchar": "text",
    "int2": "int8",
    "int4": "int8",
    "int8": "int8",
    "uuid": "uuid",
}
"""Types whose text reads as the same value, and the type to compare with."""
_TABLE = "SELECT relkind, relispartition FROM pg_class WHERE oid = %s::regclass"
_PARTITIONED_BY = """
    WITH RECURSIVE above (oid) AS (
        SELECT %(table)s::regclass::oid
        UNION SELECT inhparent FROM pg_inherits JOIN above ON inhrelid = above.oid
    ), tree (oid) AS (
        SELECT oid FROM above
        UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
    )
    SELECT count(*) FROM pg_partitioned_table
    JOIN tree ON tree.oid = partrelid
    JOIN pg_attribute ON attrelid = partrelid AND attname = %(column)s AND NOT attisdropped
    WHERE partstrat <> 'h' AND (attnum = ANY (partattrs::int2[]) OR EXISTS (
        SELECT FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND refclassid = classid AND deptype = 'i'
        AND objid = partrelid AND objsubid = attnum AND refobjid = partrelid AND refobjsubid = 0
    ))
"""
"""How many tables among a table, those that it is part of and their parts are partitioned by a column.

An expression of a key depends on its columns, which pg_depend has the other way around. Hashes do not show
values.
"""
_FILES = """
    WITH RECURSIVE tree (oid) AS (
        SELECT %s::regclass::oid
        UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
    )
    SELECT tree.oid::int8, pg_relation_filenode(tree.oid)::int8, format('%%I.%%I', nspname, relname)
    FROM tree JOIN pg_class ON pg_class.oid = tree.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind <> 'p' ORDER BY 1
"""
"""The table, its partitions and those that inherit from it, as far as they may have rows of their own.

With the number of each one's file, which is another after it was written again, and null if it has none.
"""
_DEFINITIONS = """
    WITH RECURSIVE tree (oid) AS (
        SELECT %s::regclass::oid
        UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
    ), types (oid) AS (
        SELECT atttypid FROM tree JOIN pg_attribute ON attrelid = tree.oid
        UNION SELECT part FROM types JOIN pg_type ON pg_type.oid = types.oid,
            LATERAL (VALUES (typbasetype), (typelem)) AS parts (part)
    ), constraints (oid) AS (
        SELECT own.oid FROM pg_constraint AS own
        WHERE conrelid IN (SELECT oid FROM tree) OR contypid IN (SELECT oid FROM types WHERE oid <> 0)
    ), described (oid) AS (
        SELECT oid FROM tree UNION SELECT oid FROM types UNION SELECT oid FROM constraints
        UNION SELECT indexrelid FROM tree JOIN pg_index ON indrelid = tree.oid
        UNION SELECT own.oid FROM tree JOIN pg_trigger AS own ON tgrelid = tree.oid
        UNION SELECT own.oid FROM tree JOIN pg_policy AS own ON polrelid = tree.oid
    )
    SELECT pg_get_constraintdef(oid) FROM constraints
    UNION SELECT conname FROM constraints JOIN pg_constraint USING (oid)
    UNION SELECT pg_get_indexdef(indexrelid) FROM tree JOIN pg_index ON indrelid = tree.oid
    UNION SELECT pg_get_triggerdef(own.oid) FROM tree JOIN pg_trigger AS own ON tgrelid = tree.oid
    UNION SELECT pg_get_expr(adbin, adrelid) FROM tree JOIN pg_attrdef ON adrelid = tree.oid
    UNION SELECT attname FROM tree JOIN pg_attribute ON attrelid = tree.oid AND attnum > 0
    UNION SELECT relname FROM tree JOIN pg_class USING (oid)
    UNION SELECT pg_get_expr(relpartbound, oid) FROM tree JOIN pg_class USING (oid)
    UNION SELECT typname FROM types JOIN pg_type USING (oid)
    UNION SELECT enumlabel FROM types JOIN pg_enum ON enumtypid = types.oid
    UNION SELECT concat_ws(' ', polname, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
        FROM tree JOIN pg_policy ON polrelid = tree.oid
    UNION SELECT pg_get_ruledef(objid) FROM tree JOIN pg_depend ON refobjid = tree.oid
        WHERE refclassid = 'pg_class'::regclass AND classid = 'pg_rewrite'::regclass
    UNION SELECT description FROM described JOIN pg_description ON objoid = described.oid
"""
"""What the catalogue says of the table and of those whose rows it shows, and of their columns' types.

Constraints, indexes, triggers, defaults, policies, rules and views that read it, by name and definition;
names of columns and partitions; labels of enumerations; comments.
"""
_HEIRS_WITH_COLUMNS = """
    WITH RECURSIVE tree (oid) AS (
        SELECT %(table)s::regclass::oid
        UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
    )
    SELECT format('%%I.%%I', nspname, relname)
    FROM tree JOIN pg_class ON pg_class.oid = tree.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE EXISTS (
        SELECT FROM pg_attribute AS own
        WHERE own.attrelid = tree.oid AND own.attnum > 0 AND NOT own.attisdropped AND NOT EXISTS (
            SELECT FROM pg_attribute AS shared
            WHERE shared.attrelid = %(table)s::regclass AND shared.attnum > 0 AND shared.attname = own.attname
        )
    )
    ORDER BY 1
"""
"""The tables that inherit from the table and have columns that it lacks."""
_RIGHTS = """
    SELECT NOT has_table_privilege(%(table)s, 'DELETE'),
        NOT has_database_privilege(current_database(), 'TEMP'),
        row_security_active(%(table)s::regclass),
        current_setting('transaction_read_only')::boolean,
        EXISTS (
            SELECT FROM pg_class JOIN pg_publication_tables ON schemaname = relnamespace::regnamespace::text
                AND tablename = relname JOIN pg_publication USING (pubname)
            WHERE pg_class.oid = %(table)s::regclass AND pubdelete AND (relreplident = 'n'
                OR relreplident = 'd' AND NOT EXISTS (
                    SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary))
        )
"""
_MISSING_RIGHTS = (
    "this role may not delete its rows; GRANT DELETE on the table",
    "this role may not make temporary tables, by which names are handed over; GRANT TEMP on the database",
    "policies (row level security) would hide rows from this role; use the owner, or one with BYPASSRLS",
    "this role is set to read only (default_transaction_read_only)",
    "it is published, and has no replica identity, without which PostgreSQL deletes nothing",
)
"""What is said where the values of `_RIGHTS` are true."""
_WITH_INDEXES = WITHOUT_INDEXES.replace("= off", "TO DEFAULT")
_MOST_DEFERRALS = 3
_DEAD = "deleted rows are in the table's files until it is purged"
_SEEN = "deleted rows are in the table's files: other transactions could still see them when it was purged"
_NOT_WRITTEN = (
    "deleted rows are in the files of the table, of its partitions, or of tables that inherit from it: not"
    " all could be written again, which VACUUM FULL does for their owner, and not for foreign tables"
)
_COPIES = (
    "the write-ahead log, its archive and replicas of the server hold the rows until they are recycled",
    "samples of the planner (pg_statistic) may name people until VACUUM FULL pg_statistic; those of columns"
    " with SET STATISTICS 0, which ANALYZE does not take again, also after it",
    "other tables that hold names, and backups, remain",
    OTHER_COLUMNS,
)


class PostgresEraser(TableEraser[Any]):
    """A table on a PostgreSQL server, of which the user may delete rows."""

    _kind = "postgresql"
    _remains = (_DEAD, *_COPIES)

    def __init__(self, source: PostgresSource) -> None:
        import psycopg  # noqa: PLC0415 (an extra, which the source has needed already)

        super().__init__(source)
        self._psycopg = psycopg
        self._source = source
        with self._connected() as connection:
            found = connection.execute(_TABLE, (source.quoted_table,)).fetchone()
            asked = {"table": source.quoted_table, "column": source.columns.named().get("user")}
            (partitioned,) = connection.execute(_PARTITIONED_BY, asked).fetchone()
        if partitioned:
            raise UnsupportedError(
                f"rows of {self._location!r} cannot be erased: it is partitioned by the user column, so that"
                " bounds of partitions name people; partition it by another column, or by hash"
            )
        if found is None or found[0] not in ("r", "p"):
            raise UnsupportedError(
                f"rows of {self._location!r} cannot be erased: it must be a table; it is a view or a foreign"
                " table"
            )

    def check_rewritable(self) -> None:
        """Refuse a table of which this role may not delete rows, or not all that are meant."""
        with self._connected() as connection:
            found = connection.execute(_RIGHTS, {"table": self._table}).fetchone()
        for is_missing, sentence in zip(found, _MISSING_RIGHTS, strict=True):
            if is_missing:
                raise UnsupportedError(f"rows of {self._location!r} cannot be erased: {sentence}")

    def apply(self, plan: ErasurePlan, people: People) -> Erasure:
        """Delete the rows in one transaction; look again when it is committed, which runs triggers too."""
        erasure = super().apply(plan, people)
        if self.plan(people) is not None:
            raise rows_left(self._location)
        return erasure

    def purge(self, plan: ErasurePlan, people: People, *, ignore_retention: bool = False) -> Erasure:
        """Write the table again, without the space of deleted rows; it is locked meanwhile."""
        plan.check(self._kind, self._location)
        if self.plan(people) is not None:
            raise not_applied()
        with self._connected(autocommit=True) as connection:
            (now,) = connection.execute("SELECT pg_current_xact_id()::xid::text").fetchone()
            (viewers,) = connection.execute(OLDER_VIEWS.format("%s"), (now,)).fetchone()
            all_written = self._write_again(connection)
            definitions = connection.execute(_DEFINITIONS, (self._table,)).fetchall()
        is_named = named_in((text for (text,) in definitions if text), people)
        found = {_SEEN: viewers, _NOT_WRITTEN: not all_written, NAMED_BY_DEFINITION: is_named}
        held = tuple(sentence for sentence, holds in found.items() if holds)
        state = SourceState.LOGICALLY_DELETED if held else SourceState.PURGED
        return Erasure(state, remains=(*held, *_COPIES))

    def _write_again(self, connection: Any) -> bool:
        """Let the server write the table again, and those whose rows it shows; whether all were.

        Before version 18 the server leaves out tables that inherit from it, and in any version, with no more
        than a warning, those of other owners.
        """
        before = self._files(connection)
        connection.execute(f"VACUUM (FULL, ANALYZE) {self._table}")
        for oid, (file, name) in self._files(connection).items():
            if before.get(oid) == (file, name):
                connection.execute(f"VACUUM (FULL, ANALYZE) {name}")
        after = self._files(connection)
        return all(
            file is not None and before.get(oid) != (file, name) for oid, (file, name) in after.items()
        )

    def _files(self, connection: Any) -> dict[int, tuple[int | None, str]]:
        """By the id of a table: the number of its file, and its name."""
        return {oid: (file, name) for oid, file, name in connection.execute(_FILES, (self._table,))}

    def _names(self, connection: Any, people: People) -> frozenset[str]:
        """The values of the column, as PostgreSQL writes them, that are names of these people."""
        name = people.check_column(self._source)
        condition = self._narrowed(connection, name, people)
        column, shown = quoted(name), self._source.selected(name)
        as_text = f'{column}::text COLLATE "C"'
        # Values of some types, such as json, cannot be compared.
        distinct = "DISTINCT" if self._source.tells_apart(name) else f"DISTINCT ON ({as_text})"
        sql = (
            f"SELECT {distinct} {as_text}, {shown} FROM {self._table}"
            f" WHERE {column} IS NOT NULL AND ({condition})"
        )
        keys: list[str] = []
        connection.execute(WITHOUT_INDEXES)
        with self._psycopg.RawServerCursor(connection, "armnesia_names") as cursor:
            cursor.execute(sql)
            while rows := cursor.fetchmany(CHUNK):
                labelled = [(key, text) for key, value in rows if (text := label_text(value)) is not None]
                chosen = set(people.among([text for _, text in labelled]))
                keys += [key for key, text in labelled if text in chosen]
        connection.execute(_WITH_INDEXES)  # the server's own look-ups by foreign keys need them
        return frozenset(keys)

    def _narrowed(self, connection: Any, name: str, people: People) -> str:
        """SQL that holds for every row of people whose names are known; they are copied to the server."""
        type_ = self._source.type_of(name)
        if people.selection is None or type_ not in _COMPARED_AS:
            return "true"
        _, parameters = self._source.condition(people.selection)  # only values that the type can have
        self._copy(connection, "armnesia_wanted", name, map(str, parameters[0]))
        condition = f"{quoted(name)} IN (SELECT key::{_COMPARED_AS[type_]} FROM pg_temp.armnesia_wanted)"
        if people.selection.plain is not None and type_ in _TEXTS:
            condition += f" OR {not_plain(quoted(name), people.selection.plain)}"
        return condition

    def _delete(self, connection: Any, people: People, names: frozenset[str]) -> None:
        name = people.check_column(self._source)
        self._copy(connection, "armnesia_erased", name, names)
        wanted = "SELECT key FROM pg_temp.armnesia_erased"
        # By bytes: two names that a collation takes for equal are two people. No index answers this.
        self._delete_checked(connection, f'{quoted(name)}::text COLLATE "C" IN ({wanted})')

    def _finish_triggers(self, connection: Any) -> None:
        # Repeated, because a trigger may defer again what its own changes set off.
        for _ in range(_MOST_DEFERRALS):
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def _checksum(self, connection: Any, condition: str, parameters: Sequence[Any]) -> tuple[int, int]:
        # The text of a whole row, by its bytes: equal values such as 1.5 and 1.50 may have two texts.
        hashed = 'hashtextextended((armnesia_row.*)::text COLLATE "C", 0)::numeric'
        heirs = [name for (name,) in connection.execute(_HEIRS_WITH_COLUMNS, {"table": self._table})]
        count = total = 0
        connection.execute(WITHOUT_INDEXES)
        # Rows of a table that inherits are counted twice: with the columns of the table, and with their own.
        for table in (self._table, *(f"ONLY {heir}" for heir in heirs)):
            asked = f"SELECT count(*), coalesce(sum({hashed}), 0) FROM {table} AS armnesia_row"
            found = connection.execute(f"{asked} WHERE {condition}", tuple(parameters)).fetchone()
            count, total = count + int(found[0]), total + int(found[1])
        connection.execute(_WITH_INDEXES)
        return count, total

    def _copy(self, connection: Any, table: str, name: str, keys: Iterable[str]) -> None:
        """Hand texts over to a temporary table, which is gone at the end of the transaction.

        They have the collation of the column that they are compared with.
        """
        connection.execute(f"DROP TABLE IF EXISTS pg_temp.{table}")
        made = f"SELECT {quoted(name)}::text AS key FROM {self._source.quoted_table} WITH NO DATA"
        connection.execute(f"CREATE TEMPORARY TABLE {table} ON COMMIT DROP AS {made}")
        with connection.cursor() as cursor, cursor.copy(f"COPY pg_temp.{table} FROM STDIN") as copy:
            for key in keys:
                copy.write_row((key,))

    def _writing(self) -> AbstractContextManager[Any]:
        return self._connected()

    @contextmanager
    def _connected(self, *, autocommit: bool = False) -> Iterator[Any]:
        try:
            with connected(self._source.url, self._location, autocommit=autocommit) as connection:
                if not autocommit:
                    connection.isolation_level = self._psycopg.IsolationLevel.REPEATABLE_READ
                    fix_settings(connection)
                    # Refused, if policies would hide rows of the table.
                    connection.execute("SET LOCAL row_security = off")
                yield connection
        except self._psycopg.Error as error:
            # The server's own message may quote a row.
            reason = f"SQLSTATE {error.sqlstate}" if error.sqlstate else type(error).__name__
            raise InvalidLogError(
                f"rows of {self._location!r} cannot be erased: PostgreSQL failed ({reason})"
            ) from None
