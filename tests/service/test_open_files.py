"""Open files: the limit is raised, and connections leave some to the vault."""

import re
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.databases import Place
from tests.service.certificates import issued
from tests.service.processes import serve_process
from tests.service.servers import fill

_LIMITS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from armnesia.service import server
files = server._raised_file_limit()
print(files, *server._connection_limits(files), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def limits(soft: int, hard: int) -> list[int]:
    command = [sys.executable, "-c", _LIMITS, str(soft), str(hard)]
    return [int(each) for each in subprocess.check_output(command, text=True).split()]


def test_the_limit_is_raised_as_far_as_it_may_be() -> None:
    assert limits(1024, 4096) == [4096, 2000, 500, 4096]
    assert limits(512, 1024) == [1024, 618, 154, 1024]


@pytest.mark.slow
def test_strangers_do_not_exhaust_the_open_files(sqlite_place: Place) -> None:
    """Also not in one burst; the process is started with a limit that it cannot raise."""
    tokens = fill(sqlite_place)
    headers = {"Authorization": f"Bearer {tokens['operator']}"}
    with serve_process(sqlite_place, files=1024) as running:
        parts = urlsplit(running.url)
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(1100)]
        with httpx.Client(base_url=running.url, headers=headers, trust_env=False, timeout=10) as http:
            assert http.get("/live").status_code == 200
            assert http.post("/v1/deletions", json={"users": ["nobody-here"]}).status_code == 201
        for each in idle:
            each.close()
        assert not [line for line in running.lines if "out of system resource" in line]


@pytest.mark.slow
def test_handshakes_that_do_not_end_are_given_up(sqlite_place: Place, tmp_path: Path) -> None:
    fill(sqlite_place)
    certificate, key = issued(tmp_path, names=("localhost",))
    options = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    with serve_process(sqlite_place, *options) as running:
        parts, begun = urlsplit(running.url), time.monotonic()
        with socket.create_connection((parts.hostname, parts.port), 30) as made:
            assert made.recv(1) == b""
        assert 3 < time.monotonic() - begun < 20
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        assert httpx.get(f"{running.url}/live", verify=context, trust_env=False).status_code == 200


def test_the_unit_of_systemd_has_the_same_limit() -> None:
    unit = Path(__file__).parents[2] / "packaging" / "armnesia.service"
    assert re.search("^LimitNOFILE=8192$", unit.read_text(), re.MULTILINE)
