"""A large Delta table is erased from part by part, along a column that tells its files apart."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import deltalake
import deltalake.table
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs.erasing import ErasurePlan, People, SourceState, delta_deletion, delta_ranges, lake_eraser
from armnesia.logs.erasing.delta import DeltaEraser
from armnesia.logs.erasing.delta_commits import GOES_ON, TOKEN
from armnesia.logs.erasing.delta_files import DeltaFolder
from armnesia.logs.erasing.delta_ranges import FileRange, FooterBounds, cuts_between, largest_between
from armnesia.logs.lakes.delta import DeltaLog
from tests.logs.erasing.stores import DeltaStore
from tests.logs.lakes.tables import Actions, add_actions, edit_commit

PERSON, OTHER = "mona-4711", "zoe"
PEOPLE = People.named([PERSON])
N_FILES, N_ROWS = 5, 8
START = datetime(2026, 3, 1, tzinfo=UTC)
Value = Callable[[int, int], Any]
KINDS: dict[str, tuple[pa.DataType, Value]] = {
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda file, row: START + timedelta(days=file, minutes=row, microseconds=7),
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        lambda file, row: (START + timedelta(days=file, minutes=row)).replace(tzinfo=None),
    ),
    "before 1970": (
        pa.timestamp("us", "UTC"),
        lambda file, row: datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=file, minutes=row),
    ),
    "date": (pa.date32(), lambda file, row: date(2026, 3, 1) + timedelta(days=20 * file + row)),
    "byte": (pa.int8(), lambda file, row: 20 * file + row - 50),
    "long": (pa.int64(), lambda file, row: 2**62 + 20 * file + row),
}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is one of which no two files are read together."""
    monkeypatch.setattr(delta_ranges, "MOST_BYTES", 1)


def append(folder: Path, column: pa.Array, people: Sequence[str], **options: Any) -> None:
    rows = {
        "user": pa.array(people),
        "action": pa.array(["a"] * len(people)),
        "reward": pa.array([place / 100 for place in range(len(people))]),
        "time": column,
    }
    deltalake.write_deltalake(str(folder), pa.table(rows), mode="append", **options)


def table_of(
    folder: Path, type_: pa.DataType, value: Value, with_person: Sequence[int] = (0, 2, 4), **options: Any
) -> DeltaStore:
    """Some files, of which those with these numbers have rows of the person."""
    for file in range(N_FILES):
        people = ["adam", *[OTHER] * (N_ROWS - 1)]
        if file in with_person:
            people[3] = people[5] = PERSON
        column = pa.array([value(file, row) for row in range(N_ROWS)], type_)
        append(folder, column, people, **options)
    return DeltaStore(folder)


def planned(store: DeltaStore) -> ErasurePlan:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    return plan


def users(store: DeltaStore) -> list[str]:
    table = deltalake.DeltaTable(str(store.folder)).to_pyarrow_table(columns=["user"])
    return sorted(table["user"].to_pylist())


def others(with_person: int = 3) -> list[str]:
    n_others = N_FILES * N_ROWS - 2 * with_person
    return sorted(["adam"] * N_FILES + [OTHER] * (n_others - N_FILES))


def commits(store: DeltaStore) -> Iterator[dict[str, Any]]:
    """What commits of erasures say of themselves, in order."""
    for path in sorted((store.folder / "_delta_log").glob("*.json")):
        for line in path.read_text("utf-8").splitlines():
            said = json.loads(line).get("commitInfo", {})
            if TOKEN in said:
                yield said


def predicates(store: DeltaStore) -> list[str]:
    return [said["operationParameters"]["mergePredicate"] for said in commits(store)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("large")
def test_files_with_rows_are_read_one_by_one(kind: str, tmp_path: Path) -> None:
    store = table_of(tmp_path / "log", *KINDS[kind])
    plan = planned(store)
    erasure = store.eraser().apply(plan, PEOPLE)
    assert users(store) == others()
    assert (erasure.before, erasure.after) == (N_FILES - 1, N_FILES + 2)
    made = list(commits(store))
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in made] == [1, 1, 1]
    assert [said[TOKEN] for said in made] == [plan.token] * 3
    assert [said.get(GOES_ON) for said in made] == ["true", "true", None]
    assert erasure.due is not None
    assert timedelta(days=6.9) < erasure.due - datetime.now(UTC) < timedelta(days=7.1)
    assert store.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_a_small_table_is_erased_from_by_one_commit(tmp_path: Path) -> None:
    store = table_of(tmp_path / "log", *KINDS["long"])
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    (said,) = commits(store)
    assert said["operationParameters"]["mergePredicate"] == "t.user = s.name"
    assert GOES_ON not in said


