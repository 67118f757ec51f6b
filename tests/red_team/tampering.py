"""What somebody who may write the database, but has no keys, changes: its schema, and older rows put back."""

import random
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import cycle, islice
from pathlib import Path

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Vault
from tests.databases import Place, fresh_place
from tests.red_team.attacks import Trial, Verdict
from tests.red_team.target import Target, dump
from tests.vault.changed_values import CHANGES, make_vault, operations

COPYING = (
    "CREATE TABLE copied (identity, owner)",
    "CREATE TRIGGER copying AFTER DELETE ON record BEGIN"
    " INSERT INTO copied VALUES (old.identity, old.owner); END",
)
_AS_STATISTICS = (
    "CREATE TRIGGER sqlite_stat1 AFTER DELETE ON record BEGIN INSERT INTO sqlite_stat1 (tbl, idx, stat)"
    " VALUES (''kept'', NULL, hex(old.identity) || '' '' || hex(old.owner)); END"
)
SCHEMA_CHANGES = {
    "a trigger that copies deleted rows": COPYING,
    "a trigger that undoes deletions": (
        "CREATE TRIGGER undoing AFTER DELETE ON record BEGIN"
        " INSERT INTO record VALUES (old.identity, old.owner, old.arm, old.units); END",
    ),
    "a view in a table's place": (
        "ALTER TABLE suppressed RENAME TO hidden",
        "CREATE VIEW suppressed AS SELECT * FROM hidden WHERE false",
    ),
    "a column more": ("ALTER TABLE record ADD COLUMN name TEXT",),
    "a column renamed": ("ALTER TABLE record RENAME COLUMN units TO unit",),
    "an index less": ("DROP INDEX record_owner",),
    "an index more": ("CREATE INDEX spy ON record (owner, units)",),
    "an index on an expression": (
        "DROP INDEX record_owner",
        "CREATE INDEX record_owner ON record (owner) WHERE arm = 0",
    ),
    "a table less": ("DROP TABLE owner",),
    "a table more": ("CREATE TABLE record_backup AS SELECT * FROM record",),
    "samples of the keys": (
        "PRAGMA writable_schema = ON",
        "CREATE TABLE samples AS SELECT owner FROM record",
    ),
    "statistics": ("ANALYZE",),
    "a trigger with the name of statistics": (
        "ANALYZE",
        "PRAGMA writable_schema = ON",
        f"INSERT INTO sqlite_master VALUES ('trigger', 'sqlite_stat1', 'record', 0, '{_AS_STATISTICS}')",
        "PRAGMA schema_version = 900",
    ),
    "an index without a statement": (
        "PRAGMA writable_schema = ON",
        "INSERT INTO sqlite_master VALUES ('index', 'sqlite_autoindex_spy_1', 'record', 0, NULL)",
        "PRAGMA schema_version = 900",
    ),
    "a constraint less": (
        "ALTER TABLE request RENAME TO old_request",
        "CREATE TABLE request (digest BLOB PRIMARY KEY, sequence BIGINT, opening TEXT NOT NULL)",
        "INSERT INTO request SELECT * FROM old_request",
        "DROP TABLE old_request",
    ),
}


def schema(trials: int, seed: int) -> Iterator[Trial]:
    """Change the schema."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        for what, statements in islice(cycle(SCHEMA_CHANGES.items()), max(trials, len(SCHEMA_CHANGES))):
            copy = target.copy(target.folder / "attacked")
            _run(copy.path, statements)
            yield copy.verdict(what, draw.choice(sorted(target.rows)))


def schema_of_an_open_vault(trials: int, seed: int) -> Iterator[Trial]:
    """Change the schema while a process has checked it, and set SQLite's counter of changes back."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        for what, statements in islice(cycle(SCHEMA_CHANGES.items()), trials):
            copy = target.copy(target.folder / "attacked")
            with copy.open() as vault:
                vault.decide()
                with closing(sqlite3.connect(copy.path)) as other:
                    ((number,),) = other.execute("PRAGMA schema_version").fetchall()
                _run(copy.path, statements)
                refused_before = draw.random() < 0.5
                if refused_before:
                    with suppress(ArmnesiaError):
                        vault.decide()
                _run(copy.path, (f"PRAGMA schema_version = {number}",))
                yield _forget_and_verify(vault, what, draw.choice(sorted(target.rows)))


