"""What `packaging/` has: units of systemd, a container file and proxies, as far as this machine can check."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from armnesia.service.server import Address
from tests.databases import Place
from tests.promises.driver import MAPPING, Row
from tests.promises.lakes import Folder
from tests.service.certificates import issued

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "packaging"
PROGRAM = "/opt/armnesia/bin/armnesia"
NAME = "vault.example.org"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
MOST_EXPOSED = 20
"""Of 100, by `systemd-analyze security`; a unit without any restriction has 96."""


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program} here")


def commands_of(unit: str) -> list[list[str]]:
    lines = re.findall(r"^ExecStart=(.*)$", (FOLDER / unit).read_text("utf-8"), re.MULTILINE)
    return [shlex.split(line.replace("%%", "%")) for line in lines]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the container file, without comments, with lines joined."""
    text = re.sub(r"^#.*\n", "", (FOLDER / "Containerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line.strip()]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """The addresses that `serve` would listen at."""
    found: list[Address] = []
    monkeypatch.setattr("armnesia.service.server.serve", lambda _, address, *__, **___: found.append(address))
    return found


@needs("systemd-analyze")
@pytest.mark.parametrize("unit", [*UNITS, "armnesia-upkeep.timer"])
def test_systemd_reads_the_units(unit: str, tmp_path: Path) -> None:
    program = tmp_path / "armnesia"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    for path in FOLDER.glob("armnesia*"):
        text = path.read_text("utf-8").replace(PROGRAM, str(program))
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    found = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / unit)], capture_output=True, text=True, check=False
    )
    about_ours = [line for line in found.stderr.splitlines() if "armnesia" in line]
    assert (found.returncode, about_ours) == (0, [])


@needs("systemd-analyze")
def test_the_service_is_hardened() -> None:
    unit = str(FOLDER / "armnesia.service")
    asked = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", unit]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if "unrecognized option" in found.stderr:
        pytest.skip("this systemd-analyze has no --offline")
    assert found.returncode == 0, found.stdout[-500:]


def test_the_unit_starts_the_service_on_this_machine(run: Any, started: list[Address]) -> None:
    ((program, *arguments),) = commands_of("armnesia.service")
    assert program == PROGRAM
    assert run(*arguments).code == 0
    (address,) = started
    assert (address.host, address.port, address.behind_tls_proxy) == ("127.0.0.1", 8080, True)
    assert NAME in address.hosts


UPKEEP = {
    "sqlite": ("armnesia-upkeep.service", ["compact", "verify", "backup"]),
    "postgresql": ("armnesia-upkeep-postgresql.service", ["compact", "verify"]),
}


def test_the_commands_of_the_upkeep_work(
    run: Any, place: Place, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two days."""
    unit, expected = UPKEEP[database]
    monkeypatch.setenv("ARMNESIA_URL", place.url)
    monkeypatch.setenv("ARMNESIA_KEYS", str(place.keys))
    run("init", "--actions", "A,B")
    (tmp_path / "backup").mkdir()
    for day in ("2026-11-16-1", "2026-11-17-1"):
        ran = []
        for command in commands_of(unit):
            words = [word.replace("/var/lib/armnesia", str(tmp_path)) for word in command]
            if words[0] == "/bin/sh":
                words = words[2].removeprefix("exec ").replace("$(date +%F-%s)", day).split()
            if words[0] == PROGRAM:
                done = run(*words[1:])
                assert (done.code, done.err) == (0, ""), words
                ran.append(words[1])
            else:
                assert words[0] in ("/usr/bin/find", "/bin/cp")
        assert ran == expected
    backups = ["2026-11-16-1.db", "2026-11-17-1.db"] if database == "sqlite" else []
    assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == backups


def test_the_upkeep_reaches_its_database() -> None:
    for database, (unit, _) in UPKEEP.items():
        text = (FOLDER / unit).read_text("utf-8")
        assert f"ARMNESIA_URL={database}:" in text
        assert ("PrivateNetwork=yes" in text) == (database == "sqlite")


SOURCES = "armnesia-upkeep-sources.conf"


@needs("systemd-analyze")
@pytest.mark.parametrize("unit", [unit for unit, _ in UPKEEP.values()])
def test_systemd_reads_what_is_added_for_external_vaults(unit: str, tmp_path: Path) -> None:
    program, added = tmp_path / "armnesia", tmp_path / f"{unit}.d"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    added.mkdir()
    for source, target in ((unit, tmp_path / unit), (SOURCES, added / SOURCES)):
        text = (FOLDER / source).read_text("utf-8").replace(PROGRAM, str(program))
        target.write_text(text, encoding="utf-8")
    asked = ["systemd-analyze", "verify", str(tmp_path / unit)]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    about_ours = [line for line in found.stderr.splitlines() if "armnesia" in line]
    assert (found.returncode, about_ours) == (0, [])


def test_the_upkeep_of_an_external_vault_erases_at_its_source(
    run: Any, sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMNESIA_URL", sqlite_place.url)
    monkeypatch.setenv("ARMNESIA_KEYS", str(sqlite_place.keys))
    log = Folder(tmp_path)
    log.append([Row("e1", "ann", "A", 4), Row("e2", "bob", "B", 0)])
    run("init", "--external", "--may-erase-at-source", "--actions", "A,B")
    run("ingest", log.source, *MAPPING)
    run("forget", "--user", "ann")
    (line,) = re.findall(r"^ExecStartPre=(.*)$", (FOLDER / SOURCES).read_text("utf-8"), re.MULTILINE)
    program, *arguments = shlex.split(line)
    assert program == PROGRAM
    assert run(*arguments).code == 0
    assert [person for _, person, *_ in log.values()] == ["bob"]


def test_the_container_runs_without_root(run: Any, started: list[Address]) -> None:
    found = instructions()
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE", "HEALTHCHECK"}
    known |= {"ENTRYPOINT", "CMD"}
    assert {name for name, _ in found} <= known  # no ADD, which would fetch what it is told
    last = dict(found)
    assert int(last["USER"]) > 0
    assert json.loads(last["ENTRYPOINT"]) == [PROGRAM]
    assert run(*json.loads(last["CMD"])).code == 0
    (address,) = started
    assert (address.host, address.port) == ("0.0.0.0", int(last["EXPOSE"]))
    check = json.loads(last["HEALTHCHECK"].removeprefix("CMD "))
    compile(check[2], "check", "exec")
    assert f":{address.port}/healthz" in check[2]


def test_the_container_is_made_of_what_is_there() -> None:
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            for path in rest.split()[:-1]:
                assert (PROJECT / path).exists(), path
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    (asked,) = re.findall(r'"/source\[([\w,]+)\]"', (FOLDER / "Containerfile").read_text("utf-8"))
    assert set(asked.split(",")) <= set(extras)


@needs("nginx")
def test_nginx_reads_its_file(tmp_path: Path) -> None:
    certificate, key = issued(tmp_path)
    text = (FOLDER / "nginx.conf").read_text("utf-8")
    text = text.replace(f"/etc/ssl/{NAME}/chain.pem", str(certificate))
    text = text.replace(f"/etc/ssl/{NAME}/key.pem", str(key))
    main = tmp_path / "main.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    main.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {folders}\n{text} }}", encoding="utf-8")
    asked = ["nginx", "-t", "-c", str(main), "-e", f"{tmp_path}/errors", "-p", str(tmp_path)]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@needs("caddy")
def test_caddy_reads_its_file() -> None:
    asked = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(FOLDER / "Caddyfile")]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_proxies_call_the_service_and_pass_the_name_on() -> None:
    for name in ("nginx.conf", "Caddyfile"):
        text = (FOLDER / name).read_text("utf-8")
        assert NAME in text
        assert "127.0.0.1:8080" in text
        assert "forwarded" not in text.lower()
    assert "proxy_set_header Host $host;" in (FOLDER / "nginx.conf").read_text("utf-8")
