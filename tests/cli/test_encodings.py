"""Printing never fails, whatever the encoding of stdout."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from armnesia.cli.main import main

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


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_what_an_encoding_lacks_is_printed_in_ascii(encoding: str) -> None:
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


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_json_is_json_in_every_encoding(encoding: str) -> None:
    for command in (("status",), ("decide",), ("forget", "--user", "ann")):
        code, printed = run_in(encoding, *command, "--json")
        assert code == 0
        assert "łódź" in json.dumps(json.loads(printed), ensure_ascii=False)
        assert printed.isascii() == (encoding != "utf-8")


@pytest.mark.slow
def test_the_environment_may_choose_the_encoding(vault: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARMNESIA_")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "forget", "--user", "ann"],
        cwd=vault,
        env={**kept, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Guarantee: (epsilon = 0, delta = 0) at level retained" in done.stdout


def test_a_certificate_is_printed_as_its_file_in_every_encoding(vault: Path) -> None:
    assert run_in("latin-1", "forget", "--user", "zoë", "--exactly", "--certificate", "zoe.json")[0] == 0
    _, printed = run_in("latin-1", "certificate", "show", "--user", "zoë", "--json")
    assert json.loads(printed) == json.loads((vault / "zoe.json").read_text(encoding="utf-8"))
    assert "zoë".encode("latin-1") in run_in("latin-1", "certificate", "show", "--user", "zoë")[1]
