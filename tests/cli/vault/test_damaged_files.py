"""Files of a vault that are damaged or lost: every message says what to do, and that helps."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SIZE = 4096
REBUILD = "run armnesia rebuild, which makes its indexes again, and restore a backup if that is refused"
LOST = "there is no vault at 'vault.db', but its keys are in 'vault.db.keys': copy a backup back and run"
KEYS_OF_VERIFY = {"holds", "problems", "notes", "records", "entries", "certificates"}


def restored(run: Any) -> bool:
    """Whether a backup helps, as the messages say."""
    for name in ("vault.db-wal", "vault.db-shm"):
        Path(name).unlink(missing_ok=True)
    shutil.copy("backup.db", "vault.db")
    code: int = run("restore", "export.json").code or run("verify").code
    return code == 0


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
