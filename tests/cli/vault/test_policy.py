"""The command `policy`."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import GAUSSIAN


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
    assert "the ledger has an entry for it" in run("policy", "--beyond", "rollback").out
    run("forget", "--user", "a1", *GAUSSIAN)
    run("forget", "--user", "a3", *GAUSSIAN[:2], "--epsilon", "3", "--delta", "1e-5")
    done, too_much = run("ledger", "--json").json["entries"][-2:]
    assert (done["unlearner"]["name"], done["level"]) == ("gaussian", "request_shape")
    assert done["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert (too_much["unlearner"]["name"], too_much["level"]) == ("rollback", "retained")


@pytest.mark.parametrize("number", ["-0", "-0.0", "0"])
def test_zero_has_no_sign(run: Any, vault: Path, number: str) -> None:
    printed = run("policy", "--max-epsilon", number, "--max-delta", number).out
    assert "up to ε = 0 and δ = 0 at level" in printed
    as_json = run("policy", "--max-epsilon", number, "--json").out
    assert "-0" not in re.sub(r'"head": .*', "", as_json)
