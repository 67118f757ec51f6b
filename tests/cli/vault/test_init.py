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
    assert names == {"clicks.csv", "vault.db", "vault.db.keys", "vault.db.keys.journal"}
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
        "learner_options": {},
        "may_erase_at_source": False,
        "columns": {},
        "by": [],
        "most_decisions": 100_000,
        "declared_decisions": 0,
        "organisation": None,
        "arms": [],
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
        ((), "default_action must be one of the actions, which must be declared; got 'A'"),
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


def test_people_who_were_forgotten_elsewhere_stay_out(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    new = ("--url", "sqlite:///new.db")
    made = run("init", "--user-type", "text", "--forgotten-from", "vault.db.keys.journal", *new)
    assert made.code == 0, made.err
    assert run("status", "--json", *new).json["suppressed"] == 1
    assert run(*INGEST, *new, "--json").json["suppressed"] == 40
    for other in (
        ("--user-type", "integer", "--forgotten-from", "vault.db.keys.journal"),
        ("--forgotten-from", "no"),
    ):
        refused = run("init", *other, "--url", "sqlite:///other.db")
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert not Path("other.db").exists()


RARE = "\n".join(["action,reward,user", *(f"{'AB'[n % 2]},{int(n % 100 == 0)},{n}" for n in range(2000))])
STARS = "action,reward,user\n" + "".join(f"{n % 3},{1 + n % 2 * 3.5},ann\n" for n in range(3000))


@pytest.mark.parametrize(
    ("log", "options", "proposed"),
    [
        (
            RARE,
            (),
            {"actions": ["A", "B"], "reward_range": [0, 1], "user_type": "integer", "learner": "kl_lcb"},
        ),
        (
            STARS,
            (),
            {"actions": [0, 1, 2], "reward_range": [1, 5], "user_type": "text", "learner": "lcb"},
        ),
        (
            RARE,
            ("--actions", "B,A,C", "--reward-range", "0,2", "--user-type", "text", "--learner", "greedy"),
            {"actions": ["B", "A", "C"], "reward_range": [0, 2], "user_type": "text", "learner": "greedy"},
        ),
        (RARE, ("--unlearner", "gaussian", "--epsilon", "1", "--delta", "1e-5"), {"learner": "lcb"}),
    ],
)
def test_a_log_proposes_what_is_not_given(
    run: Any, folder: Path, log: str, options: tuple[str, ...], proposed: dict[str, Any]
) -> None:
    Path("log.csv").write_text(log)
    made = run("init", "--like", "log.csv", *options, "--json")
    assert (made.code, made.err) == (0, "")
    assert {name: made.json["configuration"][name] for name in proposed} == proposed
    assert run("ingest", "log.csv").code == 0


def test_what_was_proposed_is_printed(run: Any, folder: Path) -> None:
    Path("rare.csv").write_text(RARE.replace("action,reward,user", "arm,won,who"))
    columns = ("--action-column", "arm", "--reward-column", "won", "--user-column", "who")
    first = run("init", "--like", "rare.csv", *columns).out.splitlines()[0]
    assert first == (
        "Like rare.csv, 2000 rows: 2 actions ('A', 'B'), rewards from 0 to 1, user type integer,"
        " learner kl_lcb (rewards are rare for so few rows)."
    )
    Path("wrong.csv").write_text("action,reward\nA,1\nB,x\n")
    for wrong in (("--like", "wrong.csv"), ("--like", "none.csv"), ("--action-column", "arm")):
        refused = run("init", *wrong, "--url", "sqlite:///other.db")
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert not Path("other.db").exists()
