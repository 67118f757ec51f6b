"""The command `init`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import COLUMNS, INGEST, mode_of


def test_init_makes_files_for_their_owner_only(run: Any, clicks: Path) -> None:
    folder = clicks.parent
    made = run("init", "--json").json
    assert set(made) == {"vault", "location", "keys", "public_key", "head", "configuration"}
    assert made["configuration"]["unlearner"] == "rollback"
    assert made["configuration"]["actions"] is None
    assert made["head"].startswith("1:")
    names = {path.name for path in folder.iterdir()}
    assert names == {"clicks.csv", "vault.db", "vault.db-queue", "vault.db.keys", "vault.db.keys.head"}
    assert {mode_of(folder / name) for name in names - {"clicks.csv"}} == {0o600}


@pytest.mark.usefixtures("folder")
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
        *("--user-type", "integer"),
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
        "user_type": "integer",
    }


def test_a_vault_without_records_serves_its_default_action(run: Any, folder: Path) -> None:
    made = run("init", "--actions", "left,middle,right", "--default-action", "middle", "--json").json
    assert made["configuration"]["learner_options"] == {"default_action": "middle"}
    assert run("decide", "--json").json["action"] == "middle"
    Path("log.csv").write_text("action,reward,user\n" + "right,1,ann\n" * 40)
    assert run("ingest", "log.csv", "--json").json["served"] == "right"
    assert run("forget", "--user", "ann", "--json").json["served"] == "middle"
    assert run("verify", "--json").json["holds"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--actions", "left,right"), "default_action must be one of 'left', 'right'; got 'A'"),
        ((), "default_action needs declared actions; got 'A' without actions"),
    ],
)
def test_a_default_action_must_be_declared(
    run: Any, folder: Path, options: tuple[str, ...], said: str
) -> None:
    refused = run("init", *options, "--default-action", "A")
    assert (refused.code, refused.err) == (2, f"armnesia: {said}\n")
    assert list(folder.iterdir()) == []


def test_where_the_vault_is_may_come_from_the_environment(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMNESIA_URL", f"sqlite:///{folder}/elsewhere.db")
    monkeypatch.setenv("ARMNESIA_KEYS", str(folder / "my.keys"))
    made = run("init", "--json").json
    assert (made["location"], made["keys"]) == (f"{folder}/elsewhere.db", str(folder / "my.keys"))
    assert run("status", "--json").json["vault"] == made["vault"]


@pytest.mark.parametrize("actions", ["A,,B", "A,B,", "", " , "])
def test_an_action_without_a_name_is_refused(run: Any, clicks: Path, actions: str) -> None:
    for command in (("init",), ("decide", "clicks.csv", *COLUMNS)):
        refused = run(*command, "--actions", actions)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == (
            f"armnesia: --actions must be labels such as A,B,C, none of them empty; got {actions!r}\n"
        )
    assert [path.name for path in clicks.parent.iterdir()] == ["clicks.csv"]


def test_init_makes_a_successor(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    new = ("--url", "sqlite:///new.db")
    made = run("init", "--reward-range", "0,5", "--successor-of", "sqlite:///vault.db", *new)
    assert made.code == 0, made.err
    old = run("status", "--json").json["vault"]
    head = run("ledger", "--head-only").out.strip()
    assert f"It succeeds the vault {old} at head {head}." in made.out
    assert run("status", "--json", *new).json["suppressed"] == 1
    assert run(*INGEST, *new, "--json").json["suppressed"] > 0
    keys = run("public-key", "--of", old, "--json", *new).out
    Path("old-keys.json").write_text(keys, encoding="utf-8")
    assert run("certificate", "verify", "u1.json", "--public-key", "old-keys.json").code == 0
    Path("new-keys.json").write_text(run("public-key", "--json", *new).out, encoding="utf-8")
    assert run("certificate", "verify", "u1.json", "--public-key", "new-keys.json").code == 1


def test_a_successor_is_refused_in_one_sentence(run: Any, vault: Path) -> None:
    new = ("--url", "sqlite:///new.db")
    alone = run("init", "--successor-keys", "vault.db.keys", *new)
    assert (alone.code, len(alone.err.splitlines())) == (2, 1)
    missing = run("init", "--successor-of", "sqlite:///other.db", *new)
    assert missing.code == 2
    assert "there is no vault at 'other.db'" in missing.err
    other = run("init", "--user-type", "integer", "--successor-of", "sqlite:///vault.db", *new)
    assert other.code == 2
    assert "user_type must be text, or not be given; got integer" in other.err
    assert not Path("new.db").exists()
    unknown = run("public-key", "--of", "v-1")
    assert unknown.code == 2
    assert (
        "--of must be the id of a vault that this one succeeds, and it succeeds none; got 'v-1'"
        in unknown.err
    )
