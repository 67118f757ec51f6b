"""A program that uses the examples in every place that takes a learner or an unlearner.

It runs in a scratch package that has the examples; its argument is the folder of that package.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import armnesia as am
from armnesia.core.errors import UnsupportedError
from armnesia.core.parameters import build
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from armnesia.testing import check_learner, check_unlearner
from armnesia.vault.configuration import Configuration

STATISTICS = am.ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 55 + [0] * 45})
REQUEST = am.DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
BUDGET = am.Budget(epsilon=0.5, delta=0.1)


def compare_and_audit(lottery: am.Unlearner, root: am.Learner) -> None:
    """The learner with every unlearner, and the unlearner with every learner."""
    found = {each.name: each for each in am.compare(root, STATISTICS, REQUEST, BUDGET, variants=[lottery])}
    assert set(found) == set(am.UNLEARNERS)
    assert [name for name, each in found.items() if each.refused] == ["imitation_rollback"]
    assert found["imitation_rollback"].refused.endswith(
        "got 'root_penalty', for which use rollback or lottery"
    )
    np.testing.assert_allclose(found["lottery"].probabilities, [0.1, 0.9])  # type: ignore[arg-type]
    for name, kind in am.UNLEARNERS.items():
        if not found[name].refused:
            assert am.audit(kind(), root, STATISTICS, REQUEST, BUDGET).holds
    for learner in (am.LCB(confidence=0.5), am.KLLCB(confidence=0.5), am.Imitation(), root):
        assert am.audit(lottery, learner, STATISTICS, REQUEST, BUDGET).holds
        assert am.feasible_reference(lottery, learner, level="retained", budget=BUDGET, max_count=2).holds


def keep_the_contract(lottery: am.Unlearner, root: am.Learner) -> None:
    """Alone and together; the learner with every unlearner."""
    check_unlearner(lottery, [am.LCB(), am.Imitation(), root])
    check_learner(root)


def stream_records(lottery: am.Unlearner, root: am.Learner) -> None:
    """With both penalties."""
    for stream in (am.Stream(root, STATISTICS), am.Stream(root, STATISTICS, "frozen")):
        for unlearner in (lottery, am.Gaussian(), am.Tilt()):
            release, later = stream.forget(unlearner, REQUEST, BUDGET)
            assert release.probabilities.sum() == pytest.approx(1.0)
            assert later.decision().action in "AB"


def simulate(lottery: am.Unlearner) -> None:
    """No exact formula is known for the unlearner: "auto" samples it."""
    case = Environment.bernoulli([0.5, 0.4]), FixedSample((30, 30)), OneArm(0, 10)
    with pytest.raises(UnsupportedError, match="does not know 'lottery'; use the sampled protocol"):
        evaluate(*case, lottery, BUDGET, protocol="exact")
    assert evaluate(*case, lottery, BUDGET, datasets=1000).protocol == "sampled"


def configure_a_vault(lottery: am.Unlearner) -> None:
    """With both, by name."""
    options = {
        "unlearner": "lottery",
        "unlearner_options": {"keep": 0.2},
        "delta": 0.2,
        "learner": "root_penalty",
    }
    made = Configuration(actions=("A", "B"), **options)  # type: ignore[arg-type]
    assert (made.make_unlearner(), made.make_learner().name) == (lottery, "root_penalty")


def main(folder: str) -> None:
    """Run all of it."""
    assert Path(am.__file__).is_relative_to(folder), "this is not the scratch package"
    lottery = build(am.UNLEARNERS["lottery"], {"keep": 0.2})
    root = build(am.LEARNERS["root_penalty"], {"width": 0.8})
    keep_the_contract(lottery, root)
    compare_and_audit(lottery, root)
    stream_records(lottery, root)
    simulate(lottery)
    configure_a_vault(lottery)


if __name__ == "__main__":
    main(sys.argv[1])
