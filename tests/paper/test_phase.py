"""The maps of the best method, the lines at which Algorithm 2 switches, and their picture."""

from typing import Any

import numpy as np
import pytest

from armnesia import ArmStatistics, Budget, DeletionRequest
from armnesia.learners import LCB
from armnesia.paper.phase import (
    CANDIDATES,
    THRESHOLDS,
    TRUE_BALANCE,
    PhaseMap,
    advantage_of_noise,
    best_candidate,
    phase_maps,
    picture_of_phases,
)
from armnesia.paper.settings import Plan, Run
from armnesia.simulation.parallel import workers
from armnesia.unlearners import Adaptive, Branch
from tests.paper.invented import assert_nothing_overlaps, legend_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def maps() -> list[PhaseMap]:
    with workers(1) as this_process:
        return phase_maps(Run(Plan(), this_process), 3)


def test_much_deleted_of_few_records_needs_noise_and_more_privacy_never_does(maps: list[PhaseMap]) -> None:
    for phase in maps:
        best = phase.table(best_candidate)
        assert best.shape == (len(phase.y), len(phase.x))
        assert 1 < len(set(best.flat)) <= len(CANDIDATES)
    best = maps[0].table(best_candidate)
    assert (best[0][-1], best[-1][0]) == ("rollback", "gaussian")
    is_noise = (maps[1].table(best_candidate) == "gaussian").astype(int)
    assert (np.diff(is_noise, axis=0) >= 0).all()
    assert (np.diff(is_noise, axis=1) >= 0).all()


def test_the_lines_are_where_algorithm_2_switches(maps: list[PhaseMap]) -> None:
    """On one side of the line Algorithm 2 adds noise to the served arm, on the other it rolls back."""
    unlearner = Adaptive.as_in_the_paper()
    for phase in maps:
        branches = set()
        for point in phase.points:
            row = point["rollback"]
            count, k = row["n"] // 5, row["k"]
            ones = {arm: [1] * (count - 10 * arm) + [0] * 10 * arm for arm in range(5)}
            statistics = ArmStatistics.from_rewards(ones)
            request = DeletionRequest.from_rewards({arm: [1] * k if arm == 0 else [] for arm in range(5)})
            budget = Budget(epsilon=row["epsilon"], delta=row["delta"])
            branch = unlearner.release(LCB().bind(statistics), statistics, request, budget).branch
            branches.add(str(branch))
            assert (branch == Branch.GAUSSIAN) == (advantage_of_noise(point, "1.3 γ₀, as it is run") > 0)
        assert len(branches) == 2


def test_the_picture_has_all_lines_and_no_words_overlap(maps: list[PhaseMap]) -> None:
    figure: Any = picture_of_phases(maps)
    assert legend_of(figure) == ["Rollback", "Gaussian", *THRESHOLDS, TRUE_BALANCE]
    for axis in figure.axes:
        assert len(axis.collections) == 1 + len(THRESHOLDS) + 1
    assert_nothing_overlaps(figure)
    figure.axes[0].text(1000, 0.5, "one")
    figure.axes[0].text(1000, 0.5, "in the way")
    with pytest.raises(AssertionError, match="in the way"):
        assert_nothing_overlaps(figure)
