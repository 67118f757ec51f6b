"""The table of commands: names, panels and help lines are there before a command is imported."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import armnesia
from armnesia.cli.app import COMMANDS, GROUPS, READING, UnloadedCommand
from tests.cli.commands import commands

TABLE = {name: UnloadedCommand(name, module) for panel in COMMANDS.values() for name, module in panel.items()}
TABLE |= {
    f"{name} {inner}": UnloadedCommand(inner, module, function=group.function.format(inner))
    for name, group in GROUPS.items()
    for inner, module in group.commands.items()
}


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
    assert re.findall(r"╭─ (.*?) ─+╮", printed) == ["Options", *COMMANDS, "Research"]
    panels = re.split(r"╭─ .*? ─+╮", printed)[2:]
    listed = [re.findall(r"^│ ([a-z-]+) +([A-Z].*?) +│$", panel, re.MULTILINE) for panel in panels]
    vault = [*COMMANDS["The vault"], "certificate", "arms", "token"]
    assert [[name for name, _ in lines] for lines in listed] == [
        *(list(names) for names in {**COMMANDS, "The vault": vault}.values()),
        ["research"],
    ]
    for lines in listed:
        for _, line in lines:
            assert line.endswith(".")  # nothing is wrapped


def test_the_group_of_certificates_lists_its_commands(run: Any) -> None:
    printed = run("certificate", "--help").out
    assert "show    Print the certificate of a person, or of a record." in printed
    assert "verify  Verify a certificate without the vault." in printed


def test_research_alone_lists_its_commands(run: Any) -> None:
    printed = run("research")
    assert printed.code == 0
    assert re.findall(r"^│ ([a-z]+)  ", printed.out, re.MULTILINE) == list(GROUPS["research"].commands)


@pytest.mark.parametrize("name", GROUPS["research"].commands)
def test_a_research_command_is_not_a_command_of_its_own(run: Any, name: str) -> None:
    refused = run(name)
    assert (refused.code, refused.out) == (2, "")
    assert f"No such command '{name}'" in refused.err


@pytest.mark.parametrize("name", TABLE)
def test_the_help_line_of_an_unloaded_command_is_that_of_the_loaded_one(name: str) -> None:
    assert TABLE[name].docstring() == commands()[name].help


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
    groups = (*COMMANDS.values(), *(group.commands for group in GROUPS.values()))
    assert {name for group in groups for name in group} >= READING
