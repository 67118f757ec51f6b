"""Free memory is given back to the operating system."""

import os
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core import memory

_IMPORT = """
import os, sys
from armnesia.core.memory import import_sparing
import_sparing({library!r})
print({shown}, {variable!r} in os.environ)
"""
_LARGE_PIECES = """
import os
from armnesia.core.memory import giving_back_memory
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
with giving_back_memory():
    before = resident()
    pieces = [bytearray(b"x" * 2**20) for _ in range(200)]
    full = resident()
    del pieces[:-1]
    print(full - before, resident() - before)
"""
_BACKEND = "sys.modules['pyarrow'].default_memory_pool().backend_name"
_SEEN = "sys.modules['deltalake'].seen"


def printed(library: str, shown: str, **variables: str) -> str:
    """What a process of its own shows after it has imported a library."""
    variable = memory._SETTINGS[library][0]
    plain = {name: value for name, value in os.environ.items() if name != variable}
    code = _IMPORT.format(library=library, shown=shown, variable=variable)
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**plain, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.strip()


def test_arrow_allocates_by_the_c_library() -> None:
    assert printed("pyarrow", _BACKEND) == "system False"


def test_a_pool_that_somebody_has_chosen_stays() -> None:
    name = memory._SETTINGS["pyarrow"][0]
    chosen = printed("pyarrow", "'pyarrow' in sys.modules", **{name: "mimalloc"})
    assert chosen == "False True", "it is imported later, with this variable"


def test_deltalake_is_imported_with_its_variable(tmp_path: Path) -> None:
    variable, setting = memory._SETTINGS["deltalake"]
    (tmp_path / "deltalake.py").write_text(f"import os\nseen = os.environ.get({variable!r})\n", "utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    assert printed("deltalake", _SEEN, PYTHONPATH=path) == f"{setting} False"


@pytest.mark.skipif(memory._gnu_library() is None, reason="the C library cannot be told")
def test_large_pieces_are_given_back_at_once() -> None:
    """A megabyte is a mapping of its own, and gone when it is free, also if others are still in use."""
    ended = subprocess.run(  # a process of its own: in that of the tests, threads of libraries allocate too
        [sys.executable, "-c", _LARGE_PIECES], capture_output=True, text=True, check=True
    )
    full, rest = map(int, ended.stdout.split())
    assert full > 150 * 2**20
    assert rest < 20 * 2**20


class FakeLibrary:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, ...]] = []

    def mallopt(self, *given: int) -> None:
        self.told.append(given)

    def malloc_trim(self, padding: int) -> None:
        self.told.append((padding,))


def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    library = FakeLibrary()
    monkeypatch.setattr(memory, "_gnu_library", lambda: library)
    with memory.giving_back_memory():
        pass
    return library.told


def test_afterwards_both_thresholds_are_the_largest_that_the_library_chooses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise every piece of some megabytes would be asked for, and given back, each time."""
    for variable in memory._CHOSEN_BY:
        monkeypatch.delenv(variable, raising=False)
    assert told(monkeypatch) == [(-3, 2**18), (-3, 2**25), (-1, 2**26), (0,)]


@pytest.mark.parametrize("variable", memory._CHOSEN_BY)
def test_a_threshold_that_a_user_has_chosen_stays(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "65536")
    assert told(monkeypatch) == []


_THREADS = """
import os, sys, threading, time
from armnesia.core.memory import import_sparing
failed, start = [], threading.Barrier(8)
def run():
    start.wait()
    try:
        import_sparing("deltalake")
        import deltalake
        assert deltalake.seen
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=run) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(failed, {variable!r} in os.environ)
"""


def test_threads_import_a_library_one_after_the_other(tmp_path: Path) -> None:
    variable = memory._SETTINGS["deltalake"][0]
    code = f"import os, time\nseen = os.environ.get({variable!r})\ntime.sleep(0.2)\n"
    (tmp_path / "deltalake.py").write_text(code, "utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    plain = {name: value for name, value in os.environ.items() if name != variable}
    ended = subprocess.run(
        [sys.executable, "-c", _THREADS.format(variable=variable)],
        env={**plain, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == "[] False"


_ERASE = """
import sys
from armnesia.logs import open_source
from armnesia.logs.statements import Chosen
assert open_source({name!r}).eraser().delete(Chosen(["ann"])) == 1
print(sys.modules["pyarrow"].default_memory_pool().backend_name)
"""


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_arrow_allocates_by_the_c_library_in_an_erasure(kind: str, tmp_path: Path) -> None:
    rows = pa.table({"user": ["ann", "bob"], "action": ["a", "b"], "reward": [0.0, 1.0]})
    name = str(tmp_path / "log.parquet")
    if kind == "delta":
        name = f"delta:{tmp_path / 'log'}"
        deltalake.write_deltalake(str(tmp_path / "log"), rows)
    else:
        pq.write_table(rows, name)
    variable = memory._SETTINGS["pyarrow"][0]
    ended = subprocess.run(
        [sys.executable, "-c", _ERASE.format(name=name)],
        env={each: value for each, value in os.environ.items() if each != variable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == "system"


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_gnu_library", lambda: None)
    with memory.giving_back_memory():
        assert bytes(3) == b"\0\0\0"
