"""What may not be read or written is refused in one sentence, leaves nothing, and loses nothing.

Each command is run by an unprivileged user, on a vault of their own.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import INGEST, contents, write_clicks
from tests.unprivileged import Outcome, Unprivileged, unprivileged

FORGET = ("forget", "--user", "u1")
INIT = ("init", "--url", "sqlite:///new.db")
OTHER_KEYS = ("--keys", "keys/vault.keys")
JOURNAL = "vault.db.keys.journal"
NOT_FOR_WRITING = "the vault 'vault.db' cannot be read or written: Permission denied"

# Which paths are closed, to which mode; the command; its message.
REFUSALS: dict[str, tuple[dict[str, int], tuple[str, ...], str]] = {
    "forget in a file for reading only": ({"vault.db": 0o400}, FORGET, NOT_FOR_WRITING),
    "ingest into a file for reading only": ({"vault.db": 0o400}, INGEST, NOT_FOR_WRITING),
    "decide from a file for reading only": ({"vault.db": 0o400}, ("decide",), NOT_FOR_WRITING),
    "decide from a file that is closed": ({"vault.db": 0}, ("decide",), NOT_FOR_WRITING),
    "forget in a folder for reading only": ({".": 0o500}, FORGET, "cannot be read or written"),
    "a new vault in such a folder": (
        {"closed": 0o500},
        ("init", "--url", "sqlite:///closed/new.db"),
        "the file 'closed/new.db' cannot be made: Permission denied",
    ),
    "its keys in such a folder": (
        {"closed": 0o500},
        (*INIT, "--keys", "closed/new.keys"),
        "closed/new.keys cannot be written: Permission denied",
    ),
    "its keys in a folder that is closed": (
        {"closed": 0},
        (*INIT, "--keys", "closed/new.keys"),
        "closed/new.keys",
    ),
    "keys that are closed": (
        {"vault.db.keys": 0},
        FORGET,
        "vault.db.keys cannot be read: Permission denied",
    ),
    "keys in a folder that is closed": (
        {"keys": 0},
        (*FORGET, *OTHER_KEYS),
        "Permission denied",
    ),
    "a new signing key": (
        {"keys": 0o500},
        ("rotate-key", *OTHER_KEYS),
        "the journal ",  # which those keys do not have beside them
    ),
    "a journal that is closed": ({JOURNAL: 0}, FORGET, f"{JOURNAL} cannot be read: Permission denied"),
    "a log that is closed": (
        {"clicks.csv": 0},
        INGEST,
        "clicks.csv' cannot be read as CSV: Permission denied",
    ),
    "a list of people that is closed": ({"people": 0}, ("forget", "--file", "people"), "not readable"),
    "a certificate": (
        {"closed": 0o500},
        (*FORGET, "--certificate", "closed/certificate.json"),
        "the file must be in a writable folder; closed is not writable",
    ),
    "a certificate once more": (
        {"closed": 0o500},
        ("certificate", "show", "--user", "a1", "--out", "closed/certificate.json"),
        "the file must be in a writable folder; closed is not writable",
    ),
    "an export": (
        {"closed": 0o500},
        ("export", "closed/export.json"),
        "closed/export.json cannot be written: Permission denied",
    ),
    "a backup": (
        {"closed": 0o500},
        ("backup", "closed/backup.db"),
        "closed/backup.db cannot be written: Permission denied",
    ),
    "a journal to restore from": ({"people": 0}, ("restore", "people"), "people"),
}


@pytest.fixture(scope="module")
def owner() -> Iterator[Unprivileged]:
    with unprivileged() as user:
        yield user


@pytest.fixture(scope="module")
def example(owner: Unprivileged) -> Path:
    """A folder of the owner's with a vault in it, and keys that are also in a folder of their own."""
    folder = owner.folder / "example"
    for name in ("closed", "keys"):
        (folder / name).mkdir(parents=True)
    write_clicks(folder / "clicks.csv")
    (folder / "people").write_text("u1\n")
    owner.give(folder)
    for command in (("init", "--actions", "A,B,C"), INGEST, ("forget", "--user", "a1")):
        done = owner.run(*command, within=folder)
        assert (done.code, done.err) == (0, "")
    shutil.copyfile(folder / "vault.db.keys", folder / "keys/vault.keys")
    (folder / "keys/vault.keys").chmod(0o600)
    return folder


