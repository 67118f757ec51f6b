"""Files of a vault that are damaged or lost: every message says what to do, and that helps."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.red_team.pages import pages_of

SIZE = 4096
REBUILD = "run armnesia rebuild, which makes its indexes again, and restore a backup if that is refused"
LOST = "there is no vault at 'vault.db', but its keys are in 'vault.db.keys': copy a backup back and run"
KEYS_OF_VERIFY = {"holds", "problems", "notes", "records", "entries", "certificates"}


@pytest.fixture
def large(folder: Path, run: Any) -> dict[str, list[int]]:
    """The pages of a vault with several of each table and index; the victim has rows in many of them."""
    rows = [f"{'AB'[row % 2]},{row % 3 % 2},user-{row % 40},r{row}" for row in range(3000)]
    (folder / "log.csv").write_text("\n".join(["action,reward,user,id", *rows]) + "\n")
    assert run("init", "--actions", "A,B").code == 0
    assert run("ingest", "log.csv", "--id-column", "id").code == 0
    assert run("forget", "--user", "user-7").code == 0
    assert run("export", "export.json", "--for-restore").code == 0
    assert run("backup", "backup.db").code == 0
    return pages_of(folder / "vault.db")


def leaves(pages: list[int]) -> list[int]:
    """Those that are not their root."""
    return sorted(pages)[1:]


def copy_page(source: int, target: int) -> None:
    """Write one page of the vault over another."""
    path = Path("vault.db")
    data = bytearray(path.read_bytes())
    data[(target - 1) * SIZE : target * SIZE] = data[(source - 1) * SIZE : source * SIZE]
    path.write_bytes(data)


def restored(run: Any) -> bool:
    """Whether a backup helps, as the messages say."""
    for name in ("vault.db-wal", "vault.db-shm"):
        Path(name).unlink(missing_ok=True)
    shutil.copy("backup.db", "vault.db")
    code: int = run("restore", "export.json").code or run("verify").code
    return code == 0


@pytest.mark.parametrize("options", [(), ("--in-place",)])
def test_an_index_that_cannot_be_read_is_a_failed_check_and_rebuild_repairs_it(
    run: Any, large: dict[str, list[int]], options: tuple[str, ...]
) -> None:
    copy_page(leaves(large["record"])[3], leaves(large["record_owner"])[3])
    failed = run("verify", "--json", *options)
    assert (failed.code, set(failed.json), failed.json["holds"]) == (1, KEYS_OF_VERIFY, False)
    assert REBUILD in failed.json["problems"][0]
    assert any("not everything was checked" in note for note in failed.json["notes"])
    shown = run("verify", *options)
    assert (shown.code, shown.err) == (1, "")
    assert REBUILD in shown.out
    rebuilt = run("rebuild")
    assert rebuilt.code == 0
    assert rebuilt.out.splitlines() == [
        "The statistics have not changed.",
        "The indexes of the vault's tables were made again.",
        "The ledger has a new entry: run armnesia export --for-restore, because restore needs the latest"
        " export.",
    ]
    assert run("verify").code == 0
    assert run("restore", "export.json").code == 2


@pytest.mark.parametrize("size", [0, 100, 5000, 100_000])
def test_a_file_that_was_cut_off_is_a_failed_check(run: Any, large: dict[str, list[int]], size: int) -> None:
    os.truncate("vault.db", size)
    failed = run("verify", "--json")
    assert (failed.code, set(failed.json)) == (1, KEYS_OF_VERIFY)
    assert "restore" in failed.json["problems"][0]
    assert run("rebuild").code == 2
    assert restored(run)


def test_a_file_whose_beginning_is_lost_is_a_failed_check_if_it_has_keys(run: Any, vault: Path) -> None:
    with open("vault.db", "r+b") as file:
        file.write(b"x" * SIZE)
    failed = run("verify", "--json")
    assert failed.code == 1
    assert "file is not a database; check the address, or restore a backup" in failed.json["problems"][0]
    Path("vault.db.keys").unlink()
    refused = run("verify")
    assert (refused.code, refused.out) == (2, "")  # it may be anything
    assert "is not a vault, or is damaged: file is not a database" in refused.err


def test_a_vault_of_which_nothing_can_be_known_is_a_failed_check(run: Any, vault: Path) -> None:
    with closing(sqlite3.connect("vault.db")) as database, database:
        database.execute("DELETE FROM vault")
        database.execute("DELETE FROM ledger")
    said = "neither its state nor its first ledger entry can be read; restore a backup"
    failed = run("verify", "--json")
    assert failed.code == 1
    assert said in failed.json["problems"][0]
    refused = run("rebuild")
    assert refused.code == 2
    assert said in refused.err


def test_rows_that_are_there_twice_need_a_backup(run: Any, large: dict[str, list[int]]) -> None:
    source, target = leaves(large["record"])[3:5]
    copy_page(source, target)
    assert run("verify").code == 1
    refused = run("rebuild")
    assert refused.code == 2
    assert "rows are in it twice (UNIQUE constraint failed: record.identity), which armnesia" in refused.err
    assert "cannot repair: restore a backup" in refused.err
    compacted = run("compact")
    assert compacted.code == 2
    assert "run armnesia rebuild first, and restore a backup if that is refused" in compacted.err
    assert restored(run)


def test_a_free_page_that_is_none_is_left_by_a_copy_or_a_backup(
    run: Any, large: dict[str, list[int]]
) -> None:
    with closing(sqlite3.connect("vault.db")) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("CREATE TABLE filler (content BLOB)")
        database.execute(f"INSERT INTO filler VALUES (zeroblob({20 * SIZE}))")
        database.execute("DROP TABLE filler")
        database.commit()
    free = pages_of(Path("vault.db"))["other pages"]
    copy_page(leaves(large["record"])[3], int.from_bytes(Path("vault.db").read_bytes()[32:36]) or free[0])
    said = "otherwise restore a backup, or run armnesia copy, which checks every row that it writes"
    for command in (("forget", "--user", "user-3"), ("rebuild",)):
        refused = run(*command)
        assert refused.code == 2
        assert said in refused.err
    assert run("copy", "sqlite:///vault.db", "sqlite:///other.db").code == 0
    assert run("verify", "--url", "sqlite:///other.db", "--json").json["problems"] == []
    assert run("forget", "--user", "user-3", "--url", "sqlite:///other.db").code == 0
    assert restored(run)


def test_a_page_that_forget_cannot_read_is_told_with_the_way_out(
    run: Any, large: dict[str, list[int]]
) -> None:
    for page in leaves(large["record"]):  # so that one of them has rows of the person
        copy_page(leaves(large["record_owner"])[3], page)
    refused = run("forget", "--user", "user-3")
    assert refused.code == 2
    assert REBUILD in refused.err
    assert run("rebuild").code == 2
    assert restored(run)


@pytest.mark.parametrize("options", [(), ("--in-place",)])
def test_a_header_by_which_the_file_is_read_only_is_found(
    run: Any, large: dict[str, list[int]], options: tuple[str, ...]
) -> None:
    data = bytearray(Path("vault.db").read_bytes())
    data[18] = 3
    Path("vault.db").write_bytes(data)
    assert run("decide").code == 0
    failed = run("verify", "--json", *options)
    assert failed.code == 1
    said = "database: the format versions in the header of the file are (3, 2), and must be (2, 2): restore"
    assert failed.json["problems"] == [f"{said} a backup"]
    refused = run("forget", "--user", "user-3")
    assert refused.code == 2
    assert (
        "readonly database; check the rights of its file and folder, then run armnesia verify" in refused.err
    )
    assert restored(run)


def test_a_vault_that_is_gone_is_not_made_anew_where_its_keys_are(
    run: Any, large: dict[str, list[int]]
) -> None:
    for name in ("vault.db", "vault.db-wal", "vault.db-shm"):
        Path(name).unlink(missing_ok=True)
    for command in (("decide",), ("verify",)):
        refused = run(*command)
        assert refused.code == 2
        assert f"{LOST} armnesia restore" in refused.err
    assert restored(run)


def test_a_changed_key_is_the_first_problem(run: Any, vault: Path) -> None:
    assert run("forget", "--user", "u1").code == 0
    path = Path("vault.db.keys")
    whole = path.read_text()
    for name, said in (("digest_keys", "digest key 1"), ("signing_keys", "signing key 1")):
        keys = json.loads(whole)
        key = keys[name][0]
        keys[name][0] = ("0" if key[0] != "0" else "1") + key[1:]
        path.write_text(json.dumps(keys))
        problems = run("verify", "--json").json["problems"]
        assert problems[0].startswith(f"keys: {said} of the keys' file is not the one in the ledger")
        assert "from a backup of the keys" in problems[0]
        assert not any("run armnesia verify" in problem for problem in problems)


def test_a_lost_pin_asks_for_a_head_that_was_kept(run: Any, vault: Path) -> None:
    head = run("ledger", "--head-only").out.strip()
    pinned = Path("vault.db.keys.head")
    pinned.unlink()
    (note,) = run("verify", "--json", "--head", head).json["notes"]
    assert note.endswith("the ledger was compared with the head given only")
    pinned.unlink()
    (note,) = run("verify", "--json").json["notes"]
    assert "run armnesia verify --head with a head that you kept" in note
    assert pinned.exists()


def test_verify_of_an_old_copy_says_how_it_is_brought_up_to_date(run: Any, vault: Path) -> None:
    run("backup", "old.db")
    run("forget", "--user", "u1")
    shutil.copy("old.db", "vault.db")
    (problem,) = run("verify", "--json").json["problems"]
    assert problem == (
        "ledger: sequence 2: missing, the ledger is shorter than the head that was kept: it is an old copy,"
        " or entries were deleted; run armnesia restore with the latest export"
    )


def test_rebuild_tells_how_many_rows_it_deleted(run: Any, vault: Path) -> None:
    with closing(sqlite3.connect("vault.db")) as database:
        owner = "SELECT owner FROM record GROUP BY owner HAVING count(*) = 40"
        rows = database.execute(f"SELECT * FROM record WHERE owner = ({owner})").fetchall()
    run("forget", "--user", "u1")
    for as_json in (False, True):
        with closing(sqlite3.connect("vault.db")) as database, database:
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"INSERT INTO record VALUES ({marks})", rows[:3])
        if as_json:
            assert run("rebuild", "--json").json["rows_deleted"] == 3
        else:
            assert run("rebuild").out.splitlines()[0] == "Deleted: 3 rows of forgotten people or records."


def test_restore_tells_that_the_suppression_list_was_repaired(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    run("export", "export.json", "--for-restore")
    said = "The suppression list, the answered requests or the commitments had been changed"
    for as_json in (False, True):
        with closing(sqlite3.connect("vault.db")) as database, database:
            database.execute("DELETE FROM suppressed")
        if as_json:
            assert run("restore", "export.json", "--json").json["lists_repaired"] is True
        else:
            assert said in run("restore", "export.json").out
            run("export", "export.json", "--for-restore")
    run("export", "export.json", "--for-restore")
    assert said not in run("restore", "export.json").out
