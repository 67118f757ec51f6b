"""docs/command-line.md lists every command, option and JSON key, and no other."""

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.cli.app import COMMANDS, GROUPS
from armnesia.cli.parameters import option_name
from armnesia.core.parameters import parameters_of
from armnesia.learners import LEARNERS
from armnesia.paper.section import Claim
from armnesia.unlearners import UNLEARNERS
from tests.cli.commands import commands, options
from tests.cli.documentation import (
    DOCUMENTED,
    OPTION,
    PANELS,
    SHARED,
    assert_documented,
    documented_keys,
)
from tests.cli.examples import BUDGET, INGEST, write_clicks, write_exposures


def test_every_command_is_documented_in_its_panel() -> None:
    assert set(DOCUMENTED) == set(commands())
    placed = [(panel, name) for panel, names in COMMANDS.items() for name in names]
    placed += [(group.panel, f"{name} {inner}") for name, group in GROUPS.items() for inner in group.commands]
    assert set(PANELS) == {"Shared options", *(panel for panel, _ in placed)}
    for panel, name in placed:
        assert re.search(rf"^### `{name}\b", PANELS[panel], re.MULTILINE), f"{name} is not below {panel}"


@pytest.mark.parametrize("command", commands())
def test_every_option_is_documented_and_every_documented_option_exists(command: str) -> None:
    own = set(OPTION.findall(DOCUMENTED[command]))
    exists = set(options(command))
    assert own <= exists | {"--json"}
    assert exists - {"--json", "--help"} <= own | set(OPTION.findall(SHARED))


def test_every_shared_option_exists() -> None:
    exists = {name for command in commands() for name in options(command)}
    assert set(OPTION.findall(SHARED)) <= exists


def test_the_table_of_parameters_has_every_owner() -> None:
    rows = re.findall(r"^\| (`--.*?) \| (.*?) \| .* \|$", SHARED, re.MULTILINE)
    documented = {
        name: set(re.findall(r"`(\w+)`", owners))
        for names, owners in rows
        for name in OPTION.findall(names)
        if not name.startswith("--no-")
    }
    declared: dict[str, set[str]] = {}
    for owner, kind in (*UNLEARNERS.items(), *LEARNERS.items()):
        for parameter in parameters_of(kind):
            declared.setdefault(option_name(parameter.name), set()).add(owner)
    assert documented == declared


