"""Memory that is free, and that a process holds all the same."""

import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The numbers of options in mallopt(3)."""
_CHOSEN_BY = ("MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which users choose these options themselves."""
_SMALL, _LARGE = 2**18, 2**25
"""Pieces above are given back at once; the second is the most that the C library chooses by itself."""
_SETTINGS = {
    "pyarrow": ("ARROW_DEFAULT_MEMORY_POOL", "system"),
    "deltalake": ("_RJEM_MALLOC_CONF", "dirty_decay_ms:200,muzzy_decay_ms:0"),
}
"""Variables by which these libraries choose how they allocate, when they are imported."""
_IMPORTING = threading.Lock()


def import_sparing(library: str) -> None:
    """Import pyarrow or deltalake, if it is installed, so that free memory does not stay with the process.

    By default what their threads have freed stays there for a while, which is several times what they need.
    A library that is imported already, or whose variable is set, stays as it is.

    >>> import_sparing("pyarrow")
    """
    variable, setting = _SETTINGS[library]
    with _IMPORTING:  # another thread would take the variable for one that a user has set
        if library in sys.modules or variable in os.environ or find_spec(library) is None:
            return
        os.environ[variable] = setting
        try:
            importlib.import_module(library)
        finally:
            os.environ.pop(variable, None)


@contextmanager
def giving_back_memory() -> Iterator[None]:
    """Let the C library give back large pieces of memory as soon as they are free, and the others at the end.

    Only the one of GNU, on Linux, can be told so; elsewhere, or if a user has told it something, nothing is
    done.

    >>> with giving_back_memory():
    ...     bytes(2**20)[0]
    0
    """
    library = _gnu_library()
    if library is None or any(map(os.environ.get, _CHOSEN_BY)):
        yield
        return
    library.mallopt(_MMAP_THRESHOLD, _SMALL)
    try:
        yield
    finally:
        # Once one is set, the library adapts neither any more: these are the most that it would choose.
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, 2 * _LARGE)
        library.malloc_trim(0)


@cache
def _gnu_library() -> Any:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
