"""Which method is best at each (N, k) and (ε, δ), and where Algorithm 2 switches; not in the paper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.learners import LCB
from armnesia.paper.comparisons import Point, points
from armnesia.paper.pictures import BLACK, METHOD_STYLE, name_of
from armnesia.paper.section import Section
from armnesia.paper.settings import BASE_GAMMA, DELTA, ENVIRONMENT, Run
from armnesia.plotting.panels import WIDTH, add_legend, handle, title_panel
from armnesia.plotting.style import panel_grid
from armnesia.unlearners.calibration import Threshold, noise_threshold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CANDIDATES = ("rollback", "gaussian", "mixing")
NOISE_IF_SERVED = "mixing 0"
"""The noise branch of Algorithm 2: noise if the requested arm was served, rollback otherwise."""
THRESHOLDS: dict[str, tuple[Threshold, float]] = {
    "γ₀ of the paper": ("paper", 1.0),
    "1.3 γ₀, as it is run": ("paper", 1.3),
    "exact γ₀": ("exact", 1.0),
}
"""Algorithm 2 adds noise if γ is below its threshold."""
TRUE_BALANCE = "where Algorithm 2's noise equals rollback"
_LINES = dict(
    zip((*THRESHOLDS, TRUE_BALANCE), ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))), strict=True)
)
M = ENVIRONMENT.n_actions


@dataclass(frozen=True)
class PhaseMap:
    """The exact values of the candidates at each y (row) and x."""

    title: str
    x_name: str
    y_name: str
    x: Sequence[float]
    y: Sequence[float]
    points: Sequence[Point]

    def table(self, value: Callable[[Point], Any]) -> Any:
        """A value of each point, in rows."""
        return np.array([value(point) for point in self.points]).reshape(len(self.y), len(self.x))


def best_candidate(point: Point) -> str:
    """The candidate of least sub-optimality."""
    return min(CANDIDATES, key=lambda name: float(point[name]["suboptimality"]))


def advantage_of_noise(point: Point, line: str) -> float:
    """By how much γ is below a threshold; at TRUE_BALANCE, how much less noise loses than rollback."""
    row = point["rollback"]
    if line == TRUE_BALANCE:
        return float(row["suboptimality"] - point[NOISE_IF_SERVED]["suboptimality"])
    (kind, scale), learner = THRESHOLDS[line], LCB(confidence=1 / row["n"])
    found = noise_threshold(learner, row["n"] // M, row["k"], M, threshold=kind, sensitivity="paper")
    return float(scale * found - row["gamma"])


def phase_section(run: Run) -> Section:
    """Two maps of the best method: M_f, hard case, exact."""
    text = (
        "Which of rollback, the Gaussian mechanism and mixing has the least sub-optimality (fixed-sample"
        " model, hard case, exact). Noise on every request is best wherever much is deleted, on both sides of"
        " the thresholds. Algorithm 2 adds noise only if the requested arm was served; where this noise is as"
        " good as rollback, there is the fourth line. The other lines are its thresholds: it adds noise on"
        " the side of larger k, or of weaker privacy."
    )
    title = "Which method is best, and where Algorithm 2 switches"
    return Section(title, [text], {"phase": picture_of_phases(phase_maps(run, 3 if run.plan.quick else 1))})


def phase_maps(run: Run, step: int) -> list[PhaseMap]:
    """One over N and the deleted share at γ = 0.5, one over ε and δ at N = 1800 and k = 80."""
    ns, shares = list(range(500, 5001, 250 * step)), np.linspace(0.1, 0.9, 17)[::step].tolist()
    over_n = [(n, max(1, round(share * (n // M))), None, DELTA) for share in shares for n in ns]
    n, k = 1800, 80
    epsilons, powers = np.linspace(1, 48, 48)[::step].tolist(), np.linspace(-8, -0.3, 24)[::step].tolist()
    over_epsilon = [(n, k, epsilon, 10**power) for power in powers for epsilon in epsilons]
    title = f"N = {n}, k = {k} of {n // M}"
    return [
        PhaseMap(f"γ = {BASE_GAMMA:g}", "N", "deleted share k / N(a₀)", ns, shares, _points(run, over_n)),
        PhaseMap(title, "ε", "δ", epsilons, powers, _points(run, over_epsilon)),
    ]


def _points(run: Run, settings: Sequence[tuple[int, int, float | None, float]]) -> list[Point]:
    """The values at each (N, k, ε or the paper's γ, δ)."""
    cells = [
        run.plan.cell(
            ("phase", "", "", number),
            *(n, {ENVIRONMENT.best: k}, (*CANDIDATES, NOISE_IF_SERVED)),
            epsilon=epsilon,
            delta=delta,
            protocol="exact",
        )
        for number, (n, k, epsilon, delta) in enumerate(settings)
    ]
    return points(run.evaluate(cells))


def picture_of_phases(maps: Sequence[PhaseMap]) -> "Figure":
    """Maps of the best method beside each other, with one legend."""
    from matplotlib.colors import ListedColormap, to_rgb  # noqa: PLC0415 (an extra)
    from matplotlib.patches import Patch  # noqa: PLC0415

    found = {best_candidate(point) for each in maps for point in each.points}
    methods = [name for name in CANDIDATES if name in found]
    # Mixed with white, so that lines are readable on it.
    pale = [0.55 * np.array(to_rgb(METHOD_STYLE[name][1]["color"])) + 0.45 for name in methods]
    figure, (axes,) = panel_grid(1, len(maps), width=WIDTH, height=5.5)
    for axis, each in zip(axes, maps, strict=True):
        best = each.table(lambda point: methods.index(best_candidate(point)))
        colours = {"cmap": ListedColormap(pale), "vmin": -0.5, "vmax": len(methods) - 0.5}
        # Rasterized, because many small cells would make the SVG large.
        axis.pcolormesh(each.x, each.y, best, **colours, shading="nearest", rasterized=True)
        axis.grid(False)
        for line, style in _LINES.items():
            advantage: FloatArray = each.table(partial(advantage_of_noise, line=line))
            if advantage.min() < 0 < advantage.max():
                axis.contour(each.x, each.y, advantage, [0], colors=BLACK, linestyles=[style], linewidths=1.8)
        if each.y_name == "δ":
            axis.yaxis.set_major_formatter("$10^{{{x:.0f}}}$")
        title_panel(axis, each.title)
        axis.set_xlabel(each.x_name)
        axis.set_ylabel(each.y_name)
    note = "Colour: the method of least sub-optimality at that point. Lines: where Algorithm 2 would switch."
    handles = [
        Patch(facecolor=c, edgecolor="#555555", label=name_of(n)) for n, c in zip(methods, pale, strict=True)
    ]
    handles += [
        handle(line, {"color": BLACK, "linestyle": s, "linewidth": 1.8}) for line, s in _LINES.items()
    ]
    add_legend(figure, "Which method has the least sub-optimality", note, handles, columns=4)
    return figure
