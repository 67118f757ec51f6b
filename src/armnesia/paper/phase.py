"""Which method is best at each (N, k) and (ε, δ), and where Algorithm 2 switches; not in the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.learners import LCB
from armnesia.paper.comparisons import points
from armnesia.paper.pictures import BLACK, METHOD_STYLE, name_of
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.settings import BASE_GAMMA, DELTA, ENVIRONMENT, METHODS
from armnesia.plotting.panels import WIDTH, add_legend, handle, title_panel
from armnesia.plotting.style import panel_grid
from armnesia.privacy import Budget, privacy_curve
from armnesia.simulation import FixedSample, OneArm, evaluate_all
from armnesia.unlearners.calibration import Threshold, noise_threshold, sensitivity_certified

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CANDIDATES = ("rollback", "gaussian", "mixing")
THRESHOLDS: dict[str, tuple[Threshold, float]] = {
    "γ₀ of the paper": ("paper", 1.0),
    "1.3 γ₀, as it is run": ("paper", 1.3),
    "exact γ₀": ("exact", 1.0),
}
"""Algorithm 2 adds noise if γ is below its threshold."""
TRUE_BALANCE = "where Algorithm 2's noise equals rollback"
NOISE_IF_SERVED = "mixing 0"
"""The noise branch of Algorithm 2: noise if the requested arm was served, rollback otherwise."""
M = ENVIRONMENT.n_actions
MAP_N, MAP_K = 1800, 80
"""The setting of the map over (ε, δ)."""
_LINES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))


@dataclass(frozen=True)
class PhaseMap:
    """The best method at each y (row) and x, and lines with one y, or None, for each x."""

    title: str
    x_name: str
    y_name: str
    x: Sequence[float]
    y: Sequence[float]
    best: Sequence[Sequence[str]]
    lines: Mapping[str, Sequence[float | None]]
    y_log: bool = False


def phase_section(run: Run) -> Section:
    """Two maps of the best method: M_f, hard case, exact."""
    step = 3 if run.plan.quick else 1
    maps = [
        map_over_n_and_k(run, list(range(500, 5001, 250 * step)), np.linspace(0.1, 0.9, 17)[::step].tolist()),
        map_over_budgets(
            run, np.linspace(1, 48, 48)[::step].tolist(), np.geomspace(1e-8, 0.5, 24)[::step].tolist()
        ),
    ]
    text = (
        "Which of rollback, the Gaussian mechanism and mixing has the least sub-optimality (fixed-sample"
        " model, hard case, exact). Noise on every request is best wherever much is deleted, on both sides of"
        " the thresholds. Algorithm 2 adds noise only if the requested arm was served; where this noise is as"
        " good as rollback, there is the fourth line. The other lines are its thresholds: it adds noise on"
        " the side of larger k, or of weaker privacy."
    )
    title = "Which method is best, and where Algorithm 2 switches"
    return Section(title, [text], {"phase": picture_of_phases(maps)})


def map_over_n_and_k(run: Run, ns: list[int], shares: list[float]) -> PhaseMap:
    """At γ = 0.5; the y axis is the deleted share k/N(a₀), so that every point of the map exists."""
    settings = [(n, max(1, round(share * (n // M)))) for share in shares for n in ns]
    best = _best(run, [(n, k, None, DELTA) for n, k in settings], len(ns))
    lines = {label: [_share_at_threshold(n, *line) for n in ns] for label, line in THRESHOLDS.items()}
    budget = Budget.from_gamma(BASE_GAMMA, delta=DELTA)
    lines[TRUE_BALANCE] = [_share_at_balance(n, budget) for n in ns]
    return PhaseMap(f"γ = {BASE_GAMMA:g}", "N", "deleted share k / N(a₀)", ns, shares, best, lines)


def map_over_budgets(run: Run, epsilons: list[float], deltas: list[float]) -> PhaseMap:
    """At N = 1800, k = 80."""
    count = MAP_N // M
    settings = [(MAP_N, MAP_K, epsilon, delta) for delta in deltas for epsilon in epsilons]
    best = _best(run, settings, len(epsilons))
    gammas = {
        label: float(scale * _gamma_0(MAP_N, count, np.array([MAP_K]), kind)[0])
        for label, (kind, scale) in THRESHOLDS.items()
    }
    gammas[TRUE_BALANCE] = _gamma_at_balance(MAP_N, MAP_K)
    lines = {}
    for label, gamma in gammas.items():
        y = [privacy_curve(gamma).delta(epsilon) for epsilon in epsilons]
        lines[label] = [value if deltas[0] <= value <= deltas[-1] else None for value in y]
    title = f"N = {MAP_N}, k = {MAP_K} of {count}"
    return PhaseMap(title, "ε", "δ", epsilons, deltas, best, lines, y_log=True)


def _best(run: Run, settings: Sequence[tuple[int, int, float | None, float]], width: int) -> list[list[str]]:
    """The candidate of least sub-optimality in each setting (N, k, ε or the paper's γ, δ), in rows."""
    cells = [
        run.plan.cell(
            ("phase", "", "", number),
            *(n, {ENVIRONMENT.best: k}, CANDIDATES),
            epsilon=epsilon,
            delta=delta,
            protocol="exact",
        )
        for number, (n, k, epsilon, delta) in enumerate(settings)
    ]
    best = [
        min(point, key=lambda name: point[name]["suboptimality"]) for point in points(run.evaluate(cells))
    ]
    return [best[first : first + width] for first in range(0, len(best), width)]


def noise_beats_rollback(n: int, k: int, budget: Budget) -> bool:
    """Whether Algorithm 2's noise branch has less sub-optimality than rollback (hard case, equal counts).

    >>> noise_beats_rollback(1000, 80, Budget.from_gamma(0.5, delta=1e-5))
    True
    """
    methods = {name: METHODS[name] for name in (NOISE_IF_SERVED, "rollback")}
    model = FixedSample.round_robin(n, M)
    found = evaluate_all(ENVIRONMENT, model, OneArm(ENVIRONMENT.best, k), methods, budget)
    return found[NOISE_IF_SERVED].suboptimality < found["rollback"].suboptimality


def _share_at_threshold(n: int, kind: Threshold, scale: float) -> float | None:
    """The smallest deleted share at which Algorithm 2 adds noise, at γ = 0.5; None if there is none."""
    count = n // M
    ks = np.arange(1, count)
    adds_noise = scale * _gamma_0(n, count, ks, kind) > BASE_GAMMA
    return float(ks[np.argmax(adds_noise)] / count) if adds_noise.any() else None


def _share_at_balance(n: int, budget: Budget) -> float | None:
    """The smallest deleted share at which noise beats rollback, by bisection; None if there is none."""
    count = n // M
    ks = np.arange(1, count)
    certified = sensitivity_certified("paper", LCB(confidence=1 / n), np.full(count - 1, count), ks, M)
    # For larger k the sensitivity is not certified, and no noise is added.
    low, high = 0, int(ks[certified][-1])
    if not noise_beats_rollback(n, high, budget):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if noise_beats_rollback(n, middle, budget) else (middle, high)
    return high / count


def _gamma_at_balance(n: int, k: int) -> float:
    """The γ below which noise beats rollback, by bisection of its logarithm."""
    low, high = 1e-3, 2.0
    for _ in range(20):
        middle = (low * high) ** 0.5
        is_better = noise_beats_rollback(n, k, Budget.from_gamma(middle, delta=DELTA))
        low, high = (middle, high) if is_better else (low, middle)
    return low


def _gamma_0(n: int, count: int, ks: Any, kind: Threshold) -> FloatArray:
    return noise_threshold(LCB(confidence=1 / n), count, ks, M, threshold=kind, sensitivity="paper")


def picture_of_phases(maps: Sequence[PhaseMap]) -> "Figure":
    """Maps of the best method beside each other, with one legend."""
    from matplotlib.patches import Patch  # noqa: PLC0415 (an extra)

    found = {name for each in maps for line in each.best for name in line}
    methods = [name for name in METHOD_STYLE if name in found]
    styles = dict(zip(dict.fromkeys(label for each in maps for label in each.lines), _LINES, strict=False))
    looks = {label: {"color": BLACK, "linestyle": line, "linewidth": 1.8} for label, line in styles.items()}
    figure, (axes,) = panel_grid(1, len(maps), width=WIDTH, height=5.5)
    for axis, each in zip(axes, maps, strict=True):
        _draw_map(axis, each, methods, looks)
    areas = [Patch(facecolor=_pale(name), edgecolor="#555555", label=name_of(name)) for name in methods]
    note = "Colour: the method of least sub-optimality at that point. Lines: where Algorithm 2 would switch."
    handles = [*areas, *(handle(label, shown) for label, shown in looks.items())]
    add_legend(figure, "Which method has the least sub-optimality", note, handles, columns=4)
    return figure


def _draw_map(axis: Any, each: PhaseMap, methods: list[str], looks: Mapping[str, Any]) -> None:
    from matplotlib.colors import ListedColormap  # noqa: PLC0415 (an extra)
    from matplotlib.patheffects import withStroke  # noqa: PLC0415

    best = np.array([[methods.index(name) for name in line] for line in each.best])
    x, y = _edges(each.x, log=False), _edges(each.y, log=each.y_log)
    # Rasterized, because many small cells would make the SVG large.
    colours = ListedColormap([_pale(name) for name in methods])
    axis.pcolormesh(x, y, best, cmap=colours, vmin=-0.5, vmax=len(methods) - 0.5, rasterized=True)
    axis.set(yscale="log" if each.y_log else "linear", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    axis.grid(False)
    lines = {label: np.array(values, dtype=float) for label, values in each.lines.items()}
    for number, method in enumerate(methods):
        place = _place_for_name((best == number) & ~_crossed(lines.values(), y, best.shape))
        if place is not None:
            halo = [withStroke(linewidth=3, foreground="white")]
            words = {"ha": "center", "va": "center", "fontsize": 10.5, "fontweight": "bold", "zorder": 5}
            axis.text(each.x[place[1]], each.y[place[0]], name_of(method), path_effects=halo, **words)
    for label, values in lines.items():
        halo = [withStroke(linewidth=3.5, foreground="white")]
        axis.plot(each.x, values, **looks[label], label=label, path_effects=halo)
    title_panel(axis, each.title)
    axis.set_xlabel(each.x_name)
    axis.set_ylabel(each.y_name)


def _pale(method: str) -> tuple[float, ...]:
    """The method's colour mixed with white, so that lines and names are readable on it."""
    from matplotlib.colors import to_rgb  # noqa: PLC0415 (an extra)

    return tuple(0.55 * part + 0.45 for part in to_rgb(METHOD_STYLE[method][1]["color"]))


def _edges(centres: Sequence[float], *, log: bool) -> FloatArray:
    """The borders between cells: halfway between their centres, on the scale of the axis."""
    values = np.log(centres) if log else np.asarray(centres, dtype=float)
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate(([2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]))
    return np.asarray(np.exp(edges) if log else edges)


def _crossed(lines: Any, y_edges: FloatArray, shape: tuple[int, ...]) -> Any:
    """The cells that a line crosses: names are not written there."""
    crossed = np.zeros(shape, dtype=bool)
    for values in lines:
        for column in range(len(values)):
            # From the previous value to the next one: a steep line crosses many rows between columns.
            near = values[max(column - 1, 0) : column + 2]
            if not np.isnan(near).all():
                first, last = np.searchsorted(y_edges, [np.nanmin(near), np.nanmax(near)])
                crossed[max(first - 1, 0) : last, column] = True
    return crossed


def _place_for_name(region: Any) -> tuple[int, int] | None:
    """The cell of a region with most room for a name; None if the name does not fit there."""
    from scipy.ndimage import distance_transform_edt  # noqa: PLC0415 (slow to load)

    rows, columns = region.shape
    # Framed, so that the border of the panel counts as a border; a name is wider than high.
    room = distance_transform_edt(np.pad(region, 1), sampling=(1 / rows, 0.3 / columns))[1:-1, 1:-1]
    place = np.unravel_index(int(room.argmax()), region.shape)
    return (int(place[0]), int(place[1])) if room[place] > 0.035 else None
