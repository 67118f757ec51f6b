"""The command `ledger`."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from tests.cli.examples import BUDGET, WEAKER_POLICY


def test_the_ledger_is_listed_exported_and_checked(run: Any, vault: Path) -> None:
    first = run("ledger", "--head").out.strip()
    run("forget", "--user", "u1")
    listed = run("ledger", "--json").json
    assert set(listed) == {"head", "entries"}
    assert [entry["kind"] for entry in listed["entries"]] == ["init", "forget"]
    assert "rollback" in run("ledger").out
    exported = run("ledger", "--export", "ledger.jsonl", "--json").json
    assert set(exported) == {"head", "entries", "file"}
    lines = Path("ledger.jsonl").read_text(encoding="utf-8").splitlines()
    hashes = [hashlib.sha256(line.encode()).hexdigest() for line in lines]
    assert json.loads(lines[1])["previous"] == hashes[0]
    assert exported["head"] == f"2:{hashes[1]}"
    checked = run("ledger", "--check", first, "--json")
    assert checked.code == 0
    assert set(checked.json) == {"holds", "problems", "checked"}
    for head in (f"3:{hashes[1]}", f"2:{hashes[0]}"):
        wrong = run("ledger", "--check", head)
        assert wrong.code == 1
        assert "Problem: ledger: sequence" in wrong.out
        assert "1 problem found" in wrong.out
        assert run("verify", "--head", head).code == 1
    assert run("verify", "--head", first).code == 0


def test_the_ledger_is_readable_in_80_columns(run: Any, vault: Path) -> None:
    run("policy", *WEAKER_POLICY)
    for user in ("a1", "a2"):
        noisy = ("--unlearner", "strict_adaptive", *BUDGET)
        assert run("forget", "--user", user, *noisy).code == 0
    run("rotate-key", "signing")
    printed = run("ledger").out.splitlines()
    assert max(len(line) for line in printed[:-1]) <= 80
    lines = [line for line in printed if re.match(r"│ \d", line)]
    assert len(lines) == 5
    for line in lines:
        assert re.match(r"│ \d │ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d │ [a-z_]+ +│", line)
    assert sum("request_shape" in line for line in printed) == 2
