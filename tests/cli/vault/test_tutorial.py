"""The commands in README.md and docs/vault.md run as written."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def commands(file: str, heading: str) -> list[list[str]]:
    """The commands of the first shell block below a heading, without their comments."""
    below = (ROOT / file).read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    block = re.search(r"```sh\n(.*?)```", below, re.DOTALL)
    assert block is not None
    return [shlex.split(line, comments=True) for line in block[1].splitlines()]


def test_the_commands_are_found() -> None:
    assert [words[1] for words in commands("README.md", "The vault")] == [
        *("init", "ingest", "decide", "forget", "verify")
    ]
    assert ["armnesia", "public-key", ">", "public-key.txt"] in commands("docs/vault.md", "Quick start")


@pytest.mark.parametrize(
    ("file", "heading"),
    [("README.md", "The vault"), ("docs/vault.md", "Quick start")],
)
@pytest.mark.usefixtures("folder")
def test_the_tutorials_run(file: str, heading: str, run: Any) -> None:
    for program, *words in commands(file, heading):
        assert program == "armnesia"
        typed, output = (words[:-2], words[-1]) if ">" in words else (words, None)
        done = run(*typed)
        assert (done.code, done.err) == (0, "")
        if output is not None:
            Path(output).write_text(done.out, encoding="utf-8")
    assert "N711ZX" in Path("certificate.json").read_text(encoding="utf-8")
    assert b"N711ZX" not in Path("vault.db").read_bytes()


def test_the_backup_commands_of_the_docs_run(run: Any, folder: Path) -> None:
    assert run("init").code == 0
    for _, *words in commands("docs/vault.md", "Backup and restore"):
        assert run(*words).code == 0
    assert {path.name for path in folder.iterdir()} >= {"monday.db", "latest.json"}


def test_the_page_of_commands_lists_them_all(run: Any) -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    listed = re.findall(r"^│ ([a-z][a-z-]*) {2,}", run("--help").out, re.MULTILINE)
    assert {"init", "forget", "rotate-key", "certificate"} <= set(listed)
    assert [command for command in listed if f"`{command}" not in page] == []
