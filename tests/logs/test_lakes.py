"""Delta and Iceberg tables beyond the table of conformance: versions, catalogs, names, object stores."""

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import read_log, reopen
from tests.logs.lake_tables import arrow_table, iceberg_catalog, static_name, write_delta, write_iceberg

CLICKS: dict[str, list[Any]] = {
    "action": ["A", "B", "A", "C", "B", "A"],
    "reward": [1.0, 0.25, 0.1, 0.3, 1.0, 0.5],
    "user": [1, 2, None, 1, 3, 2],
}
MORE: dict[str, list[Any]] = {"action": ["C", "A"], "reward": [0.7, 0.0], "user": [4, 1]}
ACTIONS = ["A", "B", "C"]


def test_a_delta_log_stays_at_its_version_until_its_files_are_gone(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    log = read_log(name, actions=ACTIONS)
    version = log.source.version()
    write_delta(tmp_path / "clicks", MORE, mode="overwrite")
    assert log.users() == {"1": 2, "2": 2, "3": 1}
    assert log.request(user=3).counts.tolist() == [0, 1, 0]
    again = reopen(log.source.address())
    assert again.version() != version
    assert again.new_since(version or {}) is None  # it is counted again, whole
    deltalake.DeltaTable(str(tmp_path / "clicks")).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(InvalidLogError, match="cannot be read"):
        log.users()
    assert len(read_log(name, actions=ACTIONS)) == 2


def test_a_table_of_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog is the one that pyiceberg is configured for; each opening finds the last snapshot."""
    table = iceberg_catalog(tmp_path / "lake").create_table("logs.clicks", arrow_table(CLICKS).schema)
    table.append(arrow_table(CLICKS))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake/catalog.db")
    # The variables are read when pyiceberg is imported.
    from pyiceberg import catalog as module
    from pyiceberg.utils.config import Config

    monkeypatch.setattr(module, "_ENV_CONFIG", Config())
    log, of_version = read_log("iceberg:lake.logs.clicks", actions=ACTIONS), static_name(table)
    table.append(arrow_table(MORE))
    again = read_log("iceberg:lake.logs.clicks", actions=ACTIONS)
    assert (len(log.users()), len(again.users())) == (3, 4)
    assert read_log(of_version, actions=ACTIONS).users() == log.users()
    assert log.source.version() != again.source.version() == reopen(log.source.address()).version()
    with pytest.raises(InvalidLogError, match="its catalog has no such table"):
        read_log("iceberg:lake.logs.other")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("delta:", "a table must be named delta:PATH or delta:URL"),
        ("delta:s3://key:secret@bucket/log", "without credentials|may have a password"),
        ("delta:https://store/log?token=secret", "without credentials"),
        ("delta:/nowhere", "cannot be read"),
        ("iceberg:", r"an Iceberg table must be named iceberg:CATALOG\.NAMESPACE\.TABLE"),
        ("iceberg:ann:secret@lake.a.b", r"CATALOG\.NAMESPACE\.TABLE|may have a password"),
        ("iceberg:nowhere.logs.clicks", "pyiceberg found no catalog 'nowhere'; it looks for it in"),
    ],
)
def test_names_of_no_table(name: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_log(name)
    assert "secret" not in str(caught.value)


WITHOUT_PYARROW = """
import sys
sys.modules.update(pyarrow=None, pandas=None)
from armnesia.logs import read_log
print([len(read_log(name, actions=["A", "B", "C"])) for name in sys.argv[1:]])
"""


@pytest.mark.slow
def test_pyarrow_is_not_needed(tmp_path: Path) -> None:
    names = [write_delta(tmp_path / "clicks", CLICKS), write_iceberg(tmp_path / "lake", CLICKS)]
    command = [sys.executable, "-c", WITHOUT_PYARROW, *names]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[6, 6]\n"


class _Files(SimpleHTTPRequestHandler):
    """Files of a folder by HTTP, also parts of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content, (first, last) = path.read_bytes(), (0, path.stat().st_size - 1)
        asked = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if asked[0]:
            first, last = int(asked[0]), min(int(asked[2] or last), last)
        self.send_response(206 if asked[0] else 200)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(content[first : last + 1])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    """The URL of a server with the files of a folder."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Files, directory=os.fspath(tmp_path))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_remote_file_that_has_changed_is_refused(tmp_path: Path, store: str) -> None:
    pq.write_table(pa.table(CLICKS), tmp_path / "log.parquet")
    log = read_log(f"{store}/log.parquet", actions=ACTIONS)
    pq.write_table(pa.table(MORE), tmp_path / "log.parquet")
    for ask in (log.users, lambda: log.request(user=1)):
        with pytest.raises(InvalidLogError, match="has changed"):
            ask()


def test_files_are_read_by_http(tmp_path: Path, store: str) -> None:
    pq.write_table(pa.table(CLICKS), tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,ann\n")
    log = read_log(f"{store}/log.parquet", actions=ACTIONS)
    assert log.statistics() == read_log(tmp_path / "log.parquet", actions=ACTIONS).statistics()
    assert log.request(user=1).counts.tolist() == [1, 0, 1]
    assert log.source.version() is None  # nothing tells whether it has changed
    with pytest.raises(InvalidInputError, match="no fixed order"):
        log.request(rows=[1])
    for name, message in (
        ("none.parquet", "cannot be read"),
        ("log.csv", "must be Parquet, or on this mach"),
    ):
        with pytest.raises(InvalidLogError, match=message):
            read_log(f"{store}/{name}", actions=ACTIONS)