def test_files_are_read_together_as_far_as_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = table_of(tmp_path / "log", *KINDS["long"], with_person=range(N_FILES))
    footers = delta_ranges._footers(store.open(), store.open().snapshot.files)  # type: ignore[arg-type,attr-defined]
    monkeypatch.setattr(delta_ranges, "MOST_BYTES", 2 * max(footer.size for footer in footers.values()))
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others(N_FILES)
    scanned = [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)]
    assert scanned == [2, 2, 1]


def test_a_file_that_says_nothing_of_itself_is_no_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source: Any = table_of(tmp_path / "log", *KINDS["long"]).open()
    monkeypatch.setattr(delta_ranges, "query", lambda *_, **__: [("elsewhere", "time", 7, [], [], 0)])
    found = delta_ranges._footers(source, source.snapshot.files)
    assert all(found[file.path] == (4 * file.size, {}) for file in source.snapshot.files)


@pytest.mark.usefixtures("large")
def test_rows_without_a_value_are_in_no_part(tmp_path: Path) -> None:
    type_, value = KINDS["long"]
    store = table_of(tmp_path / "log", type_, lambda file, row: None if row == 3 else value(file, row))
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert predicates(store) == ["t.user = s.name"]


@pytest.mark.usefixtures("large")
def test_rows_of_others_without_a_value_do_not_matter(tmp_path: Path) -> None:
    type_, value = KINDS["long"]
    store = table_of(tmp_path / "log", type_, lambda file, row: None if row == 4 else value(file, row))
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)] == [1, 1, 1]


@pytest.mark.usefixtures("large")
def test_a_file_without_any_value_cannot_be_told_apart(tmp_path: Path) -> None:
    type_, value = KINDS["long"]
    store = table_of(tmp_path / "log", type_, lambda file, row: None if file == 1 else value(file, row))
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert predicates(store) == ["t.user = s.name"]


@pytest.mark.parametrize("type_", [pa.float64(), pa.string()])
@pytest.mark.usefixtures("large")
def test_without_a_column_of_times_or_integers_there_is_one_commit(
    type_: pa.DataType, tmp_path: Path
) -> None:
    texts = type_ == pa.string()
    store = table_of(tmp_path / "log", type_, lambda file, row: f"{file}" if texts else float(file))
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert predicates(store) == ["t.user = s.name"]


@pytest.mark.usefixtures("large")
def test_files_that_overlap_are_read_together(tmp_path: Path) -> None:
    """The first three do, one after the other."""
    starts = (0, 6, 12, 40, 60)
    store = table_of(tmp_path / "log", pa.int64(), lambda file, row: starts[file] + row)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)] == [3, 1]


@pytest.mark.usefixtures("large")
def test_of_two_columns_the_one_that_tells_more_files_apart(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for file in range(4):
        rows = {"user": [PERSON, OTHER], "action": ["a", "a"], "reward": [0.0, 1.0]}
        numbers = {"half": [file // 2] * 2, "apart": [10 * file] * 2, "same": [7, 7]}
        deltalake.write_deltalake(str(folder), pa.table({**rows, **numbers}), mode="append")
    store = DeltaStore(folder)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == [OTHER] * 4
    assert len(predicates(store)) == 4
    assert all("t.apart" in each and "half" not in each for each in predicates(store))


@pytest.mark.usefixtures("large")
def test_partitions_with_rows_are_read_file_by_file(tmp_path: Path) -> None:
    """A condition on partitions, and one on the column, are on every merge; other partitions are not."""
    folder = tmp_path / "log"
    for file in range(4):
        rows = {"user": [PERSON, OTHER, OTHER], "action": ["a"] * 3, "reward": [0.0, 1.0, 0.5]}
        columns = {"page": ["x", "x", "y"], "time": [100 * file + row for row in range(3)]}
        deltalake.write_deltalake(
            str(folder), pa.table({**rows, **columns}), mode="append", partition_by=["page"]
        )
    store = DeltaStore(folder)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == [OTHER] * 8
    assert len(predicates(store)) == 4
    assert all("t.time" in each and "'x'" in each and "'y'" not in each for each in predicates(store))
    assert {said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)} == {1}


@pytest.mark.usefixtures("large")
def test_a_column_of_partitions_tells_files_apart(tmp_path: Path) -> None:
    store = table_of(
        tmp_path / "log", pa.date32(), lambda file, _: date(2026, 3, 1 + 2 * file), partition_by=["time"]
    )
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)] == [1, 1, 1]


