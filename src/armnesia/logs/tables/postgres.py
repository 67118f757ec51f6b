"""Decisions in a table on a PostgreSQL server."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armnesia.core.errors import InvalidLogError, MissingExtraError
from armnesia.core.identifiers import SHORT_FLOATS_EXACT_BELOW
from armnesia.logs import rules
from armnesia.logs.columns import Columns, quoted
from armnesia.logs.conditions import Condition
from armnesia.logs.limits import LONGEST_TEXT, text_size
from armnesia.logs.manifests import source_name
from armnesia.logs.rows import Selection
from armnesia.logs.rules import described
from armnesia.logs.tables.source import TableSource, no_order, no_table
from armnesia.logs.urls import without_password

OLDER_VIEWS = """SELECT count(*) FROM (
    SELECT greatest(age(backend_xid), CASE WHEN datname IS NULL OR datname = current_database()
        THEN age(backend_xmin) END) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts
    UNION ALL SELECT age(xmin) FROM pg_replication_slots) AS view (age)
    WHERE age > age({}::xid)"""
"""How many transactions, prepared transactions and standbys keep VACUUM FULL from removing deleted rows.

What a transaction sees counts in its own database only. But the snapshot of VACUUM FULL itself begins at the
oldest transaction that writes, in any database of the server, and it keeps what its own snapshot sees. The
place is for the mark of a parameter.
"""
_TEXTS = {"text": "text", "varchar": "text", "name": "text", "bpchar": "bpchar"}
"""Types of text, and the type to compare them with: PostgreSQL ignores the padding of CHAR(n)."""
_INTEGERS = {"int2", "int4", "int8"}
_NUMBERS = {*_INTEGERS, "float4", "float8", "numeric"}
_FLOATABLE = _NUMBERS - {"numeric"}
"""Types of which every value has a float: a numeric may be too large for one."""
_ORDERED = {*_INTEGERS, "numeric", "text", "varchar", "date", "timestamp", "timestamptz"}
"""Types of a column by which rows may be ordered: their text reads as the same value again."""
_GROUPED = _NUMBERS | _TEXTS.keys() | {"bool", "bytea", "uuid", "date", "time", "timestamp", "timestamptz"}
"""Types of which equal values, to the server, have the same text."""
_MOMENT = """'YYYY-MM-DD"T"HH24:MI:SS.US'"""
_ORDERED_AS = {
    "date": "to_char({}, 'YYYY-MM-DD')",
    "timestamp": f"to_char({{}}, {_MOMENT})",
    "timestamptz": f"to_char(({{}}) AT TIME ZONE 'UTC', {_MOMENT})",
}
"""The highest value as text that means the same in sessions with another DateStyle or time zone."""
_SETTINGS = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
}
"""What values and names are as text must not depend on settings of a role, a database or a session."""
WITHOUT_INDEXES = "; ".join(
    f"SET LOCAL enable_{kind} = off" for kind in ("indexscan", "indexonlyscan", "bitmapscan")
)
"""An index may be damaged, or made by another version of a collation, as after an upgrade of the system."""
_FEWEST, _MOST = 64, 4096
"""How many rows are fetched first, and at most, at a time."""
_PIECE_TEXT = 1 << 20
"""More rows are fetched at a time while they have fewer characters than this."""
_TABLES = """
    SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND n.nspname <> 'pg_toast' AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname = %s DESC, pg_table_is_visible(c.oid) DESC, name LIMIT 1000
