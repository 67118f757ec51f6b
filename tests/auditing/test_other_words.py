"""An audit in the field's other words, and of several draws: against products and dp-accounting."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from armnesia import LCB, ArmStatistics, Audit, Budget, DeletionRequest, Gaussian, Tilt, audit
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import hockey_stick, trade_off_corners

LEARNER = LCB(confidence=0.05)


def audited(unlearner: Gaussian | Tilt) -> Audit:
    """Three arms, of which two lose records."""
    statistics = ArmStatistics.from_rewards(
        {"A": [1] * 60 + [0] * 40, "B": [1] * 52 + [0] * 48, "C": [1] * 55 + [0] * 45}
    )
    request = DeletionRequest.from_rewards({"A": [1] * 25 + [0] * 5, "B": [], "C": [1] * 10})
    return audit(unlearner, LEARNER, statistics, request, Budget(epsilon=1.0, delta=1e-3))


@pytest.mark.parametrize("unlearner", [Tilt(), Gaussian()])
def test_several_draws_are_the_product(unlearner: Gaussian | Tilt) -> None:
    found = audited(unlearner)
    pair = found.release.probabilities, found.reference
    for number in (1, 2, 6):
        p, r = (
            np.array([math.prod(each) for each in itertools.product(side, repeat=number)]) for side in pair
        )
        joint = found.repeated(number)
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            expected = max(float(hockey_stick(p, r, epsilon)), float(hockey_stick(r, p, epsilon)))
            assert joint.delta(epsilon) == pytest.approx(expected, abs=1e-13)
    assert found.repeated(1).epsilon(1e-3) == pytest.approx(float(found.smallest_epsilon), abs=1e-9)


@pytest.mark.slow
def test_many_draws_agree_with_dp_accounting_and_are_less_than_added_up() -> None:
    found, number, step = audited(Gaussian()), 50, 1e-5
    pld = privacy_loss_distribution.from_two_probability_mass_functions(
        dict(enumerate(np.log(found.reference))),
        dict(enumerate(np.log(found.release.probabilities))),
        value_discretization_interval=step,
        symmetric=False,
    )
    accounted, joint = pld.self_compose(number), found.repeated(number)
    for epsilon in (0.1, 0.5, 1.5):
        delta = joint.delta(epsilon)
        assert accounted.get_delta_for_epsilon(epsilon + number * step) <= delta * (1 + 1e-6) + 1e-12
        assert delta <= accounted.get_delta_for_epsilon(epsilon) * (1 + 1e-6) + 1e-12
    assert joint.epsilon(1e-5) < 0.8 * number * float(found.renyi(math.inf))


def test_the_other_words_are_those_of_the_two_vectors() -> None:
    found = audited(Tilt())
    p, r = found.release.probabilities, found.reference
    written = found.to_dict()
    assert written["advantage"] == pytest.approx(float(np.abs(p - r).sum() / 2), abs=1e-15)
    assert written["advantage"] == pytest.approx(found.repeated(1).delta(0.0), abs=1e-15)
    p, r = (side[p + r > 0] for side in (p, r))  # one arm can be neither
    kl = max(float((a * np.log(a / b)).sum()) for a, b in ((p, r), (r, p)))
    chi = max(float(np.log((a**2 / b).sum())) for a, b in ((p, r), (r, p)))
    assert written["renyi"] == pytest.approx(
        {"1": kl, "2": chi, "inf": float(np.abs(np.log(p / r)).max())}, rel=1e-12
    )
    np.testing.assert_allclose(written["trade_off"], trade_off_corners(p, r), atol=1e-15)
    levels = np.linspace(0, 1, 11)
    # f of the budget itself: what holds at (ε, δ) is above it
    claimed = np.maximum(1 - 1e-3 - math.e * levels, (1 - 1e-3 - levels) / math.e)
    assert (found.trade_off(levels) >= claimed - 1e-12).all()


def test_a_batch_has_no_one_curve_and_draws_are_counted() -> None:
    found = audited(Tilt())
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(InvalidInputError, match="number must be a whole number of draws, 1 or more"):
            found.repeated(wrong)  # type: ignore[arg-type]
    counts, gone = np.array([[90, 80], [60, 70]]), np.array([[9, 0], [6, 0]])
    statistics = ArmStatistics((0, 1), counts, counts // 2 * 10**9)
    request = DeletionRequest(ArmStatistics((0, 1), gone, gone * 10**9), binary=True)
    batch = audit(Tilt(), LEARNER, statistics, request, Budget(epsilon=1.0, delta=1e-3))
    assert batch.advantage.shape == batch.renyi(2.0).shape == (2,)
    for wrong_call in (lambda: batch.trade_off(0.1), lambda: batch.repeated(2)):
        with pytest.raises(InvalidInputError, match="one data set; this one holds 2"):
            wrong_call()
