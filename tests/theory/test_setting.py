"""All bounds of a setting, against the exact evaluation of the unlearners that they are about."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import pytest

from armnesia import (
    Adaptive,
    Budget,
    ImitationRollback,
    Mixing,
    MultiSource,
    Rollback,
    Tilt,
    Unlearner,
)
from armnesia.core.errors import InvalidInputError
from armnesia.simulation import DistributionModel, Environment, FixedSample, SeveralArms, evaluate
from armnesia.theory import Form, Setting, bounds, lower_bounds, upper_bounds

BUDGET = Budget.from_gamma(0.3, delta=0.01)
MEANS = [0.95, 0.6, 0.05]


def unlearner_of(name: str, setting: Setting) -> Unlearner | None:
    """The unlearner that a bound is about."""
    options: dict[str, Any] = {
        "threshold": setting.threshold,
        "threshold_scale": setting.threshold_scale,
        "sensitivity": setting.sensitivity,
    }
    if name.startswith("LCB"):
        return None
    if name.startswith("Mixing"):
        return Mixing(ratio=setting.mixing_ratio, sensitivity=setting.sensitivity)
    if name.startswith("Insured tilt"):
        return Tilt()
    if name.startswith("Rollback"):
        return Rollback()
    if name.startswith("Imitation"):
        return ImitationRollback()
    return Adaptive(**options) if name.startswith("Algorithm 2") else MultiSource(**options)


@cache  # every form of a bound is about the same value
def suboptimality(
    counts: tuple[int, ...],
    deletions: tuple[tuple[int, int], ...],
    unlearner: Unlearner | None,
    budget: Budget,
) -> float:
    request = SeveralArms(dict(deletions))
    return evaluate(
        Environment.bernoulli(MEANS), FixedSample(counts), request, unlearner, budget
    ).suboptimality


@pytest.mark.sampled(8)
@pytest.mark.parametrize("form", get_args(Form))
@pytest.mark.parametrize("gamma", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("variant", ["paper", "exact"])
@pytest.mark.parametrize(
    ("counts", "deletions"),
    [
        ([100, 900, 100], {0: 40}),
        ([400, 300, 300], {0: 150}),
        ([150, 700, 100], {1: 300}),
        ([200, 700, 100], {0: 60, 1: 100}),
        ([300, 400, 200], {1: 100, 2: 50}),
    ],
)
def test_fixed_sample_model(
    form: Form, gamma: float, variant: Any, counts: list[int], deletions: dict[int, int]
) -> None:
    budget = Budget.from_gamma(gamma, delta=0.01)
    settings = [
        Setting.fixed(
            counts=counts,
            deletions=deletions,
            budget=budget,
            best=best,
            threshold=variant,
            sensitivity=variant,
        )
        for best in (0, None)
    ]
    for known, unknown in zip(*(upper_bounds(setting, form=form) for setting in settings), strict=True):
        unlearner = unlearner_of(known.name, settings[0])
        truth = suboptimality(tuple(counts), tuple(deletions.items()), unlearner, budget)
        assert known.holds == (not isinstance(unlearner, Tilt) or budget.epsilon > 2.3)  # three contenders
        assert not known.vacuous(largest_gap=0.9)
        assert truth <= known.value <= unknown.value + 1e-12


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["derived", "exact"])
@pytest.mark.parametrize(("n", "c_star", "k"), [(2000, 5, 60), (600, 1.3, 80), (1500, 1.9, 30)])
def test_distribution_model(form: Form, n: int, c_star: float, k: int) -> None:
    """The truth less four standard errors, at fixed seeds: a false alarm in fewer than 3·10⁻⁵ of bounds."""
    environment = Environment.bernoulli(MEANS)
    model = DistributionModel.with_coverage(n, n_actions=3, best=0, c_star=c_star)
    for deletions in ({0: k}, {1: k}, {0: k, 1: k // 2}, {0: k, 1: k, 2: 5}):
        setting = Setting.distribution(
            n=n, n_actions=3, c_star=c_star, deletions=deletions, budget=BUDGET, best=0
        )
        for bound in upper_bounds(setting, form=form):
            truth = evaluate(
                environment, model, SeveralArms(deletions), unlearner_of(bound.name, setting), BUDGET,
                protocol="sampled", datasets=20_000,
            )  # fmt: skip
            assert bound.holds
            assert truth.suboptimality - 4 * truth.standard_error <= bound.value < 0.9


def test_which_bounds_apply_to_which_setting() -> None:
    one = Setting.fixed(counts=[50, 60], deletions={1: 5}, budget=BUDGET)
    several = Setting.fixed(counts=[50, 60], deletions={0: 5, 1: 5}, budget=BUDGET)
    nothing = Setting.fixed(counts=[50, 60], deletions={0: 0}, budget=BUDGET)
    wide = Setting.distribution(n=99, n_actions=2, c_star=3, deletions={0: 5}, budget=BUDGET)
    narrow = Setting.distribution(n=99, n_actions=2, c_star=1.5, deletions={0: 5}, budget=BUDGET)
    both = Setting.distribution(n=99, n_actions=2, c_star=3, deletions={0: 5, 1: 5}, budget=BUDGET)

    def words(setting: Setting) -> list[str]:
        return [bound.name.replace(",", "").split()[0] for bound in bounds(setting)]

    assert words(one) == ["LCB", "Algorithm", "Mixing", "Insured", "Lower"]
    assert words(several) == ["LCB", "Multi-source", "Insured", "Lower"]
    assert words(nothing) == ["LCB"]
    assert words(wide) == ["LCB", "Rollback", "Algorithm", "Insured", "Lower"]
    assert words(narrow) == ["LCB", "Rollback", "Algorithm", "Imitation", "Insured", "Lower"]
    assert words(replace(both, c_star=1.5)) == ["LCB", "Rollback", "Imitation", "Insured", "Lower"]
    assert words(both) == ["LCB", "Rollback", "Insured", "Lower"]
    assert [bound.kind for bound in bounds(narrow)] == ["upper"] * 5 + ["lower"]


def test_the_forms_reach_every_bound() -> None:
    setting = Setting.distribution(n=2_000, n_actions=2, c_star=1.5, deletions={0: 5}, budget=BUDGET)
    for form in get_args(Form):
        papers = [bound for bound in bounds(setting, form=form) if not bound.name.startswith("Rollback")]
        assert {bound.form for bound in papers} == {form}
    assert [bound.form for bound in bounds(setting, form="tv")] == ["exact"] * 5 + ["tv"]
    several = replace(setting, deletions=((0, 5), (1, 5)))
    assert [bound.form for bound in bounds(several, form="printed")][:2] == ["printed", "derived"]


def test_the_lower_bound_of_several_arms_is_the_largest_of_one() -> None:
    budget = Budget(epsilon=0.5, delta=1e-5)
    makes: list[Callable[[dict[int, int]], Setting]] = [
        lambda deletions: Setting.fixed(counts=[60, 400, 90], deletions=deletions, budget=budget),
        lambda deletions: Setting.distribution(
            n=300, n_actions=3, c_star=4, deletions=deletions, budget=budget
        ),
    ]
    for make in makes:
        (both,) = lower_bounds(make({0: 20, 1: 70}), form="tv")
        single = [lower_bounds(make(deletions), form="tv")[0].value for deletions in ({0: 20}, {1: 70})]
        assert both.value == max(single) > min(single)


def test_lower_stays_below_upper() -> None:
    """At a small ε; both are about the worst case over instances."""
    for k in (5, 50, 90):
        setting = Setting.fixed(counts=[100, 400], deletions={0: k}, budget=Budget(epsilon=0.1, delta=1e-5))
        (lower,) = lower_bounds(setting, form="exact")
        assert 0 < lower.value < min(bound.value for bound in upper_bounds(setting, form="exact")[1:])


def test_a_bound_is_plain_data() -> None:
    setting = Setting.fixed(counts=[100, 400], deletions={0: 20}, budget=BUDGET, n_best=300)
    found = json.loads(json.dumps([bound.to_dict() for bound in bounds(setting)]))
    assert found[-1]["kind"] == "lower"
    assert found[-1]["holds"] is False
    assert found[-1]["conditions"][0]["holds"] is False
    assert "not π(D)" in found[-1]["note"]
    assert set(found[0]) == {
        "name", "value", "conditions", "reference", "kind", "form", "note", "holds",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": None}, "counts must be given for the fixed-sample model"),
        ({"counts": (50, 61)}, "sum to n = 110"),
        ({"c_star": 2.0}, "c_star must be given for the distribution model"),
        ({"deletions": ((2, 5),)}, "every arm of deletions must be between 0 and 1"),
        ({"deletions": ((0, 51),)}, "the deletions of arm 0 must be between 0 and 50"),
        ({"best": 2}, "best must be between 0 and 1"),
        ({"mixing_ratio": 1.5}, "mixing_ratio must lie in"),
        ({"threshold": "own"}, "threshold must be 'paper' or 'exact'"),
        ({"sensitivity": "own"}, "sensitivity must be 'paper' or 'exact'"),
        ({"model": "distribution", "counts": None, "c_star": 0.5}, "c_star must be finite and above 1"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    valid: dict[str, Any] = {
        "model": "fixed", "n": 110, "n_actions": 2, "counts": (50, 60), "deletions": ((0, 5),),
        "budget": BUDGET,
    }  # fmt: skip
    Setting(**valid)
    with pytest.raises(InvalidInputError, match=message):
        Setting(**valid | change)
