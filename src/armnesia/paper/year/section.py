"""The report's section on a year of deletions: the picture, the table and what is to be seen in them."""

from collections.abc import Mapping
from pathlib import Path

from armnesia.paper.cells import Row
from armnesia.paper.figures.cells import Plan
from armnesia.paper.report import Section, Table, save_picture
from armnesia.paper.year.picture import picture_of_year
from armnesia.paper.year.simulation import (
    BUDGET,
    FIRST,
    MONTHLY,
    MONTHS,
    MOSTLY,
    REQUESTS,
    WAYS,
    K,
    Year,
    years,
)

TITLES = {
    "hard": "mostly people shown the best arm",
    "rival": "mostly people shown the second-best arm",
    "even": "anybody",
}
_SHARE_OF_DATASETS, _SHARE_WHEN_QUICK = 50, 125
"""A year is twelve decisions of thirteen methods: so many times fewer data sets than a point of a figure."""

Years = Mapping[str, Mapping[str, Year]]
"""By requests and by way of forgetting."""


def year_section(folder: Path, plan: Plan, n_jobs: int) -> tuple[Section, list[Row]]:
    """Live the years, draw them and put them into words; and the tidy rows behind it."""
    datasets = max(2, plan.datasets // (_SHARE_WHEN_QUICK if plan.quick else _SHARE_OF_DATASETS))
    # To start processes takes longer than a quick run does.
    jobs = 1 if plan.quick else n_jobs
    found = {
        name: years(requests, datasets=datasets, seed=plan.seed, n_jobs=jobs)
        for name, requests in REQUESTS.items()
    }
    picture = picture_of_year(
        {f"Who asks: {TITLES[name]}": _lines(of_requests) for name, of_requests in found.items()}
    )
    save_picture(picture, folder, "stream")
    tables = [_table(found, datasets)]
    return Section("A year of monthly deletions", _words(found), [picture], tables), _rows(found)


def _rows(found: Years) -> list[Row]:
    """One line a method and month."""
    return [
        {
            "figure": "stream",
            "panel": requests,
            "model": "fixed",
            "varied": "month",
            "x": float(month),
            "n": FIRST.n + month * MONTHLY.n,
            "arms": "any",
            "k": K,
            "gamma": BUDGET.gamma,
            "epsilon": BUDGET.epsilon,
            "c_star": None,
            "method": name,
            "suboptimality": float(value),
            "standard_error": float(error),
            "protocol": "sampled",
            "datasets": len(year.losses),
            "short_share": 0.0,
        }
        for requests, ways in found.items()
        for name, year in ways.items()
        for month, (value, error) in enumerate(zip(*year.by_month, strict=True), start=1)
    ]


def _lines(found: Mapping[str, Year]) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for name, year in found.items():
        values, errors = year.by_month
        lines.append(
            {"method": _method(name), "penalty": WAYS[name].penalty, "values": values, "errors": errors}
        )
    return lines


def _words(found: Years) -> list[str]:
    hard, rival = ({name: _last(year) for name, year in found[case].items()} for case in ("hard", "rival"))
    return [
        f"The log begins with {FIRST.n} records; every month {MONTHLY.n} new ones come in, each arm in turn,"
        f" and then {K} are deleted as one request at (ε, δ) = ({BUDGET.epsilon:g}, {BUDGET.delta:g}). What"
        f" is released in answer is served for the month. {MOSTLY} of the deleted records are of the best arm"
        " (hard) or of the second best (rival), or any records are as likely as others (even). Which records"
        " of an arm are deleted does not depend on their rewards.",
        "With a retained penalty the statistics are rolled back and nothing else is kept. The gain of tilt"
        " and of frozen rollback then lasts one release, and in the hard case the loss grows as the best arm"
        f" looks less and less certain: in month {MONTHS} rollback, which is retraining, gives up"
        f" {hard['rollback']}, tilt {hard['tilt']}. With a frozen penalty (level request_shape: the numbers"
        f" of deleted records are kept) tilt gives up {hard['tilt, frozen']}; without any deletion it is"
        f" {hard['no deletion']}.",
        "A frozen penalty follows what would be served without any deletion, for good and for ill. In the"
        " rival case rollback makes the second-best arm look uncertain, which happens to be right: in month"
        f" {MONTHS} it gives up {rival['rollback']}, tilt with a frozen penalty {rival['tilt, frozen']}, and"
        f" {rival['no deletion']} is given up without any deletion.",
        "Algorithm 2 and its strict version roll back at this budget: with a frozen penalty, each month's"
        " deletions then cost their penalty for that month only. Gaussian noise is added to all arms that"
        " lose records, which here are all. Mixing is for requests of one arm, and imitation is another"
        " learner's: they are not shown.",
    ]


def _last(year: Year) -> str:
    values, errors = year.by_month
    return _shown(values[-1], errors[-1], 5)


def _table(found: Years, datasets: int) -> Table:
    rows: list[list[object]] = []
    for requests, ways in found.items():
        for name, year in ways.items():
            kept = "" if year.level is None else WAYS[name].penalty
            rows.append(
                [
                    requests,
                    _method(name),
                    kept,
                    year.level or "",
                    _shown(*year.average, 5),
                    _last(year),
                    _shown(*year.churn, 2),
                ]
            )
    header = ["requests", "method", "penalty", "level", "year's average", f"month {MONTHS}", "changes a year"]
    fewer = len(found["hard"]["gaussian"].losses)
    caption = (
        "Expected sub-optimality, and how often the served arm is expected to change: exact given each data"
        f" set, ± is one standard error over {datasets:,} of them (Gaussian: {fewer:,})."
    )
    return Table(header, rows, caption=caption)


def _method(name: str) -> str:
    return name.removesuffix(", frozen")


def _shown(value: float, error: float, digits: int) -> str:
    return f"{value:.{digits}f} ± {error:.{digits}f}"
