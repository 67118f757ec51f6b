"""The commands `arms list`, `arms add` and `arms retire`."""

from pathlib import Path
from typing import Any

import pytest

COLUMNS = ("--action-column", "variant", "--reward-column", "clicked", "--user-column", "user")


@pytest.fixture
def keyed(run: Any, folder: Path) -> None:
    """A vault by experiment, in the working folder."""
    lines = [
        f"{'ABC'[row % 3]},{int(row % 3 == 1)},user-{row % 10},{('checkout', 'search')[row % 2]}"
        for row in range(120)
    ]
    Path("log.csv").write_text(
        "\n".join(["variant,clicked,user,experiment", *lines]) + "\n", encoding="utf-8"
    )
    assert run("init", "--actions", "A,B,C", "--by", "experiment").code == 0
    assert run("ingest", "log.csv", *COLUMNS).code == 0


@pytest.mark.usefixtures("keyed")
def test_arms_are_added_and_retired_in_some_decisions(run: Any) -> None:
    assert run("decide", "--where", "experiment=search", "--json").json["action"] == "B"
    added = run("arms", "add", "D", "--where", "experiment=checkout")
    assert "D is offered where experiment=checkout: 1 decision changed." in added.out
    retired = run("arms", "retire", "B", "--where", "experiment=search", "--new-rows", "refuse")
    assert "B is retired where experiment=search: 1 decision changed." in retired.out
    assert "New rows of it are refused." in retired.out
    assert run("decide", "--where", "experiment=search", "--json").json["action"] != "B"
    assert run("decide", "--where", "experiment=checkout", "--json").json["action"] == "B"
    found = run("arms", "list", "--json").json
    assert {arm["action"]: arm["decisions"] for arm in found["arms"]} == {"A": 2, "B": 1, "C": 2, "D": 1}
    one = run("arms", "list", "--where", "experiment=search", "--json").json
    assert {arm["action"]: arm["decisions"] for arm in one["arms"]} == {"A": 1, "B": 0, "C": 1, "D": 0}
    printed = run("arms", "list").out
    assert "1 of 2" in printed
    assert "B is not offered; new rows: refuse" in printed
    Path("new.csv").write_text("variant,clicked,user,experiment\nB,1,new,search\n", encoding="utf-8")
    refused = run("ingest", "new.csv", *COLUMNS)
    assert refused.code == 2
    assert "arm 'B' is not offered in the decision {'experiment': 'search'}" in refused.err
    assert run("decide").code == run("verify").code == 0
    entries = run("ledger", "--json").json["entries"][-2:]
    assert [(entry["kind"], entry["offered"]) for entry in entries] == [("arms", True), ("arms", False)]


def test_a_vault_with_one_decision_has_arms_too(run: Any, vault: Path) -> None:
    before = run("arms", "list", "--json").json
    assert [arm["offered"] for arm in before["arms"]] == [True] * len(before["arms"])
    served = run("decide", "--json").json["action"]
    done = run("arms", "retire", served, "--json").json
    assert (done["action"], done["offered"], done["new_rows"]) == (served, False, "count")
    assert run("decide", "--json").json["action"] == done["served"] != served
    assert f"Served: {done['served']}" in run("arms", "add", "new").out
    assert "no" in run("arms", "list").out
    assert run("status", "--scores").code == run("status", "--scores", "--json").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("retire", "X"), "arm 'X' is not one of"),
        (("add", "A"), "arm 'A' is offered already; nothing was changed"),
        (("retire", "A", "--new-rows", "drop"), "new_rows must be 'count' or 'refuse'; got 'drop'"),
        (("add", "D", "--where", "page=1"), "the vault has one decision, without key columns"),
        (("add",), "Missing argument 'ARM'"),
    ],
)
def test_what_cannot_be_is_refused(run: Any, vault: Path, arguments: tuple[str, ...], words: str) -> None:
    refused = run("arms", *arguments)
    assert refused.code == 2
    assert words in refused.err


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("command", [("arms", "retire", "B"), ("arms", "add", "D"), ("decide",)])
def test_an_unknown_key_is_not_taken_for_a_part_of_a_value(run: Any, command: tuple[str, ...]) -> None:
    head = run("ledger", "--checkpoint-only").out
    refused = run(*command, "--where", "experiment=search,country=DE")
    assert refused.code == 2
    assert "have the keys 'experiment'; got 'country' in 'experiment=search,country=DE'" in refused.err
    assert run("ledger", "--checkpoint-only").out == head
