"""What is refused, and in which words."""

from collections.abc import Callable
from typing import Any

import pytest

from armnesia import (
    LCB,
    Adaptive,
    ArmStatistics,
    Budget,
    DeletionRequest,
    Gaussian,
    Mixing,
    MultiSource,
    Rollback,
    Tilt,
    Unlearner,
    audit,
    compare,
    compare_jointly,
    release_jointly,
)
from armnesia.core.errors import ArmnesiaError, ImpossibleDeletionError, InvalidInputError, UnsupportedError

LEARNER = LCB(confidence=0.05)
BUDGET = Budget(epsilon=2.0, delta=1e-4)
NO_VARIANT: Any = "x"
DATA = ArmStatistics.from_rewards({"a": [1] * 20 + [0.5] * 10 + [0] * 10, "b": [1] * 15 + [0] * 15})


def request(a: list[float], b: list[float]) -> DeletionRequest:
    return DeletionRequest.from_rewards({"a": a, "b": b})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Adaptive(threshold=NO_VARIANT), "threshold must be 'paper' or 'exact'; got 'x'"),
        (lambda: MultiSource(sensitivity=NO_VARIANT), "sensitivity must be .* got 'x'"),
        (lambda: Gaussian(sensitivity=NO_VARIANT), "sensitivity must be"),
        (lambda: Mixing(sensitivity=NO_VARIANT), "sensitivity must be"),
        (lambda: Adaptive(threshold_scale=-0.1), "threshold_scale must be finite and not negative; got -0.1"),
        (lambda: Adaptive(threshold_scale=float("nan")), "threshold_scale"),
        (lambda: Adaptive(threshold_scale=float("inf")), "threshold_scale"),
        (lambda: Mixing(ratio=1.01), r"ratio must lie in \[0, 1\]; got 1.01"),
        (lambda: Mixing(ratio=-0.5), "ratio"),
        (lambda: Mixing(ratio=float("nan")), "ratio"),
        *(
            (
                lambda wrong=wrong: Mixing(rolled_back=wrong),
                f"rolled_back must be a whole number, 0 or more, .*; got {wrong!r}",
            )
            for wrong in (-1, 2.5, True, "3")
        ),
        (lambda: Mixing(ratio=0.5, rolled_back=3), "ratio or rolled_back, not both"),
    ],
)
def test_bad_options(make: Callable[[], Unlearner], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.parametrize("unlearner", [Gaussian(), Adaptive(), MultiSource(), Mixing()], ids=repr)
def test_an_unbound_learner_is_refused(unlearner: Unlearner) -> None:
    with pytest.raises(InvalidInputError, match="no confidence yet"):
        unlearner.release(LCB(), DATA, request([1], []), BUDGET)


def test_mixing_takes_one_arm() -> None:
    with pytest.raises(
        UnsupportedError,
        match="takes requests of one arm; this one touches several: use rollback, gaussian, centred_gaussian",
    ):
        Mixing().release(LEARNER, DATA, request([1, 1], [1]), BUDGET)


def test_mixing_cannot_choose_among_rewards_it_does_not_know() -> None:
    with pytest.raises(
        UnsupportedError, match=r"needs rewards that are all 0 or 1.*pass the chosen records as rolled_back"
    ):
        Mixing().release(LEARNER, DATA, request([0.5, 1, 0, 0], []), BUDGET)


def test_mixing_need_not_choose_where_all_or_nothing_is_rolled_back() -> None:
    for ratio in (0.0, 1.0):
        result = Mixing(ratio=ratio).release(LEARNER, DATA, request([0.5, 1, 0, 0], []), BUDGET)
        assert result.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    "part",
    [
        request([1, 1, 1], []),  # U holds two ones only
        request([0.5], [1]),  # of another arm too
        request([], [0]),  # of another arm
        request([1, 1, 0.5, 0, 0], []),  # more records than U
    ],
    ids=lambda part: str(part.counts) + str(part.sums),
)
def test_mixing_refuses_a_part_that_is_not_of_the_request(part: DeletionRequest) -> None:
    whole = request([1, 1, 0.5, 0], [])
    with pytest.raises(ImpossibleDeletionError, match="does not contain"):
        Mixing(rolled_back=part).release(LEARNER, DATA, whole, BUDGET)


def test_a_part_larger_than_the_arm_is_refused_before_anything_is_computed() -> None:
    small, part = ArmStatistics.from_rewards({"a": [1] * 10, "b": [0]}), request([1] * 12, [])
    with pytest.raises(ImpossibleDeletionError):
        Mixing(rolled_back=part, sensitivity="paper").release(LEARNER, small, request([1] * 3, []), BUDGET)


def test_mixing_refuses_to_roll_back_more_than_is_deleted() -> None:
    with pytest.raises(InvalidInputError, match=r"must not exceed the number of deleted records; got 5"):
        Mixing(rolled_back=5).release(LEARNER, DATA, request([1, 1, 0, 0], []), BUDGET)


def test_other_actions_or_another_range_are_refused() -> None:
    other = DeletionRequest.from_rewards({"b": [1], "a": []})
    scaled = DeletionRequest.from_rewards({"a": [1], "b": []}, reward_range=(0, 2))
    for wrong in (other, scaled):
        with pytest.raises(ArmnesiaError, match=r"actions differ|reward_range differs"):
            Gaussian().release(LEARNER, DATA, wrong, BUDGET)


@pytest.mark.parametrize("unlearner", [Tilt(), Gaussian(), Rollback()], ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("place", "given", "words"),
    [
        (0, "lcb", "learner must be a Learner, such as LCB(); got str"),
        (1, None, "statistics must be ArmStatistics, such as log.statistics(); got NoneType"),
        (2, DATA, "request must be a DeletionRequest, such as log.request(user='ann'); got ArmStatistics"),
        (3, None, "budget must be a Budget, such as Budget(epsilon=1.0, delta=1e-5); got NoneType"),
    ],
)
def test_arguments_of_another_kind_are_refused_in_one_sentence(
    unlearner: Unlearner, place: int, given: Any, words: str
) -> None:
    arguments: list[Any] = [LEARNER, DATA, request([1], []), BUDGET]
    arguments[place] = given
    calls: list[Callable[[], Any]] = [
        lambda: audit(unlearner, *arguments),
        lambda: compare(*arguments),
        lambda: release_jointly(unlearner, *arguments),
        lambda: compare_jointly(*arguments),
    ]
    if place < 3 or unlearner.needs_budget:
        calls.append(lambda: unlearner.release(*arguments))
    for call in calls:
        with pytest.raises(InvalidInputError) as refused:
            call()
        assert str(refused.value) == words
