"""Bad input: one sentence on stderr that names what is wrong, exit code 2, nothing on stdout."""

import sys
from pathlib import Path
from typing import Any

import pytest

COLUMNS = ("--action-column", "a", "--reward-column", "r")
ON_FLIGHTS = ("unlearn", "flights", "--user", "N711ZX")


ADAPTIVE = (*ON_FLIGHTS, "--unlearner", "adaptive")


REFUSALS = {
    "no such command": (["nonsense"], "No such command"),
    "no log": (["unlearn", "--user", "u1"], "Missing argument 'LOG' (CSV or Parquet"),
    "neither log nor vault": (["decide", "--url", "sqlite:///no.db"], "there is no vault at 'no.db'"),
    "no such file": (["decide", "no-such-file.csv"], "no-such-file.csv"),
    "not a number": (["research", "calibrate", "--epsilon", "one", "--delta", "0.1"], "--epsilon"),
    "negative epsilon": (
        ["research", "calibrate", "--epsilon", "-1", "--delta", "0.1"],
        "epsilon must be 0 or more; got -1",
    ),
    "delta above 1": (["research", "calibrate", "--epsilon", "1", "--delta", "2"], "between 0 and 1; got 2"),
    "classic with delta 0": (
        ["research", "calibrate", "--epsilon", "1", "--delta", "0", "--classic"],
        "delta > 0",
    ),
    "negative gamma": (["research", "curve", "--gamma", "-1"], "gamma must be 0 or more"),
    "negative epsilon on the curve": (
        ["research", "curve", "--gamma", "1", "--epsilon", "-2"],
        "epsilon must be 0 or more",
    ),
    "picture of no format": (["research", "curve", "--gamma", "1", "--picture", "curve.doc"], ".png"),
    "no budget": ([*ADAPTIVE], "with --delta; got none"),
    "half a budget": ([*ADAPTIVE, "--epsilon", "1"], "with --delta; got --epsilon 1"),
    "two budgets": (
        [*ADAPTIVE, "--epsilon", "1", "--gamma", "1", "--delta", "0.1"],
        "--gamma 1",
    ),
    "nothing to forget": (["unlearn", "flights", "--unlearner", "rollback"], "what to forget"),
    "users and rows": ([*ON_FLIGHTS, "--rows", "1", "--unlearner", "rollback"], "exactly one of"),
    "rows that are words": (
        ["unlearn", "flights", "--rows", "a,b", "--unlearner", "rollback"],
        "whole numbers",
    ),
    "row out of range": (["unlearn", "flights", "--rows", "16027", "--unlearner", "rollback"], "16027"),
    "unknown user": (["unlearn", "flights", "--user", "N0", "--unlearner", "rollback"], "'N0'"),
    "unknown unlearner": ([*ON_FLIGHTS, "--unlearner", "magic"], "must be one of rollback"),
    "unknown learner": (
        ["decide", "flights", "--learner", "oracle"],
        "must be one of lcb, kl_lcb",
    ),
    "foreign option": (
        [*ON_FLIGHTS, "--unlearner", "rollback", "--ratio", "0.5"],
        "--ratio belongs to mixing; got it with rollback",
    ),
    "unknown variant": (
        [*ADAPTIVE, "--epsilon", "1", "--delta", "0.1", "--threshold", "best"],
        "threshold must be 'paper' or 'exact'",
    ),
    "confidence for imitation": (
        ["decide", "flights", "--learner", "imitation", "--confidence", "0.1"],
        "--confidence belongs to lcb, kl_lcb, bernstein_lcb and ucb; got it with imitation",
    ),
    "confidence above 1": (["decide", "flights", "--confidence", "2"], "confidence must lie in (0, 1]"),
    "noise with delta 0": (
        [*ON_FLIGHTS, "--unlearner", "gaussian", "--epsilon", "1", "--delta", "0"],
        "delta > 0",
    ),
    "wrong learner": (
        [*ADAPTIVE, "--learner", "imitation", "--epsilon", "1", "--delta", "0.1"],
        "such as 'lcb'",
    ),
    "too large an enumeration": (
        ["research", "levels", "--epsilon", "1", "--delta", "0.1", "--max-count", "50"],
        "--max-count must lie between",
    ),
    "no enumeration at all": (["research", "levels", "--max-count", "0"], "--max-count must lie between"),
    "columns of the bundled log": (["decide", "flights", "--action-column", "airline"], "its own columns"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_in_one_sentence(run: Any, case: str) -> None:
    arguments, expected = REFUSALS[case]
    refused = run(*arguments)
    assert (refused.code, refused.out) == (2, "")
    assert expected in refused.err
    assert refused.err.startswith("armnesia: ")
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "'action'"),
        ((*COLUMNS, "--actions", "x"), "'y'"),
        ((*COLUMNS, "--actions", "x,y", "--reward-range", "0,0.5"), "row 2"),
        ((*COLUMNS, "--actions", "x,y", "--reward-range", "zero"), "two numbers"),
        ((*COLUMNS, "--actions", "x,x"), "'x'"),
    ],
)
def test_bad_logs_are_refused_and_nothing_is_written(
    run: Any, folder: Path, options: tuple[str, ...], expected: str
) -> None:
    (folder / "log.csv").write_text("a,r\nx,0\ny,1\n")
    refused = run("decide", "log.csv", *options)
    assert refused.code == 2
    assert expected in refused.err
    assert [path.name for path in folder.iterdir()] == ["log.csv"]


@pytest.mark.parametrize(("arguments", "command"), [((), "unlearn"), (("certificate",), "verify")])
def test_without_a_command_the_help_is_printed(run: Any, arguments: tuple[str, ...], command: str) -> None:
    printed = run(*arguments)
    assert (printed.code, printed.err) == (0, "")
    assert command in printed.out


def test_without_the_extra_the_command_says_what_to_install(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)  # makes `import typer` fail
    refused = run("decide", "flights")
    assert refused.code == 2
    assert 'pip install "armnesia[cli]"' in refused.err


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("research", "calibrate", "--epsilon", "one", "--delta", "0.1"), "'one'"),
        (("status", "--timeout", "soon"), "'soon'"),
        (("certificate", "show", "--sequence", "first"), "'first'"),
    ],
)
def test_a_refused_value_is_quoted(run: Any, arguments: tuple[str, ...], value: str) -> None:
    refused = run(*arguments)
    assert refused.code == 2
    assert refused.err.startswith("armnesia: Invalid value for '--")
    assert value in refused.err
    assert refused.err.count("\n") == 1


def test_a_file_that_cannot_be_used_is_named(run: Any, folder: Path) -> None:
    (folder / "file").write_text("")
    refused = run("demo", "--out", folder / "file")
    assert refused.code == 2
    assert refused.err == f"armnesia: '{folder / 'file'}' cannot be used: File exists\n"


def test_an_option_is_suggested_only_if_it_is_spelled_alike(run: Any) -> None:
    bogus = run("unlearn", "flights", "--bogus")
    assert (bogus.code, bogus.err) == (2, "armnesia: No such option: --bogus\n")
    assert "--user" in run("unlearn", "flights", "--usr", "x").err
