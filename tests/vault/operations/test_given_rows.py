"""`forget --rows`: an external vault takes the rows of a request as another system has found them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidLogError, VaultError
from armnesia.logs.files.source import FileSource
from armnesia.vault import Configuration
from tests.conftest import Outcome
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import dumped
from tests.vault.state.test_external_records import EXTERNAL, NAMED, ROWS, counts, filled, source, sums, write

__all__ = ["source"]
ANN = [row for row in ROWS if row[2] == "ann"]
OTHERS = [row for row in ROWS if row[2] != "ann"]


def given(tmp_path: Path, rows: Sequence[tuple[str, ...]], **header: str) -> str:
    return str(write(tmp_path / "rows.csv", rows, **header))


def test_given_rows_are_taken_and_no_source_is_read(
    place: Place, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place, source) as vault:
        rows = given(tmp_path, ANN)
        assert vault.preview(users=["ann"], rows=rows).held == 1
        source.rename(source.with_suffix(".away"))
        done = vault.forget(users=["ann"], rows=rows)
        source.with_suffix(".away").rename(source)
        assert (done.records, done.held, counts(vault)) == (2, 1, sums(OTHERS))
        body = done.certificate.body
        assert body["entry"]["lookup"] == "given"
        assert "the operator vouches for their being all" in body["claims"]["forgotten"]
        assert done.certificate.verify(vault.public_key()) == []
        assert vault.verify().holds  # the same as after a look-up
        assert vault.forget(users=["ann"], rows=rows).repeated
        again = vault.forget(users=["bob"])
        assert "lookup" not in again.certificate.body["entry"]
        assert "vouches" not in again.certificate.body["claims"]["forgotten"]


def test_names_are_found_in_every_spelling_and_rows_by_their_ids(
    place: Place, source: Path, tmp_path: Path
) -> None:
    with filled(place, source) as vault:
        assert vault.forget(records=["r1"], rows=given(tmp_path, [ROWS[0]])).records == 1
        # The row that was forgotten by its id is not counted any more.
        assert vault.forget(users=["ann"], rows=given(tmp_path, ANN)).records == 1
        assert counts(vault) == sums(OTHERS)
        assert vault.verify().holds


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS, "2 of the 4 given rows belong to nobody in the request"),
        (OTHERS, "2 of the 2 given rows belong to nobody"),
        ([], "no counted row is given of 1 of the 1 name in the request"),
        ([*ANN, *((*row[:3], f"again-{row[3]}") for row in ANN)], "the vault has not counted the given rows"),
    ],
)
def test_rows_that_cannot_be_those_of_the_request_are_refused(
    place: Place, source: Path, tmp_path: Path, rows: Sequence[tuple[str, ...]], said: str
) -> None:
    with filled(place, source) as vault:
        before = dumped(vault)
        with pytest.raises(VaultError, match=said):
            vault.forget(users=["ann"], rows=given(tmp_path, rows))
        assert dumped(vault) == before


def test_columns_are_those_of_the_first_source(place: Place, source: Path, tmp_path: Path) -> None:
    with filled(place, source) as vault:
        with pytest.raises(InvalidLogError, match="who"):
            vault.forget(users=["ann"], rows=given(tmp_path, ANN, header="action,reward,person,id"))
        columns = zip(("action", "reward", "who", "id"), zip(*ANN, strict=True), strict=True)
        frame: dict[str, Any] = {name: list(values) for name, values in columns}
        frame["reward"] = [float(reward) for reward in frame["reward"]]
        assert vault.forget(users=["ann"], rows=frame).records == 2


def test_rows_of_a_second_source_have_its_columns(place: Place, source: Path, tmp_path: Path) -> None:
    header = "arm,won,person,id"
    more = [("A", "0.125", "dan", "r5"), ("B", "0.5", "eve", "r6")]
    with filled(place, source) as vault:
        second = write(tmp_path / "more.csv", more, header)
        names: dict[str, Any] = {"action": "arm", "reward": "won", "user": "person", "id": "id"}
        assert vault.ingest(str(second), **names, other_columns=True).added == 2
        assert vault.forget(users=["dan"], rows=given(tmp_path, more[:1], header=header)).records == 1
        assert counts(vault) == sums([*ROWS, more[1]])
        assert vault.verify().holds


def test_only_rows_that_satisfy_the_conditions_of_the_source_count(place: Place, tmp_path: Path) -> None:
    header = "action,reward,who,country"
    of_ann = [("A", "0.5", "ann", "DE"), ("A", "0.25", "ann", "FR")]
    others = [("A", "1.0", "bob", "DE"), ("B", "1.0", "bob", "DE"), ("A", "0.25", "cem", "FR")]
    log = write(tmp_path / "log.csv", [*of_ann, *others], header)
    with place.create(EXTERNAL) as vault:
        assert vault.ingest(str(log), user="who", where="country = DE").added == 3
        before = dumped(vault)
        without = [row[:3] for row in of_ann]
        with pytest.raises(VaultError, match=r"cannot be compared with the conditions of source.*country"):
            vault.forget(users=["ann"], rows=given(tmp_path, without, header="action,reward,who"))
        with pytest.raises(VaultError, match="no counted row is given of 1 of the 1 name"):
            vault.forget(users=["cem"], rows=given(tmp_path, others[2:], header=header))
        assert dumped(vault) == before
        assert vault.forget(users=["ann"], rows=given(tmp_path, of_ann, header=header)).records == 1
        assert counts(vault) == sums(others[:2])
        assert vault.verify().holds


def test_rows_of_sources_with_different_conditions_are_refused(place: Place, tmp_path: Path) -> None:
    header = "action,reward,who,country"
    rows = [("A", "0.5", "ann", "DE"), ("B", "0.25", "bob", "FR")]
    with place.create(EXTERNAL) as vault:
        vault.ingest(str(write(tmp_path / "a.csv", rows, header)), user="who", where="country = DE")
        vault.ingest(str(write(tmp_path / "b.csv", rows, header)), user="who")
        before = dumped(vault)
        with pytest.raises(VaultError, match=r"a\.csv' or of source '.*b\.csv', which are counted with diff"):
            vault.forget(users=["ann"], rows=given(tmp_path, rows[:1], header=header))
        assert dumped(vault) == before


def test_rows_without_ids_are_refused_once_records_were_forgotten(place: Place, tmp_path: Path) -> None:
    """A row that was forgotten by its id must not be taken away twice, whichever source is the first."""
    plain = write(tmp_path / "plain.csv", [row[:3] for row in OTHERS], "action,reward,who")
    log = write(tmp_path / "log.csv", ROWS)
    with place.create(EXTERNAL) as vault:
        vault.ingest(str(plain), user="who")
        vault.ingest(str(log), user="who", id="id", other_columns=True)
        vault.forget(records=["r1"])
        before = dumped(vault)
        with pytest.raises(VaultError, match=r"must name the id of each in a column.*subtracted twice"):
            vault.forget(
                users=["ann"], rows=given(tmp_path, [row[:3] for row in ANN], header="action,reward,who")
            )
        assert dumped(vault) == before
        assert vault.forget(users=["ann"], rows=given(tmp_path, ANN)).records == 1
        assert counts(vault) == sums([*OTHERS, *OTHERS])
        assert vault.verify().holds


def test_rows_without_names_are_refused_once_people_were_forgotten(place: Place, tmp_path: Path) -> None:
    nameless = write(
        tmp_path / "nameless.csv", [(*row[:2], f"n{row[3]}") for row in OTHERS], "action,reward,id"
    )
    log = write(tmp_path / "log.csv", ROWS)
    with place.create(EXTERNAL) as vault:
        vault.ingest(str(nameless), id="id", no_user=True)
        vault.ingest(str(log), user="who", id="id", other_columns=True)
        vault.forget(users=["ann"])
        before = dumped(vault)
        rows = given(tmp_path, [(*ANN[0][:2], ANN[0][3])], header="action,reward,id")
        with pytest.raises(VaultError, match=r"must name the user of each in a column.*subtracted twice"):
            vault.forget(records=["r1"], rows=rows)
        assert dumped(vault) == before
        assert vault.forget(records=["r1"], rows=given(tmp_path, ANN[:1])).records == 0
        assert vault.verify().holds


def test_a_vault_that_holds_its_rows_takes_none(place: Place, source: Path, tmp_path: Path) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(str(source), **NAMED)
        with pytest.raises(VaultError, match="this vault holds the rows itself"):
            vault.forget(users=["ann"], rows=given(tmp_path, ANN))


def test_given_rows_are_looked_at_again_if_somebody_was_forgotten_meanwhile(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that was forgotten by its id after the look-up must not be taken away twice."""
    place = fresh_place("sqlite", tmp_path)
    with filled(place, source) as vault, place.open() as other:
        found_rows, calls = FileSource.found_rows, list[str]()

        def meanwhile(self: FileSource, *arguments: Any, **options: Any) -> Any:
            calls.append("")
            if len(calls) == 1:
                other.forget(records=["r1"])
            return found_rows(self, *arguments, **options)

        monkeypatch.setattr(FileSource, "found_rows", meanwhile)
        assert vault.forget(users=["ann"], rows=given(tmp_path, ANN)).records == 1
        monkeypatch.undo()
        assert counts(vault) == sums(OTHERS)
        assert vault.verify().holds


