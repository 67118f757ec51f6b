"""What is left of people in folders of Parquet files when their rows are gone; who may read new files."""

import errno
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.erasing import Erasure, People, SourceState, file_swaps, parquet_eraser
from armnesia.logs.erasing.parquet_dictionaries import DictionaryPages, _DataFile
from armnesia.logs.erasing.parquet_rewriting import write_without
from tests.logs.erasing.test_parquet_files import NAMES, TABLE, eraser_of, without

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

ROWS = TABLE.select(["action", "reward", "user"])
GONE = NAMES[1]
PEOPLE = People.named([GONE])
RECOGNISED = People.recognised_by(lambda names: [name == GONE for name in names])
OTHERS = "other Parquet files in the folders of the source"


def erase(path: Path, people: People = PEOPLE) -> Erasure:
    plan = eraser_of(path).plan(people) or eraser_of(path).empty_plan()
    return eraser_of(path).apply(plan, people)


def write_daily(folder: Path, *, compression: str = "none") -> None:
    """A file for each day from a frame with categories: the person has rows on the first day only."""
    frame = ROWS.to_pandas().astype({"user": "category"})
    frame["day"] = [1 if row % 200 < 100 else 2 for row in range(1000)]
    for day, part in frame.groupby("day"):
        part.drop(columns="day").to_parquet(folder / f"{day}.parquet", index=False, compression=compression)


def categories_of(path: Path) -> list[str]:
    return list(pq.ParquetFile(path).read()["user"].chunk(0).dictionary.to_pylist())


@pytest.mark.parametrize("people", [PEOPLE, RECOGNISED], ids=["named", "recognised"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_names_in_dictionaries_of_files_without_their_rows(
    tmp_path: Path, people: People, compression: str
) -> None:
    write_daily(tmp_path, compression=compression)
    assert GONE in categories_of(tmp_path / "2.parquet"), "the trap is there"
    before = pq.read_table(tmp_path / "2.parquet").to_pylist()
    plan = eraser_of(tmp_path).plan(people)
    assert plan is not None
    assert [os.path.basename(swap.path) for swap in plan.files] == ["1.parquet", "2.parquet"]
    assert eraser_of(tmp_path).apply(plan, people).state == SourceState.PURGED
    assert pq.read_table(tmp_path / "2.parquet").to_pylist() == before
    assert not any(GONE in categories_of(path) for path in tmp_path.glob("*.parquet"))
    assert eraser_of(tmp_path).plan(people) is None


@pytest.mark.parametrize("people", [PEOPLE, RECOGNISED], ids=["named", "recognised"])
def test_names_in_dictionaries_alone(tmp_path: Path, people: People) -> None:
    """Rows were filtered before; an erasure that cannot write the file again says so."""
    frame = ROWS.to_pandas().astype({"user": "category"})
    frame[frame.user != GONE].to_parquet(tmp_path / "a.parquet", index=False)
    left = eraser_of(tmp_path).apply(eraser_of(tmp_path).empty_plan(), people)
    assert left.state == SourceState.LOGICALLY_DELETED
    assert "dictionary pages of files name people" in left.remains[0]
    assert GONE not in str(left)
    assert erase(tmp_path, people).state == SourceState.PURGED
    assert GONE not in categories_of(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 995


def test_other_spellings_in_dictionaries(tmp_path: Path) -> None:
    users = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), ["ann", "bob", " Carl "])
    pq.write_table(pa.table({"action": ["A"] * 2, "reward": [1, 0], "user": users}), tmp_path / "a.parquet")
    plan = eraser_of(tmp_path).plan(People.named(["Carl"], UserType.TEXT))
    assert plan is not None
    assert len(plan.files) == 1


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pa.array([70000, -1], pa.int32()), "-1"),
        (pa.array([2**63, 7], pa.uint64()), "9223372036854775808"),
        (pa.array([1.5, 2.0]), "2"),
        (pa.array(["2026-01-31", "2026-02-01"]).cast(pa.date32()), "2026-01-31"),
        (pa.array([150, 15], pa.int64()).cast(pa.decimal128(25, 2)), "150"),
        (pa.array(["x" * 70_000, ""]), ""),
    ],
)
def test_dictionaries_have_the_names_of_rows_in_every_type(
    tmp_path: Path, values: pa.Array, name: str
) -> None:
    """Here the values of dictionaries are those of rows: all are found that rows have."""
    columns = {"of": [{"user": "x"}] * 2, "action": ["A"] * 2, "reward": [0.5] * 2, "user": values}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=1)
    source = eraser_of(tmp_path)._source  # type: ignore[attr-defined]
    pages = DictionaryPages(source, People.named([name], UserType.EXACT))
    assert pages.names() == {name}
    assert pages.paths_with(frozenset([name])) == {str(tmp_path / "a.parquet")}
    asked: list[str] = []

    def recognise(names: Sequence[str]) -> list[bool]:
        asked.extend(names)
        return [True] * len(names)

    assert DictionaryPages(source, People.recognised_by(recognise)).names() == frozenset()
    assert asked == [], "rows have them all"


