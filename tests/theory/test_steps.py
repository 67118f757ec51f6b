"""The steps between the bounds: thresholds, the mixing curve, the forms' order, conditions and refusals."""

import math
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia import LCB, ArmStatistics, Budget, DeletionRequest, Mixing, MultiSource
from armnesia.core.errors import InvalidInputError
from armnesia.theory import (
    Bound,
    Form,
    adaptive_distribution,
    adaptive_fixed,
    gamma_0,
    imitation_distribution,
    lcb_distribution,
    lcb_fixed,
    lower_distribution,
    lower_fixed,
    mixing_best_part,
    mixing_fixed,
    mixing_slope,
    multi_source_fixed,
)

CASE: dict[str, Any] = {"n": 10_000, "n_best": 2_000, "n_arm": 2_000, "k": 500, "m": 5}


def test_at_the_exact_threshold_noise_and_rollback_have_the_same_bound() -> None:
    for k in (1, 50, 500, 1500):
        case = CASE | {"k": k, "a0_is_best": True, "threshold": "exact"}
        balance = gamma_0(n=10_000, n_arm=2_000, k=k, m=5)
        noise = adaptive_fixed(**case, gamma=balance * (1 - 1e-12))
        rollback = adaptive_fixed(**case, gamma=balance)
        assert (noise.name.split()[2], rollback.name.split()[2]) == ("noise", "rollback")
        assert noise.value == pytest.approx(rollback.value, rel=1e-9)


def test_at_the_printed_threshold_noise_is_worse_than_rollback() -> None:
    for k, factor in ((1, 2), (500, 1 + math.sqrt(3 / 4)), (1500, 1.5)):
        printed = gamma_0(n=10_000, n_arm=2_000, k=k, m=5, threshold="paper")
        assert printed / gamma_0(n=10_000, n_arm=2_000, k=k, m=5) == pytest.approx(factor, rel=1e-3)
        case = CASE | {"k": k, "a0_is_best": True}
        assert (
            adaptive_fixed(**case, gamma=printed * 0.999).value > adaptive_fixed(**case, gamma=printed).value
        )


