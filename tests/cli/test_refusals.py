"""Bad input: one sentence on stderr that names what is wrong, exit code 2, nothing on stdout."""

import subprocess
import sys
from pathlib import Path

import pytest

from armnesia.cli.main import main

ON_FLIGHTS = ("unlearn", "flights", "--user", "N711ZX")
ADAPTIVE = (*ON_FLIGHTS, "--unlearner", "adaptive")

REFUSALS = {
    "no such command": (["nonsense"], "No such command"),
    "no log": (["unlearn", "--user", "u1"], "Missing argument"),
    "neither log nor vault": (["decide", "--url", "sqlite:///no.db"], "there is no vault at 'no.db'"),
    "no such file": (["decide", "no-such-file.csv"], "no-such-file.csv"),
    "not a number": (["calibrate", "--epsilon", "one", "--delta", "0.1"], "--epsilon"),
    "negative epsilon": (
        ["calibrate", "--epsilon", "-1", "--delta", "0.1"],
        "epsilon must be 0 or more; got -1",
    ),
    "delta above 1": (["calibrate", "--epsilon", "1", "--delta", "2"], "between 0 and 1; got 2"),
    "classic with delta 0": (["calibrate", "--epsilon", "1", "--delta", "0", "--classic"], "delta > 0"),
    "negative gamma": (["curve", "--gamma", "-1"], "gamma must be 0 or more"),
    "negative epsilon on the curve": (
        ["curve", "--gamma", "1", "--epsilon", "-2"],
        "epsilon must be 0 or more",
    ),
    "picture of no format": (["curve", "--gamma", "1", "--picture", "curve.doc"], ".png"),
    "no budget": ([*ADAPTIVE], "with --delta; got none"),
    "half a budget": ([*ADAPTIVE, "--epsilon", "1"], "with --delta; got --epsilon 1"),
    "two budgets": (
        [*ADAPTIVE, "--epsilon", "1", "--gamma", "1", "--delta", "0.1"],
        "--gamma 1",
    ),
    "nothing to forget": (["unlearn", "flights", "--unlearner", "rollback"], "what to forget"),
    "users and rows": ([*ON_FLIGHTS, "--rows", "1", "--unlearner", "rollback"], "not both"),
    "rows that are words": (
        ["unlearn", "flights", "--rows", "a,b", "--unlearner", "rollback"],
        "whole numbers",
    ),
    "row out of range": (["unlearn", "flights", "--rows", "16026", "--unlearner", "rollback"], "16026"),
    "unknown user": (["unlearn", "flights", "--user", "N0", "--unlearner", "rollback"], "'N0'"),
    "unknown unlearner": ([*ON_FLIGHTS, "--unlearner", "magic"], "must be one of rollback"),
    "unknown learner": (
        ["decide", "flights", "--learner", "oracle"],
        "must be one of lcb, kl_lcb",
    ),
    "foreign option": ([*ON_FLIGHTS, "--unlearner", "rollback", "--ratio", "0.5"], "belongs to mixing"),
    "unknown variant": (
        [*ADAPTIVE, "--epsilon", "1", "--delta", "0.1", "--threshold", "best"],
        "threshold must be 'paper' or 'exact'",
    ),
    "confidence for imitation": (
        ["decide", "flights", "--learner", "imitation", "--confidence", "0.1"],
        "belongs to lcb and kl_lcb",
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
        ["levels", "--epsilon", "1", "--delta", "0.1", "--max-count", "50"],
        "--max-count must lie between",
    ),
    "no enumeration at all": (["levels", "--max-count", "0"], "--max-count must lie between"),
    "columns of the bundled log": (["decide", "flights", "--action", "airline"], "its own columns"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_in_one_sentence(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, expected = REFUSALS[case]
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert expected in printed.err
    assert printed.err.startswith("armnesia: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "'reward'"),
        (("--action", "a", "--reward", "r", "--actions", "x"), "'y'"),
        (("--action", "a", "--reward", "r", "--actions", "x,y", "--reward-range", "0,0.5"), "row 1"),
        (("--action", "a", "--reward", "r", "--actions", "x,y", "--reward-range", "zero"), "two numbers"),
        (("--action", "a", "--reward", "r", "--actions", "x,x"), "'x'"),
    ],
)
def test_bad_logs_are_refused_and_nothing_is_written(
    options: tuple[str, ...], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("a,r\nx,0\ny,1\n")
    with pytest.raises(SystemExit) as stopped:
        main(["decide", str(log), *options])
    assert stopped.value.code == 2
    assert expected in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_demo_that_cannot_write_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--out", str(in_the_way)])
    assert stopped.value.code == 2
    assert "armnesia: " in capsys.readouterr().err


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert "unlearn" in printed.out
    assert printed.err == ""


def test_the_version_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from armnesia.cli.main import main; main(['--version'])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "armnesia 0.1.0\n"


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "armnesia.cli.app", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)  # makes `import typer` fail
    for name in [name for name in sys.modules if name.startswith("armnesia.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as stopped:
        main(["decide", "flights"])
    assert stopped.value.code == 2
    assert 'pip install "armnesia[cli]"' in capsys.readouterr().err
