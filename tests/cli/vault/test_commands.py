"""The vault's commands, run as a user runs them: from init to a certificate that others check."""

import hashlib
import json
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault.keys.keyring import Keyring
from tests.cli.vault.clicks import COLUMNS, contents, write_clicks

INGEST = ("ingest", "clicks.csv", *COLUMNS, "--id", "row")
GAUSSIAN = ("--unlearner", "gaussian", "--epsilon", "1", "--delta", "1e-5")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a log and no vault from elsewhere."""
    monkeypatch.chdir(tmp_path)
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)
    write_clicks(tmp_path / "clicks.csv")
    return tmp_path


@pytest.fixture
def vault(folder: Path, run: Any) -> Path:
    """A vault with the log in it."""
    assert run("init", "--actions", "A,B,C").code == 0
    assert run(*INGEST).code == 0
    return folder


def mode_of(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def entries(run: Any) -> int:
    return int(run("ledger", "--head", "--json").json["head"].partition(":")[0])


def test_init_makes_files_for_their_owner_only(run: Any, folder: Path) -> None:
    made = run("init", "--json").json
    assert set(made) == {"vault", "location", "keys", "public_key", "head", "configuration"}
    assert made["configuration"]["unlearner"] == "rollback"
    assert made["configuration"]["actions"] is None
    assert made["head"].startswith("1:")
    names = {path.name for path in folder.iterdir()}
    assert names == {"clicks.csv", "vault.db", "vault.db.keys", "vault.db.keys.head"}
    assert {mode_of(folder / name) for name in names - {"clicks.csv"}} == {0o600}


def test_init_takes_everything_that_is_public(run: Any) -> None:
    made = run(
        *(
            "init",
            "--actions",
            "A, B",
            "--reward-range",
            "-1,1",
            "--learner",
            "kl_lcb",
            "--confidence",
            "0.05",
        ),
        *("--unlearner", "tilt", "--assumed-share", "0.1", "--epsilon", "1", "--delta", "1e-6", "--external"),
        *("--max-epsilon", "2", "--levels", "retained,request_shape", "--beyond", "rollback", "--json"),
    ).json["configuration"]
    assert made == {
        "actions": ["A", "B"],
        "reward_range": [-1.0, 1.0],
        "learner": "kl_lcb",
        "confidence": 0.05,
        "unlearner": "tilt",
        "options": {"assumed_share": 0.1},
        "epsilon": 1.0,
        "delta": 1e-6,
        "penalty": "retained",
        "mode": "external",
        "policy": {
            "max_epsilon": 2.0,
            "max_delta": 1e-6,
            "levels": ["retained", "request_shape"],
            "beyond": "rollback",
        },
    }


def test_what_is_sent_twice_comes_in_once_and_without_ids_that_is_said(run: Any) -> None:
    run("init", "--actions", "A,B")
    counts = run("ingest", "clicks.csv", *COLUMNS, "--json")
    assert counts.json == {"rows": 200, "added": 200, "already_there": 0, "suppressed": 0, "served": "B"}
    assert counts.err == ""
    again = run("ingest", "clicks.csv", *COLUMNS, "--batch-rows", "50", "--json")
    assert again.json["already_there"] == 200
    assert again.err.startswith("armnesia: warning: 200 rows were taken for rows that are there already")
    assert "200 rows: 0 added, 200 already there" in run("ingest", "clicks.csv", *COLUMNS).out


def test_with_ids_the_same_file_twice_needs_no_warning(run: Any, vault: Path) -> None:
    again = run(*INGEST, "--json")
    assert (again.json["added"], again.json["already_there"], again.err) == (0, 200, "")


def test_rows_of_nobody_are_warned_of(run: Any) -> None:
    run("init")
    taken = run("ingest", "clicks.csv", *COLUMNS[:4])
    assert taken.code == 0
    assert "without --user" in taken.err


def test_a_table_of_a_database_is_a_source(run: Any) -> None:
    with sqlite3.connect("log.db") as log:
        log.execute("CREATE TABLE shown (arm TEXT, won REAL, who TEXT)")
        log.executemany("INSERT INTO shown VALUES (?, ?, ?)", [("A", 1, "ann"), ("B", 0, "bob")])
    log.close()
    run("init")
    columns = ("--action", "arm", "--reward", "won", "--user", "who", "--table", "shown")
    assert run("ingest", "sqlite:///log.db", *columns, "--json").json["added"] == 2


def test_decide_without_a_log_tells_what_the_vault_serves(run: Any, vault: Path) -> None:
    served = run("decide", "--json").json
    assert set(served) == {"action", "by", "head"}
    assert (served["action"], served["by"]) == ("B", "learner")
    assert "Served: B (decided by the learner" in run("decide").out
    of_a_log = run("decide", "clicks.csv", "--action", "variant", "--reward", "clicked", "--actions", "A,B")
    assert "200 decisions" in of_a_log.out


def test_a_vault_without_actions_serves_nothing_yet(run: Any) -> None:
    run("init")
    assert run("decide", "--json").json["action"] is None
    assert "nothing yet" in run("decide").out


def test_a_dry_run_tells_the_probabilities_and_writes_nothing(run: Any, vault: Path) -> None:
    before = contents(vault)
    told = run("forget", "--user", "u1", "--dry-run", "--json").json
    assert set(told) == {
        *("dry_run", "repeated", "named", "held", "records", "counts", "served_before", "unlearner"),
        *("probabilities", "branch", "guarantee", "note"),
    }
    assert told["counts"] == {"A": 0, "B": 40, "C": 0}
    assert told["probabilities"] == {"A": 1.0, "B": 0.0, "C": 0.0}
    assert told["guarantee"]["level"] == "retained"
    assert "Nothing was changed" in run("forget", "--user", "u1", "--dry-run").out
    assert "Nothing is held" in run("forget", "--user", "u2", "--dry-run").out
    assert contents(vault) == before


def test_forget_then_anyone_checks_the_certificate(run: Any, vault: Path) -> None:
    done = run("forget", "--user", "u1", "--certificate", "u1.json", "--json").json
    assert set(done) == {
        *("dry_run", "repeated", "named", "held", "records", "counts", "served_before", "served", "head"),
        *("sequence", "kind", "unlearner", "level", "budget", "erasure", "certificate", "certificate_file"),
    }
    assert (done["records"], done["served_before"], done["served"]) == (40, "B", "A")
    assert (done["kind"], done["level"], done["erasure"]) == ("forget", "retained", "complete")
    assert done["certificate"]["opening"]["request"] == {"users": ["u1"]}
    assert mode_of("u1.json") == 0o600
    Path("public").write_text(run("public-key").out)
    for name in ("vault.db", "vault.db.keys", "vault.db.keys.head"):
        Path(name).unlink()  # the check needs no vault
    checked = run("certificate", "verify", "u1.json", "--public-key", "public", "--json")
    assert checked.code == 0
    assert set(checked.json) == {"valid", "problems", "signer_checked", "note", "certificate"}
    assert checked.json["valid"] is True
    assert checked.json["signer_checked"] is True
    assert checked.json["certificate"]["level"] == "retained"
    shown = run("certificate", "verify", "u1.json", "--public-key", Path("public").read_text().strip()).out
    assert "1 user: 'u1'" in shown
    assert shown.endswith("The certificate is valid\n")


def test_the_same_request_twice_has_one_answer(run: Any, vault: Path) -> None:
    first = run("forget", "--user", "u1", "--json").json
    again = run("forget", "--user", "u1", *GAUSSIAN, "--json").json
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["sequence"] == first["sequence"]
    assert again["head"] == first["head"]
    assert "answered before" in run("forget", "--user", "u1").out


def test_nothing_held_is_said_honestly(run: Any, vault: Path) -> None:
    done = run("forget", "--user", "stranger", "--json")
    assert done.code == 0
    assert (done.json["kind"], done.json["records"]) == ("nothing_held", 0)
    assert done.json["level"] is None
    assert "Nothing is held" in run("forget", "--user", "another").out


def test_forgotten_people_stay_out_until_they_are_readmitted(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    assert run(*INGEST, "--json").json["suppressed"] == 40
    readmitted = run("readmit", "--user", "u1", "--json").json
    assert set(readmitted) == {"readmitted", "erased", "head"}
    assert readmitted["readmitted"] == 1
    assert run(*INGEST, "--json").json["added"] == 40


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("u1\n\na0\n", ()),
        ("\ufeffname,person\nAnn,u1\nBob,a0\n", ("--column", "person")),
        ('"u1"\r\n"a0"\r\n', ()),
    ],
)
def test_a_file_of_people_is_one_request_and_each_has_a_certificate(
    run: Any, vault: Path, text: str, options: tuple[str, ...]
) -> None:
    Path("people").write_text(text, encoding="utf-8", newline="")
    before = entries(run)
    done = run("forget", "--file", "people", *options, "--json").json
    assert (done["records"], entries(run)) == (41, before + 1)
    assert done["certificate"]["opening"] is None  # nobody is told of the others
    for person in ("u1", "a0"):
        Path(f"{person}.json").write_text(run("certificate", "show", "--user", person, "--json").out)
        checked = run(
            "certificate", "verify", f"{person}.json", "--public-key", run("public-key").out.strip()
        )
        assert checked.code == 0
        assert f"1 user: '{person}'" in checked.out


def test_single_records_are_forgotten_by_their_ids(run: Any, vault: Path) -> None:
    assert run("forget", "--records", "r1,r3", "--json").json["counts"] == {"A": 2, "B": 0, "C": 0}
    shown = run("certificate", "show", "--records", "r1")
    assert "1 record: 'r1'" in shown.out


def test_certificates_are_shown_by_entry_without_a_name(run: Any, vault: Path) -> None:
    sequence = run("forget", "--user", "u1", "--json").json["sequence"]
    shown = run("certificate", "show", "--sequence", sequence, "--out", "entry.json")
    assert "not named here" in shown.out
    assert b"u1" not in Path("entry.json").read_bytes()
    checked = run("certificate", "verify", "entry.json", "--json").json
    assert checked["valid"] is True
    assert checked["signer_checked"] is False
    assert "No public key was given" in checked["note"]


def test_a_changed_certificate_and_a_wrong_key_are_not_valid(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    whole = Path("u1.json").read_text()
    foreign = run("certificate", "verify", "u1.json", "--public-key", "ab" * 32)
    assert foreign.code == 1
    assert "not among the public keys given" in foreign.out
    for old, new in (('"u1"', '"u2"'), ('"retained"', '"retainer"'), ("{\n", "{\n\n")):
        Path("u1.json").write_text(whole.replace(old, new, 1))
        checked = run("certificate", "verify", "u1.json", "--json")
        assert checked.code == 1
        assert checked.json["problems"]
    assert "NOT VALID" in run("certificate", "verify", "u1.json").out


def test_verify_finds_what_was_changed_and_rebuild_repairs_it(run: Any, vault: Path) -> None:
    whole = run("verify", "--json")
    assert whole.code == 0
    assert whole.json == {
        "holds": True,
        "problems": [],
        "notes": [],
        "records": 200,
        "entries": 1,
        "certificates": 0,
    }
    with sqlite3.connect("vault.db") as database:
        database.execute("UPDATE arm SET total = total + 1 WHERE position = 0")
    database.close()
    changed = run("verify")
    assert changed.code == 1
    assert 'statistics of action "A"' in changed.out
    assert "SOMETHING IS WRONG" in changed.out
    assert run("decide").code == 2
    rebuilt = run("rebuild", "--json").json
    assert set(rebuilt) == {"changed", "head"}
    assert rebuilt["changed"] is True
    assert run("verify").code == 0
    assert "Nothing to change" in run("rebuild").out


def test_an_old_backup_forgets_again_before_it_opens(run: Any, vault: Path) -> None:
    backed_up = run("backup", "old.db", "--json").json
    assert set(backed_up) == {"file", "head"}
    assert mode_of("old.db") == 0o600
    run("forget", "--user", "u1")
    exported = run("export", "later.json", "--for-restore", "--json").json
    assert set(exported) == {"file", "head", "entries", "certificates", "for_restore"}
    shutil.copy("old.db", "vault.db")
    assert "run armnesia restore" in run("decide").err
    looked_at = run("verify")
    assert looked_at.code == 1
    assert "shorter than the head that was kept" in looked_at.out
    restored = run("restore", "later.json", "--json").json
    assert set(restored) == {"replayed", "head"}
    assert restored["replayed"] == 1
    assert run("verify", "--json").json["records"] == 160
    names = Keyring.load("vault.db.keys").owner_digest
    counting = "SELECT count(*) FROM record WHERE owner = ?"
    with closing(sqlite3.connect("vault.db")) as database:
        held = [database.execute(counting, [names(user)]).fetchone() for user in ("u1", "a0")]
    assert held == [(0,), (1,)]


def test_the_ledger_is_listed_exported_and_checked(run: Any, vault: Path) -> None:
    first = run("ledger", "--head").out.strip()
    run("forget", "--user", "u1")
    listed = run("ledger", "--json").json
    assert set(listed) == {"head", "entries"}
    assert [entry["kind"] for entry in listed["entries"]] == ["init", "forget"]
    assert "rollback" in run("ledger").out
    exported = run("ledger", "--export", "ledger.jsonl", "--json").json
    assert set(exported) == {"head", "entries", "file"}
    lines = Path("ledger.jsonl").read_text(encoding="utf-8").splitlines()
    hashes = [hashlib.sha256(line.encode()).hexdigest() for line in lines]
    assert json.loads(lines[1])["previous"] == hashes[0]
    assert exported["head"] == f"2:{hashes[1]}"
    checked = run("ledger", "--check", first, "--json")
    assert checked.code == 0
    assert set(checked.json) == {"holds", "problems", "checked"}
    for head in (f"3:{hashes[1]}", f"2:{hashes[0]}"):
        wrong = run("ledger", "--check", head)
        assert wrong.code == 1
        assert "WRONG: ledger: sequence" in wrong.out
        assert run("verify", "--head", head).code == 1
    assert run("verify", "--head", first).code == 0


def test_scores_are_for_the_operator(run: Any, vault: Path) -> None:
    plain = run("status", "--json").json
    assert set(plain) == {
        *("vault", "location", "served", "configuration", "records", "suppressed", "head", "erasure"),
        *("digest_key", "signing_key", "sources", "scores", "note"),
    }
    assert plain["scores"] is None
    assert (plain["records"], plain["erasure"]) == (200, "complete")
    scores = run("status", "--scores", "--json").json["scores"]
    assert scores[0] == {"action": "A", "count": 100, "mean": 0.5, "score": pytest.approx(0.3, abs=0.1)}
    assert scores[2] == {"action": "C", "count": 0, "mean": None, "score": -1.0}
    assert "For the operator only" in run("status", "--scores").out


def test_the_policy_bounds_what_a_request_may_ask_for(run: Any, vault: Path) -> None:
    shown = run("policy", "--json").json
    assert shown == {
        "max_epsilon": 0.0,
        "max_delta": 0.0,
        "levels": ["retained"],
        "beyond": "refuse",
        "changed": False,
        "head": shown["head"],
    }
    allowed = ("--max-epsilon", "1", "--max-delta", "1e-5", "--levels", "retained,request_shape")
    assert run("policy", *allowed, "--json").json["changed"] is True
    assert "the ledger says so" in run("policy", "--beyond", "rollback").out
    done = run("forget", "--user", "a1", *GAUSSIAN, "--json").json
    assert (done["unlearner"], done["level"]) == ("gaussian", "request_shape")
    assert done["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    too_much = run(
        "forget", "--user", "a3", *GAUSSIAN[:2], "--epsilon", "3", "--delta", "1e-5", "--json"
    ).json
    assert (too_much["unlearner"], too_much["level"]) == ("rollback", "retained")


def test_new_keys_keep_what_was_signed_and_suppressed(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    assert run("rotate-key", "signing", "--json").json["version"] == 2
    rotated = run("rotate-key", "digest", "--json").json
    assert set(rotated) == {"key", "version", "head"}
    assert "version 3" in run("rotate-key", "digest").out
    keys = run("public-key", "--json").json
    assert set(keys) == {"version", "public_key", "public_keys"}
    assert (keys["version"], len(keys["public_keys"])) == (2, 2)
    Path("public").write_text(run("public-key").out)
    assert run("certificate", "verify", "u1.json", "--public-key", "public").code == 0
    assert run("certificate", "verify", "u1.json", "--public-key", keys["public_key"]).code == 1
    assert run(*INGEST, "--json").json["suppressed"] == 40
    assert run("verify").code == 0


def test_upkeep_has_stable_keys(run: Any, vault: Path) -> None:
    assert run("compact", "--json").json == {"erasure": "complete"}
    assert run("upgrade", "--json").json == {"from": 2, "to": 2}
    assert run("export", "audit.json", "--json").json["for_restore"] is False
    exported = json.loads(Path("audit.json").read_text())
    assert "suppressed" not in exported
    assert "as before" in run("upgrade").out


def test_erasure_that_a_reader_holds_up_is_pending_and_then_complete(run: Any, vault: Path) -> None:
    reader = sqlite3.connect("vault.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchone()
    assert run("forget", "--user", "u1", "--json").json["erasure"] == "pending"
    assert run("status", "--json").json["erasure"] == "pending"
    reader.close()
    assert run("status", "--json").json["erasure"] == "complete"
    shown = json.loads(run("certificate", "show", "--user", "u1", "--json").out)
    assert shown["body"]["erasure"]["state"] == "complete"


def test_an_external_vault_looks_at_the_source(run: Any) -> None:
    run("init", "--external", "--actions", "A,B,C")
    assert run(*INGEST, "--json").json["added"] == 200
    assert run("forget", "--user", "u1", "--json").json["records"] == 40
    verified = run("verify", "--json").json
    assert verified["holds"] is True
    assert "40 rows of forgotten people are still present" in verified["notes"][0]
    assert "Note: " in run("verify").out
    (source,) = run("status", "--json").json["sources"]
    assert source == {"name": source["name"], "records": 160}
    assert "rows counted from it" in run("status").out
    assert run("rebuild", "--without", source["name"], "--json").json["changed"] is True
    assert run("status", "--json").json["records"] == 0


def test_where_the_vault_is_may_come_from_the_environment(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMNESIA_URL", f"sqlite:///{folder}/elsewhere.db")
    monkeypatch.setenv("ARMNESIA_KEYS", str(folder / "my.keys"))
    made = run("init", "--json").json
    assert (made["location"], made["keys"]) == (f"{folder}/elsewhere.db", str(folder / "my.keys"))
    assert run("status", "--json").json["vault"] == made["vault"]


def test_names_that_look_like_markup_are_shown_as_they_are(run: Any) -> None:
    run("init", "--actions", "[red]A[/red],[/b]")
    assert "Served: [red]A[/red]" in run("decide").out
    assert "[red]A[/red]" in run("status", "--scores").out
    run("forget", "--user", "[bold]\x1b[2Jann", "--certificate", "c.json")
    assert "'[bold]\\x1b[2Jann'" in run("certificate", "verify", "c.json").out


def test_the_bundled_log_brings_its_columns(run: Any) -> None:
    run("init", "--actions", "AA,B6,DL,UA,VX")
    assert run("ingest", "flights", "--json").json["added"] == 16026
    assert run("forget", "--user", "N711ZX", "--json").json["counts"]["DL"] == 123
