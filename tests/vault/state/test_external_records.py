"""External vaults: the rows stay at their sources, where they may change, vanish, and be looked up again."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.logs.files.source import FileSource
from armnesia.logs.rows import RawRows, Selection
from armnesia.vault import Configuration, Vault
from tests.databases import Place
from tests.vault.raw_vaults import arms, change, dumped, values

EXTERNAL = Configuration(actions=("A", "B"), mode="external")
ROWS = [
    ("A", "0.75", "ann", "r1"),
    ("A", "0.5", "bob", "r2"),
    ("B", "0.25", "ann", "r3"),
    ("B", "1.0", "cem", "r4"),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "log.csv", ROWS)


def write(path: Path, rows: Sequence[tuple[str, ...]], header: str = "action,reward,who,id") -> Path:
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    return path


def filled(place: Place, source: Path, **columns: Any) -> Vault:
    vault = place.create(EXTERNAL)
    assert vault.ingest(str(source), **({"user": "who", "id": "id"} | columns)).added == 4
    return vault


def counts(vault: Vault) -> list[tuple[int, int]]:
    return [(count, total) for count, total, _ in arms(vault)]


def test_the_vault_holds_digests_and_statistics_only(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        ring = vault._connection.all_keys
        rows = {ring.record_identity("id", row_id): (ring.owner_digest(user), arm, float(reward))
                for arm, reward, user, row_id in ROWS}  # fmt: skip
        held = dumped(vault)["record"]
        assert {identity: owner for identity, owner, *_ in held} == {
            name: row[0] for name, row in rows.items()
        }
        text = repr(dumped(vault))
        assert not any(secret in text for secret in ("ann", "bob", "r1", "750000000"))
        assert counts(vault) == [(2, 1_250_000_000), (2, 1_250_000_000)]


@pytest.mark.parametrize("ids", [True, False])
def test_a_person_is_looked_up_at_the_source(place: Place, source: Path, ids: bool) -> None:
    with filled(place, source, id="id" if ids else None) as vault:
        done = vault.forget(users=["ann"])
        assert done.counts == {"A": 1, "B": 1}
        assert "not the source of the records" in done.certificate.body["erasure"]["covers"]
        assert counts(vault) == [(1, 500_000_000), (1, 1_000_000_000)]
        found = vault.verify()
        assert found.holds
        (note,) = found.notes
        assert "2 rows of forgotten people or records are still present; delete them" in note
        again = vault.ingest(str(source), user="who", id="id" if ids else None)
        assert (again.added, again.already_there, again.suppressed) == (0, 2, 2)
        write(source, [ROWS[1], ROWS[3]])
        assert vault.verify().notes == ()
        assert vault.verify().holds


@pytest.mark.parametrize("ids", [True, False])
def test_many_people_are_found_in_one_reading(
    place: Place, source: Path, ids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are equal but for their owner's number, so that their order of occurrence matters."""
    write(source, [*ROWS, *([("A", "0.75", "ann", "")] * 2 if not ids else [])])
    with place.create(EXTERNAL) as vault:
        vault.ingest(str(source), user="who", id="id" if ids else None)
        readings = []
        original = FileSource.raw_rows

        def counted(self: FileSource, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
            readings.append(selection)
            return original(self, chunk, selection)

        monkeypatch.setattr(FileSource, "raw_rows", counted)
        done = vault.forget(users=["ann", "bob"])
        assert done.counts == ({"A": 2, "B": 1} if ids else {"A": 4, "B": 1})
        assert readings == [Selection("user", frozenset({"ann", "bob"}))]
        assert counts(vault) == [(0, 0), (1, 1_000_000_000)]
        assert vault.verify().holds


def test_single_rows_are_looked_up_at_the_source(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        assert vault.forget(records=["r1", "r9"]).records == 1
        assert counts(vault) == [(1, 500_000_000), (2, 1_250_000_000)]
        assert "1 rows of forgotten people or records are still present" in vault.verify().notes[0]


@pytest.mark.parametrize(
    ("rows", "said", "found"),
    [
        (
            [ROWS[0], *ROWS[1:2], ROWS[3]],
            "1 are no longer at their source and 0 have changed",
            "1 rows that the vault",
        ),
        (
            [("A", "0.7", "ann", "r1"), *ROWS[1:]],
            "0 are no longer at their source and 1 have",
            "1 rows have changed",
        ),
        (
            [("B", "0.75", "ann", "r1"), *ROWS[1:]],
            "0 are no longer at their source and 1 have",
            "1 rows have changed",
        ),
        (
            [("A", "0.75", "eve", "r1"), *ROWS[1:]],
            "1 are no longer at their source and 0 have",
            "1 rows have changed",
        ),
    ],
    ids=["deleted", "another reward", "another action", "another owner"],
)
def test_a_source_that_has_changed_is_noticed_and_rebuilt(
    place: Place, source: Path, rows: list[tuple[str, ...]], said: str, found: str
) -> None:
    with filled(place, source) as vault:
        write(source, rows)
        assert any(found in problem for problem in vault.verify().problems)
        before = dumped(vault)
        for ask in (vault.forget, vault.preview):
            with pytest.raises(VaultError, match=f"{said}.*now run armnesia rebuild"):
                ask(users=["ann"])
        assert dumped(vault) == before
        units = {arm: [round(float(row[1]) * 1e9) for row in rows if row[0] == arm] for arm in "AB"}
        right = [(len(units[arm]), sum(units[arm])) for arm in "AB"]
        served = vault.decide()
        assert vault.rebuild().changed
        assert vault.ledger()[-1].fields["changed"] is True
        if rows[0][2] == "eve":  # another owner is no other statistic
            assert (vault.decide().action, vault.decide().by) == (served.action, served.by)
        assert vault.verify().holds
        assert counts(vault) == right
        assert vault.forget(users=["ann"]).records == sum(row[2] == "ann" for row in rows)
        assert vault.verify().holds


def test_a_digest_that_was_changed_is_found(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        for column in ("identity", "owner", "content"):
            ((true,),) = values(vault, f"SELECT {column} FROM record ORDER BY 1 LIMIT 1")
            other = bytes([true[0] ^ 1]) + true[1:]
            assert change(vault, f"UPDATE record SET {column} = ? WHERE {column} = ?", other, true) > 0
            assert any("log.csv" in problem for problem in vault.verify().problems), column
            change(vault, f"UPDATE record SET {column} = ? WHERE {column} = ?", true, other)
        assert vault.verify().holds


def test_rebuilding_leaves_the_forgotten_out_and_what_is_served_alone(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        vault.forget(users=["ann"])
        before, served = counts(vault), vault.decide()
        assert not vault.rebuild().changed
        assert counts(vault) == before
        assert (vault.decide().action, vault.decide().by) == (served.action, "release")
        assert vault.verify().holds


def test_new_rows_at_the_source_are_a_note_and_no_problem(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        write(source, [*ROWS, ("A", "1.0", "ann", "r5")])
        found = vault.verify()
        assert found.holds
        assert "1 rows are new since the last ingest" in found.notes[0]
        assert vault.forget(users=["ann"]).records == 2  # what was counted


def test_a_lost_source_is_a_problem_and_nobody_can_be_looked_up(place: Place, source: Path) -> None:
    with filled(place, source) as vault:
        source.unlink()
        before = dumped(vault)
        assert any("log.csv" in problem for problem in vault.verify().problems)
        with pytest.raises(ArmnesiaError, match=r"log\.csv"):
            vault.forget(users=["ann"])
        with pytest.raises(ArmnesiaError, match=r"log\.csv"):
            vault.rebuild()
        assert dumped(vault) == before


def test_a_lost_source_hinders_only_those_who_are_in_it(place: Place, source: Path, tmp_path: Path) -> None:
    more = write(tmp_path / "more.csv", [("A", "1.0", "eve", "r5"), ("B", "0.0", "ann", "r6")])
    with filled(place, source) as vault:
        assert vault.ingest(str(more), user="who", id="id").added == 2
        more.unlink()
        for who in (["ann"], ["eve"], ["ann", "bob"]):
            with pytest.raises(ArmnesiaError, match="is not a file"):
                vault.forget(users=who)
        assert vault.forget(users=["bob"]).records == 1
        assert vault.forget(users=["nobody"]).records == 0


def test_a_source_without_people_hinders_nobody(place: Place, source: Path, tmp_path: Path) -> None:
    more = write(tmp_path / "anonymous.csv", [("A", "1.0"), ("A", "1.0")], header="action,reward")
    with filled(place, source) as vault:
        assert vault.ingest(str(more)).added == 2
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
    write(other, [ROWS[0], ("B", "1.0", "dan", "r9")])
    with filled(place, source) as vault:
        before = counts(vault)
        assert vault.ingest(str(other), user="who", id="id").added == 1
        assert [(one.name, one.records) for one in vault.status().sources] == [
            (str(source), len(ROWS)),
            (str(other), 1),
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
        assert read[-1] == len(ROWS)  # as many as the source has, though the digests are read as well
        again: list[int] = []
        vault.verify(progress=again.append)
        assert again[-1] == len(ROWS)
        assert vault.ledger()[-1].fields["sources_dropped"] == 1
        assert counts(vault) == before
        assert [one.name for one in vault.status().sources] == [str(source)]
        assert vault.verify().holds
        assert vault.forget(users=["dan"]).records == 0
        assert not vault.rebuild().changed
        assert vault.ledger()[-1].fields["sources_dropped"] == 0


def test_rows_of_a_dropped_source_that_another_has_too_still_count(place: Place, source: Path) -> None:
    copy = source.with_name("copy.csv")
    write(copy, ROWS)
    with filled(place, source) as vault:
        assert vault.ingest(str(copy), user="who", id="id").already_there == len(ROWS)
        before = counts(vault)
        source.unlink()
        assert not vault.rebuild(without=[str(source)]).changed
        assert counts(vault) == before
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().holds
