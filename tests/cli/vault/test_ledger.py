"""The commands `ledger`, `export`, `public-key` and `rotate-key`."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.vault import ledger
from tests.cli.examples import BUDGET, INGEST, WEAKER_POLICY


def test_the_ledger_is_listed_and_checked(run: Any, vault: Path) -> None:
    Path("first").write_text(run("ledger", "--checkpoint-only").out, encoding="utf-8")
    run("forget", "--user", "u1")
    listed = run("ledger", "--json").json
    assert set(listed) == {"head", "entries"}
    assert [entry["number"] for entry in listed["entries"]] == [1, 2, 3]
    assert [entry["kind"] for entry in listed["entries"]] == ["init", "configured", "forget"]
    assert "rollback" in run("ledger").out
    checked = run("ledger", "--checkpoint", "first", "--json")
    assert (checked.code, set(checked.json), checked.json["holds"]) == (
        0,
        {"holds", "problems", "size"},
        True,
    )
    assert run("verify", "--checkpoint", "first").code == 0
    given = run("ledger", "--checkpoint-only", "--json").json
    assert given["head"] == listed["head"]
    assert given["checkpoint"] == run("ledger", "--checkpoint-only").out
    run("init", "--url", "sqlite:///other.db")
    Path("other").write_text(run("ledger", "--checkpoint-only", "--url", "sqlite:///other.db").out)
    for command in ("ledger", "verify"):
        wrong = run(command, "--checkpoint", "other")
        assert wrong.code == 1
        assert "Problem: " in wrong.out


def test_an_export_has_envelopes_and_names_nobody(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    done = run("export", "audit.jsonl", "--json").json
    assert set(done) == {"file", "head"}
    assert done["head"].startswith("3:")
    lines = [json.loads(line) for line in Path("audit.jsonl").read_text(encoding="utf-8").splitlines()]
    envelopes = [envelope for line in lines for envelope in line["entries"]]
    kinds = [json.loads(base64.b64decode(each["payload"]))["predicate"]["kind"] for each in envelopes]
    assert kinds == ["init", "configured", "forget"]
    run("forget", "--user", "a1")
    assert "4 entries written to audit.jsonl" in run("export", "audit.jsonl").out  # the older one is replaced


def test_the_ledger_is_readable_in_80_columns(run: Any, vault: Path) -> None:
    run("policy", *WEAKER_POLICY)
    for user in ("a1", "a2"):
        noisy = ("--unlearner", "strict_adaptive", *BUDGET)
        assert run("forget", "--user", user, *noisy).code == 0
    run("rotate-key")
    printed = run("ledger").out.splitlines()
    assert max(len(line) for line in printed[:-1]) <= 80
    lines = [line for line in printed if re.match(r"│ \d", line)]
    assert len(lines) == 6
    for line in lines:
        assert re.match(r"│ \d │ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d │ [a-z_]+ +│", line)
    assert sum("│ request_shape " in line for line in printed) == 2


def test_json_is_one_object_in_any_script(run: Any, vault: Path) -> None:
    run("arms", "add", "é")
    printed = run("ledger", "--json")
    assert printed.out == json.dumps(printed.json, ensure_ascii=False, indent=2) + "\n"


def test_a_long_ledger_is_printed_in_several_tables(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_ROWS_PER_TABLE", 2)
    for name in ("u1", "a1", "a2", "a3"):
        run("forget", "--user", name)
    printed = run("ledger").out
    assert printed.count("The ledger") == 3
    assert re.findall(r"^│ (\d) ", printed, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]
    assert printed.splitlines()[-1].startswith("Head: 6:")


@pytest.mark.usefixtures("folder")
def test_the_table_says_what_each_entry_changed(run: Any) -> None:
    columns = ("--user-column", "user", "--id-column", "id")
    for reward in (0, 1):
        rows = [f"{'AB'[row % 2]},{reward},u,home,{row}" for row in range(3)]
        Path("log.csv").write_text("\n".join(["action,reward,user,page,id", *rows]) + "\n", encoding="utf-8")
        if reward == 0:
            assert run("init", "--actions", "A,B", "--by", "page").code == 0
        assert run("ingest", "log.csv", *columns, *(["--replace"] if reward else [])).code == 0
    assert run("arms", "add", "D", "--where", "page=home").code == 0
    assert run("arms", "retire", "B", "--new-rows", "refuse").code == 0
    run("forget", "--user", "u")
    run("readmit", "--user", "u")
    run("rotate-key")
    run("token", "create", "--role", "reader")
    run("token", "revoke", "1")
    run("restore")
    printed = " ".join(run("ledger").out.replace("│", " ").split())
    for kind, details in (
        ("correct", "3 rows replaced"),
        ("arms", "D offered where page=home"),
        ("arms", "B retired; new rows: refuse"),
        ("readmit", "of entry 6"),
        ("signing_key", "version 2"),
        ("token_revoked", "token 1"),
        ("restored", "0 entries replayed"),
    ):
        assert f" {kind} {details} " in printed


def test_a_new_key_keeps_what_was_signed_and_suppressed(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    rotated = run("rotate-key", "--json").json
    assert (set(rotated), rotated["version"]) == ({"version", "head"}, 2)
    published = run("public-key", "--json").json
    assert set(published) == {"vault", "keys"}
    assert len(published["keys"]) == 2
    assert run("public-key").out.split() == published["keys"]
    assert run(*INGEST, "--json").json["suppressed"] == 40
    assert run("verify").code == 0
