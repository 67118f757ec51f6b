"""External vaults: the rows stay at their sources, where they may change, vanish, and be looked up again."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, SimilarNameError, VaultError
from armnesia.logs.counting import FoundRows
from armnesia.logs.files import duckdb_engine, formats
from armnesia.logs.files.source import FileSource
from armnesia.logs.manifests import FileManifest
from armnesia.vault import Configuration, Vault
from armnesia.vault.state.counted_sources import CountedPart, read_sources
from armnesia.vault.state.external_records import ExternalRecords
from armnesia.vault.state.source_ingest import CountedIngest, SourceIngest
from armnesia.vault.state.source_lookup import SourceLookup
from tests.databases import Place
from tests.vault.raw_vaults import arms, dumped

EXTERNAL = Configuration(actions=("A", "B"), mode="external")
ROWS = [
    ("A", "0.75", "ann", "r1"),
    ("A", "0.5", "bob", "r2"),
    ("B", "0.25", "ann", "r3"),
    ("B", "1.0", "cem", "r4"),
]
NAMED: dict[str, Any] = {"user": "who", "id": "id"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "log.csv", ROWS)


def write(path: Path, rows: Sequence[tuple[str, ...]], header: str = "action,reward,who,id") -> Path:
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    return path


def filled(place: Place, source: Path | str, **columns: Any) -> Vault:
    vault = place.create(EXTERNAL)
    assert vault.ingest(str(source), **(NAMED | columns)).added == 4
    return vault


def counts(vault: Vault) -> list[tuple[int, int]]:
    return [(count, total) for count, total, _ in arms(vault)]


def sums(rows: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    units = {arm: [round(float(row[1]) * 1e9) for row in rows if row[0] == arm] for arm in "AB"}
    return [(len(units[arm]), sum(units[arm])) for arm in "AB"]


def test_the_vault_holds_statistics_and_what_was_counted_and_nothing_of_rows(
    place: Place, source: Path
) -> None:
    with filled(place, source) as vault:
        held = dumped(vault)
        assert not {"record", "owner"} & held.keys()
        with vault._connection.reading() as transaction:
            (counted,) = read_sources(transaction.session)
        assert counted.counted is not None
        assert list(counted.counted.manifest.to_dict()) == ["files"]
        del held["vault"]  # it has a seal, whose bytes are anything
        text = repr({**held, "source": counted.counted})
        assert not any(secret in text for secret in ("ann", "bob", "r1", "750000000"))
        assert counts(vault) == sums(ROWS)
        assert str(source) not in repr(held["ledger"])
        done = vault.forget(users=["ann"])
        assert str(source) not in repr(done.certificate.to_dict())
        assert str(source) not in repr(dumped(vault)["ledger"])


@pytest.mark.parametrize("ids", [True, False])
def test_a_person_is_looked_up_at_the_source(place: Place, source: Path, ids: bool) -> None:
    id_ = "id" if ids else None
    with filled(place, source, id=id_) as vault:
        done = vault.forget(users=["ann"])
        assert done.counts == {"A": 1, "B": 1}
        assert "not the source of the records" in done.certificate.body["erasure"]["covers"]
        assert counts(vault) == sums([ROWS[1], ROWS[3]])
        found = vault.verify()
        assert found.holds
        (note,) = found.notes
        assert "2 rows of forgotten people or records are still present; delete them" in note
        again = vault.ingest(str(source), user="who", id=id_)
        assert (again.rows, again.added, again.recounted) == (0, 0, False)
        write(source, [ROWS[1], ROWS[3]])
        again = vault.ingest(str(source), user="who", id=id_)
        assert (again.rows, again.added, again.suppressed, again.recounted) == (2, 0, 0, True)
        assert "has changed" in str(again.recounted_because)
        assert vault.verify().notes == ()
        assert vault.verify().holds


def test_many_people_are_found_by_one_look_up(
    place: Place, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(source, [*ROWS, *[("A", "0.75", "ann", "r9")] * 2])
    with place.create(EXTERNAL) as vault:
        vault.ingest(str(source), **NAMED)
        asked = []
        original = FileSource.found_rows

        def noted(self: FileSource, role: str, texts: Any, *others: Any, **options: Any) -> list[FoundRows]:
            asked.append((role, set(texts)))
            return original(self, role, texts, *others, **options)

        monkeypatch.setattr(FileSource, "found_rows", noted)
        done = vault.forget(users=["ann", "bob"])
        assert done.counts == {"A": 4, "B": 1}  # rows with the same id count as often as they occur
        assert asked == [("user", {"ann", "bob"})]
        assert counts(vault) == [(0, 0), (1, 1_000_000_000)]
        assert vault.verify().holds


def test_single_rows_are_looked_up_at_the_source(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        assert vault.forget(records=["r1", "r9"]).records == 1
        assert counts(vault) == sums(ROWS[1:])
        assert "1 row of forgotten people or records is still present" in vault.verify().notes[0]
        # The person's other row goes with the person; the forgotten one is not taken away a second time.
        assert vault.forget(users=["ann"]).records == 1
        assert counts(vault) == sums([ROWS[1], ROWS[3]])
        assert vault.forget(records=["r3", "r4"]).records == 1  # r3 went with ann
        assert counts(vault) == sums([ROWS[1]])
        assert vault.verify().holds


@pytest.mark.parametrize(
    "rows",
    [
        [ROWS[0], *ROWS[1:2], ROWS[3]],
        [("A", "0.7", "ann", "r1"), *ROWS[1:]],
        [("B", "0.75", "ann", "r1"), *ROWS[1:]],
        [("A", "0.75", "eve", "r1"), *ROWS[1:]],
        [*ROWS, ("A", "1.0", "ann", "r5")],
    ],
    ids=["deleted", "another reward", "another action", "another owner", "appended"],
)
@pytest.mark.parametrize("repair", ["ingest", "rebuild"])
def test_a_source_that_has_changed_is_noticed_and_counted_again(
    place: Place, source: Path, rows: list[tuple[str, ...]], repair: str
) -> None:
    with filled(place, source) as vault:
        served = vault.decide()
        write(source, rows)
        assert any("has changed since it was counted" in problem for problem in vault.verify().problems)
        before = dumped(vault)
        for ask in (vault.forget, vault.preview):
            with pytest.raises(VaultError, match=r"has changed since it was counted.*run armnesia ingest"):
                ask(users=["ann"])
        assert dumped(vault) == before
        if repair == "rebuild":
            assert vault.rebuild().changed is (sums(rows) != sums(ROWS))
        else:
            plan = vault.ingest(str(source), **NAMED, dry_run=True)
            assert dumped(vault) == before
            done = vault.ingest(str(source), **NAMED)
            assert (done.rows, done.added) == (len(rows), len(rows) - len(ROWS)) == (plan.rows, plan.added)
            assert plan.recounted
        if sums(rows) == sums(ROWS):  # another owner is no other statistic
            assert (vault.decide().action, vault.decide().by) == (served.action, served.by)
        assert vault.verify().holds
        assert counts(vault) == sums(rows)
        assert vault.forget(users=["ann"]).records == sum(row[2] == "ann" for row in rows)
        assert vault.verify().holds


def test_a_file_with_the_same_size_and_another_time_is_counted_again(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        os.utime(source, ns=(1, 1))
        with pytest.raises(VaultError, match="has changed since it was counted"):
            vault.forget(users=["ann"])
        done = vault.ingest(str(source), **NAMED)
        assert (done.recounted, done.added) == (True, 0)
        assert vault.forget(users=["ann"]).records == 2


def test_a_file_that_is_altered_unseen_is_found_by_verify(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        status = source.stat()
        write(source, [("A", "0.85", *ROWS[0][2:]), *ROWS[1:]])
        os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert any("statistics of action" in problem for problem in vault.verify().problems)


def test_new_files_are_counted_and_not_looked_at_before(place: Place, tmp_path: Path) -> None:
    write(tmp_path / "1.csv", ROWS)
    with filled(place, tmp_path / "*.csv") as vault:
        (tmp_path / "2.csv").write_text('broken\n"')
        assert vault.forget(users=["bob"]).records == 1
        write(tmp_path / "2.csv", [("A", "1.0", "ann", "r5"), ("B", "0.5", "bob", "r6")])
        found = vault.verify()
        assert found.holds
        assert any("rows that are not counted yet" in note for note in found.notes)
        done = vault.ingest(str(tmp_path / "*.csv"), **NAMED)
        assert (done.rows, done.added, done.suppressed, done.recounted) == (2, 1, 1, False)
        assert counts(vault) == sums([ROWS[0], *ROWS[2:], ("A", "1.0", "ann", "r5")])
        assert vault.forget(users=["ann"]).records == 3
        assert vault.verify().holds


def test_nothing_new_is_no_change(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        before = dumped(vault)
        done = vault.ingest(str(source), **NAMED)
        assert (done.rows, done.added, done.already_there, done.recounted) == (0, 0, 0, False)
        assert dumped(vault) == before


def test_forgotten_people_stay_out_in_every_spelling(place: Place, tmp_path: Path) -> None:
    write(tmp_path / "1.csv", ROWS)
    with filled(place, tmp_path / "*.csv") as vault:
        vault.forget(users=["ann"])
        vault.forget(records=["r2"])
        more = [("A", "1.0", " ann", "r5"), ("A", "1.0", "bob", "r2"), ("B", "0.5", "bob", "r7")]
        write(tmp_path / "2.csv", more)
        done = vault.ingest(str(tmp_path / "*.csv"), **NAMED)
        assert (done.added, done.suppressed) == (1, 2)
        assert counts(vault) == sums([ROWS[3], more[2]])
        assert vault.verify().holds


def test_other_spellings_of_a_name_are_found(place: Place, source: Path) -> None:
    write(source, [*ROWS[:2], ("B", "0.25", " ann ", "r3"), ROWS[3]])
    with pytest.warns(UserWarning, match="white space around names"):
        vault = filled(place, source)
    with vault:
        assert vault.forget(users=["ann"]).records == 2
        assert counts(vault) == sums([ROWS[1], ROWS[3]])
        assert vault.verify().holds


def test_rebuilding_leaves_the_forgotten_out_and_what_is_served_alone(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        vault.forget(users=["ann"])
        before, served = counts(vault), vault.decide()
        assert not vault.rebuild().changed
        assert counts(vault) == before
        assert (vault.decide().action, vault.decide().by) == (served.action, "release")
        assert vault.verify().holds


def test_readmitted_people_come_back_with_the_next_ingest(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        vault.forget(users=["ann"])
        vault.readmit(users=["ann"])
        assert counts(vault) == sums([ROWS[1], ROWS[3]])
        found = vault.verify()
        assert found.holds
        assert any("has to be counted again (people were readmitted" in note for note in found.notes)
        before = dumped(vault)
        with pytest.raises(VaultError, match=r"people were readmitted.*run armnesia ingest"):
            vault.forget(users=["bob"])
        assert dumped(vault) == before
        assert "people were readmitted" in str(vault.status().sources[0].recount)
        done = vault.ingest(str(source), **NAMED)
        assert (done.recounted, done.added, done.suppressed) == (True, 2, 0)
        assert counts(vault) == sums(ROWS)
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().holds


def test_a_lost_source_is_a_problem_and_nobody_can_be_looked_up(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        source.unlink()
        before = dumped(vault)
        assert any("log.csv" in problem for problem in vault.verify().problems)
        with pytest.raises(ArmnesiaError, match=r"log\.csv.*rebuild --without"):
            vault.forget(users=["ann"])
        with pytest.raises(ArmnesiaError, match=r"log\.csv.*rebuild --without"):
            vault.rebuild()
        assert dumped(vault) == before


def test_a_source_without_people_hinders_nobody(place: Place, source: Path, tmp_path: Path) -> None:
    more = write(tmp_path / "anonymous.csv", [("A", "1.0"), ("A", "1.0")], header="action,reward")
    with filled(place, source) as vault:
        assert vault.ingest(str(more), no_user=True).added == 2
        assert vault.forget(users=["ann"]).records == 2
        assert vault.forget(records=["r2"]).records == 1
        assert vault.verify().holds


def test_a_dataframe_cannot_be_looked_up_again(place: Place) -> None:
    with place.create(EXTERNAL) as vault:
        before = dumped(vault)
        with pytest.raises(VaultError, match="looks people up at the source: give a file or a table"):
            vault.ingest({"action": ["A"], "reward": [1], "who": ["ann"]}, user="who")
        assert dumped(vault) == before


def test_a_source_that_is_gone_for_good_is_left_out_from_now_on(place: Place, source: Path) -> None:
    other = source.with_name("other.csv")
    write(other, [("B", "1.0", "dan", "r9")])
    with filled(place, source) as vault:
        assert vault.ingest(str(other), **NAMED).added == 1
        assert [(one.name, one.recount) for one in vault.status().sources] == [
            (str(source), None),
            (str(other), None),
        ]
        other.unlink()
        (problem, *_) = vault.verify().problems
        assert problem.startswith(f"source '{other}'")
        assert problem.count(f"source '{other}'") == 1
        with pytest.raises(ArmnesiaError, match=r"other\.csv"):
            vault.rebuild()
        refused = dumped(vault)
        with pytest.raises(
            InvalidInputError, match=r"has no source 'another'; its sources are: .*other\.csv"
        ):
            vault.rebuild(without=["another"])
        assert dumped(vault) == refused
        read: list[int] = []
        assert vault.rebuild(without=[str(other), str(other)], progress=read.append).changed
        assert read[-1] == len(ROWS)
        again: list[int] = []
        vault.verify(progress=again.append)
        assert again[-1] == len(ROWS)
        assert vault.ledger()[-1].fields["sources_dropped"] == 1
        assert counts(vault) == sums(ROWS)
        assert [one.name for one in vault.status().sources] == [str(source)]
        assert vault.verify().holds
        assert vault.forget(users=["dan"]).records == 0
        assert not vault.rebuild().changed
        assert vault.ledger()[-1].fields["sources_dropped"] == 0


def test_what_was_counted_is_not_counted_by_another_way(place: Place, source: Path) -> None:
    link = source.with_name("link.csv")
    link.symlink_to(source)
    with filled(place, source) as vault:
        before = dumped(vault)
        for again, options in (
            (source.parent / "*.csv", NAMED),
            (link, NAMED),
            (source, NAMED | {"id": None}),
            (source, NAMED | {"where": "action = A"}),
        ):
            with pytest.raises(ArmnesiaError, match=r"its rows would (count|be read) twice"):
                vault.ingest(str(again), **options)
        assert dumped(vault) == before


def test_a_file_that_is_exchanged_while_it_is_read_is_refused(
    place: Place, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = duckdb_engine.query

    def exchanging(sql: str, *others: Any, **options: Any) -> list[tuple[Any, ...]]:
        found = original(sql, *others, **options)
        if "GROUP BY" in sql:
            write(source, ROWS[1:])
        return found

    with filled(place, source) as vault:
        before = dumped(vault)
        monkeypatch.setattr(formats, "query", exchanging)
        with pytest.raises(ArmnesiaError, match="has changed since the log was read"):
            vault.forget(users=["ann"])
        write(source, ROWS)
        with pytest.raises(ArmnesiaError, match="has changed since the log was read"):
            vault.ingest(str(source), **NAMED)
        assert dumped(vault) == before


def test_rows_that_are_forgotten_while_a_source_is_counted_do_not_come_in(
    place: Place, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source is counted before the lock is taken, and again if somebody is forgotten meanwhile."""
    more = write(source.with_name("more.csv"), [("A", "1.0", "ann", "r5"), ("B", "1.0", "dea", "r6")])
    original = SourceIngest.prepare
    forgotten: list[str] = []

    with filled(place, source) as vault, place.open() as other:

        def forgetting(self: SourceIngest) -> CountedIngest:
            found = original(self)
            if not forgotten:
                forgotten.append("ann")
                other.forget(users=["ann"])
            return found

        monkeypatch.setattr(SourceIngest, "prepare", forgetting)
        done = vault.ingest(str(more), **NAMED)
        assert (done.added, done.suppressed) == (1, 1)
        assert vault.verify().holds


