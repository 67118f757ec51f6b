"""The commands in README.md and in the pages on the vault run as written and print what the pages show."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TUTORIAL, OPERATIONS = "docs/vault-tutorial.md", "docs/vault-operations.md"
FEW_RECORDS = re.compile(r"armnesia: warning: every score lies below .*\n")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(file: str, heading: str) -> list[tuple[str, str]]:
    """The blocks (language, text) of the section with this heading."""
    below = (ROOT / file).read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    return BLOCK.findall(below.split("\n## ", 1)[0])


def commands(file: str, heading: str) -> list[list[str]]:
    """The commands of a section, without their comments; `$(cat FILE)` is one word."""
    shell = "".join(text for language, text in blocks(file, heading) if language == "sh")
    return [shlex.split(line, comments=True) for line in shell.splitlines()]


def run_command(run: Any, words: list[str]) -> str:
    """Run a command as a shell would: with `$(cat FILE)` replaced, and `> FILE` written."""
    program, *arguments = [
        re.sub(r"\$\(cat (.*)\)", lambda found: Path(found[1]).read_text(encoding="utf-8").strip(), word)
        for word in words
    ]
    assert program == "armnesia"
    arguments, output = (arguments[:-2], arguments[-1]) if ">" in arguments else (arguments, None)
    done = run(*arguments)
    # The logs of the pages are small: the program warns that there are few records.
    assert (done.code, FEW_RECORDS.sub("", done.err)) == (0, "")
    if output is not None:
        Path(output).write_text(done.out, encoding="utf-8")
        return ""
    return str(done.out)


def run_section(run: Any, file: str, heading: str, names: dict[str, Any] | None = None) -> None:
    """Run the commands of a section, and compare their output with the block that follows them.

    Its Python has and makes these names.
    """
    printed, names = "", {} if names is None else names
    for language, text in blocks(file, heading):
        if language == "csv":
            Path("clicks.csv").write_text(text, encoding="utf-8")
        elif language == "sh":
            printed = "".join(
                run_command(run, shlex.split(line, comments=True)) for line in text.splitlines()
            )
        elif language == "python":
            exec(text, names)
        elif language == "text":
            assert_begins(printed, text)


def assert_begins(printed: str, shown: str) -> None:
    """Whether output begins as it is shown; `…` stands for any text."""
    pattern = ".*?".join(re.escape(part) for part in shown.rstrip("\n").split("…"))
    assert re.match(pattern, printed, re.DOTALL), f"printed:\n{printed}\nshown:\n{shown}"


def test_the_commands_are_found() -> None:
    assert [words[1] for words in commands("README.md", "The vault")] == [
        *("init", "ingest", "decide", "forget", "verify")
    ]
    tutorial = commands(TUTORIAL, "With the bundled log")
    assert [words[1] for words in tutorial] == [
        *("init", "ingest", "decide", "forget", "forget", "public-key", "certificate", "verify"),
        *("ledger", "ledger", "compact", "certificate"),
    ]
    assert ["armnesia", "public-key", "--json", ">", "public-keys.json"] in tutorial
    assert ["armnesia", "ledger", "--checkpoint", "checkpoint.txt"] in tutorial


def test_output_that_differs_is_noticed() -> None:
    assert_begins("3 rows: 2 added\nServed: A\nmore\n", "3 rows: …\nServed: A\n")
    with pytest.raises(AssertionError, match="printed"):
        assert_begins("3 rows: 2 added\nServed: A\n", "3 rows: …\nServed: B\n")


@pytest.mark.parametrize(
    ("file", "heading"), [("README.md", "The vault"), (TUTORIAL, "With the bundled log")]
)
@pytest.mark.usefixtures("folder")
def test_the_tutorials_run(file: str, heading: str, run: Any) -> None:
    run_section(run, file, heading)
    assert "N711ZX" in Path("certificate.json").read_text(encoding="utf-8")
    assert b"N711ZX" not in Path("vault.db").read_bytes()


@pytest.mark.usefixtures("folder")
def test_the_tutorial_runs_on_a_log_of_ones_own(run: Any) -> None:
    run_section(run, TUTORIAL, "With your own log")
    assert '"u-1047"' in Path("u-1047.json").read_text(encoding="utf-8")
    assert run("status", "--json").json["records"] == 4


def test_the_backup_commands_of_the_docs_run(run: Any, folder: Path) -> None:
    assert run("init").code == 0
    run_section(run, OPERATIONS, "Back up and restore")
    assert {path.name for path in folder.iterdir()} >= {"monday.db", "auditor.jsonl"}


@pytest.mark.usefixtures("folder")
def test_the_policy_commands_of_the_docs_run(run: Any) -> None:
    assert run("init", "--actions", "A,B").code == 0
    run_section(run, OPERATIONS, "Policies")
    policy = run("policy", "--json").json
    assert (policy["max_epsilon"], policy["beyond"]) == (1.0, "rollback")


@pytest.mark.usefixtures("vault")
def test_the_commands_after_a_theft_run(run: Any) -> None:
    assert run("forget", "--user", "u1", "--certificate", "u1.json").code == 0
    run_section(run, OPERATIONS, "Keys")
    keys = ("--public-key", "public-keys.json")
    assert run("certificate", "verify", "u1.json", *keys).code == 1
    assert run("certificate", "show", "--user", "u1", "--out", "again.json").code == 0
    assert run("certificate", "verify", "again.json", *keys, "--checkpoint", "checkpoint.txt").code == 0


@pytest.mark.usefixtures("folder")
def test_the_commands_of_a_vault_in_the_place_of_another_run(run: Any) -> None:
    Path("log.csv").write_text("action,reward,user\nA,1,ann\nB,20,bob\n", encoding="utf-8")
    assert run("init", "--actions", "A,B", "--reward-range", "0,20").code == 0
    assert run("ingest", "log.csv", "--user-column", "user").code == 0
    assert run("forget", "--user", "ann").code == 0
    run_section(run, OPERATIONS, "A new vault in the place of an old one")
    new = run("status", "--url", "sqlite:///new.db", "--json").json
    assert (new["records"], new["suppressed"]) == (1, 1)


@pytest.mark.usefixtures("folder")
def test_the_commands_of_a_correction_run(run: Any) -> None:
    Path("log.csv").write_text("action,reward,user,id\nA,1,ann,1\nB,0,bob,2\n", encoding="utf-8")
    Path("corrected.csv").write_text("action,reward,user,id\nA,0,ann,1\n", encoding="utf-8")
    assert run("init", "--actions", "A,B").code == 0
    assert run("ingest", "log.csv", "--user-column", "user", "--id-column", "id").code == 0
    run_section(run, OPERATIONS, "Corrections")
    status = run("status", "--json").json
    assert (status["records"], status["replaced"]) == (2, 1)
