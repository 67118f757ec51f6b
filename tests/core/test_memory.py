"""Free memory is given back to the operating system."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armnesia.core import memory

_IMPORT = """
import os, sys
from armnesia.core.memory import import_sparing
import_sparing({library!r})
print({shown}, {variable!r} in os.environ)
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
    with memory.giving_back_memory():
        before = resident()
        pieces = [bytearray(b"x" * 2**20) for _ in range(200)]
        full = resident()
        del pieces[:-1]
        assert full - before > 150 * 2**20
        assert resident() - before < 20 * 2**20
        assert len(pieces) == 1


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_gnu_library", lambda: None)
    with memory.giving_back_memory():
        assert bytes(3) == b"\0\0\0"


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
