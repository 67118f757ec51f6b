"""Ctrl-C during `forget`: the command says whether the request is done. Commands that read change nothing."""

import errno
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.vault import Vault
from tests.cli.examples import COLUMNS, USER_COLUMN, contents
from tests.vault.raw_vaults import raising

FORGET = ("forget", "--user", "u1", "--certificate", "u1.json")


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_before_the_commit_nothing_was_changed(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("status", "--json").json
    with monkeypatch.context() as patched:
        patched.setattr("armnesia.vault.operations.forget._store", interrupt)
        stopped = run(*FORGET)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err == "armnesia: interrupted; nothing was changed\n"
    assert run("status", "--json").json == before
    assert not Path("u1.json").exists()


def test_after_it_the_request_is_done(run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = Vault.forget

    def forget(*given: Any, **options: Any) -> None:
        really(*given, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Vault, "forget", forget)
        stopped = run("forget", "--user", "u1")
        again = run(*FORGET)
    forgotten = "armnesia: interrupted; the request is done;"
    assert (stopped.code, stopped.out) == (130, "")
    again_words = "run the same command again\n"
    assert stopped.err == f"{forgotten} {again_words}"
    assert again.err == f"{forgotten} the certificate file may be missing: {again_words}"
    assert run(*FORGET).code == 0
    assert Path("u1.json").exists()


def test_a_full_disk_after_the_commit_is_no_refusal(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by `armnesia forget > /dev/full`."""
    with monkeypatch.context() as patched:
        full = OSError(errno.ENOSPC, "No space left on device")
        patched.setattr("armnesia.cli.vault.forget.print_result", raising(full))
        stopped = run("forget", "--user", "u1")
        previewed = run("forget", "--user", "u2", "--dry-run")
    assert stopped.code == 1
    assert "No space left on device; the request is done; run the same" in stopped.err
    assert previewed.code == 2
    assert "done" not in previewed.err


def test_the_erasure_at_the_sources_may_be_missing(
    run: Any, clicks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb.read_csv(str(clicks)).write_parquet("clicks.parquet")
    assert run("init", "--actions", "A,B", "--external", "--may-erase-at-source").code == 0
    assert run("ingest", "clicks.parquet", *COLUMNS, *USER_COLUMN).code == 0
    erase = (*FORGET, "--erase-at-source")
    with monkeypatch.context() as patched:
        patched.setattr("armnesia.vault.Vault.erase_at_sources", interrupt)
        stopped = run(*erase)
    assert stopped.code == 130
    assert stopped.err == (
        "armnesia: interrupted; the request is done; the erasure at the sources and the certificate"
        " file may be missing: run the same command again\n"
    )
    done = run(*erase)
    assert done.code == 0
    assert Path("u1.json").exists()


def test_where_that_cannot_be_told_it_is_not(run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Vault, "open", interrupt)
        stopped = run(*FORGET)
    assert stopped.err == (
        "armnesia: interrupted; the request may be done; run the same command again to see: nothing is done"
        " twice\n"
    )


@pytest.mark.parametrize(
    ("method", "command"),
    [
        ("preview", ("forget", "--user", "u1", "--dry-run")),
        ("status", ("status",)),
        ("verify", ("verify",)),
        ("decide", ("decide",)),
        ("ledger", ("ledger",)),
        ("arms", ("arms", "list")),
    ],
)
def test_commands_that_read_change_nothing(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch, method: str, command: tuple[str, ...]
) -> None:
    before = contents(vault)
    with monkeypatch.context() as patched:
        patched.setattr(Vault, method, interrupt)
        stopped = run(*command)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err == "armnesia: interrupted; nothing was changed\n"
    assert contents(vault) == before