def test_only_dictionary_pages_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet", compression="none", use_dictionary=["user"])
    chunk = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(1)
    assert chunk.path_in_schema == "user"
    allowed = range(chunk.dictionary_page_offset, chunk.data_page_offset)
    opened: list[Any] = []
    original = DictionaryPages._group

    def noted(self: DictionaryPages, *given: Any) -> Any:
        group = original(self, *given)
        opened.extend(piece for file in self._files.values() for piece in file.pieces)
        return group

    monkeypatch.setattr(DictionaryPages, "_group", noted)
    DictionaryPages(eraser_of(tmp_path)._source, PEOPLE)  # type: ignore[attr-defined]
    ranges = [piece for piece in opened if isinstance(piece, tuple)]
    assert len(ranges) == 1
    assert ranges[0][0] in allowed
    assert ranges[0][0] + ranges[0][1] == allowed.stop


@pytest.mark.parametrize(
    "damage",
    [
        bytes([0x19, 0xF1, *[0xFF] * 8, 0x0F]),  # a list of 2**60 - 1 booleans
        bytes([0x19, 0xFC, *[0xFF] * 8, 0x0F]),  # and of structures
        bytes([0x1C] * 100_000),  # structures in structures
        bytes([0x15, *[0xFF] * 100_000]),  # a number that does not end
    ],
)
def test_a_damaged_footer_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    """By the reader of this package; DuckDB has read the same footer as a whole one."""
    pq.write_table(TABLE, tmp_path / "a.parquet", compression="none", use_dictionary=["user"])
    source = eraser_of(tmp_path / "a.parquet")._source  # type: ignore[attr-defined]
    size_of_file, read = (tmp_path / "a.parquet").stat().st_size, _DataFile.read

    def damaged(self: _DataFile, start: int, size: int) -> bytes:
        is_footer = start + size + len(b"size" + b"PAR1") == size_of_file
        return damage if is_footer else read(self, start, size)

    monkeypatch.setattr(_DataFile, "read", damaged)
    with pytest.raises(InvalidLogError, match="whether it names people is not known"):
        DictionaryPages(source, PEOPLE)


def test_a_dictionary_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path, compression="none")
    eraser = eraser_of(tmp_path)
    start = pq.ParquetFile(path).metadata.row_group(0).column(2).dictionary_page_offset
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 8)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InvalidLogError, match="whether it names people is not known"):
        DictionaryPages(eraser._source, PEOPLE)  # type: ignore[attr-defined]


def write_rows(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(ROWS, path)


@pytest.mark.parametrize(
    "name",
    [
        "_temporary/0/part-0.parquet",
        ".a.parquet.swp",
        "a.parquet.bak",
        "a.parquet~",
        "c.parq",
        "part-00000",
        ".hidden/day=1/rows",
        "_old.pq",
    ],
)
def test_other_parquet_files_of_a_folder_are_said(tmp_path: Path, name: str) -> None:
    write_rows(tmp_path / "a.parquet")
    write_rows(tmp_path / name)
    erasure = erase(tmp_path)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert erasure.remains[0].startswith(OTHERS)
    (tmp_path / name).unlink()
    assert erase(tmp_path).state == SourceState.PURGED


def test_part_of_a_file_and_links_are_said(tmp_path: Path) -> None:
    write_rows(tmp_path / "log" / "a.parquet")
    write_rows(tmp_path / "elsewhere")
    (tmp_path / "log" / "half").write_bytes((tmp_path / "elsewhere").read_bytes()[:3000])
    assert erase(tmp_path / "log").remains[0].startswith(OTHERS)
    (tmp_path / "log" / "half").unlink()
    (tmp_path / "log" / "link").symlink_to(tmp_path / "elsewhere")
    assert erase(tmp_path / "log").remains[0].startswith(OTHERS)
    (tmp_path / "elsewhere").unlink()
    assert erase(tmp_path / "log").state == SourceState.PURGED


def test_a_folder_that_cannot_be_looked_through_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "a.parquet")
    (tmp_path / ".private").mkdir()
    original = os.scandir

    def refused(folder: str) -> Any:
        if str(folder).endswith(".private"):
            raise PermissionError(errno.EACCES, "not permitted")
        return original(folder)

    monkeypatch.setattr(os, "scandir", refused)
    assert erase(tmp_path).remains[0].startswith(OTHERS)


