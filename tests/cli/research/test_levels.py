"""The command `levels`."""

from typing import Any

import pytest


@pytest.mark.slow
def test_levels_refutes_and_confirms(run: Any) -> None:
    arguments = (
        "research",
        "levels",
        "--unlearner",
        "adaptive",
        "--epsilon",
        "5",
        "--delta",
        "1e-5",
        "--max-count",
        "4",
    )
    rows = run(*arguments, "--json").json["levels"]
    assert {row["level"]: row["holds"] for row in rows} == {
        "retained": False,
        "request_shape": False,
        "original_decision": True,
    }
    shown = run(*arguments).out
    assert "claimed" in shown
    assert "gaussian: " in shown  # how often noise was added: without it nothing is tested
    imitation = run(
        "research", "levels", "--unlearner", "imitation_rollback", "--max-count", "3", "--json"
    ).json["levels"]
    assert [row["holds"] for row in imitation] == [True, None, None]
