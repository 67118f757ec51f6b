"""What a stream remembers: the records that are left, bit for bit, and at most how many were deleted."""

import pickle
from dataclasses import dataclass, fields, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import (
    KLLCB,
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Imitation,
    Level,
    Release,
    Rollback,
    Stream,
    Tilt,
    Unlearner,
)
from armnesia.core.errors import ImpossibleDeletionError, InvalidInputError, UnsupportedError
from armnesia.unlearners.stream import Penalty
from tests.quick import examples

ACTIONS = ("A", "B", "C")
BUDGET = Budget(epsilon=1.0, delta=1e-3)
PENALTIES: tuple[Penalty, ...] = ("retained", "frozen")
LEARNER = LCB(confidence=0.05)

Rewards = list[list[float]]
rewards = st.lists(st.lists(st.integers(0, 7).map(lambda r: r / 7), max_size=12), min_size=3, max_size=3)


def records(of_arms: Rewards) -> ArmStatistics:
    return ArmStatistics.from_rewards(dict(zip(ACTIONS, of_arms, strict=True)))


def request(of_arms: Rewards) -> DeletionRequest:
    return DeletionRequest.from_rewards(dict(zip(ACTIONS, of_arms, strict=True)))


def live(
    kept: Rewards, deleted: Rewards, later: Rewards, penalty: Penalty, kind: type[Stream] = Stream
) -> tuple[Release, Stream]:
    """Some records, some that will go, the deletion, then a later month with a deletion of its own."""
    stream = kind(LEARNER, records(kept), penalty).add(records(deleted))
    _, stream = stream.forget(Tilt(), request(deleted), BUDGET)
    return stream.add(records(later)).forget(Tilt(), request(later), BUDGET)


@dataclass(frozen=True, eq=False)
class Leaky(Stream):
    """The planted fault: a deletion by subtracting rounded means leaves a trace of the deleted rewards."""

    def forget(
        self, unlearner: Unlearner, request: DeletionRequest, budget: Budget
    ) -> tuple[Release, "Stream"]:
        release, later = super().forget(unlearner, request, budget)
        trace = np.where(later.statistics.sums > 0, request.sums.sum() % 2, 0)
        left = replace(later.statistics, sums=later.statistics.sums - trace, products=None)
        return release, replace(later, statistics=left)


@examples(50)
@given(rewards, rewards, rewards, st.randoms(use_true_random=False), st.sampled_from(PENALTIES))
def test_later_states_do_not_depend_on_the_deleted_rewards(
    kept: Rewards, deleted: Rewards, later: Rewards, random: Random, penalty: Penalty
) -> None:
    """Other rewards, the same counts: state and later release are equal to the last bit."""
    others = [[random.random() for _ in arm] for arm in deleted]
    one, after_one = live(kept, deleted, later, penalty)
    other, after_other = live(kept, others, later, penalty)
    assert after_one == after_other
    assert after_one.statistics.sums.tobytes() == after_other.statistics.sums.tobytes()
    assert one.probabilities.tobytes() == other.probabilities.tobytes()


@examples(50)
@given(rewards, rewards, rewards, rewards)
def test_with_retained_penalties_not_even_the_counts_leave_a_trace(
    kept: Rewards, deleted: Rewards, others: Rewards, later: Rewards
) -> None:
    one, after_one = live(kept, deleted, later, "retained")
    other, after_other = live(kept, others, later, "retained")
    assert after_one == after_other
    assert one.probabilities.tobytes() == other.probabilities.tobytes()
    # And it is what retraining on the rest gives.
    assert after_one == Stream(LEARNER, records(kept), "retained")


def test_the_comparison_of_states_sees_a_trace() -> None:
    kept, later = [[1.0, 0.0], [1.0], []], [[1.0], [], []]
    one, other = ([[reward], [], []] for reward in (0.0, 1e-9))
    for penalty in PENALTIES:
        assert live(kept, one, later, penalty)[1] == live(kept, other, later, penalty)[1]
        assert live(kept, one, later, penalty, Leaky)[1] != live(kept, other, later, penalty, Leaky)[1]


