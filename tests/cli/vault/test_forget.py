"""The command `forget`."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.cli.examples import BUDGET, GAUSSIAN, INGEST, WEAKER_POLICY, contents, mode_of, users

TILT = ("--unlearner", "tilt", *BUDGET)


def test_a_dry_run_tells_the_probabilities_and_writes_nothing(run: Any, vault: Path) -> None:
    before = contents(vault)
    preview = run("forget", "--user", "u1", "--dry-run", "--json").json
    assert set(preview) == {
        *("dry_run", "repeated", "named", "held", "records", "counts", "served_before", "unlearner"),
        *("not_held", "fallback_because", "remark", "may_be_without_user", "forgotten_before"),
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
        *("dry_run", "repeated", "named", "held", "not_held", "forgotten_before", "records", "counts"),
        *("served_before", "served", "head", "entry", "fallback_because", "recounted_because"),
        *("may_be_without_user", "certificate", "certificate_file"),
    }
    assert (done["records"], done["served_before"], done["served"]) == (40, "B", "A")
    assert [each["text"] for each in done["certificate"]["opening"]] == ["u1"]
    assert mode_of("u1.json") == 0o600
    Path("public").write_text(run("public-key").out)
    for name in ("vault.db", "vault.db.keys", "vault.db.keys.journal"):
        Path(name).unlink()  # the check needs no vault
    checked = run("certificate", "verify", "u1.json", "--public-key", "public", "--json")
    assert checked.code == 0
    assert set(checked.json) == {
        *("valid", "problems", "entry", "kind", "time", "vault", "organisation", "outcome", "level"),
        *("budget", "unlearner", "released", "later"),
    }
    assert (checked.json["valid"], checked.json["outcome"]) == (True, "deleted")
    assert checked.json["level"] == "retained"
    shown = run("certificate", "verify", "u1.json", "--public-key", Path("public").read_text().strip()).out
    assert "held under the identifier u1, and decided again without them" in shown


def test_the_words_say_what_was_deleted_and_how_to_get_the_certificate(run: Any, vault: Path) -> None:
    lines = run("forget", "--user", "u1").out.splitlines()
    assert lines[0] == "Forgotten: 40 records. Served before: B; now: A."
    assert lines[1].startswith("Guarantee: (ε = 0, δ = 0) at level retained")
    assert lines[2:] == ["Ledger: entry 3", "Certificate: armnesia certificate show --user u1"]
    *_, ledger, certificate = run("forget", *users("a1", "b 2"), "--exactly").out.splitlines()
    assert ledger == "Ledger: entry 4"
    assert certificate.startswith(
        "Certificate: armnesia certificate show, with the same names and --out-folder"
    )
    assert run("forget", "--user", "b 2").out.endswith("armnesia certificate show --user 'b 2'\n")


def test_one_file_is_for_one_name(run: Any, vault: Path) -> None:
    before = contents(vault)
    refused = run("forget", *users("u1", "a1"), "--certificate", "both.json")
    assert refused.code == 2
    assert "of several each has its own, which armnesia certificate show --out-folder writes" in refused.err
    assert contents(vault) == before


def test_the_same_request_twice_has_one_answer(run: Any, vault: Path) -> None:
    first = run("forget", "--user", "u1", "--json").json
    again = run("forget", "--user", "u1", *GAUSSIAN, "--json").json
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert (again["entry"], again["head"]) == (first["entry"], first["head"])
    assert [(each["entry"], each["names"]) for each in again["forgotten_before"]] == [(3, ["u1"])]
    ignored = "The unlearner and the budget that were given are not used: the first answer stands."
    assert ignored in run("forget", "--user", "u1", *GAUSSIAN).out
    plain = run("forget", "--user", "u1").out
    assert plain.startswith("This was forgotten before: nothing was changed.\nForgotten before: 'u1', on ")
    assert ", by entry 3\n" in plain
    assert ignored not in plain


def test_of_a_mixed_request_it_is_said_who_was_forgotten_before(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    several = users("u1", "a1", "stranger")
    assert "1 of 3 named had records; 1 was forgotten before\n" in run("forget", *several, "--dry-run").out
    printed = run("forget", *several).out
    assert "Forgotten: 1 record." in printed
    assert "1 of 3 named had records; 1 was forgotten before\nWithout records: 'stranger'\n" in printed
    assert "Forgotten before: 'u1', on " in printed
    again = run("forget", *several).out
    assert again.startswith("They were all forgotten before: nothing was changed.\n")
    assert "Forgotten before: 'a1', 'stranger', on " in again
    assert "Without records" not in again  # a request that is repeated calls nobody not held


def test_a_request_for_nothing_that_is_held(run: Any, vault: Path) -> None:
    done = run("forget", "--user", "stranger", "--json")
    assert done.code == 0
    assert (done.json["held"], done.json["records"], done.json["not_held"]) == (0, 0, ["stranger"])
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
    assert "rollback, retained" in run("ledger").out


def test_single_records_are_forgotten_by_their_ids(run: Any, vault: Path) -> None:
    assert run("forget", "--records", "r1,r3", "--json").json["counts"] == {"A": 2, "B": 0, "C": 0}
    shown = run("certificate", "show", "--records", "r1")
    assert "r1" in shown.out.splitlines()[0]


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
    entry = run("ledger", "--json").json["entries"][-1]
    assert (entry["number"], entry["level"]) == (done["entry"], "retained")
    assert entry["unlearner"] == {"name": "tilt", "assumed_share": 0.95, "insurance": 0.01}


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
