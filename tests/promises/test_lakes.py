"""A log that stays where it is: counted, people forgotten, and their rows erased there."""

from pathlib import Path

import pytest

from tests.promises.driver import Driven, Refused, Row, check_certificate, driven, statistics_of
from tests.promises.killing import Killer
from tests.promises.lakes import KINDS, Lake, make_lake
from tests.promises.test_histories import rows_of

PEOPLE = [f"somebody-with-a-long-name-{number:02}" for number in range(14)]
OTHERS = ["one who stays", "another"]
EXTERNAL = ("--external", "--may-erase-at-source")


def _kept(rows: list[Row], *gone: str) -> list[Row]:
    return [row for row in rows if row.person not in gone]


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    return make_lake(request.param, tmp_path, monkeypatch)


def _external(database: str, folder: Path) -> Driven:
    return driven(database, folder, options=EXTERNAL)


def _whole_way(vault: Driven, lake: Lake) -> None:
    """The lake tutorial: count, count what is new, forget, erase, verify, hand out."""
    first, second = rows_of(1, 40, PEOPLE), rows_of(2, 40, PEOPLE)
    lake.append(first)
    assert vault.ingest(lake.source, *lake.options)["added"] == 40
    lake.append(second)
    assert vault.ingest(lake.source, *lake.options)["added"] == 40
    rows = first + second
    assert vault.statistics() == statistics_of(rows)
    assert vault.forget(PEOPLE[0], PEOPLE[1]).records == len(rows) - len(_kept(rows, *PEOPLE[:2]))
    kept = _kept(rows, *PEOPLE[:2])
    assert vault.statistics() == statistics_of(kept)
    assert len(lake.values()) == 80  # no longer counted, and still at the source
    vault.erase()
    assert sorted(lake.values()) == sorted(row.values for row in kept)
    assert not any(person.encode() in lake.bytes() for person in PEOPLE[:2])
    vault.erase()  # again: nothing is left to do
    assert sorted(lake.values()) == sorted(row.values for row in kept)
    assert vault.statistics() == statistics_of(kept)
    assert vault.problems() == []
    assert check_certificate(vault.certificate(PEOPLE[0]), vault.public_keys()) == []


@pytest.mark.sampled(2)
def test_a_person_is_forgotten_and_erased_in_every_kind_of_log(lake: Lake, tmp_path: Path) -> None:
    _whole_way(_external("sqlite", tmp_path), lake)


def test_a_vault_on_postgresql_does_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _whole_way(_external("postgresql", tmp_path), make_lake("folder", tmp_path, monkeypatch))


@pytest.mark.slow
def test_an_erasure_that_is_killed_is_done_by_the_next_one(lake: Lake, tmp_path: Path) -> None:
    vault = _external("sqlite", tmp_path)
    rows = rows_of(1, 80, [*PEOPLE, *OTHERS])
    lake.append(rows)
    vault.ingest(lake.source, *lake.options)
    too = (*vault.ERASING_TOO, "--url", vault.place.url, "--keys", str(vault.place.keys))
    with Killer() as killer:  # it has the catalog of this test in its environment
        gone: list[str] = []
        for number, share in enumerate((0.8, 0.65, 0.5, 0.35)):
            first, second = PEOPLE[2 * number : 2 * number + 2]
            steps = killer.run([*vault.forget_words("--user", first), *too])
            killer.run([*vault.forget_words("--user", second), *too], round(share * steps))
            gone += [first, second]
            others = _kept(rows, *gone)
            assert {row.values for row in others} <= set(lake.values())
    for person in gone:
        vault.forget(person)  # whoever was not forgotten by then is now
    vault.erase()
    assert sorted(lake.values()) == sorted(row.values for row in others)
    assert not any(person.encode() in lake.bytes_after_kills() for person in gone)
    assert vault.statistics() == statistics_of(others)
    assert vault.problems() == []
    for person in gone:
        assert check_certificate(vault.certificate(person), vault.public_keys()) == []


def test_nothing_of_a_row_or_a_name_is_in_an_external_vault(lake: Lake, tmp_path: Path) -> None:
    vault = _external("sqlite", tmp_path)
    lake.append(rows_of(1, 40, PEOPLE))
    vault.ingest(lake.source, *lake.options)
    vault.forget(PEOPLE[0])
    assert not any(person.encode() in vault.bytes_of_database() for person in PEOPLE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    return make_lake("folder", tmp_path, monkeypatch)


def test_rows_of_forgotten_people_that_come_later_do_not_count(folder: Lake, tmp_path: Path) -> None:
    vault = _external("sqlite", tmp_path)
    folder.append(rows_of(1, 40, PEOPLE))
    vault.ingest(folder.source)
    vault.forget(PEOPLE[0])
    late = [Row("late-1", PEOPLE[0], "A", 4), Row("late-2", PEOPLE[1], "A", 4)]
    folder.append(late)
    assert vault.ingest(folder.source)["left out"] == 1
    assert vault.statistics() == statistics_of(_kept(rows_of(1, 40, PEOPLE) + late, PEOPLE[0]))
    vault.erase()
    assert all(person != PEOPLE[0] for _, person, *_ in folder.values())


def test_a_source_that_has_changed_is_counted_again_before_anybody_is_forgotten(
    folder: Lake, tmp_path: Path
) -> None:
    vault = _external("sqlite", tmp_path)
    rows = rows_of(1, 40, PEOPLE)
    folder.append(rows[:20])
    folder.append(rows[20:])
    vault.ingest(folder.source)
    (tmp_path / "lake" / "1.parquet").unlink()
    assert vault.problems() != []
    with pytest.raises(Refused, match="ingest"):
        vault.preview(PEOPLE[0])  # it writes nothing
    vault.forget(PEOPLE[0])
    assert vault.problems() == []
    assert vault.statistics() == statistics_of(_kept(rows[:20], PEOPLE[0]))


def test_a_source_that_was_moved_can_be_named_and_a_lost_one_dropped(folder: Lake, tmp_path: Path) -> None:
    vault = _external("sqlite", tmp_path)
    rows = rows_of(1, 40, PEOPLE)
    folder.append(rows)
    vault.ingest(folder.source)
    moved = tmp_path / "moved"
    (tmp_path / "lake").rename(moved)
    with pytest.raises(Refused):
        vault.forget(PEOPLE[0])
    vault.moved(folder.source, moved)
    assert vault.forget(PEOPLE[0]).records == 40 - len(_kept(rows, PEOPLE[0]))
    vault.erase()
    vault.without(moved)
    assert vault.records() == 0


def test_only_a_vault_that_was_made_for_it_erases(folder: Lake, tmp_path: Path) -> None:
    vault = driven("sqlite", tmp_path, options=("--external",))
    folder.append(rows_of(1, 40, PEOPLE))
    vault.ingest(folder.source)
    vault.forget(PEOPLE[0])
    before = folder.values()
    with pytest.raises(Refused, match="may-erase-at-source"):
        vault.erase()
    assert folder.values() == before
