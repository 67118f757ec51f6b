"""Bad input to the vault's commands: one sentence on stderr, exit code 2, and no byte written."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import COLUMNS as LOG_COLUMNS
from tests.cli.examples import USER_COLUMN, contents, write_clicks

COLUMNS = (*LOG_COLUMNS, *USER_COLUMN)

INGEST = ("ingest", "clicks.csv", *COLUMNS)
FORGET = ("forget", "--user", "u1")
GAUSSIAN = (*FORGET, "--unlearner", "gaussian", "--epsilon", "1")
NEW = ("init", "--url", "sqlite:///new.db")

REFUSALS = {
    "no file to export to": (
        ("export",),
        "'FILE' (The file to write; an older export of the",
    ),
    "no file to back up to": (
        ("backup",),
        "'FILE' (The file to write; one that exists is refused)",
    ),
    "no log to ingest": (
        ("ingest",),
        "Missing argument 'LOG' (CSV or Parquet files (a path, folder or glob), delta:PATH, iceberg:",
    ),
    "no certificate to verify": (
        ("certificate", "verify"),
        "(The certificate); see armnesia cert",
    ),
    "no names to readmit": (("readmit",), "name people or records by one of --user (repeatable), --file"),
    "no request to show": (("certificate", "show"), "name people or records by one of --user"),
    "a second init": (
        ("init",),
        "already: a vault is created once",
    ),
    "a second init with other keys": (("init", "--keys", "other"), "there is already a file 'vault.db'"),
    "no such kind of address": (("status", "--url", "mysql://me:secret@host/db"), "got 'mysql://…'"),
    "no vault": (("status", "--url", "sqlite:///no.db"), "there is no vault at 'no.db'"),
    "a text file for a vault": (("status", "--url", "sqlite:///clicks.csv"), "is not a vault, or is damaged"),
    "another database for a vault": (("status", "--url", "sqlite:///foreign.db"), "there is no vault"),
    "a folder for a vault": (("status", "--url", "sqlite:///folder"), "there is no vault at 'folder'"),
    "init where a folder is": (("init", "--url", "sqlite:///folder"), "there is already a file 'folder'"),
    "init in no folder": (("init", "--url", "sqlite:///no/v.db"), "cannot be made: No such file"),
    "keys in no folder": ((*NEW, "--keys", "no/keys"), "no/keys cannot be written"),
    "keys behind a file": ((*NEW, "--keys", "clicks.csv/keys"), "clicks.csv/keys cannot be written"),
    "no keys": (("decide", "--keys", "no"), "no does not exist: it has the vault's keys"),
    "a folder for keys": (("decide", "--keys", "folder"), "keys must be a file; got the folder 'folder'"),
    "no keyring": (("decide", "--keys", "closed.csv"), "closed.csv is not a valid key file"),
    "keys of another vault": (("decide", "--keys", "another.db.keys"), "the keys belong to another vault"),
    "verify with keys of another": (("verify", "--keys", "another.db.keys"), "belong to another vault"),
    "unlearner without a budget": (
        (*NEW, "--unlearner", "gaussian"),
        "a budget is --epsilon with --delta, or --gamma with --delta; got none",
    ),
    "unlearner with half a budget": ((*NEW, "--unlearner", "tilt", "--delta", "0"), "got --delta 0"),
    "half a budget that nothing needs": ((*NEW, "--epsilon", "1"), "with --delta; got --epsilon 1"),
    "noise with delta 0": (
        (*NEW, "--unlearner", "gaussian", "--epsilon", "1", "--delta", "0"),
        "choose delta > 0",
    ),
    "negative epsilon": ((*NEW, "--epsilon", "-1", "--delta", "0"), "epsilon must be 0 or more; got -1"),
    "delta above 1": ((*NEW, "--epsilon", "1", "--delta", "2"), "between 0 and 1; got 2"),
    "negative policy": ((*NEW, "--max-epsilon", "-1"), "epsilon must be 0 or more; got -1"),
    "no level": ((*NEW, "--levels", "all"), "level must be one of retained"),
    "beyond what": ((*NEW, "--beyond", "ignore"), "beyond must be 'refuse' or 'rollback'; got 'ignore'"),
    "penalty": ((*NEW, "--penalty", "melted"), "penalty must be 'retained' or 'frozen'; got 'melted'"),
    "confidence": ((*NEW, "--confidence", "7"), "confidence must lie in (0, 1]; got 7"),
    "confidence of imitation": (
        (*NEW, "--unlearner", "imitation_rollback", "--confidence", "0.1"),
        "--confidence belongs to lcb, kl_lcb, bernstein_lcb and ucb; got it with imitation",
    ),
    "unknown learner": ((*NEW, "--learner", "oracle"), "learner must be one of lcb"),
    "learner by squares": (
        (*NEW, "--learner", "bernstein_lcb"),
        "got 'bernstein_lcb', which needs the squares of rewards: a vault keeps counts and sums",
    ),
    "unknown unlearner": ((*NEW, "--unlearner", "magic"), "unlearner must be one of rollback"),
    "foreign option": ((*NEW, "--ratio", "0.5"), "--ratio belongs to mixing; got it with rollback"),
    "twice the same action": ((*NEW, "--actions", "A,A"), "'A' is there more than once"),
    "rewards upside down": ((*NEW, "--reward-range", "1,0"), "low < high"),
    "rewards in words": ((*NEW, "--reward-range", "some"), "must be two numbers such as 0,1; got 'some'"),
    "a missing column": (("ingest", "clicks.csv", *COLUMNS[:-1], "who"), "user column 'who' is not in"),
    "a missing file": (("ingest", "no.csv", *COLUMNS), "is not a file and matches none"),
    "a table of a file": ((*INGEST, "--table", "t"), "table is for databases"),
    "a table of a database that is named as a file": (
        ("ingest", "foreign.db", *COLUMNS, "--table", "t"),
        "table is for databases, such as sqlite:///file.db; got 't'",
    ),
    "a database that is named as a file": (
        ("ingest", "foreign.db", *COLUMNS),
        "got 'foreign.db'; a table of a database is sqlite:///FILE with table (--table)",
    ),
    "a person as an argument": (("forget", "116"), "(116); name people with --user"),
    "a certificate as an argument": (
        ("certificate", "show", "ann.json"),
        "(ann.json); name people with --user; a certificate in a FILE is for certificate verify FILE",
    ),
    "two logs": ((*INGEST, "more.csv"), "(more.csv); see armnesia ingest --help"),
    "a database without a table": (("ingest", "sqlite:///foreign.db", *COLUMNS), "needs the name of a table"),
    "an action that is not declared": (
        ("ingest", "undeclared.csv"),
        "must hold declared actions",
    ),
    "columns of the bundled log": (("ingest", "flights", *COLUMNS), "has its own columns"),
    "an id that means two rows": (("ingest", "contradicting.csv", *COLUMNS, "--id-column", "row"), "an id"),
    "options of a log": (("decide", "--learner", "lcb"), "such options need LOG"),
    "no names": (("forget",), "one of --user (repeatable), --file, --records and --records-file"),
    "two ways to name": ((*FORGET, "--records", "r1"), "one of --user"),
    "an empty name": (("forget", "--user", ""), "none of them empty"),
    "a column of no file": ((*FORGET, "--column", "person"), "--column belongs to --file"),
    "no file of people": (("forget", "--file", "no"), "No such file"),
    "an empty file of people": (("forget", "--file", "empty"), "must name at least one person"),
    "several columns": (("forget", "--file", "clicks.csv"), "has 4 columns; choose one with --column"),
    "no such column": (("forget", "--file", "clicks.csv", "--column", "who"), "has no column 'who'"),
    "a ragged file": (("forget", "--file", "ragged"), "line 2 has not"),
    "a file that is no text": (("forget", "--file", "vault.db"), "--file must be CSV in UTF-8"),
    "a budget below 0": ((*FORGET, "--epsilon", "-1", "--delta", "0"), "epsilon must be 0 or more; got -1"),
    "a budget below 0 for a stranger": (
        ("forget", "--user", "x", "--epsilon", "-1", "--delta", "0"),
        "0 or more; got -1",
    ),
    "a delta above 1": ((*FORGET, "--epsilon", "1", "--delta", "7"), "between 0 and 1; got 7"),
    "half a budget": ((*FORGET, "--epsilon", "1"), "with --delta; got --epsilon 1"),
    "the other half of a budget": ((*FORGET, "--delta", "0", "--dry-run"), "with --delta; got --delta 0"),
    "noise with delta 0, to forget": ((*GAUSSIAN, "--delta", "0"), "choose delta > 0"),
    "beyond the policy": ((*GAUSSIAN, "--delta", "1e-5"), "the vault's policy allows up to epsilon = 0"),
    "a dry run beyond the policy": ((*GAUSSIAN, "--delta", "1e-5", "--dry-run"), "policy allows"),
    "no such unlearner": ((*FORGET, "--unlearner", "magic"), "unlearner must be one of"),
    "a certificate of a dry run": ((*FORGET, "--dry-run", "--certificate", "c"), "no --certificate to write"),
    "a certificate over a file": ((*FORGET, "--certificate", "clicks.csv"), "clicks.csv exists already"),
    "a certificate in no folder": ((*FORGET, "--certificate", "no/c"), "a folder that exists; no does not"),
    "readmitting who is not out": (("readmit", "--user", "u1"), "1 of the 1 named is not on"),
    "a policy below the default": (("policy", "--levels", "request_shape"), "is beyond a policy of up to"),
    "no checkpoint": (("verify", "--checkpoint", "clicks.csv"), "clicks.csv is no checkpoint of a ledger"),
    "no checkpoint of a ledger": (("ledger", "--checkpoint", "no"), "no cannot be read: No such file"),
    "two questions": (("ledger", "--checkpoint-only", "--checkpoint", "x"), "exclude each other; give one"),
    "an export over a file": (("export", "clicks.csv"), "clicks.csv exists already"),
    "a backup over a file": (("backup", "clicks.csv"), "clicks.csv exists already; nothing was written"),
    "a certificate without a request": (("certificate", "show"), "one of --user"),
    "no such certificate": (
        ("certificate", "show", "--user", "u1"),
        "there is no certificate: nobody was forgotten here by this name",
    ),
    "an entry without one": (
        ("certificate", "show", "--sequence", "1"),
        "entry 1 of the ledger is no deletion",
    ),
    "no file to verify": (
        ("certificate", "verify", "no", "--public-key", "ab" * 32),
        "no cannot be read: No such file",
    ),
    "restoring from nothing": (("restore", "no"), "the journal no is missing"),
    "restoring from a log": (("restore", "closed.csv"), "closed.csv"),
}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a vault in it, and with things that are none; no test here may change it."""
    from armnesia.vault import Configuration, Vault

    folder = tmp_path_factory.mktemp("vault")
    log = write_clicks(folder / "clicks.csv")
    with Vault.create(f"sqlite:///{folder}/vault.db", Configuration(actions=("A", "B", "C"))) as made:
        made.ingest(log, action="variant", reward="clicked", user="person", id="row")
    Vault.create(f"sqlite:///{folder}/another.db").close()
    (folder / "folder").mkdir()
    with sqlite3.connect(folder / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE other (x)")
    foreign.close()
    for name, text in (
        ("undeclared.csv", "row,variant,clicked,person\nn1,A,1,u1\nn2,D,0,u2\n"),
        ("contradicting.csv", "row,variant,clicked,person\nr0,A,1,a0\n"),
        ("empty", ""),
        ("ragged", "u1\nu2,u3\n"),
        ("closed.csv", "variant,clicked\n"),
    ):
        (folder / name).write_text(text)
    (folder / "closed.csv").chmod(0o600)
    return folder


@pytest.fixture(autouse=True)
def in_the_folder(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(vault)
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)


def without_counters(folder: Path) -> dict[str, bytes]:
    """Every file; of a database without the counter of SQLite's transactions, which may be empty ones."""
    found = contents(folder)
    found["vault.db"] = b"".join((found["vault.db"][:24], found["vault.db"][28:92], found["vault.db"][96:]))
    return found


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_nothing_is_written(run: Any, vault: Path, case: str) -> None:
    arguments, sentence = REFUSALS[case]
    before = without_counters(vault)
    refused = run(*arguments)
    assert refused.code == 2
    assert sentence in refused.err
    assert refused.err.startswith("armnesia: ")
    assert refused.err.count("\n") == 1
    assert refused.out == ""
    assert "secret" not in refused.err
    assert without_counters(vault) == before


def test_a_reward_out_of_range_far_down_leaves_nothing(run: Any, vault: Path, tmp_path: Path) -> None:
    log = tmp_path / "large.csv"
    rows = "".join(f"n{row},A,1,\n" for row in range(60_000))
    log.write_text(f"row,variant,clicked,person\n{rows}last,A,1.5,\n")
    before = contents(vault)
    refused = run("ingest", log)
    assert refused.code == 2
    assert "must hold a number from 0.0 to 1.0, the reward range, in every row; got '1.5'" in refused.err
    assert "at row 60001: " in refused.err
    assert refused.err.count("\n") == 1
    assert contents(vault) == before


def test_messages_do_not_quote_lists_of_people(run: Any, tmp_path: Path) -> None:
    people = tmp_path / "people"
    for text, options in (
        ("ann\nbob\n", ("--column", "person")),
        ("ann,bob\n", ()),
        ("ann\nbob,eve\n", ()),
        ('ann\n"bob\n', ()),
    ):
        people.write_text(text)
        refused = run("forget", "--file", people, *options)
        assert refused.code == 2
        assert not any(name in refused.err for name in ("ann", "bob", "eve"))


def test_a_keys_file_that_others_may_read_is_refused(run: Any, vault: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes((vault / "vault.db.keys").read_bytes())
    keys.chmod(0o640)
    refused = run("decide", "--keys", keys)
    assert refused.code == 2
    assert "is accessible to other users (mode 0640); restrict it with: chmod 600" in refused.err


@pytest.mark.parametrize("arguments", [NEW], ids=["init"])
def test_without_the_extra_the_command_says_what_to_install(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    from armnesia.vault.keys import signatures

    signatures._private_key.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    before = without_counters(vault)
    refused = run(*arguments)
    assert refused.code == 2
    assert refused.err == (
        'armnesia: The vault needs an optional dependency: pip install "armnesia[vault]", or in a checkout'
        ' pip install ".[vault]"\n'
    )
    assert without_counters(vault) == before
