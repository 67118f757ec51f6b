"""What is chosen by looking at a release is covered by its guarantee; by looking at earlier ones, not."""

from collections.abc import Iterator

import numpy as np
import pytest

from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Gaussian,
    Rollback,
    Stream,
    StrictAdaptive,
    Tilt,
    Unlearner,
)
from armnesia.auditing.audit import ROUNDING
from armnesia.core.arrays import FloatArray
from armnesia.privacy import hockey_stick
from armnesia.unlearners.stream import Penalty

pytestmark = pytest.mark.slow

OTHERS = ArmStatistics.from_rewards({"A": [1] * 14 + [0] * 10, "B": [1] * 13 + [0] * 11})
ROUNDS = 3


def forgotten(ones: int) -> DeletionRequest:
    """Eight records of A, of which this many are ones: all such requests have the same shape."""
    return DeletionRequest.from_rewards({"A": [1] * ones + [0] * (8 - ones), "B": []})


def transcripts(
    stream: Stream, arm: str, unlearner: Unlearner, budget: Budget, rounds: int
) -> Iterator[float]:
    """The probabilities of all sequences of later arms, in a fixed order.

    After every release, four records of the released arm arrive, and somebody with three records of that arm
    asks to be forgotten.
    """
    if rounds == 0:
        yield 1.0
        return
    collected = ArmStatistics.from_rewards({"A": [], "B": []} | {arm: [1, 1, 1, 0]})
    chosen = DeletionRequest.from_rewards({"A": [], "B": []} | {arm: [rounds % 2] * 3})
    release, after = stream.add(collected).forget(unlearner, chosen, budget)
    for label, chance in zip("AB", release.probabilities.tolist(), strict=True):
        for probability in transcripts(after, label, unlearner, budget, rounds - 1):
            yield chance * probability


def joint(first: FloatArray, after: Stream, unlearner: Unlearner, budget: Budget) -> FloatArray:
    """The distribution of the first released arm and of everything that is released after it."""
    return np.array(
        [
            chance * later
            for label, chance in zip("AB", first.tolist(), strict=True)
            for later in transcripts(after, label, unlearner, budget, ROUNDS)
        ]
    )


@pytest.mark.parametrize("penalty", ["retained", "frozen"])
@pytest.mark.parametrize(
    "unlearner",
    [Rollback(), Gaussian(), StrictAdaptive(), FrozenRollback(), Tilt(), Tilt(assumed_share=0.25)],
    ids=lambda one: f"{one.name} {one.level}",
)
def test_later_requests_that_look_at_the_release_are_covered(unlearner: Unlearner, penalty: Penalty) -> None:
    """The whole transcript is within (ε, δ) of the reference's, exactly, for every U of the same shape."""
    budget = Budget(epsilon=0.5, delta=0.01)
    seen = []
    for ones in range(9):
        request = forgotten(ones)
        stream = Stream(LCB(confidence=0.2), OTHERS.merge(request.records), penalty)
        release, after = stream.forget(unlearner, request, budget)
        assert after.statistics == OTHERS
        reference = unlearner.reference(stream.current_learner, OTHERS, budget, shape=request.counts)
        real, without = (
            joint(first, after, unlearner, budget) for first in (release.probabilities, reference)
        )
        assert real.sum() == pytest.approx(1.0, abs=1e-12)
        claim = release.guarantee
        for p, r in ((real, without), (without, real)):
            assert float(hockey_stick(p, r, claim.epsilon)) <= claim.delta + ROUNDING
        seen.append(tuple(release.probabilities.tolist()))
    if isinstance(unlearner, Gaussian | Tilt):
        assert len(set(seen)) > 1  # the release depends on U, so there is something to hide


def test_requests_that_look_at_an_earlier_decision_are_not() -> None:
    """Somebody asks to be forgotten exactly if A is served, which depends on x; then x is forgotten."""
    left = []
    for x in (0, 1):
        record = ArmStatistics.from_rewards({"A": [x] * 4, "B": []})
        stream = Stream(LCB(confidence=0.2), OTHERS.merge(record))
        if stream.decision().action == "A":
            stream = stream.forget(Rollback(), forgotten(4), Budget(epsilon=0, delta=0))[1]
        _, after = stream.forget(Rollback(), DeletionRequest(record), Budget(epsilon=0, delta=0))
        left.append(after.statistics.counts.tolist())
    assert left == [[24, 24], [16, 24]]
