"""Budgets: the noise they carry, and where the paper's calibration holds, warns and is refused."""

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError, UnprovedCalibrationWarning
from armnesia.privacy import Budget, calibrate
from armnesia.privacy import budget as budgets
from tests.quick import examples

TrueDelta = Callable[[float, float], mpmath.mpf]


def classic_gamma(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_a_budget_carries_the_noise_it_needs() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    assert (budget.epsilon, budget.delta) == (1.0, 1e-5)
    assert budget.gamma == calibrate(epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "gamma"),
    [
        (1.0, 0.0, math.inf),
        (0.0, 0.0, math.inf),
        (math.inf, 0.0, 0.0),
        (math.inf, 1e-5, 0.0),
        (0.0, 1.0, 0.0),
    ],
)
def test_the_edges_mean_what_they_say(epsilon: float, delta: float, gamma: float) -> None:
    assert Budget(epsilon=epsilon, delta=delta).gamma == gamma


@examples(100)
@given(st.floats(0.05, 100), st.floats(1e-12, 0.5))
def test_fixing_the_noise_reads_the_smallest_true_epsilon_off_the_curve(
    true_delta: TrueDelta, gamma: float, delta: float
) -> None:
    budget = Budget.from_gamma(gamma, delta=delta)
    assert (budget.gamma, budget.delta) == (gamma, delta)
    assert true_delta(gamma, budget.epsilon) <= delta
    assert budget.epsilon == 0 or true_delta(gamma, budget.epsilon * (1 - 1e-9)) > delta * (1 - 1e-9)


def test_the_paper_s_gamma_of_one_half_is_epsilon_ten_or_a_delta_of_three_percent() -> None:
    assert Budget.from_gamma(0.5, delta=1e-5).epsilon == pytest.approx(10, abs=0.01)
    assert Budget.from_gamma(0.5, delta=0.0323).epsilon == pytest.approx(5, abs=0.01)


def test_no_noise_and_nothing_but_noise() -> None:
    assert Budget.from_gamma(0, delta=1e-5).epsilon == math.inf
    assert Budget.from_gamma(math.inf, delta=1e-5).epsilon == 0
    assert Budget.from_gamma(math.inf, delta=0).gamma == math.inf
    assert Budget.from_gamma(2.0, delta=0).epsilon == math.inf
    with pytest.raises(InvalidInputError, match="gamma must be 0 or more"):
        Budget.from_gamma(-0.5, delta=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (1.0, 0.1), (0.5, 1e-12)])