@pytest.fixture
def folder(owner: Unprivileged, example: Path) -> Iterator[Path]:
    """A copy of the example, for one test."""
    copied = owner.folder / "copy"
    shutil.copytree(example, copied)
    yield owner.give(copied)
    shutil.rmtree(copied)


@contextmanager
def closed(folder: Path, modes: dict[str, int]) -> Iterator[None]:
    """Close files and folders, and open them again."""
    before = {name: (folder / name).stat().st_mode for name in modes}
    for name, mode in modes.items():
        (folder / name).chmod(mode)
    try:
        yield
    finally:
        for name, mode in before.items():
            (folder / name).chmod(mode)


def assert_one_sentence(refused: Outcome, sentence: str, code: int = 2) -> None:
    assert refused.code == code, refused.err
    assert sentence in refused.err
    assert refused.err.startswith("armnesia: ")
    assert refused.err.count("\n") == 1
    assert refused.out == ""


def answer(owner: Unprivileged, folder: Path, *command: str) -> Any:
    """What a command says that ends well."""
    done = owner.run(*command, "--json", within=folder)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_closed_is_refused_and_nothing_is_lost(owner: Unprivileged, folder: Path, case: str) -> None:
    modes, command, sentence = REFUSALS[case]
    before = contents(folder)
    with closed(folder, modes):
        refused = owner.run(*command, within=folder)
    assert_one_sentence(refused, sentence)
    assert contents(folder) == before
    assert answer(owner, folder, "verify")["records"] == 199
    assert answer(owner, folder, *FORGET)["records"] == 40


@pytest.mark.parametrize("mode", [0o400, 0o600])
def test_a_journal_that_cannot_be_written_hinders_no_request_that_it_lacks(
    owner: Unprivileged, folder: Path, mode: int
) -> None:
    """The journal follows the commit: what it lacks is appended by the next command, before it answers."""
    with closed(folder, {JOURNAL: mode}):
        refused = owner.run(*FORGET, within=folder)
    if mode == 0o400:
        assert refused.code != 0
        assert refused.err.count("\n") == 1
    again = answer(owner, folder, *FORGET, "--certificate", "certificate.json")
    assert answer(owner, folder, "verify")["records"] == 159
    key = owner.run("public-key", within=folder).out.strip()
    assert answer(owner, folder, "certificate", "verify", "certificate.json", "--public-key", key)["valid"]
    assert again["certificate"] is not None


def test_a_counted_source_that_is_closed_is_first_to_be_made_readable(
    owner: Unprivileged, folder: Path
) -> None:
    external = ("--url", "sqlite:///external.db", "--keys", "external.keys")
    for command in (("init", "--actions", "A,B,C", "--external", *external), (*INGEST, *external)):
        done = owner.run(*command, within=folder)
        assert done.code == 0, done.err
    with closed(folder, {"clicks.csv": 0}):
        refused = owner.run(*FORGET, *external, within=folder)
    wanted = "cannot be read as CSV: Permission denied; "
    assert_one_sentence(refused, wanted)
    done = owner.run(*FORGET, *external, within=folder)
    assert (done.code, done.err) == (0, "")


def test_permissions_bind_the_user_of_these_tests(owner: Unprivileged, folder: Path) -> None:
    """The planted fault: were it root, everything above would be let through."""
    with closed(folder, {"vault.db.keys": 0}):
        assert owner.run("decide", within=folder).code == 2
    assert owner.run("decide", within=folder).code == 0