"""
"""The tables and views that this user may read, those of a given schema first."""
_NAME = """
    SELECT current_database(), format('%%I.%%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""
"""The database, and the table with the schema that it was found in."""
_MAY_ASK_SYSTEM = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
_SYSTEM = "SELECT system_identifier FROM pg_control_system()"
"""A number that each installation of PostgreSQL draws for itself; its replicas have the same."""
_READ_AS = {
    "bpchar": "text",  # the padding of CHAR(n) is not part of the value
    "float4": "float8",  # psycopg rounds a short float to fewer digits than a file has
}


class PostgresSource(TableSource):
    """A table or view on a PostgreSQL server.

    The password is in no description and no message. To open the source again, give it as PostgreSQL's own
    tools take it: PGPASSWORD, ~/.pgpass or a service file.
    """

    _parameter_mark = "${}"

    def __init__(self, url: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        try:
            import psycopg  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("A table on PostgreSQL", "vault") from error
        self._psycopg = psycopg
        self._url = url
        self._type_of: dict[str, str] = {}
        super().__init__(without_password(url), columns, table=table, whole_rows=whole_rows)
        for role in ("user", "id"):
            name = self.columns.named().get(role, "")
            if self._type_of.get(name) == "float4":
                self._check_short_floats(role, name)
        if self._type_of.get(self.columns.named().get("user", "")) == "float4":
            self.user_integers_below = SHORT_FLOATS_EXACT_BELOW

    def _check_short_floats(self, role: str, name: str) -> None:
        """Refuse names with other digits than PostgreSQL shows: 0.1 would be read as 0.10000000149011612."""
        value = quoted(name)
        rounded = f"{value} <> trunc({value}) AND {value}::text <> {value}::float8::text"
        odd = f"{rounded} OR abs({value}) >= {SHORT_FLOATS_EXACT_BELOW}"
        if next(self._pieces(f"SELECT 1 FROM {self._quoted} WHERE {odd} LIMIT 1"), None):
            raise InvalidLogError(
                f"{described(role, name)} is of type real and must hold numbers below"
                f" {SHORT_FLOATS_EXACT_BELOW} that PostgreSQL shows with all their digits, unlike 0.1, by"
                " which nobody would be found; make it numeric or text"
            )

    @property
    def url(self) -> str:
        """The address of the database, with the password if it was given."""
        return self._url

    def type_of(self, name: str) -> str:
        """The type of a column."""
        return self._type_of[name]

    def _available(self) -> list[str]:
        with self._connected() as connection:
            try:
                cursor = connection.execute(f"SELECT * FROM {self._quoted} LIMIT 0")
            except (self._psycopg.errors.UndefinedTable, self._psycopg.errors.InvalidSchemaName):
                connection.rollback()
                schema = self._table.rpartition(".")[0]
                existing = [name for (name,) in connection.execute(_TABLES, (schema,))]
                raise no_table(self._table, self._location, existing) from None
            types = connection.adapters.types
            for column in cursor.description:
                info = types.get(column.type_code)
                is_scalar = info is not None and info.oid == column.type_code  # not an array of the type
                self._type_of[column.name] = info.name if is_scalar else ""
            return [column.name for column in cursor.description]

    def selected(self, name: str) -> str:
        """A column in SQL; CHAR(n) without its padding, text by its bytes, and no longer than is accepted."""
        type_ = _READ_AS.get(self._type_of[name])
        value = quoted(name) if type_ is None else f"{quoted(name)}::{type_}"
        if self._type_of[name] in _TEXTS:  # a collation may take texts that differ for equal
            value = f'{value} COLLATE "C"'
        if self._type_of[name] not in _TEXTS.keys() | {"bytea"}:
            return value
        # A value that is too long is cut one character later, so that it is refused without being sent.
        return (
            f"CASE WHEN octet_length({value}) > {LONGEST_TEXT}"
            f" THEN substring({value} FROM 1 FOR {LONGEST_TEXT + 1}) ELSE {value} END"
        )

    def told_apart(self, name: str) -> str:
        """A column in SQL, with its text where equal values may have two, as with citext and intervals."""
        value = self.selected(name)
        return value if self.tells_apart(name) else f'{value}, {quoted(name)}::text COLLATE "C"'

    def tells_apart(self, name: str) -> bool:
        """Whether the server takes values of a column for equal only if their texts are."""
        # It takes 1.5 and 1.50 for equal, whose texts may be two.
        grouped = _GROUPED - {"numeric"} if self.decimals_as_written else _GROUPED
        return self._type_of[name] in grouped

    def _number(self, name: str) -> str:
        if self._type_of[name] not in _NUMBERS:
            return "NULL::float8"
        return f"nullif({quoted(name)}::float8, 'NaN')"

    def _mark(self, number: int) -> str:
        return f"${number}::float8"

    def _float(self, name: str) -> str:
        type_, value = self._type_of[name], quoted(name)
        if type_ == "bool":
            return f"{value}::int::float8"
        if type_ == "numeric":  # PostgreSQL refuses to round to 0 and to infinity
            size = f"abs({value})"
            nearest = f"WHEN {size} BETWEEN 2.5e-324 AND 1.7e308 THEN {value}::float8"
            return f"CASE WHEN {size} < 2.4e-324 THEN 0::float8 {nearest} END"
        return f"nullif({value}::float8, 'NaN')" if type_ in _FLOATABLE else "NULL::float8"

    def _rounded(self, number: str) -> str:
        return f"round({number})::int8"

    def _size(self, name: str) -> str:
        return (
            f"octet_length({quoted(name)})"
            if self._type_of[name] in _TEXTS.keys() | {"bytea"}
            else "NULL::int"
        )

    def _check_types(self) -> None:
        labels = [*self.columns.named().items(), *(("key", name) for name in self.keys)]
        for each in self.where:
            if not each.compares_numbers or self._type_of[each.column] not in _NUMBERS:
                labels.append(("where", each.column))
        for role, name in labels:
            if role != "reward" and not self.tells_apart(name):
                raise InvalidLogError(
                    f"{rules.described(role, name)} must hold text, numbers, booleans, dates, times or UUIDs"
                    f" to be added up by the server; it holds {self._type_of[name] or 'lists'}"
                )

    def _looks_up_by_index(self, role: str) -> bool:
        """Of integers and UUIDs: their order is no collation, which an upgrade of the system may change."""
        return self._type_of[self.columns.named()[role]] in {*_INTEGERS, "uuid"}

    def _pieces(
        self, sql: str, parameters: tuple[Any, ...] = (), *, by_index: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        # A raw cursor has parameters $1, so that a percent sign in a name needs no escape.
        raw_cursor = self._psycopg.RawServerCursor
        sql, parameters = self._bounded(sql, parameters)
        with self._connected() as connection, raw_cursor(connection, "armnesia_source") as cursor:
            if not by_index:
                connection.execute(WITHOUT_INDEXES)
            cursor.execute(sql, parameters)
            size = _FEWEST
            while rows := cursor.fetchmany(size):
                yield rows
                size = min(2 * size, _MOST) if text_size(rows) < _PIECE_TEXT else max(size // 4, 1)

    def _own_names(self) -> tuple[str, str | None]:
        with self._connected() as connection:
            database, table = connection.execute(_NAME, (self._named,)).fetchone()
            (may_ask,) = connection.execute(_MAY_ASK_SYSTEM).fetchone()
            (system,) = connection.execute(_SYSTEM).fetchone() if may_ask else (None,)
            address = f"postgresql://{connection.info.host}:{connection.info.port}/{database}"
        named = source_name({"location": address, "table": table})
        return named, None if system is None else f"postgresql:{system}/{database}#{table}"

    def _stored_value(self, column: str, highest: str) -> str:
        if self._type_of[column] not in _ORDERED:
            raise no_order(described("ordered-by", column), f"the type {self._type_of[column] or 'array'}")
        return _ORDERED_AS.get(self._type_of[column], "({})::text").format(highest)

    def _order_faults(self, column: str) -> tuple[str, ...]:
        name, highest = quoted(column), f"max({quoted(column)})"
        is_the_same = self._compared(highest, "=", f"({self._stored_value(column, highest)})")
        return f"count(*) - count({name})", is_the_same

    def _refuse_order(self, column: str, *faults: Any) -> None:
        missing, is_the_same = faults
        if missing:
            raise no_order(described("ordered-by", column), "a missing value")
        if not is_the_same:
            raise no_order(described("ordered-by", column), "infinity, or a year before Christ")

    def _compared(self, column: str, operator: str, value: str) -> str:
        assert self._order is not None  # it is the column
        type_ = self._type_of[self._order]
        if type_ == "timestamptz":
            return f"{column} {operator} ({value}::timestamp AT TIME ZONE 'UTC')"
        return f"{column} {operator} {value}::{type_}"

    def _condition(
        self, column: str, selection: Selection, parameter: int = 1
    ) -> tuple[str, tuple[Any, ...]]:
        type_, values, texts = self._type_of[column], list[Any](), selection.texts
        name, others = quoted(column), ""
        if selection.plain is not None and type_ in _TEXTS:
            others = f" OR {not_plain(name, selection.plain)}"
        if type_ in _TEXTS:
            type_, values = _TEXTS[type_], [text for text in texts if "\0" not in text]
        elif type_ in _INTEGERS:
            type_, values = "int8", [int(text) for text in texts if _is_int8(text)]
        elif type_ == "uuid":
            values = [text for text in texts if _is_uuid(text)]
        else:
            return f"{name} IS NOT NULL", ()
        return f"{name} = ANY (${parameter}::{type_}[]){others}", (values,)

    def _satisfied(self, condition: Condition, parameter: int) -> tuple[str, str, tuple[Any, ...]]:
        type_, name = self._type_of[condition.column], quoted(condition.column)
        values, present = list(condition.values), f"{name} IS NOT NULL"
        if condition.compares_numbers:
            if type_ not in _FLOATABLE:
                return present, "" if type_ == "numeric" else present, ()
            if condition.operator == "in":
                return f"{name}::float8 = ANY (${parameter}::float8[])", "", (values,)
            return f"{name}::float8 {condition.operator} ${parameter}::float8", "", (values[0],)
        if condition.operator not in ("=", "in"):
            return present, "", ()
        texts = Selection("where", frozenset(map(str, condition.values)))
        chosen, parameters = self._condition(condition.column, texts, parameter)
        return chosen, "", parameters

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            with connected(self._url, self._location) as connection:
                connection.read_only = True
                connection.isolation_level = self._psycopg.IsolationLevel.REPEATABLE_READ
                fix_settings(connection)
                yield connection
        except (self._psycopg.Error, NotImplementedError) as error:
            # The server's own message may quote a row, or parts of a misread password.
            raise InvalidLogError(f"source {self._location!r} {_meaning(error)}") from None


def connected(url: str, location: str, *, autocommit: bool = False) -> Any:
    """Connect to a server; refuse a database whose texts have no encoding: psycopg reads them as bytes."""
    import psycopg  # noqa: PLC0415 (an extra)

    # The encoding is part of the connection, where it goes before settings of a role.
    connection = psycopg.connect(
        url, application_name="armnesia", autocommit=autocommit, client_encoding="utf8"
    )
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        connection.close()
        raise InvalidLogError(
            f"source {location!r} has the encoding SQL_ASCII, in which nothing says what characters a name"
            " has; copy the table to a database with the encoding UTF8"
        )
    return connection


def fix_settings(connection: Any) -> None:
    """Fix, until the end of the transaction, the settings that texts of values and names depend on."""
    connection.execute("; ".join(f"SET LOCAL {name} = '{value}'" for name, value in _SETTINGS.items()))


def not_plain(column: str, plain: str) -> str:
    """SQL that holds for texts that do not match a regular expression of plain names.

    Of a collation that takes different texts for equal, PostgreSQL compares no text with an expression.
    """
    return f"{column}::text COLLATE \"C\" !~ '\\A({plain})\\Z'"


def _is_int8(text: str) -> bool:
    return len(text) <= 20 and text.removeprefix("-").isdecimal() and -(2**63) <= int(text) < 2**63


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _meaning(error: Any) -> str:
    match getattr(error, "sqlstate", None):
        # psycopg's own, for a date such as infinity
        case None if type(error).__name__ in ("DataError", "NotImplementedError"):
            return "cannot be read: it holds a value that Python has no type for"
        case None:  # whatever the server says when it refuses a connection
            return (
                "cannot be opened: is the server running, and are its address, the names of database and"
                " user, and the password right?"
            )
        case "42501":
            return "cannot be read: this user has no permission"
        case code:
            return f"cannot be read (SQLSTATE {code})"
