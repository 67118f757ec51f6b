"""One option, one meaning: the same names and help everywhere."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import commands, options
from tests.cli.examples import BUDGET, COLUMNS, USER_COLUMN

# Options whose meaning depends on the command.
SEVERAL_MEANINGS = {
    *("--epsilon", "--delta", "--gamma"),  # in curve and calibrate they are the question itself
    *(
        "--unlearner",
        "--out",
        "--out-folder",
        "--protocol",
        "--datasets",
        "--n-jobs",
    ),
    *("--n", "--deletions", "--arms", "--model", "--c-star", "--learner"),  # in sweep they are lists
    *("--action-column", "--reward-column", "--user-column", "--delimiter"),  # a vault has them of before
    "--column",  # of a file of names, or by its role in a join
    "--replace",  # a file, or rows
    "--by",  # keys of decisions, or who entered a request
    "--checkpoint",  # for a certificate also an export
    "--where",  # conditions on rows, or the key of a decision
    *("--confidence", "--default-action", "--threshold", "--threshold-scale", "--sensitivity"),  # by owners
}
LOG = ("--action-column", "--reward-column", "--table", "--actions", "--actions-file", "--reward-range")
READS_A_LOG = ("decide", "unlearn", "audit", "compare")


def test_an_option_has_the_same_help_in_every_command() -> None:
    helps: dict[str, set[str | None]] = defaultdict(set)
    for command in commands():
        for name, option in options(command).items():
            helps[name].add(option.help)
    assert {name for name, texts in helps.items() if len(texts) > 1} <= SEVERAL_MEANINGS


def test_a_ledger_entry_and_a_checkpoint_are_named_alike_everywhere() -> None:
    shown = {
        (command, name): option.metavar
        for command in commands()
        for name, option in options(command).items()
        if name in ("--sequence", "--compromised-since", "--checkpoint")
    }
    assert shown == {
        ("certificate show", "--sequence"): "ENTRY",
        ("rotate-key", "--compromised-since"): "ENTRY",
        ("verify", "--checkpoint"): "FILE",
        ("ledger", "--checkpoint"): "FILE",
        ("certificate verify", "--checkpoint"): "FILE",
    }


def test_every_command_that_reads_a_log_has_its_options() -> None:
    for command in READS_A_LOG:
        assert set(LOG) <= set(options(command))
    for command in ("unlearn", "audit", "compare", "ingest"):
        assert "--user-column" in options(command)
    assert {*LOG[:3], "--id-column", "--no-user"} <= set(options("ingest"))
    assert {*LOG, "--user-column", "--like"} <= set(options("init"))


@pytest.mark.parametrize(
    "command",
    [
        "unlearn",
        "audit",
        "compare",
        "research levels",
        "research evaluate",
        "research bounds",
        "init",
        "forget",
    ],
)
def test_every_command_with_a_budget_takes_it_in_both_forms(command: str) -> None:
    assert {"--epsilon", "--delta", "--gamma"} <= set(options(command))


def test_labels_with_commas_come_from_a_file(run: Any, folder: Path) -> None:
    (folder / "log.csv").write_text('action,reward,user\n"red, large",1,ann\n" B",0,bob\n')
    (folder / "actions").write_bytes("red, large\r\n B\r\nłódź\r\n".encode())
    declared = ("--actions-file", "actions")
    decided = run("decide", "log.csv", *declared, "--json")
    assert decided.err == ""
    assert [arm["action"] for arm in decided.json["arms"]] == ["red, large", " B", "łódź"]
    forgotten = run("unlearn", "log.csv", *declared, "--user", "ann", "--json").json
    assert forgotten["request"]["counts"] == {"red, large": 1, " B": 0, "łódź": 0}
    made = run("init", *declared, "--json").json["configuration"]
    assert made["actions"] == ["red, large", " B", "łódź"]
    assert run("ingest", "log.csv", "--user-column", "user", "--json").json["added"] == 2


@pytest.mark.parametrize(
    ("content", "more", "sentence"),
    [
        (None, (), "--actions-file actions cannot be read: No such file or directory"),
        (b"A\n\nB\n", (), "--actions-file actions must have one label per line; line 2 is empty"),
        (b"", (), "--actions-file actions must have one label per line; line 1 is empty"),
        (b"A\xff\n", (), "--actions-file must be text in UTF-8; actions is not"),
        (b"A\nB\nA\n", (), "actions must be distinct; 'A' is there more than once"),
        (
            b"A\nB\n",
            ("--actions", "A,B"),
            "--actions and --actions-file both declare the action set; give one",
        ),
    ],
)
def test_a_bad_file_of_actions_is_refused_in_one_sentence(
    run: Any, folder: Path, content: bytes | None, more: tuple[str, ...], sentence: str
) -> None:
    (folder / "log.csv").write_text("action,reward\nA,1\n")
    if content is not None:
        (folder / "actions").write_bytes(content)
    before = {path.name for path in folder.iterdir()}
    for command in (("decide", "log.csv"), ("init",)):
        refused = run(*command, "--actions-file", "actions", *more)
        assert (refused.code, refused.out, refused.err) == (2, "", f"armnesia: {sentence}\n")
    assert {path.name for path in folder.iterdir()} == before


def test_a_table_of_a_database_is_a_log(run: Any, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "logs.db")) as database, database:
        database.execute("CREATE TABLE shown (variant TEXT, clicked REAL, person TEXT)")
        rows = [("A", i % 2, f"a{i}") for i in range(50)] + [("B", 1, "u1") for _ in range(50)]
        database.executemany("INSERT INTO shown VALUES (?, ?, ?)", rows)
    source = ("sqlite:///logs.db", "--table", "shown", *COLUMNS, "--actions", "A,B")
    decided = run("decide", *source, "--json").json
    assert (decided["action"], decided["n_rows"]) == ("B", 100)
    for command in (("unlearn",), ("audit",), ("compare", *BUDGET)):
        done = run(command[0], *source, *command[1:], *USER_COLUMN, "--user", "u1", "--json")
        assert done.json["request"]["counts"] == {"A": 0, "B": 50}
    assert run("unlearn", *source, "--rows", "1,2", "--json").json["request"]["counts"] == {"A": 2, "B": 0}
    for refused, sentence in (
        (run("decide", "sqlite:///logs.db", *COLUMNS), "needs the name of a table"),
        (run("decide", "sqlite:///logs.db", "--table", "hidden", *COLUMNS), "hidden"),
        (run("decide", "clicks.csv", "--table", "shown"), "table is for databases"),
    ):
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert sentence in refused.err


def test_a_column_named_user_is_found_by_every_command(run: Any, folder: Path) -> None:
    (folder / "log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n")
    (folder / "other.csv").write_text("action,reward,who\nA,1,ann\nB,0,bob\n")
    request = ("--actions", "A,B", "--user", "ann")
    for command in (("unlearn",), ("audit",), ("compare", *BUDGET)):
        done = run(command[0], "log.csv", *command[1:], *request, "--json")
        assert done.json["request"]["counts"] == {"A": 1, "B": 0}
        refused = run(command[0], "other.csv", *command[1:], *request)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "the log has no column 'user'; name the column of the users with --user-column" in refused.err
    assert run("init", "--actions", "A,B", "--learner", "greedy").code == 0
    ingested = run("ingest", "log.csv", "--json")
    assert (ingested.json["user_column"], ingested.err) == ("user", "")
    assert run("forget", "--user", "ann", "--json").json["records"] == 1
