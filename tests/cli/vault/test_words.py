"""What the vault's commands say to people who see them for the first time, and keys that are always there."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.vault.forget import still_to_do
from armnesia.vault import Vault
from tests.cli.vault.clicks import COLUMNS, write_clicks

INGEST = ("ingest", "clicks.csv", *COLUMNS, "--id", "row")
TILT = ("--unlearner", "tilt", "--epsilon", "1", "--delta", "1e-5")
WEAKER = ("--max-epsilon", "1", "--max-delta", "1e-5", "--levels", "retained,request_shape")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a log and no vault from elsewhere; the screen has 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)
    write_clicks(tmp_path / "clicks.csv")
    return tmp_path


@pytest.fixture
def vault(folder: Path, run: Any) -> Path:
    """A vault with the log in it."""
    assert run("init", "--actions", "A,B,C").code == 0
    assert run(*INGEST).code == 0
    return folder


def test_a_dry_run_tells_who_would_answer(run: Any, vault: Path) -> None:
    assert run("policy", *WEAKER, "--beyond", "rollback").code == 0
    as_asked = run("forget", "--user", "u1", *TILT, "--dry-run", "--json").json
    assert as_asked["unlearner"] == "tilt"
    assert run("policy", "--max-epsilon", "0", "--max-delta", "0").code == 0
    beyond = ("forget", "--user", "u1", *TILT, "--dry-run")
    assert run(*beyond, "--json").json["unlearner"] == "rollback"
    assert "Would be answered by: rollback\n" in run(*beyond).out
    assert run("forget", "--user", "stranger", "--dry-run", "--json").json["unlearner"] is None


def test_of_several_it_is_told_of_how_many_there_were_records(run: Any, vault: Path) -> None:
    several = [word for name in ("u1", "a1", "x", "y") for word in ("--user", name)]
    told = run("forget", *several, "--dry-run", "--json").json
    assert (told["named"], told["held"]) == (4, 2)
    assert "4 named, of 2 there were records\n" in run("forget", *several, "--dry-run").out
    assert "named, of" not in run("forget", "--user", "a3", "--dry-run").out
    assert "4 named, of 2 there were records\n" in run("forget", *several).out
    assert "named, of" not in run("forget", *several).out  # answered before
    done = run("forget", "--user", "a3", "--json").json
    assert (done["named"], done["held"]) == (1, 1)


def test_erasing_says_what_it_means(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    run("forget", "--user", "a1")
    assert "digests" not in run("readmit", "--user", "u1").out
    erased = run("readmit", "--user", "a1", "--erase").out
    assert "1 readmitted" in erased
    assert "Their digests are erased" in erased
    assert "brings their old records back" in erased


def test_what_to_do_about_bytes_that_are_not_gone(run: Any, vault: Path) -> None:
    assert "To do" not in run("forget", "--user", "a1").out
    reader = sqlite3.connect("vault.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchone()
    said = run("forget", "--user", "u1").out
    with Vault.open("sqlite:///vault.db") as opened:
        done = opened.forget(records=["r3"])
    (on_a_server,) = still_to_do(done, "postgresql://host/database", {"records": ["r3"]})
    reader.close()
    assert "another process was reading" in said
    assert "armnesia status tries again" in said
    assert "armnesia certificate show --user U --out FILE" in said
    assert "armnesia compact" in on_a_server
    assert "armnesia certificate show --records ID --out FILE" in on_a_server
    assert "│ erasure                 │ complete " in run("status").out
    assert "Erasure: complete" in run("certificate", "show", "--user", "u1", "--out", "u1.json").out


def test_a_certificate_always_has_the_key_opening_and_is_read_again(run: Any, vault: Path) -> None:
    several = run("forget", "--user", "u1", "--user", "a1", "--json").json
    assert several["certificate"]["opening"] is None
    printed = run("certificate", "show", "--sequence", several["sequence"], "--json").out
    assert json.loads(printed).keys() == {"body", "signature", "opening"}
    Path("printed.json").write_text(printed, encoding="utf-8")
    checked = run("certificate", "verify", "printed.json", "--public-key", run("public-key").out.strip())
    assert checked.code == 0
    Path("printed.json").write_text(printed.replace("null", '""'), encoding="utf-8")
    assert run("certificate", "verify", "printed.json").code == 1
    run("certificate", "show", "--sequence", several["sequence"], "--out", "entry.json")
    assert run("certificate", "verify", "entry.json").code == 0


def test_counts_are_those_of_every_action(run: Any, vault: Path) -> None:
    zeros = {"A": 0, "B": 0, "C": 0}
    for options in (("--dry-run",), (), ()):  # the last one is repeated
        assert run("forget", "--user", "stranger", *options, "--json").json["counts"] == zeros
    assert run("init", "--url", "sqlite:///new.db").code == 0
    without_actions = run("forget", "--user", "u1", "--url", "sqlite:///new.db", "--json").json
    assert without_actions["counts"] == {}


def test_a_public_key_is_digits_or_a_file_that_exists(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    refused = run("certificate", "verify", "u1.json", "--public-key", "missing.txt")
    assert (refused.code, refused.out) == (2, "")
    assert "or a file that exists; got 'missing.txt'" in refused.err


def test_restoring_says_that_later_rows_are_missing(run: Any, vault: Path) -> None:
    run("backup", "old.db")
    run("forget", "--user", "u1")
    run("export", "later.json", "--for-restore")
    shutil.copy("old.db", "vault.db")
    said = run("restore", "later.json").out
    assert "1 entries of the ledger replayed" in said
    assert "Rows that were ingested after the backup was made are not in it: ingest them again." in said


def test_the_status_has_penalty_and_policy(run: Any) -> None:
    run("init", "--penalty", "frozen", *WEAKER)
    said = run("status").out
    assert re.search(r"│ penalty +│ frozen ", said)
    assert re.search(r"│ policy +│ up to ε = 1 and δ = 1e-05 at level retained or ", said)


def test_the_ledger_is_readable_in_80_columns(run: Any, vault: Path) -> None:
    run("policy", *WEAKER)
    for user in ("a1", "a2"):
        noisy = ("--unlearner", "strict_adaptive", "--epsilon", "1", "--delta", "1e-5")
        assert run("forget", "--user", user, *noisy).code == 0
    run("rotate-key", "signing")
    said = run("ledger").out.splitlines()
    assert max(len(line) for line in said[:-1]) <= 80
    lines = [line for line in said if re.match(r"│ \d", line)]
    assert len(lines) == 5
    for line in lines:
        assert re.match(r"│ \d │ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d │ [a-z_]+ +│", line)
    assert sum("request_shape" in line for line in said) == 2


@pytest.mark.parametrize("number", ["-0", "-0.0", "0"])
def test_zero_has_no_sign(run: Any, vault: Path, number: str) -> None:
    said = run("policy", "--max-epsilon", number, "--max-delta", number).out
    assert "up to ε = 0 and δ = 0 at level" in said
    told = run("policy", "--max-epsilon", number, "--json").out
    assert "-0" not in re.sub(r'"head": .*', "", told)


@pytest.mark.parametrize("actions", ["A,,B", "A,B,", "", " , "])
def test_an_action_without_a_name_is_refused(run: Any, folder: Path, actions: str) -> None:
    for command in (("init",), ("decide", "clicks.csv", *COLUMNS[:4])):
        refused = run(*command, "--actions", actions)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == (
            f"armnesia: --actions must be labels such as A,B,C, none of them empty; got {actions!r}\n"
        )
    assert [path.name for path in folder.iterdir()] == ["clicks.csv"]


def test_the_first_batch_tells_which_actions_are_fixed(run: Any) -> None:
    run("init")
    first = run(*INGEST)
    assert first.code == 0
    assert first.err.startswith("armnesia: warning: the vault's actions are fixed for good now: 'A', 'B';")
    assert first.err.count("\n") == 1
    assert run(*INGEST).err == ""


def test_declared_actions_need_no_words(run: Any) -> None:
    run("init", "--actions", "A,B")
    assert run(*INGEST).err == ""


def test_a_vault_in_use_has_an_exit_code_of_its_own(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that gets it may try again."""
    monkeypatch.setattr(Vault, "open", partial(Vault.open, timeout=0.1))
    with closing(sqlite3.connect(vault / "vault.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = run("forget", "--user", "u1")
    assert (refused.code, refused.out) == (75, "")
    assert "in use by another process; nothing was changed, try again" in refused.err