@settings(deadline=None)
@given(
    n_arm=st.integers(200, 5_000),
    deleted=st.floats(0.01, 0.85),
    gamma=st.floats(0.001, 2.0),
    others=st.integers(0, 20_000),
)
def test_the_best_part_to_roll_back_is_all_or_nothing(
    n_arm: int, deleted: float, gamma: float, others: int
) -> None:
    k = max(1, int(deleted * n_arm))
    n = n_arm + others
    case: dict[str, Any] = {"n": n, "n_arm": n_arm, "k": k, "m": 2, "gamma": gamma}
    parts = sorted({*range(0, k, max(1, k // 40)), k})
    values = {
        part: mixing_fixed(**case, n_best=n_arm, rolled_back=part, a0_is_best=True, form="printed").value
        for part in parts
    }
    assert min(values.values()) >= min(values[0], values[k]) * (1 - 1e-12)
    assert values[mixing_best_part(**case)] == pytest.approx(min(values.values()), rel=1e-9)


@settings(deadline=None)
@given(part=st.floats(1, 499), gamma=st.floats(0.01, 1.0))
def test_the_slope_is_that_of_the_bound(part: float, gamma: float) -> None:
    """Corrected from 3γ(N−k) to (3/2)γ(N−k): compared with a difference quotient of the paper's f."""
    log_term = math.log(10_000 * 5)

    def f(x: float) -> float:
        return 2 * math.sqrt(math.pi * log_term / (2_000 - x)) + 1.5 * (500 - x) * gamma / (2_000 - x)

    case: dict[str, Any] = {"n": 10_000, "n_arm": 2_000, "k": 500, "m": 5}
    slope = mixing_slope(**case, rolled_back=part, gamma=gamma)
    assert slope == pytest.approx((f(part + 0.5) - f(part - 0.5)) / 1, rel=1e-4, abs=1e-9)


def test_a_served_arm_may_be_lost_without_harmful_noise() -> None:
    """The proofs of mixing and multi-source say "only if ν < 0"; it happens with no noise to speak of."""
    statistics = ArmStatistics.from_rewards({"A": [1] * 250 + [0] * 150, "B": [1] * 240 + [0] * 160})
    learner, quiet = LCB().bind(statistics), Budget(epsilon=1e6, delta=1e-5)
    low = DeletionRequest.from_rewards({"A": [0], "B": [0] * 100})
    raised = MultiSource().release(learner, statistics, low, quiet)
    assert (raised.branch, learner.decide(statistics).action) == ("gaussian", "A")
    assert raised.probabilities[1] > 0.999
    high = DeletionRequest.from_rewards({"A": [1] * 100, "B": []})
    lowered = Mixing(ratio=0.5).release(learner, statistics, high, quiet)
    assert lowered.branch == "mixing"
    assert lowered.probabilities[1] > 0.999


def test_the_ends_of_mixing_are_noise_and_rollback() -> None:
    for form in get_args(Form):
        case = CASE | {"gamma": 0.1, "form": form, "a0_is_best": True}
        noise = adaptive_fixed(**case)
        rollback = adaptive_fixed(**case | {"gamma": 9.0})
        ends = [mixing_fixed(**case, rolled_back=part) for part in (0, 500)]
        assert ends[0].value == pytest.approx(noise.value, abs=2 / 10_000)
        assert ends[1].value == pytest.approx(rollback.value, abs=1e-12)


def test_one_source_is_a_case_of_several() -> None:
    forms: tuple[Form, ...] = ("printed", "derived")
    for form, gamma in product(forms, (0.1, 1.0)):
        one = adaptive_fixed(**CASE, gamma=gamma, a0_is_best=True, form=form)
        several = multi_source_fixed(
            n=10_000, n_best=2_000, n_arms=[2_000], k_arms=[500], m=5, gamma=gamma, best_is_requested=True,
            form=form,
        )  # fmt: skip
        assert several.value == pytest.approx(one.value, abs=2.1 / 10_000)


@settings(deadline=None)
@given(
    n_arm=st.integers(100, 3_000),
    deleted=st.floats(0.01, 0.9),
    others=st.integers(200, 20_000),
    m=st.integers(2, 12),
    gamma=st.floats(0.0, 2.0),
    share=st.floats(0, 1),
)
def test_the_more_exact_the_form_the_smaller_the_upper_bound(
    n_arm: int, deleted: float, others: int, m: int, gamma: float, share: float
) -> None:
    k, n = max(1, int(deleted * n_arm)), n_arm + others
    case: dict[str, Any] = {"n": n, "n_best": n_arm, "n_arm": n_arm, "k": k, "m": m, "gamma": gamma}
    arms: dict[str, Any] = {"n_arms": [n_arm, others // 2], "k_arms": [k, min(k, others // 4)]}
    for a0_is_best in (True, None):
        adaptive = [adaptive_fixed(**case, a0_is_best=a0_is_best, form=form).value for form in get_args(Form)]
        mixing = [
            mixing_fixed(**case, rolled_back=int(share * k), a0_is_best=a0_is_best, form=form).value
            for form in get_args(Form)
        ]
        several = [
            multi_source_fixed(n=n, n_best=1, **arms, m=m, gamma=gamma, form=form).value
            for form in get_args(Form)
        ]
        for values in (adaptive, mixing, several):
            assert values[0] >= values[1] - 1e-12
            assert values[1] >= values[2] - 1e-12


@settings(deadline=None)
@given(n=st.integers(1_000, 5_000), c_star=st.floats(1.01, 30), k=st.integers(0, 400), gamma=st.floats(0, 2))
def test_the_same_under_the_distribution_model(n: int, c_star: float, k: int, gamma: float) -> None:
    learning = [lcb_distribution(n=n, c_star=c_star, m=3, form=form) for form in get_args(Form)]
    adaptive = [
        adaptive_distribution(
            n=n, c_star=c_star, k=k, m=3, gamma=gamma, a0_is_best=True, threshold="exact", form=form
        )
        for form in get_args(Form)
    ]
    assert learning[1].value >= learning[2].value - 1e-12
    if learning[0].holds:
        assert learning[0].value >= learning[1].value - 1e-12
    if adaptive[0].holds:
        assert adaptive[0].value >= adaptive[1].value - 1e-12
    if adaptive[1].holds:
        assert min(adaptive[1].value, 1) >= min(adaptive[2].value, 1) - 1e-12
    if c_star < 2:
        imitation = [imitation_distribution(n=n, c_star=c_star, k=k, form=form) for form in get_args(Form)]
        assert not imitation[0].holds or imitation[0].value >= imitation[1].value * (1 - 1e-9)
        assert imitation[1].value >= imitation[2].value * (1 - 1e-6)


def texts(bound: Bound) -> str:
    return "; ".join(condition.text for condition in bound.unmet)


def test_conditions_are_checked_and_reported() -> None:
    many = CASE | {"k": 1950, "gamma": 0.01}
    assert "k <= N - sqrt(NL/2): 1950 <= 1895.98 at N = 2000" in texts(adaptive_fixed(**many, form="printed"))
    assert "3k/(2N) bounds the sensitivity" in texts(adaptive_fixed(**many | {"k": 1990}))
    assert adaptive_fixed(**many, sensitivity="exact").holds
    assert adaptive_fixed(**many | {"gamma": 99}).holds  # rollback needs no certificate
    small = CASE | {"n_arm": 1_500, "gamma": 0.01, "a0_is_best": True}
    assert "N(a0) >= N_*, as a0 = a*: 1500 >= 2000" in texts(adaptive_fixed(**small))
    assert "N(a0) >= N_*" in texts(mixing_fixed(**small, rolled_back=3))
    assert "m >= 2" in texts(adaptive_fixed(**CASE | {"m": 1, "gamma": 0.01}, form="printed"))
    assert "N >= 8 C* ln(1/tau): 100 >= 184.207" in texts(
        lcb_distribution(n=100, c_star=5, m=2, form="printed")
    )
    assert "gamma_0 is the exact balance point" in texts(
        adaptive_distribution(n=9_000, c_star=2, k=9, m=2, gamma=0.1, form="printed")
    )
    assert "k <= (2-C*)N/C*: 60 <= 53.8462" in texts(imitation_distribution(n=100, c_star=1.3, k=60))
    assert "k <= 3N/4" in texts(imitation_distribution(n=100, c_star=1.05, k=80, form="printed"))
    assert "C* < 2" in texts(imitation_distribution(n=100, c_star=2.5, k=0))
    several: dict[str, Any] = {"n": 1_000, "n_best": 100, "m": 3, "gamma": 0.1}
    assert "k_max < N_min: 150 < 100" in texts(
        multi_source_fixed(**several, n_arms=[100, 300], k_arms=[5, 150])
    )
    assert "delta <= 1/(8 sqrt(e)) = 0.0758163: 0.1" in texts(
        lower_fixed(n=100, n_arm=50, k=9, epsilon=1, delta=0.1, form="printed")
    )
    assert "delta = 0" in texts(
        lower_distribution(n=99, c_star=1.5, k=9, epsilon=1, delta=0.1, form="printed")
    )
    assert texts(lcb_fixed(n=10, n_best=0, m=2)) == "N_* >= 1: N_* = 0"


def test_a_best_arm_that_cannot_be_the_requested_one_is_not_counted() -> None:
    """N(a₀) < N_*: the first term of the theorem's maximum is for an impossible case."""
    case = CASE | {"n_arm": 400, "k": 50, "gamma": 9.0}
    assert adaptive_fixed(**case).value == adaptive_fixed(**case, a0_is_best=False).value
    assert adaptive_fixed(**case, form="printed").value > 2 * adaptive_fixed(**case).value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lcb_fixed(n=0, n_best=0, m=2), "n must be at least 1"),
        (lambda: lcb_fixed(n=10, n_best=11, m=2), "n_best must be between 0 and 10"),
        (lambda: lcb_fixed(n=10, n_best=1, m=2, tau=0), "confidence"),
        (lambda: lcb_distribution(n=10, c_star=1.0, m=2), "c_star must be finite and above 1"),
        (lambda: lcb_distribution(n=10, c_star=2, m=2, form="best"), "form must be one of"),  # type: ignore[arg-type]
        (lambda: adaptive_fixed(**CASE | {"k": 2001}, gamma=1), "k must be between 0 and 2000"),
        (lambda: adaptive_fixed(**CASE, gamma=math.nan), "gamma must be 0 or more"),
        (lambda: adaptive_fixed(**CASE, gamma=1, threshold="own"), "threshold must be"),  # type: ignore[arg-type]
        (lambda: mixing_fixed(**CASE, gamma=1, rolled_back=501), "rolled_back must be between 0 and 500"),
        (
            lambda: multi_source_fixed(n=9, n_best=1, n_arms=[3], k_arms=[1, 1], m=2, gamma=1),
            "one entry for each requested arm",
        ),
        (
            lambda: multi_source_fixed(n=9, n_best=1, n_arms=[5, 5], k_arms=[1, 1], m=2, gamma=1),
            "n_arms must not sum to more than n",
        ),
        (lambda: lower_fixed(n=9, n_arm=5, k=1, epsilon=-1, delta=0), "epsilon must be 0 or more"),
        (lambda: lower_fixed(n=9, n_arm=5, k=1, epsilon=1, delta=2), "delta must be a probability"),
        (lambda: lower_fixed(n=9, n_arm=5, k=1, epsilon=1, delta=0, n_other=5), "n_other must be between"),
        (
            lambda: lower_distribution(n=9, c_star=3, k=1, epsilon=1, delta=0, deletion="all"),  # type: ignore[arg-type]
            "deletion must be one of uniform, one_arm",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_edges() -> None:
    assert adaptive_fixed(**CASE, gamma=math.inf).name.startswith("Algorithm 2, rollback")
    emptied = CASE | {"k": 2_000, "gamma": 1.0}
    assert adaptive_fixed(**emptied).value >= 2
    assert lower_fixed(n=10, n_arm=5, k=5, epsilon=0, delta=0).value == pytest.approx(0.2 / 4)
    assert lower_fixed(n=10, n_arm=5, k=5, epsilon=math.inf, delta=0).value == 0
    assert not lower_fixed(n=10, n_arm=5, k=5, epsilon=0, delta=0, form="printed").holds
    assert imitation_distribution(n=100_000, c_star=1.9, k=0, form="printed").value == math.inf
    nothing = CASE | {"k": 0, "gamma": 1.0}
    assert adaptive_fixed(**nothing).value == pytest.approx(lcb_fixed(n=10_000, n_best=2_000, m=5).value)
