"""The commands on PostgreSQL, end to end; in tests/cli they run on SQLite."""

from pathlib import Path
from typing import Any

import pytest

from tests.databases import Place

GAUSSIAN = ("--unlearner", "gaussian", "--epsilon", "1", "--delta", "1e-5")


def test_the_same_commands_on_postgresql(
    run: Any, postgres_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, keys = postgres_place
    monkeypatch.setenv("ARMNESIA_URL", url)
    monkeypatch.setenv("ARMNESIA_KEYS", str(keys))
    log = tmp_path / "log.csv"
    rows = (
        ["A,1,ann\n"] * 30
        + [f"A,0,u{i}\n" for i in range(30)]
        + [f"B,{i % 3 > 1:d},v{i}\n" for i in range(60)]
    )
    log.write_text("action,reward,who\n" + "".join(rows))
    assert run("init", "--actions", "A,B").code == 0
    assert run("ingest", log, "--user-column", "who", "--json").json["added"] == 120
    assert run("decide", "--json").json["action"] == "A"
    before = run("ledger", "--head-only").out
    told = run("forget", "--user", "ann", "--dry-run", "--json").json
    assert told["counts"] == {"A": 30, "B": 0}
    assert told["probabilities"] == {"A": 0.0, "B": 1.0}
    for arguments, sentence in (
        (("forget", "--user", "ann", *GAUSSIAN), "the vault's policy allows"),
        (("init", "--keys", tmp_path / "other.keys"), "there is already a vault"),
        (("backup", tmp_path / "copy.db"), "pg_dump"),
        (
            ("ingest", log, "--user-column", "who", "--reward-column", "won"),
            "reward column 'won' is not in the source",
        ),
    ):
        refused = run(*arguments)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert sentence in refused.err
    assert {path.name for path in tmp_path.iterdir()} == {"log.csv", keys.name, f"{keys.name}.journal"}
    assert run("ledger", "--head-only").out == before
    done = run("forget", "--user", "ann", "--json").json
    assert done["served"] == "B"
    assert run("compact", "--json").json["entry"] == 4
    assert "the deleted bytes left the files" in run("certificate", "show", "--user", "ann").out
    assert run("ingest", log, "--user-column", "who", "--json").json["suppressed"] == 30
    assert run("verify").code == 0
