"""The command `compact`: it says first how long others have to wait."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import CompactionEstimate, Vault
from armnesia.vault.storage import sqlite


def test_the_time_is_estimated_before_anything_is_rewritten(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    compact = Vault.compact

    def compacted(self: Vault) -> Any:
        seen.append(capsys.readouterr().out)
        return compact(self)

    monkeypatch.setattr(Vault, "compact", compacted)
    done = run("compact")
    assert (done.code, done.out) == (0, "Erasure: complete\n")
    assert re.fullmatch(r"Rewriting 1 MB; writers wait for about \d+ s\n", seen[0])


def test_json_has_the_estimate_and_the_true_time(run: Any, vault: Path) -> None:
    before = {path.name for path in vault.iterdir()}
    done = run("compact", "--json")
    assert (done.code, done.err) == (0, "")
    estimate = done.json["estimate"]
    assert estimate["bytes"] == Path("vault.db").stat().st_size
    assert estimate["blocks"] == "writers"
    assert 0 < estimate["seconds"] < 60
    assert 0 < done.json["seconds"] < 60
    assert {path.name for path in vault.iterdir()} - {"vault.db-wal", "vault.db-shm"} == before


def test_twice_the_bytes_take_twice_the_time(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "rewriting_rate", lambda *_: 1000.0)
    with Vault.open() as opened:
        estimate = opened.estimate_compaction()
    assert estimate == CompactionEstimate(estimate.bytes, estimate.bytes / 1000, "writers")


def test_without_an_estimate_the_vault_is_compacted_all_the_same(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> float:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(sqlite, "rewriting_rate", fail)
    assert run("compact").out == (
        "Rewriting 1 MB; writers wait for a time that could not be estimated\nErasure: complete\n"
    )
    assert run("compact", "--json").json["estimate"]["seconds"] is None


def test_a_reader_that_stays_is_named(run: Any, vault: Path) -> None:
    with closing(sqlite3.connect("vault.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        done = run("compact", "--timeout", "0.2")
        assert done.code == 1
        assert done.out.endswith("Erasure: pending: another process was using the vault; try again\n")
        told = run("compact", "--timeout", "0.2", "--json").json
        assert (told["erasure"], told["pending_because"]) == (
            "pending",
            "another process was using the vault",
        )
