"""`armnesia serve --demo`: a vault of the bundled flights, with a token, in one go."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armnesia.service.client import Client
from armnesia.vault import Vault
from tests.service.processes import MAIN


@contextmanager
def demo(tmp_path: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the demo on a free port; with what it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--demo", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "ARMNESIA_URL": "postgresql://nowhere.invalid/vault"},
    )
    assert process.stdout is not None
    printed = ""
    try:
        for line in process.stdout:
            printed += line
            if "Ctrl-C" in line:
                break
        yield process, printed
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


def address_and_token(printed: str) -> tuple[str, str]:
    found = re.search(r"served at (\S+)\n.*this token: (\S+)\n", printed)
    assert found is not None, printed
    return found[1], found[2]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_the_demo_serves_the_flights_and_leaves_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    with demo(tmp_path) as (process, printed):
        with Client(*address_and_token(printed)) as client:
            assert next(client.decisions())["action"] == "DL"
            aircraft = re.search(r'"users": \["(\w+)"\]', printed)
            assert aircraft is not None
            assert client.forget([aircraft[1]])["records"] == 123
        folders = list(tmp_path.glob("armnesia-demo-*"))
        assert len(folders) == 1
        process.send_signal(ending)
        assert process.wait(30) in (0, 130)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_named_folder_keeps_the_vault_for_the_next_demo(tmp_path: Path) -> None:
    for records in (123, 0):
        with demo(tmp_path, "--demo-folder", "mine") as (process, printed):
            assert "stays there" in printed
            with Client(*address_and_token(printed)) as client:
                done = client.forget(["N711ZX"])
                assert (done["records"], done["repeated"]) == (records, records == 0)
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    with Vault.open(f"sqlite:///{tmp_path}/mine/vault.db") as vault:
        assert vault.verify().problems == ()
        assert len(vault.tokens()) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--demo", "--url", "sqlite:///other.db"], "--demo makes a vault of its own: leave out --url"),
        (["--demo", "--keys", "other.keys"], "--demo makes a vault of its own: leave out --keys"),
        (["--demo-folder", "mine"], "--demo-folder must be given with --demo"),
    ],
)
def test_a_contradiction_is_refused(run: Any, options: list[str], told: str) -> None:
    refused = run("serve", *options)
    assert (refused.code, refused.out) == (2, "")
    assert told in refused.err


@pytest.mark.slow
def test_a_port_that_is_taken_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, "-c", MAIN, "serve", "--demo", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"\narmnesia: port {port} of '127.0.0.1' cannot be used, perhaps because" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_browser_is_opened_if_asked_for(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(threading.Thread, "start", lambda self: self.run())

    def serve(*_: object, started: Any) -> None:
        started("http://127.0.0.1:1")

    monkeypatch.setattr("armnesia.service.server.serve", serve)
    with tempfile.TemporaryDirectory() as folder:
        assert run("serve", "--url", f"sqlite:///{folder}/vault.db", "--open").code == 0
        assert run("serve", "--url", f"sqlite:///{folder}/vault.db").code == 0
    assert opened == ["http://127.0.0.1:1"]
