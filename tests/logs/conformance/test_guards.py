"""What readers must not do beside reading: release locks, write files, and tell names or passwords."""

import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armnesia as am
from armnesia.core.errors import ArmnesiaError
from tests.databases import postgres_url
from tests.logs.conformance.cases import table, texts
from tests.logs.conformance.sources import KINDS, PARQUET, Place, write_csv, write_sqlite

HELD: dict[str, list[Any]] = {"action": ["A", "B"], "reward": [1.0, 0.5], "user": ["secret-name", "bob"]}
TAKE_LOCK = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0).execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    sys.exit(str(error))
"""


def test_a_lock_of_python_on_the_same_sqlite_file_is_kept(tmp_path: Path) -> None:
    """DuckDB's own SQLite library would drop it where it closes the file, so that an open file is refused."""
    url = write_sqlite(tmp_path / "log.db", HELD)
    command = [sys.executable, "-c", TAKE_LOCK, str(tmp_path / "log.db")]
    log = am.read_log(url, table="log", actions=["A", "B"])
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO log VALUES ('A', 0, 'eve')")
        for read in (lambda: am.read_log(url, table="log"), log.users):
            with pytest.raises(ArmnesiaError, match="is open in this process"):
                read()
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert other.stderr.strip() == "database is locked"
        writer.execute("COMMIT")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert len(am.read_log(url, table="log", actions=["A", "B"])) == 3


def test_an_sqlite_file_is_read_by_several_threads(tmp_path: Path) -> None:
    url = write_sqlite(tmp_path / "log.db", HELD)
    with ThreadPoolExecutor(4) as threads:
        logs = threads.map(lambda _: am.read_log(url, table="log", actions=["A", "B"]), range(20))
        assert {len(log) for log in logs} == {2}


def test_a_vault_refuses_its_own_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/vault.db"
    from armnesia.vault import Configuration, Vault

    with Vault.create(url, Configuration(actions=("1",))) as vault, pytest.raises(ArmnesiaError):
        vault.ingest(url, table="vault", action="one", reward="one", no_user=True)


