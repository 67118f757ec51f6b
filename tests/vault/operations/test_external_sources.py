"""External vaults: the rows stay at their sources, where they change, vanish, and are looked up again."""

import os
import shlex
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, SimilarNameError, VaultError
from armnesia.vault import Vault
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Delta, Folder, Sqlite, arrow, make_lake
from tests.promises.test_histories import PEOPLE, rows_of
from tests.vault.external_vaults import (
    NAMED,
    PERMITTED,
    READING,
    counted,
    due,
    erased_for,
    forget_and_erase,
    ingest,
    stored,
    sums,
    sums_of,
    without,
)
from tests.vault.raw_vaults import change

ROWS = [
    Row("r1", "ann", "A", 3),
    Row("r2", "bob", "A", 2),
    Row("r3", "ann", "B", 1),
    Row("r4", "cem", "B", 4),
]

ANN, BOB = PEOPLE[:2]


@pytest.fixture
def log(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def vault(place: Place, log: Folder) -> Any:
    with counted(place, log, ROWS, READING) as vault:
        yield vault


def restore(place: Place, **options: Any) -> Any:
    """Count all sources again, which may have been moved or lost."""
    return Vault.restore(place.url, keys=place.keys, **options)


def write(log: Folder, rows: list[Row], name: str = "0.parquet") -> None:
    """Put other rows into a file; a file system may not tell two moments apart."""
    path = log.folder / name
    written = path.stat().st_mtime_ns + 10**9 if path.exists() else 10**18
    pq.write_table(arrow(rows), path, compression="none")
    os.utime(path, ns=(written, written))


def test_single_rows_are_forgotten_by_their_ids(vault: Vault) -> None:
    assert vault.forget(records=["r1", "r9"]).records == 1
    assert sums(vault) == sums_of(ROWS[1:])
    assert "still has rows of forgotten people or records (1)" in vault.verify().notes[0]
    # The person's other row goes with the person; the forgotten one is not taken away a second time.
    assert vault.forget(users=["ann"]).records == 1
    assert vault.forget(records=["r3", "r4"]).records == 1  # r3 went with ann
    assert sums(vault) == sums_of(ROWS[1:2])
    assert vault.verify().holds


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "rows",
    [
        [*ROWS[:2], ROWS[3]],
        [ROWS[0]._replace(quarters=2), *ROWS[1:]],
        [ROWS[0]._replace(arm="B"), *ROWS[1:]],
        [ROWS[0]._replace(person="eve"), *ROWS[1:]],
        [*ROWS, Row("r5", "ann", "A", 4)],
        ROWS,
    ],
    ids=["deleted", "another reward", "another arm", "another person", "appended", "the same"],
)
@pytest.mark.parametrize("by", ["forget", "ingest", "restore"])
def test_a_file_that_was_written_again_is_counted_again(
    place: Place, vault: Vault, log: Folder, rows: list[Row], by: str
) -> None:
    served = vault.decide()
    write(log, rows)
    assert any("has changed since it was counted" in problem for problem in vault.verify().problems)
    if by == "ingest":
        before = stored(vault)
        plan = ingest(vault, log, dry_run=True)
        assert stored(vault) == before
        done = ingest(vault, log)
        assert (done.rows, done.added) == (plan.rows, plan.added) == (len(rows), len(rows) - len(ROWS))
        assert done.recounted_because == f"source {log.source!r} has changed"
    if by == "restore":
        restore(place)
    if by != "forget":
        assert sums(vault) == sums_of(rows)
        assert vault.verify().holds
        if sums_of(rows) == sums_of(ROWS):
            assert vault.decide().action == served.action
    assert vault.forget(users=["ann"]).records == sum(row.person == "ann" for row in rows)
    assert sums(vault) == sums_of(without(rows, "ann"))
    assert vault.verify().holds


