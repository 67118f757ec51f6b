"""What a vault without rows asks of files, answered by DuckDB: sums of rows, rows of people, and names."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, Protocol

from armnesia.core.identifiers import PLAIN, UserType, looks_like_float
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.counting import CountedRows, FoundRows, RowRules, Sums
from armnesia.logs.files.decisions import FileDecisions, KeyedFiles
from armnesia.logs.files.duckdb_values import INTEGERS, FileColumn
from armnesia.logs.files.label_lookup import Lookup
from armnesia.logs.key_columns import MOST_DECISIONS, KeyColumn
from armnesia.logs.limits import LONGEST_TEXT
from armnesia.logs.rules import Offences
from armnesia.logs.user_names import not_integers
from armnesia.logs.values import arm_of_text

_TALLY = f"count(*), sum(units), bool_and(units IN (0, {UNIT})), count(units)"
_PLAIN_INTEGER = "0|-?[1-9][0-9]{0,37}"
_ANY_INTEGER = 64
"""More characters than any integer of `_PLAIN_INTEGER` has: a longer text need not be compared with it."""
_WHOLE_FLOAT = "-?[0-9]+\\.0*|-?[0-9](\\.[0-9]+)?[eE]\\+[0-9]+"
"""The patterns of `core/identifiers.py`."""


class CountedFiles(KeyedFiles, Protocol):
    """Files of a log; see `FileSource`."""

    key_columns: tuple[KeyColumn, ...]
    user_integers_below: int | None

    def column_of(self, role: str) -> FileColumn | None:
        """The column of a role; None if there is none."""

    def described(self, role: str) -> str:
        """Name a column in a message."""

    def check_sizes(self, *roles: str) -> None:
        """Refuse files with long texts in the columns of these roles."""

    def of_labels(self, role: str, texts: Collection[str]) -> Lookup:
        """The rows with these labels, for `query`."""

    def stream_texts(self, sql: str, *, role: str, **parameters: Any) -> Iterator[list[str]]:
        """Run SQL with one column over `labels`, in chunks and in constant memory; see `FileSource`."""

    def query_texts(self, sql: str, *, role: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run SQL over `labels`, on all processors."""

    def first_rows(
        self, value: str, condition: str, reward_range: tuple[float, float], **parameters: Any
    ) -> list[tuple[int, Any]]:
        """The first rows that satisfy a condition on decisions, and a value of each."""


_SHOWN = 1000
"""Names that rows are looked up of, for a remark: more of them would say no more."""


class _Names(NamedTuple):
    one_spelling: bool
    some_missing: bool


def count_files(
    files: CountedFiles, totals: ArmStatistics, row_rules: RowRules, n_rows: int, *, checked_before: bool
) -> CountedRows:
    """The sums of checked rows, whose `totals` are known; refuse users and ids that no row may have."""
    names = _Names(one_spelling=True, some_missing=False)
    if not checked_before:
        _refuse_missing_ids(files, row_rules)
        names = _check_names(files, row_rules)
    if not files.key_columns:
        own = zip(totals.counts.tolist(), totals.sums.tolist(), strict=True)
        sums: Sums = {((), arm): (count, int(units)) for arm, (count, units) in enumerate(own) if count}
        return CountedRows(sums, n_rows, *names)
    if not totals.total:
        return CountedRows({}, n_rows, *names)
    parted = FileDecisions.of_files(
        files.key_columns, files, totals, has_users=False, at_most=max(MOST_DECISIONS, int(totals.total))
    )
    counts, units = parted.statistics.counts.tolist(), parted.statistics.sums.tolist()
    sums = {
        (key, arm): (count, int(units[place][arm]))
        for place, key in enumerate(parted.keys)
        for arm, count in enumerate(counts[place])
        if count
    }
    return CountedRows(sums, n_rows, *names)


def _refuse_missing_ids(files: CountedFiles, row_rules: RowRules) -> None:
    if files.column_of("id") is None:
        return
    files.check_sizes("id")
    sql = "SELECT count(*) FROM decisions WHERE id_text IS NULL"
    ((missing,),) = files.query(sql, row_rules.reward_range)
    if missing:
        offences = files.first_rows("NULL", "id_text IS NULL", row_rules.reward_range)
        raise rules.missing_ids(files.described("id"), offences)