def test_the_classic_calibration_is_the_paper_s_formula_and_silent_up_to_one(
    true_delta: TrueDelta, epsilon: float, delta: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget = Budget.classic(epsilon=epsilon, delta=delta)
    assert budget.gamma == pytest.approx(classic_gamma(epsilon, delta), rel=1e-15)
    assert (budget.epsilon, budget.delta) == (epsilon, delta)
    assert true_delta(budget.gamma, epsilon) <= delta
    assert budget.gamma > calibrate(epsilon=epsilon, delta=delta)  # it is safe here, and wasteful


@pytest.mark.parametrize(("epsilon", "delta"), [(1.01, 1e-5), (5.0, 1e-5), (8.3, 1e-5), (5.6, 0.1)])
def test_above_one_the_classic_calibration_warns_that_it_is_unproved(
    true_delta: TrueDelta, epsilon: float, delta: float
) -> None:
    assert true_delta(classic_gamma(epsilon, delta), epsilon) <= delta  # it holds without a proof
    with pytest.warns(
        UnprovedCalibrationWarning, match=f"proved for epsilon <= 1 only; at epsilon = {epsilon:g}"
    ):
        budget = Budget.classic(epsilon=epsilon, delta=delta)
    assert budget.gamma == pytest.approx(classic_gamma(epsilon, delta), rel=1e-15)


@pytest.mark.parametrize(
    ("epsilon", "delta", "times_too_large"),
    [(8.6, 1e-5, 1.1), (5.8, 0.1, 1.0), (10.0, 1e-5, 2.3), (20.0, 1e-5, 150)],
)
def test_the_classic_calibration_is_refused_where_it_is_false(
    true_delta: TrueDelta, epsilon: float, delta: float, times_too_large: float
) -> None:
    truth = float(true_delta(classic_gamma(epsilon, delta), epsilon))
    assert truth > delta
    assert truth / delta == pytest.approx(times_too_large, rel=0.05)
    with pytest.raises(InvalidInputError, match="the classic calibration is false at") as refusal:
        Budget.classic(epsilon=epsilon, delta=delta)
    message = str(refusal.value)
    assert f"epsilon = {epsilon:g}, delta = {delta:g}" in message
    assert f"has delta = {truth:.3g}; use Budget(epsilon=…, delta=…)" in message


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (math.inf, 1e-5), (1.0, 0.0)])
def test_the_classic_calibration_has_no_edges(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidInputError, match="needs 0 < epsilon < inf and delta > 0; got"):
        Budget.classic(epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("make", [Budget, Budget.classic])
@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (-1.0, 1e-5, "epsilon must be 0 or more; got -1.0"),
        (math.nan, 1e-5, "epsilon must be 0 or more; got nan"),
        (1.0, -1e-5, "delta must be a probability between 0 and 1; got -1e-05"),
        (1.0, 1.5, "delta must be a probability between 0 and 1; got 1.5"),
    ],
)
def test_what_is_no_budget_is_refused(
    make: Callable[..., Budget], epsilon: float, delta: float, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make(epsilon=epsilon, delta=delta)


def test_budgets_are_values_named_by_keyword() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    assert budget == Budget(epsilon=1.0, delta=1e-5)
    assert budget != Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(FrozenInstanceError):
        budget.epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        Budget(1.0, 1e-5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="gamma"):
        Budget(epsilon=1.0, delta=1e-5, gamma=0.1)  # type: ignore[call-arg]


def test_the_noise_is_computed_when_it_is_first_read_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def counted(*, epsilon: float, delta: float) -> float:
        calls.append(epsilon)
        return calibrate(epsilon=epsilon, delta=delta)

    monkeypatch.setattr(budgets, "calibrate", counted)
    budget = Budget(epsilon=1.0, delta=1e-5)
    assert (repr(budget), hash(budget), calls) == ("Budget(epsilon=1.0, delta=1e-05)", hash(budget), [])
    assert budget.gamma == budget.gamma
    assert calls == [1.0]
    assert Budget.from_gamma(0.5, delta=1e-5).gamma == 0.5
    assert Budget.classic(epsilon=0.5, delta=1e-5).gamma == classic_gamma(0.5, 1e-5)
    assert calls == [1.0]


@pytest.mark.parametrize(
    "budget",
    [
        Budget(epsilon=1.0, delta=1e-5),
        Budget.classic(epsilon=1.0, delta=1e-5),
        Budget.from_gamma(0.5, delta=1e-5),
        Budget(epsilon=math.inf, delta=0.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("read_first", [False, True])
def test_a_copy_is_equal_and_carries_the_same_noise(budget: Budget, read_first: bool) -> None:
    gamma = budget.gamma if read_first else None
    for other in (copy.copy(budget), copy.deepcopy(budget), pickle.loads(pickle.dumps(budget))):
        assert (other, hash(other), repr(other)) == (budget, hash(budget), repr(budget))
        assert gamma is None or other.gamma == gamma
        assert other.gamma == budget.gamma


def test_a_fixed_noise_is_a_part_of_the_value() -> None:
    """Whether γ has been read makes no difference; whether it was fixed does."""
    plain, classic = Budget(epsilon=1.0, delta=1e-5), Budget.classic(epsilon=1.0, delta=1e-5)
    assert plain.gamma < classic.gamma
    assert plain == Budget(epsilon=1.0, delta=1e-5)
    assert plain != classic
    assert len({plain, classic, Budget(epsilon=1.0, delta=1e-5)}) == 2
    assert repr(classic) == f"Budget(epsilon=1.0, delta=1e-05, gamma={classic.gamma})"
