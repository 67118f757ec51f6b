"""The same row in several sources, or several times in one, is one row where the vault holds rows."""

from pathlib import Path

import pytest

from armnesia.logs import Source
from armnesia.vault import Configuration
from tests.databases import Place
from tests.vault.plain_vault import Record, write_csv

ROWS = [Record("A", 4, "ann", "1"), Record("B", 0, "bob", "2"), Record("B", 4, None, "3")]


@pytest.mark.parametrize("ids", [True, False])
def test_rows_that_several_sources_have_count_several_times_in_an_external_vault(
    place: Place, tmp_path: Path, ids: bool
) -> None:
    rows = ROWS if ids else [row._replace(id=None) for row in ROWS]
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        for name, some in (("first", rows[:2]), ("second", rows[1:])):
            write_csv(tmp_path / f"{name}.csv", some)
            vault.ingest(str(tmp_path / f"{name}.csv"), user="user", id="id" if ids else None)
        found = vault.verify()
        assert (found.problems, found.notes, found.records) == ((), (), 4)
        assert not vault.rebuild().changed
        assert vault.forget(users=["bob"]).counts == {"A": 0, "B": 2}
        assert vault.verify().problems == ()


def test_an_id_that_stands_far_apart_in_a_source_is_one_row(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = {**(Source.rows.__kwdefaults__ or {}), "chunk": 2}
    monkeypatch.setattr(Source.rows, "__kwdefaults__", defaults)
    file = tmp_path / "log.csv"
    write_csv(file, [*ROWS, ROWS[0]])
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        done = vault.ingest(str(file), user="user", id="id")
        assert (done.added, done.already_there) == (3, 1)
        found = vault.verify()
        assert (found.problems, found.notes, found.records) == ((), (), 3)
        assert vault.forget(users=["ann"]).counts == {"A": 1, "B": 0}
        assert vault.verify().problems == ()
