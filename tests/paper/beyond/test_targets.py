"""What tilt must reach beyond the paper, and strict adaptive in the exact engine."""

from dataclasses import replace

import numpy as np
import pytest

from armnesia.core.errors import UnsupportedError
from armnesia.paper.beyond.cells import WITHOUT_BUDGET, one_arm_cells
from armnesia.paper.beyond.results import results_by_setting
from armnesia.paper.cells import Cell, CellStore, run_cell, run_cells
from armnesia.paper.comparisons import ratio
from armnesia.paper.plan import Plan
from armnesia.paper.settings import ENVIRONMENT
from armnesia.simulation import FixedSample, OneArm, evaluate, evaluate_all
from armnesia.simulation.drawing import draw_data_sets
from armnesia.simulation.evaluation import bound_learner
from armnesia.unlearners import Adaptive, Rollback, StrictAdaptive
from tests.paper.beyond.distances import distance

QUICK = Plan(quick=True, datasets=400)

EXACT_TARGETS = [
    (1000, 80, 1.0, 0.0067),
    (1000, 80, 3.0, 0.0056),
    (2000, 80, 1.0, 0.0037),
    (3000, 500, 3.0, 0.0025),
]


@pytest.mark.parametrize(("n", "k", "epsilon", "most"), EXACT_TARGETS)
def test_tilt_reaches_its_targets(n: int, k: int, epsilon: float, most: float) -> None:
    cell = Cell(
        "beyond", "M_f hard", "N", n, n, ((0, k),), 0.5, ("tilt", "rollback"), "exact", epsilon=epsilon
    )
    tilt, rollback = run_cell(cell)
    assert tilt["standard_error"] == 0
    assert tilt["suboptimality"] <= most
    assert rollback["suboptimality"] > 2 * most  # the target means something


@pytest.mark.slow
def test_the_distance_to_no_deletion_on_the_grid_of_figure_1() -> None:
    """M_f, hard and easy, every k and every fifth N; for all N the report shows it.

    At most 1.04 at ε = 5 and 1.16 at ε = 3; where at most half is deleted, 1.09 at ε = 3 (hard: 1.06) and 1.5
    at ε = 1. In the easy case the insurance costs 0.00009, and no deletion loses only 0.0011 at N = 5000.
    Frozen rollback, which has no budget to spend, does not reach that.
    """
    cells = [c for c in one_arm_cells(Plan()) if c.c_star is None and (c.varied == "k" or c.n % 500 == 0)]
    with_tilt = [
        replace(c, methods=("tilt",)) for c in cells if "tilt" in c.methods and c.epsilon in (1.0, 3.0, 5.0)
    ]
    whole = results_by_setting(
        run_cells([*with_tilt, *(c for c in cells if c.methods == WITHOUT_BUDGET)], CellStore())
    )
    assert len(whole) == 2 * (9 + 25 - 1)  # N = 3000, k = 80 is in both sweeps
    for setting in whole:
        far = {epsilon: distance(setting, "tilt", epsilon) for epsilon in (1.0, 3.0, 5.0)}
        assert far[5.0] <= 1.04
        half = 1.06 if "hard" in setting.panel else 1.09
        assert far[3.0] <= (half if setting.at_most_half_deleted else 1.16)
        if setting.at_most_half_deleted:
            assert far[1.0] <= 1.5
    assert max(distance(setting, "frozen_rollback", 1.0) for setting in whole) > 2


