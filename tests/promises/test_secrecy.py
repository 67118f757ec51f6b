"""Promise 8: no text of a user becomes SQL; no name is stored, logged, or in an address."""

from pathlib import Path

import pytest

from tests.promises.driver import Row, driven, driven_with_arms, statistics_of

HOSTILE = [
    "'; DROP TABLE record; --",
    'x" OR 1=1 --',
    "%s %(a)s {0} $1 ?",
    "\\'); DELETE FROM ledger; --",
    "name with \t tab",
    "../../etc/passwd",
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_a_user_becomes_sql(database: str, tmp_path: Path, name: str) -> None:
    vault = driven(database, tmp_path)
    rows = [Row("1", name, "A", 4), Row("2", "bob", "B", 4), Row("3", "cem", "A", 0)]
    quoted = [row._replace(person='"' + row.person.replace('"', '""') + '"') for row in rows]
    vault.add(quoted)
    assert vault.forget(name).records == 1
    assert vault.statistics() == statistics_of(rows[1:])
    assert vault.forget(name).again
    assert vault.problems() == []


def test_columns_and_arms_with_any_text_are_only_text(tmp_path: Path) -> None:
    odd = driven_with_arms(tmp_path, "O'Brien; DROP TABLE record", 'B "quoted"')
    log = tmp_path / "odd.csv"
    log.write_text(
        'ev;--,"per""son",arm\',reward\n1,ann,O\'Brien; DROP TABLE record,1\n2,bob,"B ""quoted""",0\n',
        encoding="utf-8",
    )
    columns = {"action": "arm'", "reward": "reward", "user": 'per"son', "id": "ev;--"}
    assert odd.ingest_columns(log, columns) == 2
    assert odd.forget("ann").records == 1
    assert odd.problems() == []


def test_no_name_is_in_the_files_of_a_vault(tmp_path: Path) -> None:
    vault = driven("sqlite", tmp_path)
    names = ["Ada-Lovelace-1815", "Emmy-Noether-1882", "Sofja-Kowalewskaja-1850"]
    vault.add([Row(f"event-{name}", name, "A", 4) for name in names])
    vault.forget(names[0])
    vault.forget("Never-Held-1900")
    content = vault.bytes_of_database()
    assert not any(name.encode() in content for name in (*names, "Never-Held-1900"))


def test_what_was_deleted_leaves_the_file(tmp_path: Path) -> None:
    vault = driven("sqlite", tmp_path)
    vault.add([Row(f"e-{n}", f"p-{n % 3}", "A", 4) for n in range(30)])
    with vault.database() as database:
        mine = {table: set(database.rows(f"SELECT * FROM {table}")) for table in database.tables()}
    vault.forget("p-0")
    with vault.database() as database:
        gone = [
            row for table, was in mine.items() for row in was - set(database.rows(f"SELECT * FROM {table}"))
        ]
    digests = {value for row in gone for value in row if isinstance(value, bytes) and len(value) >= 16}
    vault.compact()
    content, found = vault.bytes_of_database(), []
    with vault.database() as database:
        kept = {
            value
            for table in database.tables()
            for row in database.rows(f"SELECT * FROM {table}")
            for value in row
            if isinstance(value, bytes)
        }
    found = [digest for digest in digests - kept if digest in content]
    assert len(digests - kept) >= 10
    assert found == []


def test_only_their_owner_reads_the_files(tmp_path: Path) -> None:
    vault = driven("sqlite", tmp_path)
    vault.add([Row("1", "ann", "A", 4)])
    vault.forget("ann")
    for path in (vault.place.path, vault.place.keys, vault.certificate("ann")):
        assert path.stat().st_mode & 0o077 == 0, path
