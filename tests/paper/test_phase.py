"""The maps of the best method, the lines at which Algorithm 2 switches, and their picture."""

from dataclasses import replace
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
    map_over_budgets,
    map_over_n_and_k,
    picture_of_phases,
)
from armnesia.paper.run import Run
from armnesia.paper.settings import Plan
from armnesia.simulation.parallel import workers
from armnesia.unlearners import Adaptive, Branch
from armnesia.unlearners.calibration import noise_threshold
from tests.paper.invented import assert_nothing_overlaps, legend_of

AS_RUN = "1.3 γ₀, as it is run"


@pytest.fixture(scope="module")
def maps() -> list[PhaseMap]:
    with workers(1) as this_process:
        run = Run(Plan(), this_process)
        shares, deltas = np.linspace(0.1, 0.9, 9).tolist(), np.geomspace(1e-8, 0.5, 8).tolist()
        return [
            map_over_n_and_k(run, list(range(500, 5001, 750)), shares),
            map_over_budgets(run, np.linspace(1, 46, 16).tolist(), deltas),
        ]


@pytest.mark.slow
def test_much_deleted_of_few_records_needs_noise_and_more_privacy_never_does(maps: list[PhaseMap]) -> None:
    for phase in maps:
        best = np.array(phase.best)
        assert best.shape == (len(phase.y), len(phase.x))
        assert 1 < len(set(best.flat)) <= len(CANDIDATES)
        assert set(phase.lines) == {*THRESHOLDS, TRUE_BALANCE}
        assert all(len(line) == len(phase.x) for line in phase.lines.values())
    assert (maps[0].best[0][-1], maps[0].best[-1][0]) == ("rollback", "gaussian")
    is_noise = (np.array(maps[1].best) == "gaussian").astype(int)
    assert (np.diff(is_noise, axis=0) >= 0).all()
    assert (np.diff(is_noise, axis=1) >= 0).all()


@pytest.mark.slow
def test_the_lines_are_where_algorithm_2_switches(maps: list[PhaseMap]) -> None:
    """Over (ε, δ) the γ on the line is the threshold, to rounding; over (N, k) it separates the branches."""
    at = {"threshold": "paper", "sensitivity": "paper"}
    gamma_0 = noise_threshold(LCB(confidence=1 / 1800), np.array([360]), np.array([80]), 5, **at)  # type: ignore[arg-type]
    pairs = zip(maps[1].x, maps[1].lines[AS_RUN], strict=True)
    shown = [(epsilon, delta) for epsilon, delta in pairs if delta is not None]
    assert len(shown) >= 3
    for epsilon, delta in shown:
        assert Budget(epsilon=epsilon, delta=delta).gamma == pytest.approx(1.3 * float(gamma_0[0]), rel=1e-6)
    unlearner, budget = Adaptive.as_in_the_paper(), Budget.from_gamma(0.5, delta=1e-5)
    for n, share in zip(maps[0].x, maps[0].lines[AS_RUN], strict=True):
        count = int(n) // 5
        for k in (round((share or 0) * count), round((share or 0) * count) - 1):
            if not 0 < k < count:
                continue
            ones = {arm: [1] * (count - 10 * arm) + [0] * 10 * arm for arm in range(5)}
            statistics = ArmStatistics.from_rewards(ones)
            request = DeletionRequest.from_rewards({arm: [1] * k if arm == 0 else [] for arm in range(5)})
            branch = unlearner.release(LCB().bind(statistics), statistics, request, budget).branch
            assert (branch == Branch.GAUSSIAN) == (k / count >= (share or 0))


def invented_map() -> PhaseMap:
    x, y = [float(value) for value in range(500, 5001, 250)], [0.1 * step for step in range(1, 10)]
    best = [["rollback" if n > 4000 * share else "gaussian" for n in x] for share in y]
    lines: dict[str, list[float | None]] = {
        "γ₀": [n / 6000 for n in x],
        "1.3 γ₀": [None if n < 900 else n / 8000 for n in x],
    }
    return PhaseMap("γ = 0.5", "N", "k / N(a₀)", x, y, best, lines)


def test_a_map_names_its_methods_in_their_regions() -> None:
    each = invented_map()
    figure: Any = picture_of_phases([each, replace(each, lines={}, y_log=True)])
    assert legend_of(figure) == ["Rollback", "Gaussian", "γ₀", "1.3 γ₀"]
    for axis in figure.axes:
        assert {text.get_text() for text in axis.texts} == {"Rollback", "Gaussian"}
        for text in axis.texts:
            x, y = text.get_position()
            best = each.best[each.y.index(y)][each.x.index(x)]
            assert best == text.get_text().lower()
    assert figure.axes[1].get_yscale() == "log"
    assert_nothing_overlaps(figure)


def test_the_search_for_overlaps_sees_planted_faults() -> None:
    figure: Any = picture_of_phases([invented_map()])
    figure.axes[0].text(*figure.axes[0].texts[0].get_position(), "in the way")
    with pytest.raises(AssertionError, match="in the way"):
        assert_nothing_overlaps(figure)
    figure = picture_of_phases([invented_map()])
    figure.axes[0].set_xlabel("endless " * 40)
    with pytest.raises(AssertionError, match="endless"):
        assert_nothing_overlaps(figure)
