"""The command `compare`."""

from typing import Any

import armnesia as am
from tests.cli.examples import BUDGET, FOUR_BUSIEST


def test_compare_sets_all_unlearners_side_by_side(run: Any) -> None:
    result = run("compare", "flights", *FOUR_BUSIEST, *BUDGET, "--json").json
    found = {each["name"]: each for each in result["unlearners"]}
    assert set(found) == set(am.UNLEARNERS)
    assert result["decision_before"] == "DL"
    assert found["rollback"]["change"] == 1.0
    assert found["tilt"]["change"] < 1e-3
    assert found["tilt"]["guarantee"]["level"] == "request_shape"
    assert found["imitation_rollback"]["refused"]
    assumed = run("compare", "flights", *FOUR_BUSIEST, *BUDGET, "--assumed-share", 0.2, "--json").json[
        "unlearners"
    ]
    (tilt,) = [each for each in assumed if each["name"] == "tilt"]
    assert tilt["guarantee"]["level"] == "retained"
    assert 0 < tilt["change"] < 1
    shown = run("compare", "flights", *FOUR_BUSIEST, *BUDGET)
    assert shown.code == 0
    assert "Not possible here:" in shown.out
    assert run("compare", "flights", *FOUR_BUSIEST).code == 2
