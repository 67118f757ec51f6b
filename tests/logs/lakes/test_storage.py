"""Data files that DuckDB reads through the library of the table, as it does in an object store."""

import gc
import io
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs import read_log
from armnesia.logs.lakes import delta, iceberg
from armnesia.logs.lakes.filesystem import LakeFilesystem, SharedFile
from armnesia.logs.lakes.snapshot import table_address
from armnesia.logs.lakes.storage import RemoteStorage, file_at
from tests.logs.lakes.reference import ACTIONS, assert_reads
from tests.logs.lakes.tables import (
    add_actions,
    delete_positions,
    edit_commit,
    iceberg_catalog,
    iceberg_files,
    inline_vector,
    set_features,
    static_name,
    write_delta,
)
from tests.logs.lakes.test_changes import opened
from tests.logs.lakes.test_delta import in_delta
from tests.logs.lakes.test_iceberg import CLICKS, MORE, create, in_iceberg


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every table seem to be on another machine."""
    monkeypatch.setattr(delta, "table_address", lambda *name: (*table_address(*name)[:2], False))
    monkeypatch.setattr(iceberg, "local_path", lambda _: None)


def random_rows(number: int) -> pa.Table:
    random = np.random.default_rng(number)
    columns = {"action": random.choice(list(ACTIONS), number), "reward": random.random(number)}
    return pa.table({**columns, "user": random.integers(0, 500, number)})


@pytest.mark.usefixtures("elsewhere")
def test_a_delta_table_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "my clicks"
    name = write_delta(path, {**CLICKS, "day": ["a/b", "ü", "ü", "x y", "%", "a/b"]}, partition_by=["day"])
    write_delta(path, {**MORE, "day": ["x", "y"]}, mode="append")
    edit_commit(path, 0, set_features("deletionVectors"))
    edit_commit(path, 0, lambda actions: add_actions(actions)[1].update(deletionVector=inline_vector([0])))
    assert_reads(name, in_delta(path))
    source = opened(name)
    assert source.changes_since(source.manifest()).kind == "nothing"


@pytest.mark.usefixtures("elsewhere")
def test_the_commits_of_a_delta_table_elsewhere(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    before = opened(name).manifest()
    write_delta(tmp_path / "clicks", MORE, mode="append")
    after = opened(name)
    changes = after.changes_since(before)
    assert changes.kind == "added"
    part = after.reading_only(changes.added)
    assert part.read(ACTIONS, (0.0, 1.0)).statistics().counts.tolist() == [1, 0, 1]
    (tmp_path / "clicks" / "_delta_log" / f"{1:020}.json").unlink()
    assert after.changes_since(before).kind == "recount"


@pytest.mark.usefixtures("elsewhere")
def test_an_iceberg_table_elsewhere(tmp_path: Path) -> None:
    table = create(iceberg_catalog(tmp_path / "lake"), CLICKS, MORE)
    first, _ = iceberg_files(table)
    delete_positions(table, {first.file_path: [1]}, tmp_path / "deletes.parquet")
    assert_reads(static_name(table.refresh()), in_iceberg(table))


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("write", ["delta", "iceberg"])
def test_many_threads_read_the_right_bytes(tmp_path: Path, write: str) -> None:
    """With one position per file for all threads, sums were wrong here in some of the runs."""
    rows = random_rows(200_000)  # in one file, of which threads read different row groups
    if write == "delta":
        properties = deltalake.WriterProperties(max_row_group_size=4_000)
        name = write_delta(tmp_path / "clicks", rows, writer_properties=properties)
    else:
        limit = {"write.parquet.row-group-limit": "4000"}
        name = static_name(create(iceberg_catalog(tmp_path / "lake"), rows, properties=limit))
    expected = read_log(rows, actions=ACTIONS).statistics()
    source = opened(name)
    for _ in range(10):
        assert source.read(ACTIONS, (0.0, 1.0)).statistics() == expected


def test_each_thread_has_a_position_of_its_own() -> None:
    content = bytes(range(250)) * 400
    file = SharedFile(io.BytesIO(content))
    wrong = []

    def read(first: int) -> None:
        for at in range(first, len(content) - 10, 977):
            file.seek(at)
            if file.read(10) != content[at : at + 10] or file.tell() != at + 10:
                wrong.append(at)

    threads = [threading.Thread(target=read, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    with pytest.raises(OSError, match="only positions from the beginning"):
        file.seek(0, 2)
    file.close()
    assert file.closed


def test_files_are_only_read() -> None:
    storage = RemoteStorage(lambda path: io.BytesIO(path.encode()))
    location = storage.location_of("a [1]*.parquet", 14)
    filesystem = LakeFilesystem("armnesia-lake", file_at)
    assert filesystem.glob(location) == [location]
    assert filesystem.info(location) == {"name": location, "size": 14, "type": "file"}
    assert filesystem.open(location).read() == b"a [1]*.parquet"
    with pytest.raises(PermissionError):
        filesystem.open(location, "wb")


def test_a_storage_is_forgotten_with_its_table() -> None:
    storage = RemoteStorage(lambda path: io.BytesIO(path.encode()))
    location = storage.location_of("a", 1)
    del storage
    gc.collect()
    with pytest.raises(KeyError):
        file_at(location)


@pytest.mark.usefixtures("elsewhere")
def test_a_file_that_is_gone_elsewhere_is_refused(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    log = read_log(name, actions=ACTIONS)
    for file in (tmp_path / "clicks").glob("*.parquet"):
        file.unlink()
    with pytest.raises(InvalidLogError, match="cannot be read as Parquet"):
        log.users()


def users_in(queue: Any, users: Callable[[], Any]) -> None:
    queue.put(users())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("elsewhere")
def test_a_forked_process_reads_the_same_files(tmp_path: Path) -> None:
    """deltalake itself cannot be used in a forked process."""
    log = read_log(static_name(create(iceberg_catalog(tmp_path / "lake"), CLICKS)), actions=ACTIONS)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=users_in, args=(queue, log.users))
    process.start()
    assert queue.get() == log.users()
    process.join()
    assert process.exitcode == 0


def test_without_fsspec_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from armnesia.logs.lakes.storage import RemoteStorage\nRemoteStorage(open)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    expected = (
        "MissingExtraError: Reading tables in an object store needs an optional dependency: pip install"
    )
    assert expected in finished.stderr


def test_the_process_ends_without_a_word(tmp_path: Path) -> None:
    """A database that still holds a file system at the end would print a page about leaks."""
    name = write_delta(tmp_path / "clicks", CLICKS)
    program = (
        "from armnesia.logs import read_log\nfrom armnesia.logs.lakes import delta\n"
        "address = delta.table_address\n"
        "delta.table_address = lambda *name: (*address(*name)[:2], False)\n"
        f"log = read_log({name!r}, actions=['A', 'B', 'C'])\nprint(log.statistics().counts)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (finished.stdout, finished.stderr) == ("[3 2 1]\n", "")
