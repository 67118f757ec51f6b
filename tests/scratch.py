"""Where tests write: in memory if there is room, because a vault waits for the disk at every commit.

What a killed process has written stays in memory too. `TMPDIR=/tmp make test` writes to a disk.
"""

import os
import shutil
import tempfile
from collections.abc import MutableMapping

MEMORY = "/dev/shm"
ROOM = 4 << 30
"""The largest files of three tests at once take less than half of this."""


def write_to_memory(environment: MutableMapping[str, str], memory: str = MEMORY, room: int = ROOM) -> bool:
    """Let temporary files of this process and of its children be in memory; say whether they are.

    >>> environment: dict[str, str] = {"TMPDIR": "/var/tmp"}
    >>> write_to_memory(environment), environment  # who chose a folder keeps it
    (False, {'TMPDIR': '/var/tmp'})
    """
    if "TMPDIR" in environment or not os.access(memory, os.W_OK | os.X_OK):
        return False
    if shutil.disk_usage(memory).free < room:
        return False
    environment["TMPDIR"] = memory
    tempfile.tempdir = None
    return True
