"""The process that reads SQLite files: it is used again, and ends with the one that started it."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import armnesia as am
from armnesia.logs.child import _end, _idle_of, connected_in_child

READ = """
import sys
import armnesia as am
read = lambda table: am.read_log(sys.argv[1], table=table, actions=["A"])
read("log")
print("ready", flush=True)
"""
SLOW = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1e9) SELECT 'A' AS action, 1.0"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    idle = _idle_of(os.getpid())
    while idle:  # those of other tests
        _end(idle.pop())
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute("CREATE TABLE log AS SELECT 'A' AS action, 0.5 AS reward")
        file.execute(f"CREATE VIEW slow AS {SLOW} AS reward FROM n")
    return f"sqlite:///{tmp_path}/log.db"


@contextmanager
def reader(url: str, then: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has read the table; its errors are also those of its child."""
    command = [sys.executable, "-c", READ + then, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_when_its_parent_is_killed(url: str, ending: signal.Signals) -> None:
    with reader(url, "sys.stdin.read()") as process:
        process.send_signal(ending)
        assert process.communicate(timeout=60) == ("", "")  # nobody holds the other ends any more
        assert process.returncode == -ending


def test_a_child_ends_with_its_parent(url: str) -> None:
    with reader(url, "") as process:
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


def test_ctrl_c_ends_a_reading(url: str) -> None:
    with reader(url, "read('slow')") as process:
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]


def test_a_child_is_used_again_unless_it_has_ended(url: str) -> None:
    am.read_log(url, table="log", actions=["A"])
    idle = _idle_of(os.getpid())
    assert len(idle) == 1
    before = idle[0].pid
    am.read_log(url, table="log", actions=["A"])
    assert [each.pid for each in idle] == [before]
    idle[0].kill()
    idle[0].wait()
    assert len(am.read_log(url, table="log", actions=["A"])) == 1
    assert [each.pid for each in idle] != [before]


def test_an_answer_that_nobody_waits_for_ends_the_child(url: str) -> None:
    with connected_in_child(url) as connection:
        next(connection.stream("SELECT unnest(range(1000000))"))
        child = connection._process
    assert child.poll() is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_a_child_of_its_own(url: str) -> None:
    log = am.read_log(url, table="log", actions=["A"])
    (mine,) = _idle_of(os.getpid())
    forked = os.fork()
    if not forked:
        log.source.tallies((0.0, 1.0))
        os._exit(int(mine in _idle_of(os.getpid())))
    assert os.waitpid(forked, 0)[1] == 0
    assert len(log.source.tallies((0.0, 1.0))) == 1
    assert [each.pid for each in _idle_of(os.getpid())] == [mine.pid]
