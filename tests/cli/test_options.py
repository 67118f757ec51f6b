"""One option, one meaning: the same names and help everywhere; the names of version 0.1.0 still work."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.app import OLD_OPTIONS
from tests.cli.commands import commands, options
from tests.cli.examples import write_clicks

# Options whose meaning depends on the command.
SEVERAL_MEANINGS = {
    *("--epsilon", "--delta", "--gamma"),  # in curve and calibrate they are the question itself
    *("--unlearner", "--head", "--out", "--export", "--protocol", "--datasets", "--n-jobs", "--for-restore"),
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


def test_every_command_that_reads_a_log_has_its_options() -> None:
    for command in READS_A_LOG:
        assert set(LOG) <= set(options(command))
    for command in ("unlearn", "audit", "compare", "ingest"):
        assert "--user-column" in options(command)
    assert {*LOG[:3], "--id-column", "--no-user"} <= set(options("ingest"))
    assert {"--actions", "--actions-file"} <= set(options("init"))


@pytest.mark.parametrize(
    "command", ["unlearn", "audit", "compare", "levels", "evaluate", "bounds", "init", "forget"]
)
def test_every_command_with_a_budget_takes_it_in_both_forms(command: str) -> None:
    assert {"--epsilon", "--delta", "--gamma"} <= set(options(command))


def test_old_names_are_no_options_of_the_help() -> None:
    for command in (*READS_A_LOG, "ingest"):
        assert not {"--action", "--reward", "--id", "--nobody"} & set(options(command))
    assert "--user" not in options("ingest")
    assert OLD_OPTIONS["user_column"] == "--user"  # which names people elsewhere


@pytest.mark.parametrize("sign", [" ", "="])
def test_old_names_of_columns_still_work(run: Any, folder: Path, sign: str) -> None:
    write_clicks(folder / "clicks.csv")

    def old(*arguments: str) -> list[str]:
        return [word for argument in arguments for word in argument.replace("=", sign).split()]

    columns = old("--action=variant", "--reward=clicked")
    assert run("decide", "clicks.csv", *columns, "--actions", "A,B", "--json").json["action"] == "B"
    request = ("--user-column", "person", "--user", "u1")
    for command in ("unlearn", "audit"):
        done = run(command, "clicks.csv", *columns, "--actions", "A,B", *request, "--json")
        assert done.json["request"]["counts"] == {"A": 0, "B": 40}
    assert run("init", "--actions", "A,B").code == 0
    done = run("ingest", "clicks.csv", *columns, *old("--user=person", "--id=row"), "--json")
    assert (done.json["added"], done.err) == (200, "")
    assert run("forget", "--user", "u1", "--records-file", "no").code == 2  # people, not columns
    assert run("forget", "--user", "u1", "--json").json["records"] == 40
    (folder / "machines.csv").write_text("action,reward\nA,1\n")
    assert run("ingest", "machines.csv", "--nobody", "--json").json["added"] == 1


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
