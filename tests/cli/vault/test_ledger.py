"""The command `ledger`."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.vault import ledger
from armnesia.vault import Entry, Vault
from tests.cli.examples import BUDGET, WEAKER_POLICY


def test_the_ledger_is_listed_exported_and_checked(run: Any, vault: Path) -> None:
    first = run("ledger", "--head-only").out.strip()
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
    checked = run("ledger", "--head", first, "--json")
    assert checked.code == 0
    assert set(checked.json) == {"holds", "problems", "checked"}
    for head in (f"3:{hashes[1]}", f"2:{hashes[0]}"):
        wrong = run("ledger", "--head", head)
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


def test_json_is_printed_entry_by_entry_as_one_object(run: Any, vault: Path) -> None:
    for name in ("u1", "é"):
        run("forget", "--user", name)
    with Vault.open() as opened:
        entries = opened.ledger()
    printed = run("ledger", "--json").out
    assert printed == json.dumps(entries.to_dict(), ensure_ascii=False, indent=2) + "\n"


def test_a_long_ledger_is_printed_in_several_tables(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_ROWS_PER_TABLE", 2)
    for name in ("u1", "a1", "a2", "a3"):
        run("forget", "--user", name)
    printed = run("ledger").out
    assert printed.count("The ledger") == 3
    assert re.findall(r"^│ (\d) ", printed, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert printed.splitlines()[-1].startswith("Head: 5:")


def test_entries_are_made_when_they_are_asked_for(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of 10⁵ entries, each made at once, took 690 MB."""
    with Vault.open() as opened:
        for number in range(4):
            opened.forget(users=[f"stranger-{number}"])
        made: list[str] = []
        from_text = Entry.from_text

        def counted(text: str) -> Entry:
            made.append(text)
            return from_text(text)

        monkeypatch.setattr(Entry, "from_text", counted)
        entries = opened.ledger()
        assert made == []
        assert (len(entries), entries[-1].sequence, entries.head.sequence) == (5, 5, 5)
        assert len(made) == 2
        assert [entry.sequence for entry in entries[1:3]] == [2, 3]
        assert [entry.kind for entry in entries] == ["init", *["nothing_held"] * 4]
        with pytest.raises(IndexError):
            entries[5]


@pytest.mark.usefixtures("folder")
def test_the_table_says_which_arm_came_or_went_and_how_many_rows_were_corrected(run: Any) -> None:
    columns = ("--user-column", "user", "--id-column", "id")
    for reward in (0, 1):
        rows = [f"{'AB'[row % 2]},{reward},u,home,{row}" for row in range(3)]
        Path("log.csv").write_text("\n".join(["action,reward,user,page,id", *rows]) + "\n", encoding="utf-8")
        if reward == 0:
            assert run("init", "--actions", "A,B", "--by", "page").code == 0
        assert run("ingest", "log.csv", *columns, *(["--replace"] if reward else [])).code == 0
    assert run("arms", "add", "D", "--where", "page=home").code == 0
    assert run("arms", "retire", "B", "--new-rows", "refuse").code == 0
    lines = [re.split(r" *│ *", line)[3:5] for line in run("ledger").out.splitlines()]
    assert ["correct", "3 rows replaced"] in lines
    assert ["add_arm", "D where page=home"] in lines
    assert ["retire_arm", "B; new rows: refuse"] in lines
