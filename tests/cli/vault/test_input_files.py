"""Files given to the vault's commands that are no files, or far too large: one sentence, at once."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli import names
from armnesia.vault import Configuration, Vault

LARGE = 300_000_000
MEMORY = 150_000_000
"""Bytes: much less than the large files, and more than a command needs."""


@pytest.fixture(autouse=True)
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A vault and an export in the working folder; a test that hangs is ended."""
    monkeypatch.chdir(tmp_path)
    with Vault.create("sqlite:///vault.db", Configuration(actions=("A", "B"))) as made:
        made.ingest({"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"]}, user="user")
        certificate = made.forget(users=["ann"]).certificate
        assert certificate is not None
        Path("certificate.json").write_text(certificate.to_json(), encoding="utf-8")

    def stop(*_: object) -> None:
        raise AssertionError("the command waits for a pipe")  # which is no OSError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


PIPES = {
    "keys": (("status", "--keys", "pipe"), "pipe cannot be read: it is not a plain file"),
    "the journal to restore": (("restore", "pipe"), "pipe cannot be read"),
    "the target of an export": (("export", "pipe"), "pipe exists already and is no export of this vault"),
    "a certificate": (
        ("certificate", "verify", "pipe", "--public-key", "ab" * 32),
        "pipe cannot be read: it is not a plain file",
    ),
    "a checkpoint": (
        ("certificate", "verify", "certificate.json", "--public-key", "ab" * 32, "--checkpoint", "pipe"),
        "pipe cannot be read: it is not a plain file",
    ),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(("command", "told"), PIPES.values(), ids=PIPES)
def test_a_pipe_is_not_waited_for(run: Any, command: tuple[str, ...], told: str) -> None:
    os.mkfifo("pipe", 0o600)
    done = run(*command)
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


def large(name: str, line: bytes = b"\0") -> None:
    """A large file; one of zeros has no bytes on the disk."""
    with open(name, "wb") as file:
        if line == b"\0":
            file.truncate(LARGE)
        else:
            for _ in range(LARGE // len(line) // 1000):
                file.write(line * 1000)


TOO_LARGE: dict[str, tuple[tuple[str, ...], bytes, str]] = {
    "a certificate": (
        ("certificate", "verify", "large", "--public-key", "ab" * 32),
        b"\0",
        "large cannot be read: it has more than",
    ),
    "public keys": (
        ("certificate", "verify", "certificate.json", "--public-key", "large"),
        b"ab" * 32 + b"\n",
        "large cannot be read: it has more than",
    ),
    "people": (
        ("forget", "--file", "large"),
        b"somebody\n",
        "must have at most 1,000,000 names, of 67,108,864 characters together",
    ),
    "long names": (("forget", "--file", "large"), b"n" * 60_000 + b"\n", "make several requests of it"),
    "people in one line": (("forget", "--file", "large"), b"\0", "must be CSV in UTF-8, in lines below"),
    "records": (("forget", "--records-file", "large"), b"r1\n", "must have at most 1,000,000 names"),
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured as on Linux")
@pytest.mark.parametrize(("command", "line", "told"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_file_that_is_far_too_large_is_not_read_as_a_whole(
    run: Any, command: tuple[str, ...], line: bytes, told: str
) -> None:
    large("large", line)
    with little_memory():
        done = run(*command)
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


@contextmanager
def little_memory() -> Iterator[None]:
    """Let this process take only a little more memory than it has."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


def test_the_number_of_names_in_a_request_is_limited(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_MOST_NAMES", 3)
    Path("people").write_text("user,n\na,1\nb,2\nc,3\n", encoding="utf-8")
    assert run("forget", "--file", "people", "--column", "user", "--dry-run").code == 0
    Path("people").write_text("user,n\na,1\nb,2\nc,3\nd,4\n", encoding="utf-8")
    refused = run("forget", "--file", "people", "--column", "user", "--dry-run")
    assert refused.code == 2
    assert "must have at most 3 names" in refused.err


def test_init_beside_a_journal_that_was_left_over(run: Any) -> None:
    for name in ("vault.db", "vault.db.keys"):
        Path(name).unlink()
    before = sorted(os.listdir())
    refused = run("init", "--actions", "A,B")
    assert refused.code == 2
    assert "there is a journal at 'vault.db.keys.journal', of a vault whose keys are not there" in (
        refused.err.replace(os.getcwd() + "/", "")
    )
    assert sorted(os.listdir()) == before
    Path("vault.db.keys.journal").unlink()
    assert run("init", "--actions", "A,B").code == 0
    assert run("verify").code == 0
