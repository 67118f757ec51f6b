"""The command `forget`."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from armnesia.cli.vault.forget import erasure_hint
from armnesia.vault import Vault
from armnesia.vault.storage.database import EVERY_BYTE
from armnesia.vault.storage.postgres import PostgresDatabase
from tests.cli.examples import BUDGET, GAUSSIAN, INGEST, WEAKER_POLICY, contents, mode_of, users

TILT = ("--unlearner", "tilt", *BUDGET)


def test_a_dry_run_tells_the_probabilities_and_writes_nothing(run: Any, vault: Path) -> None:
    before = contents(vault)
    preview = run("forget", "--user", "u1", "--dry-run", "--json").json
    assert set(preview) == {
        *("dry_run", "repeated", "named", "held", "records", "counts", "served_before", "unlearner"),
        *("not_held", "fallback_because", "remark", "may_be_without_user", "also_held"),
        *("probabilities", "branch", "guarantee", "note"),
    }
    assert preview["counts"] == {"A": 0, "B": 40, "C": 0}
    assert preview["probabilities"] == {"A": 1.0, "B": 0.0, "C": 0.0}
    assert preview["guarantee"]["level"] == "retained"
    assert "Nothing was changed" in run("forget", "--user", "u1", "--dry-run").out
    assert "Nothing is held" in run("forget", "--user", "u2", "--dry-run").out
    assert contents(vault) == before


def test_forget_then_anyone_checks_the_certificate(run: Any, vault: Path) -> None:
    done = run("forget", "--user", "u1", "--certificate", "u1.json", "--json").json
    assert set(done) == {
        *("dry_run", "repeated", "named", "held", "not_held", "records", "counts", "served_before"),
        *("served", "head", "sequence", "kind", "unlearner", "level", "budget", "erasure", "searched"),
        *("pending_because", "not_searched_because"),
        *("erasure_steps", "fallback_because", "may_be_without_user", "certificate", "certificate_file"),
        *("also_held", "recounted_because"),
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
    assert set(checked.json) == {
        *("valid", "decided", "problems", "notes", "signer_checked", "ledger_checked", "certificate"),
    }
    assert checked.json["valid"] is True
    assert checked.json["signer_checked"] is True
    assert checked.json["certificate"]["level"] == "retained"
    shown = run("certificate", "verify", "u1.json", "--public-key", Path("public").read_text().strip()).out
    assert "1 user: 'u1'" in shown
    assert shown.startswith("The certificate is valid\nNote: ")


def test_the_same_request_twice_has_one_answer(run: Any, vault: Path) -> None:
    first = run("forget", "--user", "u1", "--json").json
    again = run("forget", "--user", "u1", *GAUSSIAN, "--json").json
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["sequence"] == first["sequence"]
    assert again["head"] == first["head"]
    ignored = "The unlearner and the budget that were given are not used: the first answer stands."
    assert ignored in run("forget", "--user", "u1", *GAUSSIAN).out
    plain = run("forget", "--user", "u1").out
    assert "answered before" in plain
    assert ignored not in plain


def test_a_request_for_nothing_that_is_held(run: Any, vault: Path) -> None:
    done = run("forget", "--user", "stranger", "--json")
    assert done.code == 0
    assert (done.json["kind"], done.json["records"]) == ("nothing_held", 0)
    assert done.json["level"] is None
    later = "Later rows of this name {} left out from now on; armnesia readmit reverts that."
    preview = run("forget", "--user", "another", "--dry-run").out
    assert "Nothing is held" in preview
    assert later.format("would be") in preview
    printed = run("forget", "--user", "another").out
    assert "Nothing is held" in printed
    assert later.format("are") in printed
    assert "Later rows of these names are left out" in run("forget", *users("x", "y")).out


def test_a_dry_run_says_which_of_several_have_no_records(run: Any, vault: Path) -> None:
    strangers = [f"x{number:02}" for number in range(12)]
    several = users("u1", "a1", *strangers)
    assert run("forget", *several, "--dry-run", "--json").json["not_held"] == strangers
    printed = run("forget", *several, "--dry-run").out
    assert "2 of 14 named had records\n" in printed
    assert "Without records: 'x00', 'x01'," in printed
    assert "'x09', … (12 in all); all of them with --json" in " ".join(printed.split())
    few = run("forget", *users("u1", "x01"), "--exactly", "--dry-run").out
    assert "Without records: 'x01'\n" in few
    assert "Without records" not in run("forget", "--user", "a1", "--dry-run").out
    assert "Without records: 'x00', 'x01'\n" in run("forget", *users("x00", "x01"), "--dry-run").out
    run("forget", *several)
    assert run("forget", *several, "--dry-run", "--json").json["not_held"] == []


def test_a_request_beyond_the_policy_says_that_rollback_answers_it(run: Any, vault: Path) -> None:
    assert run("policy", "--beyond", "rollback").code == 0
    said = "Answered by exact rollback instead of what was asked for: the vault's policy allows up to epsilon"
    assert said in run("forget", "--user", "a3", *TILT, "--dry-run").out
    assert said in run("forget", "--user", "a3", *TILT).out
    assert "instead of" not in run("forget", "--user", "a5").out
    beyond = run("forget", "--user", "a7", *TILT, "--json").json
    assert beyond["fallback_because"].startswith("the vault's policy allows up to epsilon = 0")
    assert (beyond["unlearner"], beyond["level"]) == ("rollback", "retained")


def test_single_records_are_forgotten_by_their_ids(run: Any, vault: Path) -> None:
    assert run("forget", "--records", "r1,r3", "--json").json["counts"] == {"A": 2, "B": 0, "C": 0}
    shown = run("certificate", "show", "--records", "r1")
    assert "1 record: 'r1'" in shown.out


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


def test_a_dry_run_names_the_unlearner(run: Any, vault: Path) -> None:
    assert run("policy", *WEAKER_POLICY, "--beyond", "rollback").code == 0
    as_asked = run("forget", "--user", "u1", *TILT, "--dry-run", "--json").json
    assert as_asked["unlearner"] == "tilt"
    assert run("policy", "--max-epsilon", "0", "--max-delta", "0").code == 0
    beyond = ("forget", "--user", "u1", *TILT, "--dry-run")
    assert run(*beyond, "--json").json["unlearner"] == "rollback"
    assert "Unlearner: rollback\n" in run(*beyond).out
    assert run("forget", "--user", "stranger", "--dry-run", "--json").json["unlearner"] is None


def test_of_several_names_the_number_with_records_is_printed(run: Any, vault: Path) -> None:
    several = users("u1", "a1", "x", "y")
    preview = run("forget", *several, "--dry-run", "--json").json
    assert (preview["named"], preview["held"]) == (4, 2)
    assert "2 of 4 named had records\n" in run("forget", *several, "--dry-run").out
    assert "had records" not in run("forget", "--user", "a3", "--dry-run").out
    assert "2 of 4 named had records\n" in run("forget", *several).out
    assert "had records" not in run("forget", *several).out  # answered before
    done = run("forget", "--user", "a3", "--json").json
    assert (done["named"], done["held"]) == (1, 1)


def test_what_to_do_about_bytes_that_are_still_there(run: Any, vault: Path) -> None:
    assert "To do" not in run("forget", "--user", "a1").out
    reader = sqlite3.connect("vault.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchone()
    printed = run("forget", "--user", "u1", "--no-search").out
    searching = run("forget", "--user", "u1").out
    with Vault.open("sqlite:///vault.db") as opened:
        done = opened.forget(records=["r3"])
    there = replace(done, erasure_steps=PostgresDatabase.erasure_steps)
    (on_a_server,) = erasure_hint(there, {"records": ["r3"]})
    reader.close()
    assert "because another process was using the vault. Run armnesia finish;" in printed
    assert "armnesia certificate show --user U --out FILE" in printed
    assert "Not searched: deleted bytes are still in the files\n" in searching
    assert "Run armnesia finish; then the same command searches the vault" in searching
    assert "Run armnesia compact, then armnesia finish;" in on_a_server
    assert "armnesia certificate show --records ID --out FILE" in on_a_server
    assert "│ erasure                 │ complete " in run("status").out
    assert "Erasure: complete" in run("certificate", "show", "--user", "u1", "--out", "u1.json").out


def test_counts_are_those_of_every_action(run: Any, vault: Path) -> None:
    zeros = {"A": 0, "B": 0, "C": 0}
    for options in (("--dry-run",), (), ()):  # the last one is repeated
        assert run("forget", "--user", "stranger", *options, "--json").json["counts"] == zeros
    assert run("init", "--url", "sqlite:///new.db").code == 0
    without_actions = run("forget", "--user", "u1", "--url", "sqlite:///new.db", "--json").json
    assert without_actions["counts"] == {}


def test_a_vault_in_use_has_an_exit_code_of_its_own(run: Any, vault: Path) -> None:
    """A script that gets it may try again."""
    with closing(sqlite3.connect(vault / "vault.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = run("forget", "--user", "u1", "--timeout", "0.1")
    assert (refused.code, refused.out) == (75, "")
    assert "in use by another process; nothing was changed, try again" in refused.err


def test_one_parameter_of_a_request_leaves_the_others_and_the_level(run: Any, clicks: Path) -> None:
    share = ("--assumed-share", "0.95", *TILT)
    assert run("init", "--actions", "A,B,C", "--user-type", "text", *share).code == 0
    assert run(*INGEST).code == 0
    plan = run("forget", "--user", "u1", "--insurance", "0.01", "--dry-run", "--json").json
    assert plan["guarantee"]["level"] == "retained"
    done = run("forget", "--user", "u1", "--insurance", "0.01", "--json").json
    assert done["level"] == "retained"
    used = {"name": "tilt", "assumed_share": 0.95, "insurance": 0.01}
    assert done["certificate"]["body"]["entry"]["unlearner"] == used


def test_rows_without_a_user_are_mentioned_where_none_were_found(run: Any, folder: Path) -> None:
    Path("log.csv").write_text("action,reward,plane\nA,1,147\nB,0,148\n")
    run("init", "--actions", "A,B")
    run("ingest", "log.csv", "--no-user")
    sentence = "The vault also holds rows without a user, and cannot tell whose they are"
    assert sentence in " ".join(run("forget", "--user", "147", "--dry-run").out.split())
    assert sentence in " ".join(run("forget", "--user", "147").out.split())


def test_ids_are_advised_only_where_rows_have_some(run: Any, folder: Path) -> None:
    Path("log.csv").write_text("action,reward,id\nA,1,147\nB,0,148\n")
    advice = "forget them by their ids (--records)"
    for url, ids in (("sqlite:///without.db", ()), ("sqlite:///with.db", ("--id-column", "id"))):
        assert run("init", "--url", url, "--actions", "A,B").code == 0
        assert run("ingest", "log.csv", "--url", url, "--no-user", *ids).code == 0
        printed = " ".join(run("forget", "--url", url, "--user", "ann").out.split())
        assert "The vault also holds rows without a user" in printed
        assert (advice in printed) == bool(ids)


def test_other_spellings_with_rows_are_mentioned(run: Any, folder: Path) -> None:
    people = ["ann.lee@example.org", "Ann.Lee@Example.org", "bob"]
    Path("log.csv").write_text("action,reward,user\n" + "".join(f"A,1,{name}\n" for name in people))
    assert run("init", "--actions", "A,B").code == 0
    assert run("ingest", "log.csv").code == 0
    request = ("forget", "--user", "Ann.Lee@Example.org")
    sentence = (
        "The vault also holds rows of 'ann.lee@example.org': if that is the same person, forget this name,"
    )
    assert run(*request, "--dry-run", "--json").json["also_held"] == ["ann.lee@example.org"]
    assert sentence in " ".join(run(*request, "--dry-run").out.split())
    done = run(*request)
    assert done.code == 0
    assert "Forgotten: 1 record" in done.out
    assert sentence in " ".join(done.out.split())
    assert run(*request, "--json").json["also_held"] == ["ann.lee@example.org"]  # also the second time
    assert run("forget", "--user", "bob", "--json").json["also_held"] == []
    assert run("forget", "--user", "ann.lee@example.org", "--json").json["also_held"] == []
    with Vault.open() as vault:
        assert vault.similar_held(users=[f"u{number}" for number in range(101)]) is None
        assert vault.similar_held(records=["r1"]) is None


def test_the_whole_vault_is_searched_unless_told_not_to(run: Any, vault: Path) -> None:
    searched = run("forget", "--user", "u1", "--json").json
    assert (searched["searched"], searched["not_searched_because"]) == (True, None)
    assert searched["certificate"]["body"]["erasure"]["searched"] == EVERY_BYTE
    assert f"Searched: {EVERY_BYTE} was read after the deletion" in run("forget", "--user", "u2").out
    assert "Searched:" not in run("forget", "--user", "a1", "--no-search").out
    assert run("forget", "--user", "a1", "--no-search", "--json").json["searched"] is False


def test_what_a_search_finds_is_told_and_no_certificate_is_written(run: Any, vault: Path) -> None:
    with Vault.open("sqlite:///vault.db") as opened:
        digest = opened._connection.all_keys.owner_digest("u1")
    with Path("vault.db").open("ab") as file:
        file.write(bytes(50 * 4096) + digest.ljust(4096, b"\0"))
    done = run("forget", "--user", "u1", "--certificate", "u1.json")
    assert (done.code, done.out, Path("u1.json").exists()) == (1, "", False)
    assert done.err.startswith("armnesia: the request is done, but digests of these people or records may")
    shown = run("certificate", "show", "--user", "u1")
    assert shown.code == 2
    assert "is withheld: a search of the whole vault has found" in shown.err
    assert run("compact").code == 0
    assert run("forget", "--user", "u1", "--certificate", "u1.json").code == 0
    assert Path("u1.json").exists()
