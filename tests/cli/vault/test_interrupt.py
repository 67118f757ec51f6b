"""Ctrl-C during an ingest: the command ends, says what is in the vault, and can be run again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.vault import ingest as vault_ingest
from armnesia.vault import Vault

INGEST = ("ingest", "log.csv", "--user-column", "user")


@pytest.fixture(autouse=True)
def vault(run: Any, folder: Path) -> None:
    """An empty vault."""
    assert run("init", "--actions", "A,B", "--learner", "greedy").code == 0


@contextmanager
def interrupting(rows: int) -> Iterator[Callable[[int], None]]:
    """In place of the progress bar: Ctrl-C as soon as more than this many rows are read."""

    def progress(read: int) -> None:
        if read > rows:
            raise KeyboardInterrupt

    yield progress


def test_before_the_commit_nothing_is_in(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n")
    with monkeypatch.context() as patched:
        patched.setattr(vault_ingest, "counting_rows", lambda **_: interrupting(0))
        stopped = run(*INGEST)
    assert (stopped.code, stopped.err) == (130, "armnesia: interrupted; nothing was ingested\n")
    assert run("status", "--json").json["records"] == 0


def test_an_interruption_of_the_commit_claims_nothing(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n")
    really = Vault.ingest

    def ingest(*given: Any, **options: Any) -> None:
        really(*given, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Vault, "ingest", ingest)
        patched.delattr(Vault, "status")  # which reads more than is compared here, and may rewrite the files
        stopped = run(*INGEST)
    assert stopped.code == 130
    assert stopped.err == (
        "armnesia: interrupted; the rows may be in; run the same command again to see: no row is added"
        " twice\n"
    )
    assert run(*INGEST, "--json").json["already_there"] == 2
