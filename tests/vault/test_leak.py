"""After a person is forgotten, nothing of them is left: not in a table, a file, a log line or a message."""

import json
import logging
import os
import random
import string
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import ArmnesiaError
from armnesia.core.units import UNIT
from armnesia.vault import Configuration, Policy, UserType, Vault
from armnesia.vault.db.sqlite import SqliteDatabase
from tests.databases import SERVER, Place, postgres_url
from tests.vault.plain_vault import vault_columns
from tests.vault.raw_vaults import TABLES, arms, change, dumped, journal_of, values

RANDOM = random.Random(20_26)
PERSON = "".join(RANDOM.choices(string.ascii_letters, k=24))
ROW_IDS = ["".join(RANDOM.choices(string.ascii_letters, k=24)) for _ in range(3)]
UNITS = [314_159_265, 271_828_182, 161_803_398]
OTHERS = 40
CONFIGURATION = Configuration(actions=("A", "B"), user_type=UserType.TEXT, columns=vault_columns(ids=True))


def filled(place: Place, configuration: Configuration | None = None) -> Vault:
    vault = place.create(configuration or CONFIGURATION)
    log = {
        "action": ["A", "B", "A"] + ["A", "B"] * (OTHERS // 2),
        "reward": [units / UNIT for units in UNITS] + [0.25] * OTHERS,
        "user": [PERSON] * 3 + [f"other-{number}" for number in range(OTHERS)],
        "id": ROW_IDS + [f"row-{number}" for number in range(OTHERS)],
    }
    vault.ingest(log, user="user", id="id")
    return vault


def traces(text: str) -> list[str]:
    """What of the person can be read in a text."""
    names = [PERSON, PERSON.encode().hex(), *ROW_IDS]
    rewards = [form for units in UNITS for form in (str(units), str(units / UNIT))]
    return [trace for trace in names + rewards if trace.lower() in text.lower()]


def in_bytes(vault: Vault, data: bytes) -> list[str]:
    """What of the person can be found in files: name, rows and rewards, as databases write them."""
    ring = vault.all_keys
    rows = [ring.record_identities("id", [row_id])[0] for row_id in ROW_IDS]
    marks = {"name": [PERSON.encode()], "ids": [row_id.encode() for row_id in ROW_IDS], "rows": rows}
    marks["rewards"] = [units.to_bytes(4, "big") for units in UNITS]
    marks["rewards, as PostgreSQL has them"] = [units.to_bytes(8, "little") for units in UNITS]
    return [name for name, some in marks.items() if any(mark in data for mark in some)]


def files_of(place: Place) -> bytes:
    """All files of an SQLite vault: database, write-ahead log and its index, keys, journal."""
    folder = place.keys.parent
    names = sorted(path.name for path in folder.iterdir())
    assert any(name.endswith(".journal") for name in names)
    assert any(name.endswith("-wal") for name in names)
    return b"".join((folder / name).read_bytes() for name in names)


def test_no_table_has_a_trace(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        held = repr(dumped(vault))
        assert set(traces(held)) == {
            str(units) for units in UNITS
        }  # rows name nobody, even while they are held
        totals = [total for _, total, _ in arms(vault)]
        done = vault.forget(users=[PERSON])
        assert not traces(repr(dumped(vault)))
        assert all(str(total) not in repr(dumped(vault)) for total in totals)  # the difference is the rewards
        assert done.certificate is not None
        assert PERSON in done.certificate.to_json()  # handed out, it says whose
        assert not traces(vault.certificate(entry=2).to_json())
        written = vault.export(tmp_path / "export.jsonl")
        assert not traces(json.dumps(written.to_dict()))
        assert not traces((tmp_path / "export.jsonl").read_text())
        assert not traces(journal_of(place).read_text())
        assert not traces("".join(entry.payload.decode() for entry in vault.ledger().entries))


def test_no_file_of_an_sqlite_vault_has_a_trace(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        assert set(in_bytes(vault, files_of(sqlite_place))) == {"rows", "rewards"}
        vault.forget(users=[PERSON])
        assert not in_bytes(vault, files_of(sqlite_place))


def test_forgetting_single_rows_leaves_no_trace_of_them(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(records=ROW_IDS)
        assert in_bytes(vault, files_of(sqlite_place)) == ["rows"]  # as the suppression list names them


def _no_overwriting(vault: Vault, _: pytest.MonkeyPatch) -> None:
    database = vault.database
    assert isinstance(database, SqliteDatabase)
    database._connection.execute("PRAGMA secure_delete = OFF")


def _no_checkpoint(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteDatabase, "_empty_log", lambda *_: None)


@pytest.mark.parametrize("without", [_no_overwriting, _no_checkpoint])
def test_the_search_finds_what_is_not_erased(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, without: Callable[[Vault, pytest.MonkeyPatch], None]
) -> None:
    with filled(sqlite_place) as vault:
        without(vault, monkeypatch)
        vault.forget(users=[PERSON])
        assert {"rows", "rewards"} <= set(in_bytes(vault, files_of(sqlite_place)))


@pytest.mark.slow
def test_rows_are_gone_from_files_whose_pages_were_split_and_merged(sqlite_place: Place) -> None:
    """Pages that are split keep copies of what they held: of indexes, which so must hold no names."""
    users = ["".join(RANDOM.choices(string.ascii_letters, k=24)) for _ in range(1500)]
    with sqlite_place.create(CONFIGURATION) as vault:
        vault.database._connection.execute("PRAGMA synchronous = OFF")
        for round_ in range(4):
            RANDOM.shuffle(users)
            rewards = [RANDOM.random() for _ in users]
            log = {"action": ["A", "B"] * 750, "reward": rewards, "user": users}
            vault.ingest(log | {"id": [f"{round_}-{user}" for user in users]}, user="user", id="id")
        gone, kept = users[:900], users[900:]
        rows = dict(values(vault, "SELECT owner, identity FROM record"))
        ring = vault.all_keys
        for start in range(0, 300, 5):
            vault.forget(users=gone[start : start + 5])
        vault.forget(users=gone[300:])
        data = files_of(sqlite_place)

        def left(some: list[str]) -> int:
            """How many have a row left, which is its identity followed by its owner."""
            return sum(rows[owner] + owner in data for owner in ring.owner_digests(some))

        assert (left(gone), left(kept)) == (0, 600)
        assert not any(user.encode() in data for user in users)


@pytest.fixture
def server_files() -> Iterator[Callable[[Vault], bytes]]:
    """What the server has written of a vault's tables and indexes, and of nothing else."""
    if SERVER in os.environ:
        pytest.skip("the files of another server cannot be read")
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:

        def read(vault: Vault) -> bytes:
            connection.execute("CHECKPOINT")
            schema = vault.database.schema  # type: ignore[attr-defined]
            ((folder,),) = connection.execute("SHOW data_directory").fetchall()
            sql = """SELECT pg_relation_filepath(oid) FROM pg_class
                     WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'i')"""
            paths = [path for (path,) in connection.execute(sql, [schema])]
            assert len(paths) > len(TABLES)
            return b"".join((Path(folder) / path).read_bytes() for path in paths)

        yield read


def test_compacted_tables_of_postgresql_have_no_trace(
    postgres_place: Place, server_files: Callable[[Vault], bytes]
) -> None:
    with filled(postgres_place) as vault:
        totals = [str(total).encode() for _, total, _ in arms(vault)]
        vault.forget(users=[PERSON])
        left = server_files(vault)
        assert set(in_bytes(vault, left)) == {"rows", "rewards, as PostgreSQL has them"}
        assert all(total in left for total in totals)
        vault.compact()
        left = server_files(vault)
        assert not in_bytes(vault, left)
        assert not any(total in left for total in totals)  # the difference is the rewards
        assert vault.certificate(users=[PERSON]).summary()["later"] == ["compacted"]
        assert vault.verify().holds


def test_rows_on_their_way_in_leave_with_their_batch(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        assert values(vault, "SELECT count(*) FROM pg_class WHERE relname = 'incoming'") == [(0,)]


STRICT = replace(CONFIGURATION, policy=Policy(0.0, 0.0, ("retained",)))  # type: ignore[arg-type]


def _provocations(vault: Vault, place: Place) -> dict[str, Callable[[], Any]]:
    """What goes wrong, with the person in it."""

    def ingest(**columns: list[Any]) -> Callable[[], Any]:
        log = {"action": ["A"], "reward": [0.5], "user": [PERSON], "id": ["new"]} | columns
        return lambda: vault.ingest(log, user="user", id="id")

    def twice() -> None:
        change(vault, "INSERT INTO record SELECT * FROM record")

    def locked() -> None:
        with place.open(timeout=0.1) as other, vault.database.writing():
            other.forget(users=[PERSON])

    return {
        "beyond the policy": lambda: vault.forget(
            users=[PERSON], unlearner="gaussian", epsilon=1.0, delta=1e-5
        ),
        "no budget": lambda: vault.forget(users=[PERSON], epsilon=-1.0),
        "not on the list": lambda: vault.readmit(users=[PERSON]),
        "no certificate": lambda: vault.certificate(users=[PERSON]),
        "another row of the same id": ingest(id=[ROW_IDS[0]]),
        "out of range": ingest(reward=[1.5]),
        "no such action": ingest(action=["C"]),
        "one id for two": ingest(action=["A", "B"], reward=[0, 0], user=[PERSON] * 2, id=["new"] * 2),
        "the same row twice": twice,
        "locked": locked,
    }


@pytest.mark.parametrize(
    "what",
    [
        *(
            "beyond the policy",
            "no budget",
            "not on the list",
            "no certificate",
            "another row of the same id",
        ),
        *("out of range", "no such action", "one id for two", "the same row twice", "locked"),
    ],
)
def test_no_message_has_a_trace(place: Place, caplog: pytest.LogCaptureFixture, what: str) -> None:
    caplog.set_level(logging.DEBUG)
    with filled(place, STRICT) as vault:
        before = dumped(vault)
        with pytest.raises(ArmnesiaError) as told:
            _provocations(vault, place)[what]()
        assert not traces("".join(traceback.format_exception(told.value)) + str(told.value))
        assert not traces(caplog.text)
        assert dumped(vault) == before


def test_no_log_line_has_a_trace(
    place: Place, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with filled(place) as vault:
        vault.preview(users=[PERSON])
        vault.forget(users=[PERSON])
        vault.forget(users=[PERSON])
        vault.readmit(users=[PERSON])
        vault.verify()
        vault.status(scores=True)
        vault.compact()
        assert not traces(repr(vault) + repr(vault.status()) + repr(vault.verify()))
    assert not traces(caplog.text + "".join(capfd.readouterr()))
    logging.getLogger("armnesia.vault").debug("%s", PERSON)
    assert traces(caplog.text)  # they would have been seen