@pytest.mark.usefixtures("large")
def test_the_log_says_neither_names_nor_values_of_their_rows(tmp_path: Path) -> None:
    """Neither does a threshold: of adjacent values it would be one of a row."""
    store = table_of(tmp_path / "log", pa.int64(), lambda file, row: 71_000_000 + N_ROWS * file + row)
    append(store.folder, pa.array([71_000_040, 71_000_041]), [PERSON, OTHER])
    times = [71_000_000 + N_ROWS * file + row for file in (0, 2, 4) for row in (3, 5)]
    plan = planned(store)
    before = set((store.folder / "_delta_log").iterdir())
    store.eraser().apply(plan, PEOPLE)
    assert users(store) == sorted([*others(), OTHER])
    assert len(predicates(store)) == 3, "the last two files are told apart by a value of the person only"
    assert "71000032" in predicates(store)[-1]
    log = b"".join(path.read_bytes() for path in set((store.folder / "_delta_log").iterdir()) - before)
    assert PERSON.encode() not in log
    assert not [time for time in [*times, 71_000_040] if str(time).encode() in log]
    assert b"71000016" in log, "the search finds thresholds"


@pytest.mark.parametrize("options", [{}, {"partition_by": ["time"]}])
@pytest.mark.usefixtures("large")
def test_files_of_days_one_after_the_other_are_told_apart(options: dict[str, Any], tmp_path: Path) -> None:
    """Each threshold is a day of the person, and of others."""
    store = table_of(
        tmp_path / "log", pa.date32(), lambda file, _: date(2026, 3, 1 + file), range(N_FILES), **options
    )
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others(N_FILES)
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)] == [1] * N_FILES


@pytest.mark.usefixtures("large")
def test_a_day_of_the_person_alone_is_no_threshold(tmp_path: Path) -> None:
    """The second of four days: so the first two files are read together."""
    folder = tmp_path / "log"
    for day, people in enumerate(([PERSON, OTHER], [PERSON] * 2, [PERSON, OTHER], [PERSON, OTHER])):
        append(folder, pa.array([date(2026, 3, 1 + day)] * 2), people)
    store = DeltaStore(folder)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == [OTHER] * 3
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)] == [2, 1, 1]
    assert not [each for each in predicates(store) if "2026-03-02" in each]


@pytest.mark.usefixtures("large")
def test_a_partition_of_the_person_alone_is_a_threshold(tmp_path: Path) -> None:
    """The predicate has the values of partitions anyway."""
    folder = tmp_path / "log"
    for day, people in enumerate(([PERSON, OTHER], [PERSON] * 2, [PERSON, OTHER])):
        append(folder, pa.array([date(2026, 3, 1 + day)] * 2), people, partition_by=["time"])
    store = DeltaStore(folder)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == [OTHER] * 2
    assert [said["operationMetrics"]["num_target_files_scanned"] for said in commits(store)] == [1] * 3