def test_the_command_line_takes_rows(run: Callable[..., Outcome], tmp_path: Path, source: Path) -> None:
    with filled(place := fresh_place("sqlite", tmp_path), source):
        pass
    where = ("--url", place.url, "--keys", str(place.keys))
    done = run("forget", *where, "--user", "ann", "--rows", given(tmp_path, ANN))
    assert (done.code, done.err) == (0, "")
    assert "Forgotten: 2 records" in done.out
    refused = run("forget", *where, "--user", "bob", "--rows", given(tmp_path, ANN))
    assert refused.code == 2
    assert "belong to nobody in the request" in refused.err


def test_a_row_that_is_given_twice_is_refused_by_its_id(place: Place, source: Path, tmp_path: Path) -> None:
    """Though the statistics could contain both: somebody else has a row of the same arm and reward."""
    more = [("A", "0.5", "ann", "r8"), ("A", "0.5", "zoe", "r9"), ("A", "0.5", "yan", "r10")]
    with filled(place, source) as vault:
        vault.ingest(write(tmp_path / "more.csv", more), **NAMED)
        before = dumped(vault)
        rows = given(tmp_path, [*ANN, more[0], more[0]])
        for asked in (vault.preview, vault.forget):
            with pytest.raises(VaultError, match="1 of the 3 ids of the given rows are there more than once"):
                asked(users=["ann"], rows=rows)
        assert dumped(vault) == before
        assert vault.forget(users=["ann"], rows=given(tmp_path, [*ANN, more[0]])).records == 3
        assert vault.verify().holds