@pytest.mark.slow
def test_the_distance_to_no_deletion_in_the_distribution_model() -> None:
    """M_d, N = 3000, half of the arm and most of it, where tilt is farthest from no deletion on the grid.

    The same targets; every one is more than five standard errors away.
    """
    cells = [c for c in one_arm_cells(replace(Plan(), datasets=20_000)) if c.c_star is not None]
    cells = [c for c in cells if c.n == 3000 and c.varied == "k" and c.x in (300, 500)]
    with_tilt = [replace(c, methods=("tilt",)) for c in cells if c.epsilon in (1.0, 3.0, 5.0)]
    whole = results_by_setting(
        run_cells([*(c for c in cells if c.methods == WITHOUT_BUDGET), *with_tilt], CellStore())
    )
    assert len(whole) == 4
    for setting in whole:
        half = setting.at_most_half_deleted
        assert distance(setting, "tilt", 5.0) <= 1.04
        assert distance(setting, "tilt", 3.0) <= (1.06 if half else 1.16)
        if half:
            assert distance(setting, "tilt", 1.0) <= 1.5
    assert max(distance(setting, "rollback", 1.0) for setting in whole) > 6


SAMPLED_TARGETS = [
    (1000, ((0, 80),), 5.0, 1.0, 0.0074, 0.006432),
    (1000, ((0, 80),), 5.0, 3.0, 0.0066, 0.006432),
    (1000, ((0, 80), (1, 80)), None, 3.0, 0.0057, None),
    (2000, tuple(enumerate((160, 20, 20, 20, 20))), None, 3.0, 0.0035, None),
]


@pytest.mark.parametrize(("n", "deletions", "c_star", "epsilon", "most", "no_deletion"), SAMPLED_TARGETS)
def test_tilt_reaches_its_sampled_targets(
    n: int,
    deletions: tuple[tuple[int, int], ...],
    c_star: float | None,
    epsilon: float,
    most: float,
    no_deletion: float | None,
) -> None:
    """The ratio to no deletion on the same 20 000 data sets (several arms: 6000), times no deletion's loss.

    The latter is exact under M_f and from 1 000 000 data sets under M_d (± 0.00001). Over seeds this scatters
    by 0.4 % and less, and every target is more than five such errors away: a false alarm in fewer than 10⁻⁶.
    The planted fault: rollback in tilt's setting misses by more than a factor of two.
    """
    cell = Cell(
        *("beyond", "", "N", n, n, deletions, 0.5, ("oracle", "tilt", "rollback"), "sampled"),
        c_star=c_star,
        datasets=20_000 if c_star else 6000,
        epsilon=epsilon,
    )
    oracle, tilt, rollback = run_cell(cell)
    truth = no_deletion
    if truth is None:
        (exact,) = run_cell(replace(cell, methods=("oracle",), protocol="exact"))
        truth = exact["suboptimality"]
    assert ratio(tilt, oracle).value * truth <= most
    assert ratio(rollback, oracle).value * truth > 2 * most


def test_strict_adaptive_is_exact_where_it_adds_no_noise_and_refused_elsewhere() -> None:
    """Against its release on 2000 drawn data sets: the very probabilities of rollback, one by one."""
    model, request = FixedSample.round_robin(1000, 5), OneArm(0, 80)
    strict_budget = replace(one_arm_cells(QUICK)[0], epsilon=5.0).budget
    both = {"strict": StrictAdaptive(), "rollback": Rollback()}
    exact = evaluate_all(ENVIRONMENT, model, request, both, strict_budget)
    assert exact["strict"].probabilities == pytest.approx(exact["rollback"].probabilities, abs=1e-15)
    drawn = draw_data_sets(ENVIRONMENT, model, request, np.random.default_rng(4), 2000)
    learner = bound_learner(None, model.n)
    released = [
        u.release(learner, drawn.statistics, drawn.request, strict_budget).probabilities
        for u in both.values()
    ]
    assert (released[0] == released[1]).all()
    loose = replace(one_arm_cells(QUICK)[0], epsilon=40.0).budget
    with pytest.raises(UnsupportedError, match="adds no noise"):
        evaluate(ENVIRONMENT, model, request, StrictAdaptive(), loose, protocol="exact")
    noisy = evaluate(ENVIRONMENT, model, request, Adaptive(), loose, protocol="exact")
    assert noisy.suboptimality != exact["rollback"].suboptimality