def test_rows_that_are_counted_while_a_person_is_looked_up_are_found(
    place: Place, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = write(source.with_name("more.csv"), [("A", "1.0", "ann", "r5")])
    original = ExternalRecords.look_up
    ingested: list[int] = []

    with filled(place, source) as vault, place.open() as other:

        def ingesting(self: ExternalRecords, *args: Any, **options: Any) -> SourceLookup:
            found = original(self, *args, **options)
            if not ingested:
                ingested.append(other.ingest(str(more), **NAMED).added)
            return found

        monkeypatch.setattr(ExternalRecords, "look_up", ingesting)
        assert vault.forget(users=["ann"]).records == 3
        assert vault.verify().holds


def test_a_look_up_that_misses_somebody_is_not_certified(
    place: Place, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place, source) as vault:
        monkeypatch.setattr(FileSource, "found_rows", lambda *args, **options: [])
        before = dumped(vault)
        requests: list[dict[str, Any]]
        requests = [{"users": ["ann"]}, {"users": ["nobody", "cem"]}, {"records": ["r1"]}]
        for request in requests:
            for ask in (vault.forget, vault.preview):
                with pytest.raises(VaultError, match="are in the sources nevertheless"):
                    ask(**request)
        with pytest.raises(VaultError, match="are in the sources nevertheless"):
            vault.forget(users=["ann"], exactly=True)
        assert dumped(vault) == before


def lying_parquet(path: Path, users: Sequence[Any], true: bytes, said: bytes) -> None:
    """A file whose footer says something else of the highest user than is true."""
    rows = ", ".join(f"('A', 1.0::DOUBLE, {user!r})" for user in users)
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {rows}) t(action, reward, who)) TO '{path}' (FORMAT parquet)")
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert true in data[footer:]
    path.write_bytes(data[:footer] + data[footer:].replace(true, said))