def test_a_row_too_many_is_what_verify_may_have_found(place: Place, source: Path, tmp_path: Path) -> None:
    header, more = "action,reward,who", [("A", "0.5", "ann"), ("A", "0.5", "zoe")]
    columns: dict[str, Any] = {"action": "action", "reward": "reward", "user": "who"}
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(write(tmp_path / "more.csv", more, header), **columns)
        vault.forget(users=["ann"], rows=given(tmp_path, [more[0], more[0]], header=header))
        assert any("not all of it, or more" in problem for problem in vault.verify().problems)


@pytest.mark.parametrize("request_", [{"users": ["ann"]}, {"records": ["r1", "r3"]}], ids=["user", "record"])
def test_rows_of_readmitted_people_are_not_subtracted_before_they_are_counted_again(
    sqlite_place: Place, source: Path, tmp_path: Path, request_: dict[str, Any]
) -> None:
    rows = given(tmp_path, ANN)
    with filled(sqlite_place, source) as vault:
        vault.forget(**request_)
        vault.readmit(**request_)
        before = dumped(vault)
        with pytest.raises(VaultError, match="people were readmitted, whose rows were left out"):
            vault.forget(**request_, rows=rows)
        assert dumped(vault) == before
        vault.ingest(str(source), **NAMED)
        assert vault.forget(**request_, rows=rows).records == 2
        assert counts(vault) == sums(OTHERS)
        assert vault.verify().holds


@pytest.mark.parametrize("role", ["reward", "action"])
def test_rows_that_two_sources_count_by_other_columns_are_refused(
    sqlite_place: Place, tmp_path: Path, role: str
) -> None:
    header = "action,reward,who,id,second"
    rows = [("A", "1", "ann", "r1", "B" if role == "action" else "0"), ("A", "1", "bob", "r2", "B")]
    first = write(tmp_path / "first.csv", rows[:1], header)
    other = write(tmp_path / "other.csv", [(*row[:3], f"x{row[3]}", row[4]) for row in rows[:1]], header)
    with sqlite_place.create(EXTERNAL) as vault:
        vault.ingest(str(first), **NAMED)
        columns: dict[str, Any] = {**NAMED, role: "second"}
        vault.ingest(str(other), **columns, other_columns=True)
        before = dumped(vault)
        with pytest.raises(VaultError, match=f"with different {role} columns .'{role}' and 'second'."):
            vault.forget(users=["ann"], rows=given(tmp_path, [*rows[:1]], header=header))
        assert dumped(vault) == before
        assert vault.forget(users=["ann"]).records == 2


def test_given_rows_are_in_no_database(sqlite_place: Place, source: Path) -> None:
    with (
        filled(sqlite_place, source) as vault,
        pytest.raises(VaultError, match="got the address of a database"),
    ):
        vault.forget(users=["ann"], rows="sqlite:///rows.db")
