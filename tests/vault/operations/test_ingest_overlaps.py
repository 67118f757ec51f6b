"""The same row in several sources, or several times in one, is one row where the vault holds rows."""

from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Vault
from tests.databases import Place
from tests.vault.plain_vault import Record, write_csv
from tests.vault.raw_vaults import dumped

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
        assert Vault.restore(place.url, keys=place.keys).as_it_was
        assert vault.forget(users=["bob"]).counts == {"A": 0, "B": 2}
        assert vault.verify().problems == ()


def test_an_id_that_stands_far_apart_in_a_source_is_one_row(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armnesia.vault.state.incoming_rows.CHUNK", 2)
    file = tmp_path / "log.csv"
    write_csv(file, [*ROWS, ROWS[0]])
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        done = vault.ingest(str(file), user="user", id="id")
        assert (done.added, done.already_there) == (3, 1)
        found = vault.verify()
        assert (found.problems, found.notes, found.records) == ((), (), 3)
        assert vault.forget(users=["ann"]).counts == {"A": 1, "B": 0}
        assert vault.verify().problems == ()


def external(place: Place) -> Vault:
    return place.create(Configuration(actions=("A", "B"), mode="external"))


def day(folder: Path, number: int, rows: list[Record]) -> Path:
    path = folder / f"day={number}" / "part.csv"
    path.parent.mkdir(parents=True)
    write_csv(path, rows)
    return path.parent


def test_a_folder_inside_a_counted_one_is_not_a_source_of_its_own(
    sqlite_place: Place, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    day(lake, 1, ROWS[:2])
    with external(sqlite_place) as vault:
        vault.ingest(str(lake), user="user", id="id")
        inner = day(lake, 2, ROWS[2:])
        link = tmp_path / "link"
        link.symlink_to(inner)
        for path in (inner, inner / "*.csv", link):
            before = dumped(vault)
            with pytest.raises(VaultError, match=f"overlaps with source '{lake}'"):
                vault.ingest(str(path), user="user", id="id")
            assert dumped(vault) == before
        assert vault.ingest(str(lake), user="user", id="id").added == 1
        assert vault.verify().problems == ()


def test_a_folder_around_a_counted_one_is_not_a_source_of_its_own(
    sqlite_place: Place, tmp_path: Path
) -> None:
    inner = day(tmp_path / "lake", 1, ROWS[:2])
    day(tmp_path / "lake", 0, ROWS[2:])
    with external(sqlite_place) as vault:
        vault.ingest(str(inner), user="user", id="id")
        with pytest.raises(VaultError, match="its rows would count twice; nothing was changed"):
            vault.ingest(str(tmp_path / "lake"), user="user", id="id")
        (inner / "part.csv").unlink()
        write_csv(inner / "other.csv", ROWS[:1])
        with pytest.raises(VaultError, match=f"overlaps with source '{inner}'"):
            vault.ingest(str(tmp_path / "lake"), user="user", id="id")


def test_the_file_that_two_sources_share_is_the_first_by_name(sqlite_place: Place, tmp_path: Path) -> None:
    for name in "hfgabdce":
        write_csv(tmp_path / f"{name}.csv", ROWS)
    with external(sqlite_place) as vault:
        vault.ingest(str(tmp_path / "[b-z].csv"), user="user", id="id")
        with pytest.raises(VaultError, match="overlaps with source"):
            vault.ingest(str(tmp_path / "*.csv"), user="user", id="id")
