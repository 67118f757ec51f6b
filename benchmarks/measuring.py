"""What the benchmarks share: the machine in words, and code that runs in a process of its own."""

import contextlib
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LIBRARIES = ("armnesia", "numpy", "scipy", "duckdb", "polars", "pyarrow", "deltalake", "pyiceberg", "psycopg")


def run(code: str, *arguments: str, source: str | None = None) -> tuple[str, float]:
    """Run Python code in a process of its own: what it prints, and its peak memory in megabytes.

    `source` is a folder with another version of the package. The peak is at least that of this process.
    """
    environment = {**os.environ, **({} if source is None else {"PYTHONPATH": source})}
    with open("output", "wb") as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)]
        command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        pid = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
    printed = Path("output").read_text(errors="replace").strip()
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"failed: {printed[-2000:]}")
    return printed, usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def machine() -> str:
    """Describe the machine and the versions."""
    cpu, memory = platform.processor() or platform.machine(), ""
    if sys.platform == "linux":
        model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        cpu = model[1] if model else platform.machine()
        found = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        memory = f", {int(found[1]) / 1024**2:.0f} GiB" if found else ""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{cpu}, {os.cpu_count()} cores{memory}{load}\n{platform.platform()}, Python"
        f" {platform.python_version()}, {', '.join(_versions())}"
    )


def _versions() -> Iterator[str]:
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            yield f"{name} {importlib.metadata.version(name)}"
