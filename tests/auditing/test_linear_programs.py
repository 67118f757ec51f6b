"""The linear program of the audit, against grids, hand-derived formulas and all subsets of arms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from armnesia.auditing.linear_programs import closest_reference, worst_divergence, worst_divergences
from tests.quick import examples

Floats = NDArray[np.float64]


def by_subsets(releases: Floats, reference: Floats, epsilon: float) -> float:
    """The largest P(A) − e^ε·R(A) over all sets of arms, all releases and both directions."""
    m, worst = releases.shape[1], 0.0
    for p in releases.tolist():
        for size in range(m + 1):
            for chosen in itertools.combinations(range(m), size):
                mass = math.fsum(p[a] for a in chosen), math.fsum(float(reference[a]) for a in chosen)
                worst = max(
                    worst, mass[0] - math.exp(epsilon) * mass[1], mass[1] - math.exp(epsilon) * mass[0]
                )
    return worst


def simplex_grid(m: int, steps: int) -> Floats:
    if m == 2:
        x = np.arange(steps + 1) / steps
        return np.stack([x, 1 - x], axis=-1)
    cuts = np.array([(i, j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    return np.column_stack([cuts, 1 - cuts.sum(axis=-1)])


def best_on_grid(releases: Floats, epsilon: float, grid: Floats) -> float:
    """The smallest δ over the grid, by its definition."""
    factor, worst = math.exp(epsilon), np.zeros(len(grid))
    for p in releases:
        forward = np.maximum(p - factor * grid, 0).sum(axis=-1)
        backward = np.maximum(grid - factor * p, 0).sum(axis=-1)
        worst = np.maximum(worst, np.maximum(forward, backward))
    return float(worst.min())


vectors = st.integers(2, 5).flatmap(
    lambda m: st.lists(
        st.lists(st.floats(0, 1), min_size=m, max_size=m).filter(lambda row: sum(row) > 0.1),
        min_size=2,
        max_size=4,
    )
)


@examples(80)
@given(vectors, st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_worst_divergence_is_the_worst_set_of_arms(rows: list[list[float]], epsilon: float) -> None:
    normed = np.array([np.array(row) / sum(row) for row in rows])
    releases, reference = normed[1:], normed[0]
    expected = by_subsets(releases, reference, epsilon)
    assert worst_divergence(releases, reference, epsilon) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("at_a_time", [1, 50, 1 << 18])
def test_many_references_are_judged_one_by_one(at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of them is in memory at once."""
    monkeypatch.setattr("armnesia.auditing.linear_programs._MOST_AT_A_TIME", at_a_time)
    rng = np.random.default_rng(8)
    releases, references = rng.dirichlet([0.6] * 4, size=6), rng.dirichlet([0.6] * 4, size=11)
    expected = [by_subsets(releases, reference, 0.3) for reference in references]
    assert worst_divergences(releases, references, 0.3) == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("m", "steps"), [(3, 300), (2, 200_000)])
def test_the_program_finds_the_minimum_that_a_fine_grid_finds(m: int, steps: int) -> None:
    """The grid misses the minimum by at most the slope times its step: Σ_a (1 + e^ε)·1/steps."""
    rng = np.random.default_rng(5)
    grid = simplex_grid(m, steps)
    for _ in range(12):
        epsilon = float(rng.choice([0.0, 0.2, 1.0, 2.0, 5.0]))
        releases = rng.dirichlet([0.6] * m, size=int(rng.integers(2, 6)))
        delta, reference = closest_reference(releases, epsilon)
        assert reference.sum() == pytest.approx(1.0, abs=1e-12)
        assert (reference >= 0).all()
        on_grid = best_on_grid(releases, epsilon, grid)
        assert delta <= on_grid + 1e-8
        assert delta >= on_grid - m * (1 + math.exp(epsilon)) / steps
        # What is returned is attained by the reference that is returned, by an independent evaluation.
        assert delta == pytest.approx(by_subsets(releases, reference, epsilon), abs=1e-12)


def test_a_worse_reference_would_be_seen_on_the_grid() -> None:
    """The planted fault: the mean of the releases is no minimiser, and the grid says so."""
    releases = np.array([[1.0, 0.0], [0.95, 0.05], [0.2, 0.8]])
    mean = worst_divergence(releases, releases.mean(axis=0), 1.0)
    assert mean > best_on_grid(releases, 1.0, simplex_grid(2, 1000)) + 0.01


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0, 8.0])
def test_two_opposite_certain_releases_are_half_apart(epsilon: float) -> None:
    """Each forbids what the other demands: r_a ≤ δ for both arms, whatever ε is, so that δ = 1/2."""
    delta, reference = closest_reference(np.array([[1.0, 0.0], [0.0, 1.0]]), epsilon)
    assert delta == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_allclose(reference, 0.5, atol=1e-9)


@examples(60)
@given(st.floats(0.5, 1.0), st.floats(0.0, 6.0))
def test_two_mirrored_releases(s: float, epsilon: float) -> None:
    """(s, 1−s) and (1−s, s): by symmetry r = (½, ½), δ = max(s − e^ε/2, ½ − e^ε(1−s), 0)."""
    delta, _ = closest_reference(np.array([[s, 1 - s], [1 - s, s]]), epsilon)
    expected = max(s - math.exp(epsilon) / 2, 0.5 - math.exp(epsilon) * (1 - s), 0.0)
    assert delta == pytest.approx(expected, abs=1e-7)


@examples(60)
@given(st.floats(0.0, 1.0), st.floats(0.0, 6.0))
def test_a_certain_release_and_another(q: float, epsilon: float) -> None:
    """(1, 0) and (q, 1−q): r₁ ≤ δ and 1−q ≤ e^ε·r₁ + δ, so that δ = (1−q)/(1 + e^ε).

    The other two constraints, 1 ≤ e^ε·r₀ + δ and r₀ ≤ e^ε·q + δ, bind only where q < δ/e^ε or so: then
    r₀ = 1 − r₁ ≥ 1 − δ wants δ ≥ (1 − e^ε·q)/2.
    """
    delta, _ = closest_reference(np.array([[1.0, 0.0], [q, 1 - q]]), epsilon)
    expected = max((1 - q) / (1 + math.exp(epsilon)), (1 - math.exp(epsilon) * q) / 2, 0.0)
    assert delta == pytest.approx(expected, abs=1e-7)


def test_equal_releases_need_nothing() -> None:
    same = np.tile([0.2, 0.5, 0.3], (4, 1))
    delta, reference = closest_reference(same, 0.0)
    assert delta == 0
    np.testing.assert_array_equal(reference, [0.2, 0.5, 0.3])


def test_more_releases_never_help() -> None:
    rng = np.random.default_rng(6)
    for m in (2, 4):
        releases = rng.dirichlet([1.0] * m, size=6)
        deltas = [closest_reference(releases[:n], 0.4)[0] for n in range(1, 7)]
        assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(deltas))
        assert deltas[0] == 0
