"""Tables of the results beyond the paper."""

import statistics
from collections.abc import Callable, Sequence

from armnesia.paper.beyond.cells import EPSILONS
from armnesia.paper.beyond.results import COMPARED_METHODS, SettingResults, distances
from armnesia.paper.cells import Row
from armnesia.paper.comparisons import Estimate
from armnesia.paper.pictures import style_of
from armnesia.paper.section import Table, with_error
from armnesia.paper.settings import FIGURE_2_METHODS


def table_of_distances(settings: Sequence[SettingResults]) -> Table:
    """Every setting: no deletion, and the distances of rollback, frozen rollback and tilt to it."""
    epsilons = [epsilon for epsilon in EPSILONS if any(epsilon in setting.epsilons for setting in settings)]
    header = ["model and case", "N", "deleted", "no deletion", "rollback", "frozen rollback"]
    rows = [
        [
            *(setting.panel, setting.n, setting.request, format_suboptimality(setting.oracle)),
            *(format_distance(setting.distance(method, 0.0)) for method in ("rollback", "frozen_rollback")),
            *(format_distance(setting.distance("tilt", epsilon)) for epsilon in epsilons),
        ]
        for setting in settings
    ]
    return Table(
        [*header, *(f"tilt, ε = {epsilon:g}" for epsilon in epsilons)],
        rows,
        caption="Distance to no deletion in every setting: sub-optimality divided by that of no deletion."
        " ± is one standard error; without it a value is exact. Empty: not computed.",
    )


def table_of_worst(settings: Sequence[SettingResults]) -> Table:
    """For each kind of setting, method and ε: the median and the largest distance to no deletion."""
    panels = dict.fromkeys((setting.panel, _kind(setting)) for setting in settings)
    rows: list[list[object]] = []
    for panel, kind in panels:
        group = [setting for setting in settings if (setting.panel, _kind(setting)) == (panel, kind)]
        epsilons = [epsilon for epsilon in EPSILONS if all(epsilon in setting.epsilons for setting in group)]
        for method in COMPARED_METHODS:
            cells = [_spread(group, method, epsilon) if epsilon in epsilons else "" for epsilon in EPSILONS]
            if any(cells):
                rows.append([panel, kind, len(group), style_of(method).name, *cells])
    header = [
        "model and case",
        "request",
        "settings",
        "method",
        *(f"ε = {epsilon:g}" for epsilon in EPSILONS),
    ]
    caption = "Distance to no deletion over the settings of a kind: the median / the largest."
    return Table(header, rows, caption=caption)


def _kind(setting: SettingResults) -> str:
    if setting.one_arm:
        return "one arm"
    return "two arms" if len(setting.oracle["arms"].split()) == 2 else "all arms"


def _spread(group: Sequence[SettingResults], method: str, epsilon: float) -> str:
    values = distances(group, method, epsilon)
    return f"{statistics.median(values):.2f} / {max(values):.2f}" if values else ""


def table_of_values(
    settings: Sequence[SettingResults], condition: Callable[[SettingResults], bool], epsilon: float
) -> Table:
    """The sub-optimality of all methods at one ε, in the settings that meet the condition."""
    rows = []
    for setting in filter(condition, settings):
        noise, papers = _papers_methods(setting)
        methods = (
            "rollback",
            noise,
            "centred_gaussian",
            papers,
            "strict_adaptive",
            "frozen_rollback",
            "tilt",
        )
        shown = [setting.row(method, epsilon) for method in methods]
        rows.append(
            [setting.panel, setting.n, setting.request, format_suboptimality(setting.oracle)]
            + [format_suboptimality(row) if row else "" for row in shown]
        )
    header = ["model and case", "N", "deleted", "no deletion", "rollback", "Gaussian"]
    header += ["centred Gaussian", "Algorithm 2 or 7"]
    caption = f"Sub-optimality at (ε, δ) = ({epsilon:g}, 10⁻⁵). ± is one standard error; without it, exact."
    return Table([*header, "strict adaptive", "frozen rollback", "tilt"], rows, caption=caption)


def _papers_methods(setting: SettingResults) -> tuple[str, str]:
    return ("gaussian", "adaptive") if setting.one_arm else ("gaussian joint", "multi_source")


def table_of_mixing(settings: Sequence[SettingResults]) -> Table:
    """Figure 2 at the same (ε, δ): the best k′/k, and tilt beside it."""
    rows = []
    for setting in settings:
        for epsilon in setting.epsilons:
            parts = {name: row for name in FIGURE_2_METHODS if (row := setting.row(name, epsilon))}
            tilt = setting.row("tilt", epsilon)
            if len(parts) == len(FIGURE_2_METHODS) and tilt is not None:
                best = min(parts, key=lambda name: parts[name]["suboptimality"])
                share = best.removeprefix("mixing ")
                values = [format_suboptimality(row) for row in (parts[best], tilt)]
                rows.append([setting.n, setting.request, f"{epsilon:g}", share, *values])
    header = ["N", "deleted", "ε", "best k′/k", "mixing at its best", "tilt"]
    return Table(header, rows, caption="M_f, hard case, exact.")


def format_distance(distance: Estimate | None) -> str:
    """A distance to no deletion as text, with its standard error if it was sampled.

    >>> format_distance(Estimate(1.234, 0.0)), format_distance(Estimate(1.234, 0.0126)), format_distance(None)
    ('1.23', '1.2340 ± 0.0126', '')
    """
    if distance is None:
        return ""
    return with_error(distance.value, distance.error, 4) if distance.error else f"{distance.value:.2f}"


def format_suboptimality(row: Row) -> str:
    """A row's sub-optimality as text, with its standard error if it was sampled."""
    value, error = row["suboptimality"], row["standard_error"]
    return with_error(value, error) if error else f"{value:.5f}"