@pytest.mark.parametrize(
    ("users", "true", "said"),
    [
        ((5, 777_777_777, 6, 7), (777_777_777).to_bytes(4, "little"), (7).to_bytes(4, "little")),
        (("u5", "u9", "u6", "u7"), b"u9", b"u7"),
    ],
    ids=["integers", "text"],
)
def test_a_file_whose_statistics_hide_somebody_is_not_certified(
    place: Place, tmp_path: Path, users: Sequence[Any], true: bytes, said: bytes
) -> None:
    path = tmp_path / "log.parquet"
    lying_parquet(path, users, true, said)
    first, hidden, *_ = users
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE who = {hidden!r}").fetchall() == [(0,)]
    with place.create(EXTERNAL) as vault:
        assert vault.ingest(str(path), user="who").added == 4
        before = dumped(vault)
        for request in ([hidden], [first, hidden]):
            if isinstance(hidden, str) and len(request) > 1:  # DuckDB compares a set of texts otherwise
                assert vault.preview(users=request).records == 2
                continue
            with pytest.raises(ArmnesiaError, match="statistics"):
                vault.forget(users=request)
        assert dumped(vault) == before
        assert vault.forget(users=[first]).records == 1
        assert vault.forget(users=["8"], exactly=True).records == 0


def test_near_spellings_are_looked_for_at_the_source(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        before = dumped(vault)
        with pytest.raises(SimilarNameError, match="'ann', which may be user 'Ann'") as refused:
            vault.forget(users=["Ann"])
        assert refused.value.similar == {"Ann": ("ann",)}
        with pytest.raises(SimilarNameError, match="'r1', which may be record 'R1'"):
            vault.forget(records=["R1"])
        assert dumped(vault) == before
        assert vault.forget(users=["Ann"], exactly=True).records == 0
        assert vault.forget(users=["ann"]).records == 2
        assert vault.forget(users=["ANN"]).records == 0  # whom there are no rows of any more


def test_a_float_of_a_name_with_rows_is_looked_for(place: Place, source: Path) -> None:
    write(source, [("A", "1", "x1", "r1"), ("A", "1", "1", "r2"), ("A", "1", "1.0", "r3"), ROWS[3]])
    with pytest.warns(UserWarning, match="integers that became floats"):
        vault = filled(place, source)
    with vault:
        with pytest.raises(SimilarNameError, match=r"'1\.0', which may be user '1'"):
            vault.forget(users=["1"])
        assert vault.forget(users=["1", "1.0"]).records == 2
        assert vault.verify().holds


def sqlite_log(path: Path, rows: Sequence[tuple[str, ...]]) -> str:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS log (action, reward REAL, who, id INTEGER)")
        database.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)
    return f"sqlite:///{path}"


