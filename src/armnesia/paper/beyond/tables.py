"""What the experiments beyond the paper show: how far every method is from deleting nothing, in tables."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from armnesia.paper.beyond.cells import (
    EPSILONS,
    PEOPLE_K,
    WITHOUT_BUDGET,
)
from armnesia.paper.cells import Row
from armnesia.paper.measures import Measured, ratio_of
from armnesia.paper.report import Table
from armnesia.paper.settings import FIGURE_2_METHODS
from armnesia.plotting.panels import style_of

COMPARED = (
    *("rollback", "gaussian", "gaussian joint", "mixing", "adaptive", "multi_source"),
    *("strict_adaptive", "frozen_rollback", "tilt"),
)
"""Every method but the oracle, in the order of the tables."""


@dataclass
class Place:
    """One setting: a data model, N and a request, with every method at every ε that was computed there."""

    panel: str
    n: int
    request: str
    rows: dict[tuple[str, float | None], Row] = field(default_factory=dict)
    oracles: dict[str, Row] = field(default_factory=dict)

    @property
    def oracle(self) -> Row:
        """What no deletion gives up: exact if that is known."""
        return self.oracles.get("exact") or next(iter(self.oracles.values()))

    def row(self, method: str, epsilon: float) -> Row | None:
        """A method's row at ε; None if it was not computed there."""
        return self.rows.get((method, None if method in WITHOUT_BUDGET else epsilon))

    def distance(self, method: str, epsilon: float) -> Measured | None:
        """Sub-optimality divided by that of no deletion, on the same data sets where both are sampled."""
        row = self.row(method, epsilon)
        if row is None:
            return None
        return ratio_of(row, self.oracles.get(row["protocol"], self.oracle))

    @property
    def epsilons(self) -> list[float]:
        """Where tilt was computed."""
        return [epsilon for epsilon in EPSILONS if ("tilt", epsilon) in self.rows]

    @property
    def at_most_half_deleted(self) -> bool:
        """Whether one arm loses no more than half of its expected N/5 records."""
        return self.one_arm and bool(self.oracle["k"] <= self.n / 10)

    @property
    def one_arm(self) -> bool:
        """Whether the request is for records of a single arm."""
        return str(self.oracle["arms"]).isdigit()


def places(rows: Iterable[Row]) -> list[Place]:
    """The rows of the experiments by setting, in order; a setting that two sweeps share is there once."""
    found: dict[tuple[str, int, str], Place] = {}
    for row in rows:
        key = row["panel"], row["n"], _request(row)
        place = found.setdefault(key, Place(*key))
        if row["method"] == "oracle":
            place.oracles[row["protocol"]] = row
        else:
            place.rows[row["method"], None if row["method"] in WITHOUT_BUDGET else row["epsilon"]] = row
    return list(found.values())


def _request(row: Row) -> str:
    """What is deleted, in words.

    >>> _request({"arms": "0", "k": 80}), _request({"arms": "0 1", "k": 40})
    ('80 of arm 0', '40 each of arms 0, 1')
    """
    if row["arms"] == "any":
        return f"{row['k']} of random people"
    arms = row["arms"].split()
    if len(arms) == 1:
        return f"{row['k']} of arm {arms[0]}"
    if len(arms) == 5 and row["k"] * 5 > PEOPLE_K:
        others = (PEOPLE_K - row["k"]) // 4
        return f"{row['k']} of arm 0, {others} each of the others"
    return f"{row['k']} each of arms {', '.join(arms)}"


def table_of_distances(found: Sequence[Place]) -> Table:
    """Every setting: what no deletion gives up, and how many times as much rollback and ours do."""
    epsilons = [epsilon for epsilon in EPSILONS if any(epsilon in place.epsilons for place in found)]
    header = ["model and case", "N", "deleted", "no deletion", "rollback", "frozen rollback"]
    rows = [
        [
            *(place.panel, place.n, place.request, with_error(place.oracle)),
            *(times(place.distance(method, 0.0)) for method in ("rollback", "frozen_rollback")),
            *(times(place.distance("tilt", epsilon)) for epsilon in epsilons),
        ]
        for place in found
    ]
    return Table(
        [*header, *(f"tilt, ε = {epsilon:g}" for epsilon in epsilons)],
        rows,
        caption="Distance to no deletion in every setting: sub-optimality divided by that of no deletion."
        " ± is one standard error; without it a value is exact. Empty: not computed.",
    )