def _forget_and_verify(vault: Vault, what: str, victim: str) -> Trial:
    try:
        vault.forget(users=[victim])
        return Trial(what, Verdict.MISSED, "somebody was forgotten under a changed schema")
    except ArmnesiaError:
        pass
    try:
        problems = vault.verify().problems
    except ArmnesiaError as error:
        return Trial(what, Verdict.REFUSED, str(error))
    if problems:
        return Trial(what, Verdict.CAUGHT, problems[0])
    return Trial(what, Verdict.MISSED, "verify found nothing")


def rows(trials: int, seed: int) -> Iterator[Trial]:
    """Delete, double, exchange or move a random row of a random table, or change one of its values."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        tables = [name for name, found in target.tables.items() if found and name != "sqlite_master"]
        for trial in range(trials):
            table = tables[trial % len(tables)]
            copy = target.copy(target.folder / "attacked")
            with closing(sqlite3.connect(copy.path)) as connection:
                columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                ids = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
                one, other = draw.choice(ids), draw.choice(ids)
                column = draw.choice(columns)
                what = draw.choice(["delete", "take the value of another row", "set to null", "count up"])
                statement = {
                    "delete": f"DELETE FROM {table} WHERE rowid = {one}",
                    "take the value of another row": f"UPDATE OR IGNORE {table} SET {column} ="
                    f" (SELECT {column} FROM {table} WHERE rowid = {other}) WHERE rowid = {one}",
                    "set to null": f"UPDATE OR IGNORE {table} SET {column} = NULL WHERE rowid = {one}",
                    "count up": f"UPDATE OR IGNORE {table} SET {column} = {column} + 1 WHERE rowid = {one}",
                }[what]
                with suppress(sqlite3.IntegrityError):  # the database itself refuses it
                    connection.execute(statement)
                connection.commit()
            yield copy.verdict(f"{what}: {table}.{column}", draw.choice(sorted(target.rows)))


def values(trials: int, seed: int) -> Iterator[Trial]:
    """Put a value that armnesia does not write into a table, and run an operation: it ends in a sentence."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        original, work = Path(folder) / "original", Path(folder) / "copy"
        original.mkdir()
        small = fresh_place("sqlite", original)
        make_vault(small, original)
        place = Place(f"sqlite:///{work}/{small.path.name}", work / small.keys.name)
        for trial, what in enumerate(islice(cycle(CHANGES), trials)):
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(original, work)
            _run(place.path, (CHANGES[what],))
            name, operation = draw.choice(sorted(operations(place, work).items()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield _ended(f"{trial}: {what}, then {name}", operation)


def _ended(what: str, operation: Callable[[], object]) -> Trial:
    try:
        operation()
    except ArmnesiaError as error:
        return Trial(what, Verdict.REFUSED, str(error))
    except Exception as error:
        return Trial(what, Verdict.MISSED, f"{type(error).__name__}: {error}")
    return Trial(what, Verdict.NO_EFFECT)


def replays(trials: int, seed: int) -> Iterator[Trial]:
    """Put back yesterday's database, or yesterday's rows of some of its tables."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        yesterday = target.folder / "yesterday.db"
        old, new = dump(yesterday), target.tables
        changed = [name for name in new if new[name] != old.get(name)]
        for trial in range(trials):
            copy = target.copy(target.folder / "attacked")
            if trial == 0:
                some = ["everything"]
                copy.path.write_bytes(yesterday.read_bytes())
            else:
                some = draw.sample(changed, draw.randint(1, len(changed) - 1))
                with closing(sqlite3.connect(copy.path)) as connection:
                    for name in some:
                        connection.execute(f"DELETE FROM {name}")
                        marks = ", ".join("?" * len(old[name][0])) if old[name] else ""
                        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", old[name])
                    connection.commit()
            yield copy.verdict(f"yesterday's {', '.join(some)}", draw.choice(sorted(target.rows)))


def _run(path: Path, statements: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