def test_a_file_that_is_altered_unseen_is_found_by_verify(place: Place, vault: Vault, log: Folder) -> None:
    path = log.folder / "0.parquet"
    status = path.stat()
    write(log, [ROWS[0]._replace(quarters=0), *ROWS[1:]])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size  # which would tell
    *others, last = vault.verify().problems
    assert last == "run armnesia restore, which counts all sources again"
    assert any("statistics of action" in problem for problem in others)
    restore(place)
    assert vault.verify().problems == ()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_another_version_of_a_table_is_no_problem_and_is_not_compared(
    kind: str, sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_lake(kind, tmp_path, monkeypatch)
    with counted(sqlite_place, log, ROWS, READING) as vault:
        log.append([Row("r5", "ann", "A", 4)])
        found = vault.verify()
        assert found.problems == ()
        (note,) = found.notes
        assert "has changed since it was counted" in note
        assert note.endswith(f": run {vault.status().sources[0].ingest_command}")
        assert ingest(vault, log).added == 1
        assert vault.verify().notes == ()


def test_new_files_are_counted_alone(vault: Vault, log: Folder) -> None:
    more = [Row("r5", "ann", "A", 4), Row("r6", "bob", "B", 2), Row("r2", "dea", "B", 2)]
    vault.forget(users=["bob"])
    vault.forget(records=["r2"])
    log.append(more)
    found = vault.verify()
    assert found.holds
    assert any("has changed since it was counted" in note for note in found.notes)
    with pytest.raises(VaultError, match=r"has changed since it was counted.*run armnesia ingest"):
        vault.preview(users=["ann"])
    done = ingest(vault, log)
    assert (done.rows, done.added, done.suppressed, done.recounted_because) == (3, 1, 2, None)
    assert sums(vault) == sums_of([*without(ROWS, "bob"), more[0]])
    before = {table: rows for table, rows in stored(vault).items() if table != "vault"}
    again = ingest(vault, log)
    assert (again.rows, again.added, again.recounted_because) == (0, 0, None)
    assert {table: rows for table, rows in stored(vault).items() if table != "vault"} == before
    assert vault.verify().holds


@pytest.mark.parametrize("kind", [Folder, Sqlite])
def test_readmitted_people_come_back_with_the_next_count(kind: Any, place: Place, tmp_path: Path) -> None:
    log = kind(tmp_path)
    with counted(place, log, ROWS, READING) as vault:
        vault.forget(users=["ann"])
        vault.readmit(users=["ann"])
        assert sums(vault) == sums_of(without(ROWS, "ann"))
        found = vault.verify()
        assert found.holds
        assert any("because people were readmitted" in note for note in found.notes)
        assert vault.status().sources[0].recount
        done = ingest(vault, log)
        assert (done.recounted_because is not None, done.added, done.suppressed) == (True, 2, 0)
        assert sums(vault) == sums_of(ROWS)
        vault.forget(users=["ann"])
        vault.readmit(users=["ann"])
        assert vault.forget(users=["bob"]).records == 1  # it counts again first
        assert sums(vault) == sums_of(without(ROWS, "bob"))
        assert vault.verify().holds


def test_rows_that_something_else_put_into_the_vault_are_removed(place: Place, vault: Vault) -> None:
    change(
        vault,
        "INSERT INTO record (identity, owner, arm, units, decision) VALUES (?, ?, 0, 7, 1)",
        *2 * [b"x"],
    )
    assert any(problem.startswith("records: rows were added") for problem in vault.verify().problems)
    restore(place, as_it_is=True)
    assert stored(vault)["record"] == []
    assert vault.verify().holds
    assert sums(vault) == sums_of(ROWS)


def test_a_lost_source_is_dropped_or_put_back(
    place: Place, vault: Vault, log: Folder, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    other = Folder(tmp_path / "second")
    other.append([Row("r9", "dan", "B", 4)])
    assert ingest(vault, other).added == 1
    log.folder.rename(tmp_path / "away")
    before, old = stored(vault), vault.status().sources[0].id
    assert any(str(log.folder) in problem for problem in vault.verify().problems)
    for refused in (
        lambda: vault.forget(users=["ann"]),
        lambda: restore(place),
        lambda: ingest(vault, other),
    ):
        with pytest.raises(ArmnesiaError, match=r"restore --moved \S+ NEW .*restore --without"):
            refused()
    with pytest.raises(InvalidInputError, match="has no source 'another'; its sources are: "):
        restore(place, without=["another"])
    assert stored(vault) == before
    restore(place, without=[log.source, log.source])
    assert sums(vault) == sums_of([Row("r9", "dan", "B", 4)])
    assert [each.name for each in vault.status().sources] == [other.source]
    assert list(vault.ledger())[-1].facts["dropped"] == [old]
    assert vault.verify().holds
    (tmp_path / "away").rename(log.folder)
    ingest(vault, log)
    assert [source.name for source in vault.status().sources] == [other.source, log.source]
    assert old not in [each.id for each in vault.status().sources]  # it is another source for certificates
    assert vault.forget(users=["ann"]).records == 2


def test_what_was_counted_is_not_counted_by_another_way(vault: Vault, log: Folder) -> None:
    path = log.folder / "0.parquet"
    link = log.folder.with_name("link.parquet")
    link.symlink_to(path)
    before = stored(vault)
    ways: list[tuple[Path, dict[str, Any]]] = [
        (log.folder / "*.parquet", {}),
        (path, {}),
        (link, {}),
        (log.folder, {"where": "country = DE"}),
    ]
    for source, options in ways:
        with pytest.raises(ArmnesiaError, match=r"its rows would (count|be read) twice"):
            vault.ingest(str(source), **{**NAMED, **options})
    assert stored(vault) == before


def test_a_link_to_a_database_is_the_database(sqlite_place: Place, tmp_path: Path) -> None:
    log = Sqlite(tmp_path)
    with counted(sqlite_place, log, ROWS, READING) as vault:
        (tmp_path / "link.db").symlink_to(log.folder / "log.db")
        (tmp_path / "folder").symlink_to(log.folder)
        for place in ("link.db", "folder/log.db"):
            done = vault.ingest(f"sqlite:///{tmp_path / place}", table="clicks", **NAMED)
            assert (done.rows, done.added) == (4, 0)
        assert [each.name for each in vault.status().sources] == [f"{log.source}#clicks"]
        assert sums(vault) == sums_of(ROWS)


def test_what_cannot_be_looked_up_again_or_names_people_is_refused(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "person=ann" / "log.csv"
    path.parent.mkdir()
    path.write_text("arm,reward,event\nA,1,r1\n", "utf-8")
    with place.create(READING) as vault:
        before = stored(vault)
        for source, options, match in (
            ({"arm": ["A"], "reward": [1], "person": ["ann"], "event": ["r1"]}, {}, "give a file or a table"),
            (str(path.parent.parent / "person=*" / "*.csv"), {}, "must not name people"),
            (str(path), {"user": None, "no_user": True, "where": "event = r1"}, "must not be on the id"),
        ):
            with pytest.raises(VaultError, match=match):
                vault.ingest(source, **{**NAMED, **options})
        with pytest.raises(VaultError, match="has counted no source yet"):
            vault.forget(users=["ann"])
        assert stored(vault) == before


def test_a_source_without_people_hinders_nobody(vault: Vault, tmp_path: Path) -> None:
    more = tmp_path / "anonymous.csv"
    more.write_text("arm,reward,event\nA,1,m1\nA,1,m2\n", "utf-8")
    assert vault.ingest(str(more), no_user=True).added == 2
    assert vault.forget(users=["ann"]).records == 2
    assert vault.forget(records=["r2"]).records == 1
    assert vault.verify().holds


def test_similar_names_are_looked_for_at_the_source(vault: Vault) -> None:
    before = stored(vault)
    with pytest.raises(SimilarNameError, match="'ann', which may be user 'Ann'") as refused:
        vault.forget(users=["Ann"])
    assert refused.value.similar == {"Ann": ("ann",)}
    with pytest.raises(SimilarNameError, match="'r1', which may be record 'R1'"):
        vault.forget(records=["R1"])
    assert stored(vault) == before
    assert vault.forget(users=["Ann"], exactly=True).records == 0
    assert vault.forget(users=["ann"]).records == 2
    assert vault.forget(users=["ANN"]).records == 0  # whom there are no rows of any more


@pytest.mark.parametrize(("before", "after"), [("17", "17.0"), ("17.0", "17")])
def test_a_forgotten_record_does_not_come_back_by_another_spelling_of_its_id(
    vault: Vault, log: Folder, before: str, after: str
) -> None:
    write(log, [*ROWS, Row(before, "eve", "A", 4)])
    assert vault.forget(records=[before]).records == 1
    write(log, [*ROWS, Row(after, "eve", "A", 4)])
    for ask in (lambda: ingest(vault, log), lambda: vault.forget(users=["ann"])):
        with pytest.raises(VaultError, match=f"in another spelling: '{after}', which may be '{before}'"):
            ask()
    assert sums(vault) == sums_of(ROWS)


def test_a_table_without_a_version_is_counted_each_time(place: Place, tmp_path: Path) -> None:
    log = Sqlite(tmp_path)
    with counted(place, log, ROWS, READING) as vault:
        log.append([Row("r5", "ann", "A", 4)])
        (problem, *_) = vault.verify().problems
        assert "statistics of action" in problem
        with pytest.raises(VaultError, match="has changed since it was counted"):
            vault.preview(users=["ann"])
        assert vault.forget(users=["ann"]).records == 3
        assert sums(vault) == sums_of(without(ROWS, "ann"))
        log.append([Row("r6", "ann", "A", 4), Row("r7", "dan", "B", 0)])
        done = ingest(vault, log)
        assert (done.rows, done.added, done.suppressed) == (7, 1, 4)
        assert vault.preview(users=["dan"]).records == 1
        assert vault.verify().holds


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (Row("r5", "ann", "C", 4), "offer it first with armnesia arms add"),
        (Row("r5", "ann", "A", 8), "must hold a number from"),
    ],
)
def test_a_wrong_row_refuses_the_whole_ingest(vault: Vault, log: Folder, row: Row, match: str) -> None:
    log.append([ROWS[3], row])
    before = stored(vault)
    with pytest.raises(ArmnesiaError, match=match):
        ingest(vault, log)
    assert stored(vault) == before


# Sources that were moved.


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [Folder, Delta, Sqlite])
def test_a_source_that_was_moved_keeps_its_id_and_its_certificates(
    kind: Any, tmp_path: Path, place: Place
) -> None:
    log, rows = kind(tmp_path), rows_of(1, 40)
    with counted(place, log, rows, PERMITTED) as vault:
        (old,) = vault.status().sources
        forget_and_erase(vault, users=[BOB])
        vault.forget(users=[ANN])
        log.folder.rename(tmp_path / "moved")
        new = old.name.replace(str(tmp_path / "lake"), str(tmp_path / "moved"))
        path, _, table = new.partition("#")
        for ask in (
            lambda: vault.forget(users=["cem"]),
            lambda: vault.ingest(path, table=table or None, **NAMED),
        ):
            with pytest.raises(VaultError) as refused:
                ask()
            assert f"if it was moved, run armnesia restore --moved {shlex.quote(old.name)} NEW" in str(
                refused.value
            )
        restore(place, moved=[(old.name, new)])
        assert [(each.id, each.name) for each in vault.status().sources] == [(old.id, new)]
        assert sums(vault) == sums_of(without(rows, ANN, BOB))
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert due(vault) == [""]
        assert erased_for(vault, ANN) == [new]
        assert erased_for(vault, BOB)[:1] == [new]
        assert vault.verify().problems == ()


def test_rows_that_were_moved_into_another_source_count_once(
    vault: Vault, log: Folder, tmp_path: Path
) -> None:
    more = rows_of(2, 10)
    log.append(more)
    ingest(vault, log)
    (tmp_path / "archive").mkdir()
    archive = Folder(tmp_path / "archive")
    (log.folder / "0.parquet").rename(archive.folder / "0.parquet")
    for dry_run in (True, False):
        done = ingest(vault, archive, dry_run=dry_run)
        assert (done.rows, done.added) == (len(ROWS) + 10, 0)
        assert done.recounted_because == f"source {log.source!r} has changed"
    assert sums(vault) == sums_of([*ROWS, *more])
    (log.folder / "1.parquet").rename(archive.folder / "1.parquet")
    before = stored(vault)
    with pytest.raises(VaultError, match="run armnesia restore --without"):  # nothing is left there
        ingest(vault, archive)
    assert stored(vault) == before
    assert vault.verify().problems != ()