@examples(40)
@given(st.lists(rewards, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(batches: list[Rewards], random: Random) -> None:
    """Each batch comes, and every second one goes again: in any order that can be, the end is the same."""
    ends = []
    for _ in range(3):
        stream, waiting = Stream(LEARNER, ArmStatistics.empty(ACTIONS), "frozen"), []
        for number in random.sample(range(len(batches)), len(batches)):
            stream = stream.add(records(batches[number]))
            waiting += [number] if number % 2 else []
            if random.random() < 0.5:
                while waiting:
                    stream = stream.forget(Rollback(), request(batches[waiting.pop()]), BUDGET)[1]
        while waiting:
            stream = stream.forget(Rollback(), request(batches[waiting.pop()]), BUDGET)[1]
        ends.append(stream)
    assert ends[0] == ends[1] == ends[2]
    totals = np.array([[len(a) for a in b] for b in batches[1::2]], dtype=np.int64).reshape(-1, 3).sum(axis=0)
    np.testing.assert_array_equal(ends[0].deleted_counts, totals)


@examples(40)
@given(rewards, rewards, rewards)
def test_frozen_rollback_releases_what_the_frozen_stream_then_serves(
    kept: Rewards, deleted: Rewards, earlier: Rewards
) -> None:
    """Its release already has the penalty that the stream keeps: nothing changes by itself afterwards."""
    stream = Stream(LEARNER, records(kept), "frozen").add(records(earlier)).add(records(deleted))
    _, stream = stream.forget(Rollback(), request(earlier), BUDGET)
    release, stream = stream.forget(FrozenRollback(), request(deleted), BUDGET)
    assert int(np.argmax(release.probabilities)) == int(stream.decision().index)
    scores = stream.current_learner.unit_scores(stream.statistics)
    counts = stream.statistics.counts + [len(a) + len(b) for a, b in zip(deleted, earlier, strict=True)]
    expected = LEARNER.lower_bounds(stream.statistics.unit_means, np.maximum(counts, 1), 3)
    np.testing.assert_array_equal(scores, np.where(stream.statistics.counts > 0, expected, -1.0))


def test_levels_are_the_weaker_of_unlearner_and_stream() -> None:
    statistics = records([[1.0] * 9, [0.0, 1.0] * 4, [1.0]])
    deleted = request([[1.0, 1.0], [0.0], []])
    levels = {
        (unlearner.name, penalty): Stream(LEARNER, statistics, penalty)
        .forget(unlearner, deleted, BUDGET)[0]
        .guarantee.level
        for unlearner in (Rollback(), FrozenRollback(), Tilt(assumed_share=0.1))
        for penalty in PENALTIES
    }
    assert levels == {
        ("rollback", "retained"): Level.RETAINED,
        ("rollback", "frozen"): Level.REQUEST_SHAPE,
        ("frozen_rollback", "retained"): Level.REQUEST_SHAPE,
        ("frozen_rollback", "frozen"): Level.REQUEST_SHAPE,
        ("tilt", "retained"): Level.RETAINED,
        ("tilt", "frozen"): Level.REQUEST_SHAPE,
    }


def test_a_failed_request_leaves_everything_as_it_was() -> None:
    stream = Stream(LEARNER, records([[1.0], [0.0], []]), "frozen")
    with pytest.raises(ImpossibleDeletionError):
        stream.forget(Rollback(), request([[1.0, 1.0], [], []]), BUDGET)
    assert stream == Stream(LEARNER, records([[1.0], [0.0], []]), "frozen")


def test_a_batch_of_streams_is_its_streams_one_by_one() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(3, 40, size=(6, 3))
    ones = rng.binomial(counts, 0.4)
    deleted = rng.integers(0, 3, size=(6, 3))
    deleted_ones = rng.hypergeometric(ones, counts - ones, deleted)

    def of(rows: "int | slice") -> tuple[ArmStatistics, DeletionRequest]:
        whole = ArmStatistics(ACTIONS, counts[rows], ones[rows] * 10**9)
        return whole, DeletionRequest(ArmStatistics(ACTIONS, deleted[rows], deleted_ones[rows] * 10**9), True)

    new = records([[1.0], [], [0.5]])
    statistics, deletion = of(slice(None))
    release, batch = Stream(LEARNER, statistics, "frozen").forget(Tilt(), deletion, BUDGET)
    batch = batch.add(new)
    for row in range(6):
        statistics, deletion = of(row)
        one_release, one = Stream(LEARNER, statistics, "frozen").forget(Tilt(), deletion, BUDGET)
        one = one.add(new)
        np.testing.assert_allclose(release.probabilities[row], one_release.probabilities, rtol=0, atol=1e-14)
        assert batch.decision().index[row] == one.decision().index
        assert batch.deleted_counts is not None
        np.testing.assert_array_equal(batch.deleted_counts[row], one.deleted_counts)


def test_one_log_serves_a_batch_of_possible_requests() -> None:
    stream = Stream(LEARNER, records([[1.0] * 4, [0.0], []]), "frozen")
    counts = np.array([[1, 0, 0], [3, 1, 0]])
    several = DeletionRequest(ArmStatistics(ACTIONS, counts, np.array([[1, 0, 0], [3, 0, 0]]) * 10**9), True)
    _, later = stream.forget(FrozenRollback(), several, BUDGET)
    np.testing.assert_array_equal(later.deleted_counts, counts)
    np.testing.assert_array_equal(later.add(records([[], [], [1.0]])).deleted_counts, counts)


def test_a_stream_is_a_value() -> None:
    stream = Stream(LEARNER, records([[1.0], [0.0], []]), "frozen")
    copy = pickle.loads(pickle.dumps(stream))
    assert copy == stream
    assert hash(copy) == hash(stream)
    assert stream != Stream(LEARNER, stream.statistics, "retained")
    assert stream != replace(stream, deleted_counts=np.array([1, 0, 0]))
    assert stream != "a stream"
    assert stream.deleted_counts is not None
    assert not stream.deleted_counts.flags.writeable
    assert not copy.deleted_counts.flags.writeable


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_later_state_has_the_fields_of_a_stream_and_nothing_else(penalty: Penalty) -> None:
    stream = Stream(LEARNER, records([[1.0, 0.0], [0.0], []]), penalty)
    stream.__dict__["deleted_rewards"] = [1.0]
    _, forgotten = stream.forget(Tilt(), request([[1.0], [], []]), BUDGET)
    for later in (stream.add(records([[], [1.0], []])), forgotten):
        assert set(vars(later)) == {field.name for field in fields(Stream)}


def test_refusals_are_one_clear_sentence() -> None:
    statistics = records([[1.0], [0.0], []])
    with pytest.raises(InvalidInputError, match="penalty must be 'retained' or 'frozen'; got 'thawed'"):
        Stream(LEARNER, statistics, "thawed")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="has no confidence yet"):
        Stream(KLLCB(), statistics)
    with pytest.raises(UnsupportedError, match="got 'imitation'"):
        Stream(Imitation(), statistics, "frozen")
    assert Stream(Imitation(), statistics).decision().action == "A"
    with pytest.raises(InvalidInputError, match="deleted_counts must be None with penalty='retained'"):
        Stream(LEARNER, statistics, "retained", np.array([1, 0, 0]))
    with pytest.raises(InvalidInputError, match=r"shape of the statistics' counts, \(3,\); got \(2,\)"):
        Stream(LEARNER, statistics, "frozen", np.array([1, 0]))
    with pytest.raises(InvalidInputError, match="learner must not have a frozen penalty"):
        Stream(LEARNER.with_frozen_penalty([1, 0, 0]), statistics)