def _check_names(files: CountedFiles, row_rules: RowRules) -> _Names:
    """Whether each name has one spelling, and whether rows have none; refuse what is no name of the type."""
    column = files.column_of("user")
    if column is None:
        return _Names(one_spelling=True, some_missing=True)
    user_type, refused, floats, spaced = row_rules.names.type, set[str](), set[str](), set[str]()
    odd = _is_odd(files, column, user_type)
    if column.type == "VARCHAR":  # lengths are looked at together with the rest, because texts take long
        odd = f"strlen({{0}}) > {LONGEST_TEXT} OR {odd}"
    else:
        files.check_sizes("user")
    user = "user_value" if column.type in {*INTEGERS, "VARCHAR"} else "user_text"
    ((n_rows, n_named),) = files.query(
        f"SELECT count(*), count({user}) FROM decisions", row_rules.reward_range
    )
    n_odd = 0
    if odd != "false":  # DuckDB compares patterns with few texts in a condition only, not in a filter
        sql = f"SELECT count(*) FROM labels WHERE {odd.format('label')}"
        ((n_odd,),) = files.query_texts(sql, role="user")
    if n_odd:
        files.check_sizes("user")
    changed = empty = False
    for text in _distinct_names(files, odd) if n_odd else ():
        name = user_type.normalised(text)
        if name is None or _is_inexact(files, user_type, name):
            refused.add(text)
            continue
        changed, empty = changed or name != text, empty or not name
        if len(floats) < _SHOWN and user_type is not UserType.INTEGER and looks_like_float(text):
            floats.add(text)
        if len(spaced) < _SHOWN and user_type is UserType.TEXT and text != text.strip():
            spaced.add(text)
    if refused:
        raise not_integers(
            files.described("user"), _rows_of(files, refused, row_rules), files.user_integers_below
        )
    names = row_rules.names
    names.float_row = _first(_rows_of(files, floats, row_rules), names.float_row)
    names.spaced_row = _first(_rows_of(files, spaced, row_rules), names.spaced_row)
    return _Names(not changed, some_missing=empty or n_named < n_rows)


def _is_odd(files: CountedFiles, column: FileColumn, user_type: UserType) -> str:
    """Whether a name may not be written as names of the type usually are, in SQL; `{0}` stands for it.

    All names are looked at, so that patterns, which take long, are compared with few of them.
    """
    if column.type in INTEGERS:
        return "false"
    below = files.user_integers_below
    if user_type is UserType.INTEGER:
        inexact = "" if below is None else f" OR abs(TRY_CAST({{0}} AS DOUBLE)) >= {below}"
        return f"{_other_spelling(column, user_type)}{inexact}"
    # Numbers begin with a sign or a digit, and ":" is the character after 9.
    floats = f"({{0}} BETWEEN '-' AND ':' AND regexp_full_match({{0}}, '{_WHOLE_FLOAT}'))"
    return f"{_other_spelling(column, user_type)} OR {floats}"


def _other_spelling(column: FileColumn, user_type: UserType) -> str:
    """Whether a name may be another one's spelling, in SQL; `{0}` stands for it.

    Text may be if it has characters outside ASCII, or begins or ends with white space, which is up to "!".
    """
    if column.type in INTEGERS or user_type not in PLAIN:
        return "false"
    if user_type is UserType.INTEGER:
        return f"NOT regexp_full_match({{0}}, '{PLAIN[user_type]}')"
    return "strlen({0}) <> length({0}) OR {0} < '!' OR substr({0}, -1) < '!'"


def _distinct_names(files: CountedFiles, condition: str) -> Iterator[str]:
    sql = f"SELECT DISTINCT label FROM labels WHERE {condition.format('label')}"
    for texts in files.stream_texts(sql, role="user"):
        yield from texts


def _is_inexact(files: CountedFiles, user_type: UserType, name: str) -> bool:
    below = files.user_integers_below
    return user_type is UserType.INTEGER and below is not None and bool(name) and abs(int(name)) >= below


def _rows_of(files: CountedFiles, texts: Collection[str], row_rules: RowRules) -> Offences:
    if not texts:
        return []
    condition = "user_text IN (SELECT unnest(CAST($texts AS VARCHAR[])))"
    return files.first_rows("user_text", condition, row_rules.reward_range, texts=sorted(texts))