def test_files_without_rows_do_not_count(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet")
    write_rows(tmp_path / "b.parquet")
    for name in ("_SUCCESS", "notes.txt", ".b.parquet.crc"):
        (tmp_path / name).write_text("crc")
    pq.write_metadata(ROWS.schema, tmp_path / "_common_metadata")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / ".back").symlink_to(tmp_path)
    assert erase(tmp_path).state == SourceState.PURGED


def test_other_files_beside_a_glob(tmp_path: Path) -> None:
    """Files that may be a source of their own do not count, nor do those below."""
    write_rows(tmp_path / "a.parquet")
    write_rows(tmp_path / "b.parquet")
    write_rows(tmp_path / ".cache" / "c.parquet")
    assert erase(tmp_path / "a*.parquet").state == SourceState.PURGED
    for name in ("a.parquet.bak", ".a.parquet", "part-0"):
        write_rows(tmp_path / name)
        assert erase(tmp_path / "a*.parquet").state == SourceState.LOGICALLY_DELETED
        assert erase(tmp_path / "a.parquet").state == SourceState.LOGICALLY_DELETED
        (tmp_path / name).unlink()


@pytest.mark.parametrize("column", ["user", "USER", "User"])
def test_folders_that_are_named_like_the_column_are_refused(tmp_path: Path, column: str) -> None:
    write_rows(tmp_path / f"{column}={GONE}" / "a.parquet")
    if column == "user":
        with pytest.raises(InvalidLogError, match="is in the files and in the names of their folders"):
            eraser_of(tmp_path)
        return
    with pytest.raises(UnsupportedError, match="partitioned by 'user'"):
        eraser_of(tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        f"visitor={GONE}/a.parquet",
        f"{GONE}.parquet",
        f"of/{GONE}/a.parquet",
        f"export-{GONE}.parquet",
        f"of_{GONE}_2024/a.parquet",
    ],
)
def test_names_in_paths_are_said(tmp_path: Path, path: str) -> None:
    write_rows(tmp_path / "log" / path)
    erasure = erase(tmp_path / "log")
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert erasure.remains[0].startswith("names of files or folders may name people")
    assert GONE not in str(erasure)


def acl(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)


NOBODY = 0xFFFFFFFF
ONE_READER = acl((1, 6, NOBODY), (2, 4, 1001), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
"""The owner writes, user 1001 reads, the group does not: the mode is 0640 all the same."""
FOR_ALL = acl((1, 7, NOBODY), (2, 7, 1001), (4, 5, NOBODY), (16, 7, NOBODY), (32, 0, NOBODY))


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        pytest.skip(f"the file system has no {name}")


def test_access_control_lists_and_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_rows(path)
    set_attribute(path, "user.classification", b"secret")
    set_attribute(path, "system.posix_acl_access", ONE_READER)
    assert erase(path).state == SourceState.PURGED
    assert os.getxattr(path, "user.classification") == b"secret"
    assert os.getxattr(path, "system.posix_acl_access") == ONE_READER
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_list_that_the_folder_gives_to_new_files_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_rows(path)
    path.chmod(0o640)
    set_attribute(tmp_path, "system.posix_acl_default", FOR_ALL)
    assert erase(path).state == SourceState.PURGED
    assert os.listxattr(path) == []
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_is_read_by_nobody_else_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, modes = tmp_path / "a.parquet", []
    write_rows(path)
    path.chmod(0o600)

    def watched(old: str, new: str, positions: Any) -> None:
        write_without(old, new, positions)
        modes.append(os.stat(new).st_mode & 0o777)

    monkeypatch.setattr(parquet_eraser, "write_without", watched)
    erase(path)
    assert modes == [0o600]


@pytest.mark.parametrize("failing", ["setxattr", "removexattr", "lost"])
def test_attributes_that_cannot_be_carried_over_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "a.parquet"
    write_rows(path)
    set_attribute(path, "user.classification", b"secret")
    if failing == "removexattr":
        set_attribute(tmp_path, "system.posix_acl_default", FOR_ALL)

    def refused(*_: Any) -> None:
        if failing != "lost":
            raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "setxattr" if failing == "lost" else failing, refused)
    content = path.read_bytes()
    with pytest.raises(InvalidLogError, match="extended attributes, such as an access control list"):
        eraser_of(path).plan(PEOPLE)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.parquet"]


