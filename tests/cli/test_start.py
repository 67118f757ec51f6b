"""The table of commands: names, panels and help lines are there before a command is imported."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import armnesia
from armnesia.cli.app import (
    ARMS_COMMANDS,
    CERTIFICATE_COMMANDS,
    COMMANDS,
    READING,
    TOKEN_COMMANDS,
    UnloadedCommand,
)
from tests.cli.commands import commands

TABLE = {name: module for panel in COMMANDS.values() for name, module in panel.items()}
TABLE |= {f"certificate {name}": module for name, module in CERTIFICATE_COMMANDS.items()}
TABLE |= {f"arms {name}": module for name, module in ARMS_COMMANDS.items()}


def test_the_version_is_that_of_the_package(run: Any) -> None:
    printed = run("--version")
    assert (printed.code, printed.out) == (0, f"armnesia {armnesia.__version__}\n")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == armnesia.__version__


def test_the_help_has_four_panels_with_every_command_on_one_line(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = run("--help").out
    assert "bool" not in printed.lower()
    assert re.findall(r"╭─ (.*?) ─+╮", printed) == ["Options", *COMMANDS]
    panels = re.split(r"╭─ .*? ─+╮", printed)[2:]
    listed = [re.findall(r"^│ ([a-z-]+) +([A-Z].*?) +│$", panel, re.MULTILINE) for panel in panels]
    vault = {**COMMANDS["The vault"], "certificate": "", "arms": "", "token": ""}
    assert [[name for name, _ in lines] for lines in listed] == [
        list(panel) for panel in {**COMMANDS, "The vault": vault}.values()
    ]
    for lines in listed:
        for _, line in lines:
            assert line.endswith(".")  # nothing is wrapped


def test_the_group_of_certificates_lists_its_commands(run: Any) -> None:
    printed = run("certificate", "--help").out
    assert "show    Print the certificate of a request." in printed
    assert "verify  Verify a certificate without the vault." in printed


@pytest.mark.parametrize("name", TABLE)
def test_the_help_line_of_an_unloaded_command_is_that_of_the_loaded_one(name: str) -> None:
    function = name.replace(" ", "_") if name.startswith("arms ") else None
    unloaded = UnloadedCommand(name.removeprefix("certificate "), TABLE[name], function=function)
    assert unloaded.docstring() == commands()[name].help


@pytest.mark.parametrize("name", TABLE)
def test_every_command_prints_its_help(run: Any, name: str) -> None:
    printed = run(*name.split(), "--help")
    assert (printed.code, printed.err) == (0, "")
    assert f"Usage: armnesia {name} " in printed.out
    assert ("--json" in printed.out) == (name != "serve")  # its log is JSON anyway
    assert "bool" not in printed.out.lower()  # a flag takes no value


def test_an_unknown_command_is_refused(run: Any) -> None:
    refused = run("certificate", "frame")
    assert refused.code == 2
    assert "No such command 'frame'" in refused.err


def test_commands_that_change_nothing_are_commands() -> None:
    """A renamed one would be said to have changed something after Ctrl-C."""
    groups = (*COMMANDS.values(), CERTIFICATE_COMMANDS, ARMS_COMMANDS, TOKEN_COMMANDS)
    assert {name for group in groups for name in group} >= READING