def _first(offences: Offences, known: int | None) -> int | None:
    return known if known is not None else next((row for row, _ in offences), None)


def user_type_of(files: CountedFiles) -> UserType | None:
    """The type that a vault takes from these users, as `first_user_type` does; None if there are none."""
    column = files.column_of("user")
    assert column is not None  # it is asked for only then
    if column.type not in INTEGERS:
        if column.type != "VARCHAR":
            files.check_sizes("user")
        sql = (
            f"SELECT left(label, {_ANY_INTEGER}) FROM labels"
            f" WHERE strlen(label) > {_ANY_INTEGER} OR NOT regexp_full_match(label, $plain)"
        )
        found = files.query_texts(f"{sql} LIMIT 1", role="user", plain=_PLAIN_INTEGER)
        if found and not found[0][0].strip():  # no name at all: look at all others
            sql = sql.replace("SELECT", "SELECT DISTINCT", 1)
            found = files.query_texts(sql, role="user", plain=_PLAIN_INTEGER)
        if any(text and not text.isspace() for (text,) in found):
            return UserType.TEXT
    sql = "SELECT label FROM labels WHERE regexp_full_match(label, $plain) LIMIT 1"
    return UserType.INTEGER if files.query_texts(sql, role="user", plain=_PLAIN_INTEGER) else None


def find_in_files(
    files: CountedFiles,
    role: str,
    texts: Collection[str],
    row_rules: RowRules,
    *,
    every_spelling: bool,
    with_ids: bool,
) -> list[FoundRows]:
    """Add up rows of given users, or with given ids, by user, key and arm, and `with_ids` by id."""
    column, user_type = files.column_of(role), row_rules.names.type
    assert column is not None  # the caller has asked
    lookup = files.of_labels(role, texts)
    if every_spelling and role == "user" and column.type == "VARCHAR":
        odd = _other_spelling(column, user_type).format(column.text())
        lookup = Lookup(f"({lookup.condition} OR {odd})", lookup.parameters)
    roles = [each for each in ("user", "id") if files.column_of(each) is not None]
    roles = [each for each in roles if each == "user" or with_ids or role == "id"]
    keys = [f"key_{place}" for place in range(len(files.key_columns))]
    asked = [*map(files.text_of, roles), *keys, files.text_of("action"), _TALLY]
    groups = [*(f"{each}_value" for each in roles), *keys, "action_value"]
    found = files.query(
        f"SELECT {', '.join(asked)} FROM decisions GROUP BY {', '.join(groups)}",
        row_rules.reward_range,
        found=lookup,
    )
    arm_of, wanted, result = arm_of_text(row_rules.actions), set(texts), []
    for row in found:
        of_role = dict(zip(roles, row, strict=False))
        *key, action = row[len(roles) : len(roles) + len(keys) + 1]
        count, units, extremes, valid = row[-4:]
        user = of_role.get("user")
        name = None if user is None else user_type.normalised(user) or None
        if (name if role == "user" else of_role.get("id")) not in wanted:
            continue  # a name that is written in an unusual way, and is another one
        if action not in arm_of or valid != count or None in key:
            raise rules.changed_rows(files.described(role))
        id_ = of_role.get("id") if with_ids else None
        result.append(FoundRows(name, id_, tuple(key), arm_of[action], count, int(units), extremes))
    return result


def labels_like(files: CountedFiles, role: str, texts: Collection[str], user_type: UserType) -> set[str]:
    """The labels that are among these texts, or may be one of them in another spelling.

    A text that DuckDB makes of every value first is compared: so it leaves out no part of a file by the
    file's own statistics, and what they say need not be true.
    """
    column = files.column_of(role)
    assert column is not None  # the caller has asked
    odd = _other_spelling(column, user_type) if role == "user" else "false"
    sql = (
        "SELECT DISTINCT label FROM labels WHERE concat(label, '') IN"
        f" (SELECT unnest(CAST($texts AS VARCHAR[]))) OR {odd.format('label')}"
    )
    files.check_sizes(role)
    return {label for (label,) in files.query_texts(sql, role=role, texts=sorted(texts))}
