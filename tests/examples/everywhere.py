"""A program: uses the examples in every place that takes a learner or an unlearner. Run in a scratch package.

Prints what it did; an assertion fails otherwise.
"""

import sys
from pathlib import Path

import numpy as np

import armnesia as am
from armnesia.core.errors import UnsupportedError
from armnesia.core.parameters import build
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from armnesia.vault.configuration import Configuration

assert Path(am.__file__).is_relative_to(sys.argv[1]), "this must be the scratch package"

lottery = build(am.UNLEARNERS["lottery"], {"keep": 0.2})
root = build(am.LEARNERS["root_penalty"], {"width": 0.8})
statistics = am.ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 55 + [0] * 45})
request = am.DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
budget = am.Budget(epsilon=0.5, delta=0.1)

# The new learner with every unlearner, and all of them in a comparison.
found = {each.name: each for each in am.compare(root, statistics, request, budget, variants=[lottery])}
assert set(found) == set(am.UNLEARNERS)
assert [name for name, each in found.items() if each.refused] == ["imitation_rollback"]
assert found["imitation_rollback"].refused.endswith("got 'root_penalty', for which use rollback or lottery")
np.testing.assert_allclose(found["lottery"].probabilities, [0.1, 0.9])  # type: ignore[arg-type]
for name, kind in am.UNLEARNERS.items():
    if not found[name].refused:
        assert am.audit(kind(), root, statistics, request, budget).holds, name

# The new unlearner with every learner; nothing is taken on its word.
for learner in (am.LCB(confidence=0.5), am.KLLCB(confidence=0.5), am.Imitation(), root):
    assert am.audit(lottery, learner, statistics, request, budget).holds
    level = am.feasible_reference(lottery, learner, level="retained", budget=budget, max_count=2)
    assert level.holds

# Streams with both penalties.
for penalty in ("retained", "frozen"):
    stream = am.Stream(root, statistics, penalty)  # type: ignore[arg-type]
    release, stream = stream.forget(lottery, request, budget)
    assert stream.decision().action in "AB"
    gaussian, _ = stream.forget(am.Gaussian(), request, budget)
    assert gaussian.probabilities.sum() > 1 - 1e-12

# Simulation: exact for the learner, sampled for the unlearner, whose formula nobody has derived.
case = Environment.bernoulli([0.5, 0.4]), FixedSample((30, 30)), OneArm(0, 10)
try:
    evaluate(*case, lottery, budget, protocol="exact")
except UnsupportedError as refusal:
    assert str(refusal) == "exact evaluation does not know 'lottery'; use the sampled protocol"
sampled = evaluate(*case, lottery, budget, datasets=1000)
assert sampled.protocol == "sampled"

# The vault's configuration.
made = Configuration(actions=("A", "B"), unlearner="lottery", options={"keep": 0.2}, delta=0.1, learner="lcb")
assert made.make_unlearner() == lottery
assert Configuration(actions=("A", "B"), learner="root_penalty").make_learner().name == "root_penalty"

print("compared, audited, streamed, simulated and configured")