@given(st.integers(-(2**40), 2**40), st.integers(1, 2**20))
def test_a_threshold_is_the_roundest_number_of_the_gap(lower: int, gap: int) -> None:
    cut = delta_ranges._roundest_between(lower, lower + gap)
    inside = range(lower + 1, lower + gap) if gap > 1 else [lower + 1]
    assert cut in inside
    step = 2 * (cut & -cut)
    assert not cut or all(each not in inside for each in (cut // step * step, (cut // step + 1) * step))


@pytest.mark.usefixtures("large")
def test_a_threshold_that_is_somebodys_name_is_not_said(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for file in range(2):
        append(folder, pa.array([20_000 * file, 20_000 * file]), ["16384", OTHER])
    store, people = DeltaStore(folder), People.named(["16384"])
    plan = store.eraser().plan(people)
    assert plan is not None
    store.eraser().apply(plan, people)
    assert users(store) == [OTHER] * 2
    assert predicates(store) == ["t.user = s.name"]


class Stopped(Exception):  # noqa: N818 (it is no error)
    """Stands for the end of a process."""


def stop_before_merge(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """End the process before the merge with this number; merges that only try whether one can be go on."""
    execute, begun = deltalake.table.TableMerger.execute, list[str]()

    def executing(merger: Any) -> Any:
        folder = merger._table.table_uri()
        if "armnesia-" not in folder:
            begun.append(folder)
            if len(begun) == number:
                raise Stopped
        return execute(merger)

    monkeypatch.setattr(deltalake.table.TableMerger, "execute", executing)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.usefixtures("large")
def test_an_erasure_that_ended_between_two_commits_is_finished(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = table_of(tmp_path / "log", *KINDS["timestamp"])
    plan = planned(store)
    with monkeypatch.context() as patched:
        stop_before_merge(patched, number)
        with pytest.raises(InvalidLogError, match="Stopped"):
            store.eraser().apply(plan, PEOPLE)
    assert users(store).count(PERSON) == 2 * (4 - number)
    with pytest.raises(InvalidInputError, match="cannot be undone"):
        store.eraser().undo(plan)
    with pytest.raises(InvalidInputError, match="apply it first"):
        store.eraser().purge(plan, PEOPLE)
    erasure = store.eraser().apply(plan, PEOPLE)
    assert users(store) == others()
    assert (erasure.before, erasure.after) == (N_FILES - 1, N_FILES + 2)
    assert [said.get(GOES_ON) for said in commits(store)] == ["true", "true", None]
    append(store.folder, pa.array([START], KINDS["timestamp"][0]), [PERSON])
    with pytest.raises(InvalidLogError, match="came in meanwhile"):
        store.eraser().apply(plan, PEOPLE)
    assert users(store).count(PERSON) == 1, "what comes after the last commit is of another plan"


@pytest.mark.usefixtures("large")
def test_a_commit_of_an_earlier_release_is_the_only_one(tmp_path: Path) -> None:
    """It has the token, and does not say that others follow."""
    store = table_of(tmp_path / "log", *KINDS["long"], with_person=(1,))
    plan = planned(store)
    store.eraser().apply(plan, PEOPLE)
    append(store.folder, pa.array([5]), [PERSON])
    with pytest.raises(InvalidLogError, match="came in meanwhile"):
        store.eraser().apply(plan, PEOPLE)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("file", [0, 2, 4, 9])
@pytest.mark.usefixtures("large")
def test_rows_that_others_append_between_two_commits_go_too(
    number: int, file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the last merge, that is looked at; where they are does not matter."""
    type_, value = KINDS["date"]
    store = table_of(tmp_path / "log", type_, value)
    plan = planned(store)

    merges, done = delta_deletion.RowDeletion._merge, list[Any]()

    def merge(*given: Any, **options: Any) -> Iterator[Any]:
        for made in merges(*given, **options):
            yield made
            done.append(made)
            if len(done) == number - 1:
                late = pa.array([value(file, 2), value(file, 3)], type_)
                append(store.folder, late, [PERSON, "bob"])

    monkeypatch.setattr(delta_deletion.RowDeletion, "_merge", merge)
    store.eraser().apply(plan, PEOPLE)
    assert users(store) == sorted([*others(), "bob"])
    assert len(predicates(store)) == 3
    if file == 0:
        assert predicates(store)[-1] == "t.user = s.name", "all parts, because the first was done"


@pytest.mark.parametrize("with_person", [(0, 2, 4), (4,), (0,)])
@pytest.mark.usefixtures("large")
def test_statistics_that_mislead_leave_no_rows(
    with_person: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merges leave files out in whose bounds, as the log has them, their rows are not."""
    monkeypatch.setattr(delta_ranges, "agrees", lambda *_: True)  # as if the files said the same
    store = table_of(tmp_path / "log", pa.int64(), lambda file, row: 20 * file + row, with_person)
    set_bounds(store, 0, -1000, -993)
    set_bounds(store, 4, -920, -913)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others(len(with_person))
    assert "t.time" in predicates(store)[0] or len(with_person) == 1
    assert predicates(store)[-1] == "t.user = s.name"


@pytest.mark.usefixtures("large")
def test_rows_that_a_part_leaves_in_its_files_go_with_the_last_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says that the first file ends before the second begins, and it does not."""
    monkeypatch.setattr(delta_ranges, "agrees", lambda *_: True)
    store = table_of(tmp_path / "log", pa.int64(), lambda file, row: 4 * file + row, (0, 1, 2, 3, 4))
    for file in range(N_FILES):
        set_bounds(store, file, 4 * file, 4 * file + 3)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others(5)
    assert len(predicates(store)) > 2


WRONG: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "a constant": lambda low, high: (low, low),
    "a lower one": lambda low, high: (low - 5, high),
    "a higher one": lambda low, high: (low, high + 5),
    "less": lambda low, high: (low + 1, high - 1),
}


@pytest.mark.parametrize("kind", ["byte", "long", "date"])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.usefixtures("large")
def test_a_column_of_which_the_log_is_wrong_tells_nothing(wrong: str, kind: str, tmp_path: Path) -> None:
    """If the log says that it is constant, deltalake would write that value into the rows that stay."""
    type_, value = KINDS[kind]
    store = table_of(tmp_path / "log", type_, value)
    numbers = [value(2, 0), value(2, N_ROWS - 1)]
    if kind == "date":
        set_bounds(store, 2, *map(str, WRONG[wrong](*map(Days, numbers))))
    else:
        set_bounds(store, 2, *WRONG[wrong](*numbers))
    before = [row for row in rows_of(store) if row["user"] != PERSON]
    store.eraser().apply(planned(store), PEOPLE)
    assert rows_of(store) == before
    assert predicates(store) == ["t.user = s.name"]


class Days:
    """A day to which numbers can be added."""

    def __init__(self, day: date) -> None:
        self._day = day

    def __add__(self, number: int) -> "Days":
        return Days(self._day + timedelta(days=number))

    def __sub__(self, number: int) -> "Days":
        return self + -number

    def __str__(self) -> str:
        return self._day.isoformat()


@pytest.mark.usefixtures("large")
def test_a_file_without_bounds_of_its_own_tells_nothing(tmp_path: Path) -> None:
    """Only the log has them."""
    store = table_of(tmp_path / "log", *KINDS["long"])
    for path in store.folder.glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, write_statistics=False)
    edit_sizes(store)
    store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == others()
    assert predicates(store) == ["t.user = s.name"]


def edit_sizes(store: DeltaStore) -> None:
    """Let the log say the sizes that files have now."""

    def say(actions: Actions) -> None:
        for add in add_actions(actions):
            add["size"] = (store.folder / add["path"]).stat().st_size

    for version in range(N_FILES):
        edit_commit(store.folder, version, say)


def rows_of(store: DeltaStore) -> list[dict[str, Any]]:
    return sorted(deltalake.DeltaTable(str(store.folder)).to_pyarrow_table().to_pylist(), key=repr)


@pytest.mark.parametrize(
    ("said", "own", "agree"),
    [
        ((2000, 5000), (2007, 5999), True),
        ((2000, 6000), (2007, 5999), True),
        ((2000, 2000), (2007, 2999), True),
        ((2000, 2000), (2007, 3007), False),
        ((2000, 2000), (1000, 5000), False),
        ((2000, 5000), (2007, 6000), False),
        ((2000, 5000), (1000, 5000), False),
    ],
)
def test_the_log_may_have_whole_milliseconds(
    said: tuple[int, int], own: tuple[int, int], agree: bool
) -> None:
    texts = [f"1970-01-01 00:00:00.{microseconds:06}" for microseconds in own]
    for type_, zone in (("timestamp", "+00"), ("timestamp_ntz", "")):
        low, high = (text + zone for text in texts)
        found = delta_ranges.agrees(type_, (*said, 0), FooterBounds([low], [high], 0))
        assert found == agree


@pytest.mark.parametrize("n_missing", [None, 0, 2])
def test_a_constant_has_as_many_missing_values_as_the_log_says(n_missing: int | None) -> None:
    assert delta_ranges.agrees("long", (7, 7, n_missing), FooterBounds(["7"], ["7"], 2)) == (n_missing == 2)


def test_no_column_is_told_by_years_that_python_does_not_have() -> None:
    assert not delta_ranges.agrees("date", (0, 9, 0), FooterBounds(["0044-03-15 (BC)"], ["1970-01-10"], 0))
    assert not delta_ranges.agrees("date", (0, 9, 0), FooterBounds([None], [None], 0))
    assert not delta_ranges.agrees("date", (0, 9, 0), None)


def set_bounds(store: DeltaStore, version: int, lowest: Any, highest: Any) -> None:
    """Let the log say other bounds of the column than the file of a version has."""

    def say(actions: Actions) -> None:
        for add in add_actions(actions):
            stats = json.loads(add["stats"])
            stats["minValues"]["time"], stats["maxValues"]["time"] = lowest, highest
            add["stats"] = json.dumps(stats)

    edit_commit(store.folder, version, say)


@pytest.mark.usefixtures("large")
def test_a_commit_that_changes_other_rows_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three; no other follows."""
    store = table_of(tmp_path / "log", *KINDS["long"])
    before, values = users(store), lake_eraser.values_of
    monkeypatch.setattr(delta_deletion, "values_of", lambda *given: [*values(*given), "adam"])
    with pytest.raises(InvalidLogError, match="would not stay the same; version 4 was restored"):
        store.eraser().apply(planned(store), PEOPLE)
    assert users(store) == before
    assert len(predicates(store)) == 1


@pytest.mark.usefixtures("large")
def test_files_of_a_part_that_lost_a_race_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three: another writer deletes a row of the same file; files of the first stay."""
    store = table_of(tmp_path / "log", *KINDS["long"])
    plan, execute, begun = planned(store), deltalake.table.TableMerger.execute, list[str]()

    def executing(merger: Any) -> Any:
        begun.append("")
        if len(begun) == 2:
            moment = KINDS["long"][1](2, 1)
            deltalake.DeltaTable(str(store.folder)).delete(f"time = {moment}")
        return execute(merger)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaEraser, "_check_writable", lambda *_: None)  # which merges as well
        patched.setattr(deltalake.table.TableMerger, "execute", executing)
        with pytest.raises(InvalidLogError, match="deltalake failed"):
            store.eraser().apply(plan, PEOPLE)
    assert len(begun) == 2
    assert DeltaFolder(DeltaLog(f"delta:{store.folder}")).unnamed_files() == {}
    store.eraser().apply(plan, PEOPLE)
    assert len(users(store)) == len(others()) - 1
    assert PERSON not in users(store)


@pytest.mark.usefixtures("large")
def test_the_retention_counts_from_the_last_removal_by_any_commit(tmp_path: Path) -> None:
    """Clocks differ: here the first commit says that it was made a day later than the others."""
    store = table_of(tmp_path / "log", *KINDS["long"])
    plan = planned(store)
    first = store.eraser().apply(plan, PEOPLE)

    def later(actions: Actions) -> None:
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] += 86_400_000

    edit_commit(store.folder, N_FILES, later)
    second = store.eraser().apply(plan, PEOPLE)
    assert first.due is not None
    assert second.due is not None
    assert timedelta(hours=23) < second.due - first.due <= timedelta(days=1)


files_ = st.lists(
    st.tuples(st.integers(-6, 12), st.integers(0, 6), st.integers(0, 5)).map(
        lambda given: FileRange(given[0], given[0] + given[1], given[2])
    ),
    max_size=7,
)


@given(files_, st.integers(1, 9))
def test_thresholds_are_as_few_as_possible(files: list[FileRange], most: int) -> None:
    """Against all sets of thresholds that no file has values on both sides of."""
    found = cuts_between(files, most)
    possible = [cut for cut in range(-7, 20) if is_between(files, cut)]
    assert set(found) <= set(possible)
    assert found == sorted(set(found))

    def is_allowed(cuts: Sequence[int]) -> bool:
        for start, end in zip([-(10**9), *cuts], [*cuts, 10**9], strict=True):
            inside = [file for file in files if start <= file.lowest < end]
            if sum(file.size for file in inside) > most and any(
                start < cut < end and splits_sizes(inside, cut) for cut in possible
            ):
                return False
        return True

    assert is_allowed(found)
    assert not any(is_allowed(cuts) for n in range(len(found)) for cuts in combinations(possible, n))


def is_between(files: Sequence[FileRange], cut: int) -> bool:
    return all(file.highest < cut or cut <= file.lowest for file in files)


def splits_sizes(files: Sequence[FileRange], cut: int) -> bool:
    below = sum(file.size for file in files if file.highest < cut)
    return 0 < below < sum(file.size for file in files)


@given(files_, st.integers(1, 9))
def test_the_largest_part_is_that_between_thresholds(files: list[FileRange], most: int) -> None:
    cuts = cuts_between(files, most)
    sizes = [
        sum(file.size for file in files if start <= file.lowest < end)
        for start, end in zip([-(10**9), *cuts], [*cuts, 10**9], strict=True)
    ]
    assert largest_between(files, cuts) == max(sizes)