@pytest.fixture
def empty_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A working folder and a home folder."""
    here, home = tmp_path / "here", tmp_path / "home"
    for folder in (here, home):
        folder.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    return here, home


def test_reading_leaves_no_file_in_the_working_folder_and_installs_nothing(
    tmp_path: Path, empty_folders: tuple[Path, Path]
) -> None:
    """Nor does it change what lies at the source: neither content nor time of change."""
    place = Place(tmp_path / "place")
    place.folder.mkdir()
    rows = table(user=texts("ann", "bob", None))
    for kind in ("polars", "Arrow", "CSV", *PARQUET, "Delta", "Iceberg", "SQLite table"):
        stored = KINDS[kind](rows, place)
        before = contents(place.folder)
        log = am.read_log(stored.source, actions=["A", "B", "C"], table=stored.table)
        assert log.request(user="ann").counts.sum() == 1
        assert [list(folder.iterdir()) for folder in empty_folders] == [[], []]
        assert contents(place.folder) == before


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(ArmnesiaError) as caught:
        am.read_log(source, actions=["A", "B"], **options).users()
    parts = [str(caught.value), *map(str, caught.value.args)]
    return " ".join(parts)


def test_a_message_has_no_name_of_a_person_and_no_password(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("action,reward,user\nA,1,secret-name,x\n")
    (tmp_path / "open.csv").write_text('action,reward,user\nA,1,"secret-name\n')
    write_csv(tmp_path / "word.csv", HELD | {"reward": ["1", "x"]})
    pq.write_table(pa.table(HELD | {"user": [["secret-name"], ["bob"]]}), tmp_path / "list.parquet")
    url = write_sqlite(tmp_path / "log.db", HELD)
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute("CREATE TABLE bad AS SELECT 'A' AS action, 'x' AS reward, 'secret-name' AS user")
        file.execute("INSERT INTO bad VALUES ('A', 1, CAST(x'7365637265742d6e616d65ff' AS TEXT))")
    people: dict[str, Any] = HELD | {"reward": [1, 0], "key": HELD["user"]}
    roles: list[dict[str, Any]] = [
        {"where": "user > 5"},
        {"where": "key = 5", "user": "key"},
        {"action": "user", "user": None},
        {"reward": "user", "user": None},
    ]
    said = [
        *(refusal(source, **each) for source in (people, pa.table(people)) for each in roles),
        *(refusal(tmp_path / name) for name in ("long.csv", "open.csv", "word.csv", "list.parquet")),
        refusal(url, table="bad"),
        refusal("postgresql://ann:secret-word@127.0.0.1:1/none", table="log"),
        refusal("postgresql://ann:secret-word@[broken", table="log"),
    ]
    assert [message for message in said if "secret" in message] == []


def statements_logged(place: Place, name: str, act: Callable[[dict[str, Any]], None]) -> list[bytes]:
    """Lines of the log of the server with a name, after something was done with a table that has it.

    Every statement of a new connection is logged, with its parameters.
    """
    control = f"control-{uuid.uuid4().hex}"
    table = f"{place.schema}.log_{uuid.uuid4().hex}"
    run = place.connection.execute
    ((role, folder),) = run("SELECT current_user, current_setting('data_directory')").fetchall()
    run(f'CREATE TABLE {table} (n bigserial, action text, reward float8, "user" text)')
    halves = f"'{name[:10]}' || '{name[10:]}'"
    run(f"INSERT INTO {table} (action, reward, \"user\") VALUES ('A', 1, {halves})")
    run(f"ALTER ROLE \"{role}\" SET log_statement = 'all'")
    run(f'ALTER ROLE "{role}" SET log_parameter_max_length = -1')
    try:
        with psycopg.connect(postgres_url()) as other:
            other.execute("SELECT %s::text", (control,))
        act({"source": postgres_url(), "table": table})
    finally:
        run(f'ALTER ROLE "{role}" RESET log_statement')
        run(f'ALTER ROLE "{role}" RESET log_parameter_max_length')
    logs = [
        path for path in Path(folder).parent.rglob("*log*") if path.is_file() and "pg_wal" not in path.parts
    ]
    lines = b"\n".join(path.read_bytes() for path in logs).splitlines()
    assert [line for line in lines if control.encode() in line], "the log is read, and has parameters"
    return [line for line in lines if name.encode() in line]


def test_a_request_names_nobody_in_the_log_of_a_server(place: Place) -> None:
    name = f"person-{uuid.uuid4().hex}"

    def look_up(address: dict[str, Any]) -> None:
        assert am.read_log(**address, actions=["A"]).request(user=name).counts.tolist() == [1]

    assert statements_logged(place, name, look_up) == []


def test_a_forget_names_nobody_in_the_log_of_a_server(place: Place) -> None:
    name = f"person-{uuid.uuid4().hex}"

    def forget(address: dict[str, Any]) -> None:
        url = f"sqlite:///{place.path('.db')}"
        from armnesia.vault import Configuration, Vault

        with Vault.create(url, Configuration(actions=("A",), mode="external")) as vault:
            vault.ingest(**address)
            assert vault.forget(users=[name]).records == 1

    assert statements_logged(place, name, forget) == []


@pytest.mark.slow
@pytest.mark.parametrize("reward", [1.0, 0.5])
def test_the_sums_of_a_hundred_million_rows(reward: float, tmp_path: Path) -> None:
    number = 10**8
    path = tmp_path / "log.parquet"
    duckdb.sql(f"COPY (SELECT 'A' AS action, {reward}::DOUBLE AS reward FROM range({number})) TO '{path}'")
    statistics = am.read_log(path, actions=["A"]).statistics()
    units = int(reward * 10**9)
    assert statistics.counts.tolist() == [number]
    assert (statistics.sums.tolist(), statistics.to_dict()["squares"]) == (
        [number * units],
        [number * units**2],
    )


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        os.fspath(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
