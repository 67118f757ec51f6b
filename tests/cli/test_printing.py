"""Printing never fails, whatever the encoding; Ctrl-C and wrong values are answered in one sentence."""

import contextlib
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from armnesia.cli.main import main
from armnesia.cli.output import progress_bar
from tests.cli.vault.clicks import contents

COMMAND = "import sys; from armnesia.cli.main import main; main(sys.argv[1:])"


def run_in(encoding: str, *arguments: str) -> tuple[int, bytes]:
    """Run a command whose stdout has this encoding: how it ended, and the bytes that it printed."""
    printed = io.BytesIO()
    stdout = io.TextIOWrapper(printed, encoding=encoding)
    with contextlib.redirect_stdout(stdout), pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    stdout.flush()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, printed.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> Path:
    """A folder with a vault in it, whose actions have letters that latin-1 lacks."""
    monkeypatch.chdir(tmp_path)
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)
    Path("log.csv").write_text("action,reward,user\nłódź,1,ann\nB,0,bob\n", encoding="utf-8")
    assert run("init", "--actions", "łódź,B").code == 0
    assert run("ingest", "log.csv", "--user", "user").code == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_what_an_encoding_lacks_is_written_otherwise(encoding: str) -> None:
    for command, word in (
        (("status",), "ε = 0"),
        (("policy",), "ε = 0"),
        (("forget", "--user", "ann", "--dry-run"), "łódź"),
        (("forget", "--user", "ann"), "ε = 0"),
        (("ledger",), "łódź"),
        (("forget", "--help"), "Privacy ε"),
    ):
        code, printed = run_in(encoding, *command)
        expected = word if encoding == "utf-8" else word.replace("ε", "epsilon")
        assert code == 0
        assert expected.encode(encoding, "backslashreplace") in printed


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_json_is_json_in_every_encoding(encoding: str) -> None:
    for command in (("status",), ("decide",), ("forget", "--user", "ann")):
        code, printed = run_in(encoding, *command, "--json")
        assert code == 0
        assert "łódź" in json.dumps(json.loads(printed), ensure_ascii=False)
        assert printed.isascii() == (encoding != "utf-8")


def test_the_environment_may_choose_the_encoding(folder: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARMNESIA_")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "forget", "--user", "ann"],
        cwd=folder,
        env={**kept, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"with (epsilon = 0, delta = 0) at level retained" in done.stdout


def test_a_certificate_is_printed_as_its_file_in_every_encoding(folder: Path) -> None:
    assert run_in("latin-1", "forget", "--user", "ann", "--certificate", "ann.json")[0] == 0
    _, printed = run_in("latin-1", "certificate", "show", "--user", "ann", "--json")
    assert "ε".encode() in printed
    (folder / "printed.json").write_bytes(printed)
    assert run_in("utf-8", "certificate", "verify", "printed.json")[0] == 0


INTERRUPTED_WHILE_LOADING = """
import importlib.abc, os, signal, sys
from armnesia.cli.main import main

class CtrlC(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                print("swallowed", file=sys.stderr)  # as compiled modules do

if sys.argv[2] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, CtrlC())
main(sys.argv[3:])
"""


def interrupted_while_loading(
    module: str, listening: str, folder: Path, *command: str
) -> subprocess.CompletedProcess[str]:
    """Run a command and press Ctrl-C when it begins to load a module."""
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING, module, listening, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("typer", ("decide",)),
        ("armnesia.cli.app", ("decide",)),
        ("duckdb", ("ingest", "log.csv", "--user", "user")),
        ("duckdb", ("decide", "log.csv")),
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_one_sentence(
    folder: Path, run: Any, module: str, command: tuple[str, ...]
) -> None:
    before = contents(folder)
    stopped = interrupted_while_loading(module, "listening", folder, *command)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr == "armnesia: interrupted; nothing was done\n"
    assert contents(folder) == before


@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
def test_where_ctrl_c_is_ignored_it_stays_so(folder: Path) -> None:
    done = interrupted_while_loading("armnesia.cli.app", "ignored", folder, "decide")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_may_be_run_by_any_thread(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor() as pool, pytest.raises(SystemExit) as stopped:
        pool.submit(main, ["decide"]).result()
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("Served: ")


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("calibrate", "--epsilon", "one", "--delta", "0.1"), "'one'"),
        (("ingest", "log.csv", "--batch-rows", "0"), "0"),
        (("certificate", "show", "--sequence", "first"), "'first'"),
    ],
)
def test_a_value_that_is_no_number_is_quoted(
    arguments: tuple[str, ...], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert said.startswith("armnesia: Invalid value for '--")
    assert value in said
    assert said.count("\n") == 1


def test_a_file_that_cannot_be_used_is_named_in_words(run: Any, folder: Path) -> None:
    (folder / "file").write_text("")
    refused = run("demo", "--out", folder / "file")
    assert refused.code == 2
    assert refused.err == f"armnesia: '{folder / 'file'}' cannot be used: File exists\n"


@pytest.mark.parametrize(("total", "shown"), [(None, " 450,000 "), (2_000_000, " 450,000/2,000,000 ")])
def test_a_bar_counts_in_thousands_and_of_how_many_only_where_that_is_known(
    total: int | None, shown: str
) -> None:
    bar = progress_bar(quiet=True)
    bar.update(bar.add_task("rows", total=total), completed=450_000)
    screen = Console(width=100)
    with screen.capture() as captured:
        screen.print(bar.get_renderable())
    assert shown in captured.get()
    assert "?" not in captured.get()