def table_of_worst(found: Sequence[Place]) -> Table:
    """For each kind of setting, method and ε: the middle and the largest distance to no deletion."""
    panels = dict.fromkeys((place.panel, _kind(place)) for place in found)
    rows: list[list[object]] = []
    for panel, kind in panels:
        group = [place for place in found if (place.panel, _kind(place)) == (panel, kind)]
        epsilons = [epsilon for epsilon in EPSILONS if all(epsilon in place.epsilons for place in group)]
        for method in COMPARED:
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
    caption = "Distance to no deletion over the settings of a kind: the middle one / the largest."
    return Table(header, rows, caption=caption)


def _kind(place: Place) -> str:
    if place.one_arm:
        return "one arm"
    return "two arms" if len(place.oracle["arms"].split()) == 2 else "all arms"


def _spread(group: Sequence[Place], method: str, epsilon: float) -> str:
    values = [measured.value for place in group if (measured := place.distance(method, epsilon)) is not None]
    return f"{statistics.median(values):.2f} / {max(values):.2f}" if values else ""


def table_of_values(found: Sequence[Place], wanted: Callable[[Place], bool], epsilon: float) -> Table:
    """Sub-optimality itself, all methods side by side at one ε."""
    rows = []
    for place in filter(wanted, found):
        noise, papers = _papers_names(place)
        methods = ("rollback", noise, papers, "strict_adaptive", "frozen_rollback", "tilt")
        shown = [place.row(method, epsilon) for method in methods]
        rows.append(
            [place.panel, place.n, place.request, with_error(place.oracle)]
            + [with_error(row) if row else "" for row in shown]
        )
    header = ["model and case", "N", "deleted", "no deletion", "rollback", "Gaussian", "Algorithm 2 or 7"]
    caption = f"Sub-optimality at (ε, δ) = ({epsilon:g}, 10⁻⁵). ± is one standard error; without it, exact."
    return Table([*header, "strict adaptive", "frozen rollback", "tilt"], rows, caption=caption)


def _papers_names(place: Place) -> tuple[str, str]:
    return ("gaussian", "adaptive") if place.one_arm else ("gaussian joint", "multi_source")


def table_of_mixing(found: Sequence[Place]) -> Table:
    """Figure 2's question at the same (ε, δ): the best k′/k, and tilt beside it."""
    rows = []
    for place in found:
        for epsilon in place.epsilons:
            parts = {name: row for name in FIGURE_2_METHODS if (row := place.row(name, epsilon))}
            tilt = place.row("tilt", epsilon)
            if len(parts) == len(FIGURE_2_METHODS) and tilt is not None:
                best = min(parts, key=lambda name: parts[name]["suboptimality"])
                share = best.removeprefix("mixing ")
                rows.append(
                    [place.n, place.request, f"{epsilon:g}", share, with_error(parts[best]), with_error(tilt)]
                )
    header = ["N", "deleted", "ε", "best k′/k", "mixing at its best", "tilt"]
    return Table(header, rows, caption="M_f, hard case, exact.")


def times(measured: Measured | None) -> str:
    """A distance as it is shown.

    >>> times(Measured(1.234, 0.0)), times(Measured(1.234, 0.0126)), times(None)
    ('1.23', '1.2340 ± 0.0126', '')
    """
    if measured is None:
        return ""
    return f"{measured.value:.4f} ± {measured.error:.4f}" if measured.error else f"{measured.value:.2f}"


def with_error(row: Row) -> str:
    """A row's sub-optimality, with its standard error if it was sampled."""
    error = f" ± {row['standard_error']:.5f}" if row["standard_error"] else ""
    return f"{row['suboptimality']:.5f}{error}"
