"""docs/service.md runs as written, on the vault that the tutorial makes of its own log."""

import re
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest

from armnesia.service.app import create_app
from armnesia.vault import Vault
from tests.cli.vault.test_tutorial import BLOCK, ROOT, TUTORIAL, blocks, run_section
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.servers import fill, listening, serving_existing

PAGE, OPENDSR = "docs/service.md", "docs/opendsr.md"
URL = "http://127.0.0.1:8080"


def test_the_request_of_a_controller_is_taken(sqlite_place: Place, tmp_path: Path) -> None:
    ((_, shell),) = blocks(OPENDSR, "Requests")
    words = shlex.split(shell)
    content = words[words.index("--json") + 1]
    made = processor(tmp_path, callback_hosts=("callbacks.controller.example",), delay_hours=24.0)
    with serving_existing(sqlite_place, fill(sqlite_place), made=made) as served, served.http() as http:
        headers = {"Content-Type": "application/json"}
        answer = http.post(words[1].partition("example.org")[2], content=content, headers=headers)
        assert answer.status_code == 201, answer.text


def test_the_examples_run(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_section(run, TUTORIAL, "With your own log")
    _, shell = BLOCK.findall((ROOT / PAGE).read_text(encoding="utf-8"))[0]
    create, serve, *calls = shell.splitlines()
    command = re.match(r"TOKEN=\$\(armnesia (.*?)\)", create)
    assert command is not None
    assert serve.startswith("armnesia serve &")
    made = run(*shlex.split(command[1]))
    token = made.out.strip()
    assert re.fullmatch(r"armnesia_\S+", token), "the token alone is on stdout"
    assert "keep it like a password" in made.err
    with listening(create_app(lambda: Vault.open("sqlite:///vault.db"))) as url:
        for call in calls:
            words = shlex.split(call.replace("$TOKEN", token))
            content = words[words.index("--json") + 1] if "--json" in words else None
            name, _, value = words[words.index("-H") + 1].partition(": ")
            answer = httpx.request(
                "GET" if content is None else "POST",
                words[-1].replace(URL, url),
                headers={name: value, "Content-Type": "application/json"},
                content=content,
                trust_env=False,
            )
            assert answer.is_success, answer.text
        ((_, python),) = [each for each in blocks(PAGE, "The client") if each[0] == "python"]
        found: dict[str, Any] = {"token": token}
        exec(python.replace(URL, url), found)
        assert found["done"]["records"] == 2
    with Vault.open("sqlite:///vault.db") as vault:
        assert vault.n_records == 6 - 2 - 1 - 2 + 1
