"""The level audit where e^ε is huge: a solver's tolerance must never look like a refuted level."""

import numpy as np
import pytest

from armnesia import LCB, Budget, Gaussian, feasible_reference
from armnesia.auditing.linear_programs import closest_reference, worst_divergence, worst_divergences
from armnesia.core.arrays import FloatArray
from tests.quick import quick_only


@pytest.mark.parametrize("epsilon", quick_only([25.0], [0.0, 0.5, 5.0, 10.0, 15.0, 25.0, 40.0]))
def test_two_arms_are_solved_exactly_at_every_epsilon(epsilon: float) -> None:
    """Against a search over references spaced evenly and by powers of ten towards both ends."""
    rng = np.random.default_rng(round(epsilon * 10))
    tiny = 10.0 ** -np.arange(0.0, 20.0, 0.02)
    first = np.concatenate([np.linspace(0, 1, 2001), tiny, 1 - tiny])
    references = np.stack([first, 1 - first], axis=-1)
    for _ in range(10):
        p = rng.choice(
            [rng.random(), 10.0 ** -rng.uniform(0, 12), 1 - 10.0 ** -rng.uniform(0, 12)], size=(3, 1)
        )
        releases = np.hstack([p, 1 - p])
        searched = worst_divergences(releases, references, epsilon).min()
        found, reference = closest_reference(releases, epsilon)
        assert found <= searched + 1e-15
        assert found == worst_divergence(releases, reference, epsilon)


@pytest.mark.parametrize(
    ("releases", "epsilon", "at_most"),
    [
        # One reference is close to both at every large ε; a solver alone returned 0.3 and 1.0.
        (np.array([[0.3, 0.7], [1e-9, 1 - 1e-9]]), 25.0, 0.0),
        (np.array([[1.0, 0.0, 0.0], [0.0, 0.9999, 0.0001]]), 25.0, 0.5),
        # e^ε overflowed here.
        (np.array([[0.3, 0.7], [1e-300, 1.0]]), 5000.0, 0.0),
        (np.array([[0.3, 0.2, 0.5], [1e-300, 0.4, 0.6]]), 5000.0, 0.0),
    ],
)
def test_known_cases_at_large_epsilon(releases: FloatArray, epsilon: float, at_most: float) -> None:
    assert closest_reference(releases, epsilon)[0] <= at_most


def test_a_level_is_audited_at_an_epsilon_whose_exponential_overflows() -> None:
    budget = Budget(epsilon=5000.0, delta=1e-5)
    lcb = LCB(confidence=0.5)
    assert feasible_reference(Gaussian(), lcb, level="request_shape", budget=budget, max_count=3).holds
