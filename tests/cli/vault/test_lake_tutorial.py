"""The commands in docs/lake-tutorial.md run as written, and print and refuse what the page shows."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import catalog
from pyiceberg.utils.config import Config

from tests.cli.vault.test_tutorial import ROOT, assert_begins, run_section

PAGE = "docs/lake-tutorial.md"
SOURCES = ("A folder of Parquet files", "A Delta table", "An Iceberg table", "A table of a database")
MISTAKE = re.compile(r"^\| `(armnesia .*?)` \| `(.*?)`", re.MULTILINE)
SCHEDULED = re.compile(r"^[\d *]+ cd /srv/vault && (armnesia .*)$", re.MULTILINE)


@pytest.mark.slow  # the promises of lakes are the same on every kind of log
def test_the_page_runs(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{folder}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{folder}/warehouse")
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())  # read when pyiceberg is imported
    names: dict[str, Any] = {}
    for heading in SOURCES:
        run_section(run, PAGE, heading, names)
    erasures = run("erase", "--status", "--json").json["sources"]
    # The last requests deleted rows in all sources, and the lakes keep earlier versions for some days.
    assert [(each["to_erase"], each["to_purge"]) for each in erasures] == [
        (False, False),
        (False, True),
        (False, True),
        (False, False),
    ]
    _make_mistakes(run)
    _run_scheduled(run)


def _make_mistakes(run: Any) -> None:
    mistakes = MISTAKE.findall((ROOT / PAGE).read_text(encoding="utf-8"))
    assert len(mistakes) == 7
    before = run("status", "--json").json
    for command, message in mistakes:
        refused = run(*shlex.split(command)[1:])
        assert refused.code == 2
        assert_begins(refused.err, f"…{message}")
    assert run("status", "--json").json == before


def _run_scheduled(run: Any) -> None:
    Path("backups").mkdir()
    lines = SCHEDULED.findall((ROOT / PAGE).read_text(encoding="utf-8"))
    assert len(lines) == 3
    for command in " && ".join(lines).split(" && "):
        words = shlex.split(command.replace("$(date +\\%F)", "2026-03-04").partition(" >> ")[0])
        assert run(*words[1:]).code == 0