# Every command with the arguments of an example, in an order in which each can be run.
ON_CLICKS = ("clicks.csv", *INGEST[2:6])
REQUEST = (*ON_CLICKS, "--actions", "A,B", "--user-column", "person", "--user", "u1")
MANY = ("--url", "sqlite:///many.db")
EXTERNAL = ("--url", "sqlite:///external.db")
EXAMPLES: list[tuple[str, str | None, tuple[object, ...]]] = [
    ("decide", "", (*ON_CLICKS, "--actions", "A,B")),
    ("decide", " with `--by`", (*ON_CLICKS, "--actions", "A,B", "--by", "row")),
    ("unlearn", "", (*REQUEST, "--draw")),
    ("unlearn", " with `--by`", (*REQUEST, "--by", "row")),
    ("audit", "", REQUEST),
    ("audit", " with `--by`", (*REQUEST, "--by", "row")),
    ("compare", "", (*REQUEST, *BUDGET)),
    ("compare", " with `--by`", (*REQUEST, *BUDGET, "--by", "row")),
    (
        "join",
        "",
        ("--exposures", "shown.csv", "--metric", "bought.csv", "--window", "14d", "--out", "log.csv"),
    ),
    ("init", "", ("--actions", "A,B")),
    ("ingest", "", INGEST[1:]),
    ("decide", " without `LOG`", ()),
    ("backup", "", ("old.db",)),
    ("forget", " with `--dry-run`", ("--user", "u1", "--dry-run")),
    ("forget", "", ("--user", "u1", "--certificate", "u1.json")),
    ("readmit", "", ("--user", "u1")),
    ("arms retire", "", ("B",)),
    ("arms list", "", ()),
    ("arms add", "", ("B",)),
    ("verify", "", ()),
    ("ledger", "", ()),
    ("ledger", " with `--checkpoint-only`", ("--checkpoint-only",)),
    ("status", "", ("--scores",)),
    ("token create", "", ("--role", "reader")),
    ("token list", "", ()),
    ("token revoke", "", ("1",)),
    ("certificate show", "", ("--user", "u1")),
    ("certificate show", " with `--out-folder`", ("--user", "u1", "--out-folder", "folder")),
    ("policy", "", ()),
    ("public-key", "", ()),
    ("rotate-key", "", ()),
    ("compact", "", ()),
    ("export", "", ("ledger.jsonl",)),
    ("init", "", ("--actions", "A,B", "--by", "row", *MANY)),
    ("ingest", None, (*INGEST[1:], *MANY)),
    (
        "init",
        "",
        ("--actions", "A,B", "--forgotten-from", "vault.db.keys.journal", "--url", "sqlite:///new.db"),
    ),
    ("init", "", ("--actions", "A,B", "--external", "--may-erase-at-source", *EXTERNAL)),
    ("ingest", None, ("clicks.parquet", *INGEST[2:], *EXTERNAL)),
    ("erase", "", ("--status", *EXTERNAL)),
    ("forget", None, ("--user", "u1", *EXTERNAL)),
    ("erase", "", ("--dry-run", *EXTERNAL)),
    ("erase", "", ("--purge", *EXTERNAL)),
    ("decide", " with `--where`", ("--where", "row=r1", *MANY)),
    ("decide", " of many decisions", MANY),
    ("arms add", " of many decisions", ("D", "--where", "row=r1", *MANY)),
    ("arms list", " of many decisions", MANY),
    ("decide", " with `--signed`", ("--signed", *MANY)),
    ("research evaluate", "", ("--n", 100, "--deletions", 5)),
    ("research sweep", "", ("--n", "100,200", "--deletions", 5, "--n-jobs", 1, "--out", "sweep")),
    ("research bounds", "", ("--n", 100, "--deletions", 5)),
    ("research levels", "", ("--max-count", 2)),
    ("research calibrate", "", BUDGET),
    ("research curve", "", ("--gamma", 1)),
    ("research reproduce", "", ("--quick", "--part", "table2", "--datasets", 2000, "--n-jobs", 1)),
]


def test_the_keys_of_commands_are_those_documented(run: Any, folder: Path) -> None:
    write_clicks(folder / "clicks.csv")
    write_exposures(folder)
    duckdb.read_csv(str(folder / "clicks.csv")).write_parquet(str(folder / "clicks.parquet"))
    for command, variant, arguments in EXAMPLES:
        done = run(*command.split(), *arguments, "--json")
        assert done.code == 0, done.err
        if variant is not None:
            assert_documented(command, variant, done.json)
    Path("served.json").write_text(run("decide", "--signed", *MANY).out, encoding="utf-8")
    Path("keys.json").write_text(run("public-key", "--json").out, encoding="utf-8")
    Path("keys of many.json").write_text(run("public-key", "--json", *MANY).out, encoding="utf-8")
    verified = run("certificate", "verify", "u1.json", "--public-key", "keys.json", "--json")
    assert_documented("certificate verify", "", verified.json)
    served = run("certificate", "verify", "served.json", "--public-key", "keys of many.json", "--json")
    assert_documented("certificate verify", " of served arms", served.json)
    Path("kept.txt").write_text(run("ledger", "--checkpoint-only").out, encoding="utf-8")
    assert_documented(
        "ledger", " with `--checkpoint`", run("ledger", "--checkpoint", "kept.txt", "--json").json
    )
    shutil.copy("old.db", "vault.db")
    assert_documented("restore", "", run("restore", "--json").json)
    assert documented_keys("research reproduce")["claims"] == {
        field.name for field in dataclasses.fields(Claim)
    }
    tested = {command for command, _, _ in EXAMPLES} | {"restore", "demo"}  # the demo in test_demo.py
    tested |= {"certificate verify", "serve"}  # above; and serve, which prints no result
    assert tested == set(commands())