def run(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql)


def test_a_table_of_a_database_is_counted_by_the_column_that_orders_it(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    rows = [(action, reward, who, str(number)) for number, (action, reward, who, _) in enumerate(ROWS, 1)]
    url = sqlite_log(path, rows)
    with place.create(EXTERNAL) as vault:
        with pytest.raises(InvalidInputError, match=r"ordered_by \(--ordered-by\)"):
            vault.ingest(url, table="log", **NAMED)
        assert vault.ingest(url, table="log", **NAMED, ordered_by="id").added == 4
        sqlite_log(path, [("A", "1.0", "ann", "5")])
        assert vault.forget(users=["bob"]).records == 1
        found = vault.verify()
        assert found.holds
        assert any("not counted yet" in note for note in found.notes)
        done = vault.ingest(url, table="log", **NAMED)
        assert (done.rows, done.added, done.recounted) == (1, 1, False)
        assert vault.ingest(url, table="log", **NAMED).rows == 0
        assert vault.forget(users=["ann"]).records == 3
        run(
            path, "DELETE FROM log WHERE id = 1"
        )  # of a forgotten person, which the number of rows does not tell
        assert any("added or removed" in problem for problem in vault.verify().problems)
        assert vault.ingest(url, table="log", **NAMED).recounted
        assert vault.verify().holds
        run(path, "UPDATE log SET reward = 0 WHERE id = 4")
        assert any("statistics of action" in problem for problem in vault.verify().problems)
        run(path, "DELETE FROM log WHERE id = 5")
        with pytest.raises(VaultError, match="the last of the rows that were counted is no longer there"):
            vault.forget(users=["cem"])
        done = vault.ingest(url, table="log", **NAMED)
        assert done.recounted
        assert vault.verify().holds
        with pytest.raises(VaultError, match="would count twice"):
            vault.ingest(url, table="log", user="who", ordered_by="id")


@pytest.mark.parametrize(
    ("value", "got"), [("NULL", "a missing value"), ("2.5", "values of type"), ("x'00'", "values of type")]
)
def test_a_column_that_cannot_order_rows_is_refused(
    sqlite_place: Place, tmp_path: Path, value: str, got: str
) -> None:
    url = sqlite_log(tmp_path / "log.db", [("A", "1.0", "ann", "1")])
    run(tmp_path / "log.db", f"INSERT INTO log VALUES ('A', 1.0, 'bob', {value})")
    with sqlite_place.create(EXTERNAL) as vault:
        with pytest.raises(InvalidInputError, match=f"must have a value in every row.*{got}"):
            vault.ingest(url, table="log", user="who", ordered_by="id")
        with pytest.raises(InvalidInputError, match="'none' is not in the source"):
            vault.ingest(url, table="log", user="who", ordered_by="none")


def test_an_order_is_refused_where_it_is_not_needed(sqlite_place: Place, source: Path) -> None:
    with sqlite_place.create(EXTERNAL) as vault:
        with pytest.raises(InvalidInputError, match="is for tables of databases"):
            vault.ingest(str(source), **NAMED, ordered_by="id")
        with pytest.raises(InvalidInputError, match="without batches"):
            vault.ingest(str(source), **NAMED, batch_rows=2)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("C", "1.0", "ann", "r5"), "offer it first with armnesia arms add"),
        (("A", "2.0", "ann", "r5"), "must lie in"),
        (("A", "", "ann", "r5"), "reward column"),
        (("", "1.0", "ann", "r5"), "action column"),
        (("A", "1.0", "ann", ""), "id column"),
    ],
)
def test_a_wrong_row_refuses_the_whole_ingest(
    sqlite_place: Place, tmp_path: Path, row: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "1.csv", ROWS)
    with filled(sqlite_place, tmp_path / "*.csv") as vault:
        write(tmp_path / "2.csv", [ROWS[3], row])
        before = dumped(vault)
        with pytest.raises(ArmnesiaError, match=message):
            vault.ingest(str(tmp_path / "*.csv"), **NAMED)
        assert dumped(vault) == before
        assert vault.forget(users=["ann"]).records == 2


def test_ten_thousand_files_are_named_in_little_space(tmp_path: Path) -> None:
    files = tuple(
        (f"{tmp_path}/day={number:05}/part-{number:032x}.parquet", 10**6 + number, 10**18 + 7919 * number)
        for number in range(10_000)
    )
    part = CountedPart(FileManifest(files), one_spelling=True, some_without_user=False)
    text = part.packed()
    assert len(text) < 1_000_000
    assert CountedPart.unpacked({"location": str(tmp_path)}, text) == part
