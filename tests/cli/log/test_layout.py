"""The command `layout`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "person": ["bob", "ann", "bob"]}
LAYOUT = ("layout", "log.parquet", "by-person.parquet", "--user-column", "person")


@pytest.fixture
def log(folder: Path) -> Path:
    pq.write_table(pa.table(ROWS), folder / "log.parquet")
    return folder


def test_the_log_is_sorted_by_person(run: Any, log: Path) -> None:
    done = run(*LAYOUT, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == {
        "out": "by-person.parquet",
        "user_column": "person",
        "rows": 3,
        "files": 1,
        "row_groups": 1,
        "bytes": (log / "by-person.parquet").stat().st_size,
    }
    assert pq.read_table(log / "by-person.parquet")["person"].to_pylist() == ["ann", "bob", "bob"]
    on = ("--user-column", "person", "--user", "bob", "--actions", "A,B", "--json")
    before, after = (run("unlearn", f"{name}.parquet", *on) for name in ("log", "by-person"))
    assert before.json == after.json
    assert before.json["request"]["counts"] == {"A": 2, "B": 0}


def test_people_read_what_was_written(run: Any, log: Path) -> None:
    done = run(*LAYOUT)
    assert (done.code, done.err) == (0, "")
    size = (log / "by-person.parquet").stat().st_size
    assert done.out == (
        f"by-person.parquet: 3 rows of 1 file, sorted by person, in 1 row group and {size:,} bytes\n"
    )


def test_what_is_refused_writes_nothing(run: Any, log: Path) -> None:
    for arguments, expected in (
        (LAYOUT[:3], "user column 'user' is not in the source; it has 'action', 'reward', 'person'"),
        ((*LAYOUT, "--memory-limit", "lots"), "memory_limit must be a size such as 800MB or 4GB; got 'lots'"),
        (("layout", "x.parquet", *LAYOUT[2:]), "is not a file and matches none"),
    ):
        done = run(*arguments)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert expected in done.err
        assert [path.name for path in log.iterdir() if "person" in path.name] == []
    assert run(*LAYOUT).code == 0
    before = (log / "by-person.parquet").stat()
    done = run(*LAYOUT)
    assert (done.code, done.out) == (2, "")
    assert "'by-person.parquet' exists already; choose another file, or replace it with --replace" in done.err
    assert (log / "by-person.parquet").stat() == before
    assert run(*LAYOUT, "--replace").code == 0


def test_ctrl_c_writes_nothing(run: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("armnesia.cli.log.layout.layout_log", interrupted)
    done = run(*LAYOUT)
    assert (done.code, done.err) == (130, "armnesia: interrupted; nothing was written\n")
