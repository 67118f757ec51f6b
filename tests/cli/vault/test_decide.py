"""The command `decide` without a log."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import COLUMNS


def test_decide_without_a_log_tells_what_the_vault_serves(run: Any, vault: Path) -> None:
    served = run("decide", "--json").json
    assert set(served) == {"action", "by", "head", "margin"}
    assert (served["action"], served["by"]) == ("B", "learner")
    assert "Served: B (decided by the learner" in run("decide").out
    of_a_log = run("decide", "clicks.csv", *COLUMNS, "--actions", "A,B")
    assert "200 rows" in of_a_log.out


@pytest.mark.usefixtures("folder")
def test_a_vault_without_actions_serves_nothing_yet(run: Any) -> None:
    run("init")
    assert run("decide", "--json").json["action"] is None
    assert "nothing yet" in run("decide").out