def cannot_exchange(*_: Any) -> bool:
    return False


def replace_by_another(path: Path) -> None:
    pq.write_table(ROWS.slice(0, 7), path.with_name("new"))
    os.replace(path.with_name("new"), path)


@pytest.mark.parametrize("when", ["before the exchange", "before the last look"])
def test_a_file_that_another_writer_replaces_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Between the look at all files and the step in which the new file takes its place."""
    path = tmp_path / "a.parquet"
    write_rows(path)
    eraser = eraser_of(path)
    plan = eraser.plan(PEOPLE)
    assert plan is not None
    exchange, once = file_swaps._exchange, [True]

    def replaced_first(one: str, other: str) -> bool:
        if once:
            once.pop()
            replace_by_another(path)
        return exchange(one, other) if when == "before the exchange" else False

    monkeypatch.setattr(file_swaps, "_exchange", replaced_first)
    with pytest.raises(InvalidLogError, match="the file has changed since the erasure was planned"):
        eraser.apply(plan, PEOPLE)
    assert pq.ParquetFile(path).metadata.num_rows == 7
    eraser.undo(plan)
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_a_writer_and_a_crash_in_the_middle_of_an_exchange(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_rows(path)
    eraser = eraser_of(path)
    plan = eraser.plan(PEOPLE)
    assert plan is not None
    (swap,) = plan.files
    replace_by_another(path)
    if not file_swaps._exchange(swap.staged, swap.path):
        pytest.skip("the system cannot exchange files")
    with pytest.raises(InvalidLogError, match="the file has changed"):
        eraser_of(path).apply(plan, PEOPLE)
    assert pq.ParquetFile(path).metadata.num_rows == 7


@pytest.mark.parametrize("exchange", [None, cannot_exchange], ids=["exchanged", "replaced"])
def test_files_take_their_places_on_every_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: Callable[..., bool] | None
) -> None:
    write_rows(tmp_path / "a.parquet")
    if exchange is not None:
        monkeypatch.setattr(file_swaps, "_exchange", exchange)
    assert erase(tmp_path).state == SourceState.PURGED
    assert os.listdir(tmp_path) == ["a.parquet"]
    assert pq.ParquetFile(tmp_path / "a.parquet").read().equals(without(ROWS, GONE))


def test_an_old_file_that_a_crash_has_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_rows(path)
    plan = eraser_of(path).plan(PEOPLE)
    assert plan is not None
    if not file_swaps._exchange(plan.files[0].staged, plan.files[0].path):
        pytest.skip("the system cannot exchange files")
    assert eraser_of(path).apply(plan, PEOPLE).state == SourceState.PURGED
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_times_with_a_zone_of_duckdb_are_erased(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT unnest(['ann', 'bob']) AS user, 'A' AS action, 0.5::DOUBLE AS reward,"
            f" '12:00:00+02'::TIMETZ AS at) TO '{path}' (FORMAT parquet)"
        )
    assert erase(path, People.named(["ann"])).state == SourceState.PURGED
    assert pd.read_parquet(path)["user"].to_list() == ["bob"]


@pytest.mark.parametrize("locked", ["x", "y"])
def test_links_into_a_folder_that_cannot_be_written_to_are_refused_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    """Whichever of several folders it is: the links are in one folder, and the files are not."""
    (tmp_path / "log").mkdir()
    for name in "xy":
        (tmp_path / name).mkdir()
        pq.write_table(TABLE, tmp_path / name / f"{name}.parquet")
        (tmp_path / "log" / f"{name}.parquet").symlink_to(tmp_path / name / f"{name}.parquet")
    allowed = os.access

    def access(path: str, *options: Any, **further: Any) -> bool:
        return str(path) != str(tmp_path / locked) and allowed(path, *options, **further)

    monkeypatch.setattr(os, "access", access)  # permissions do not bind root
    with pytest.raises(UnsupportedError, match=f"{locked}.parquet' cannot be erased: this user may not"):
        eraser_of(tmp_path / "log").check_rewritable()
