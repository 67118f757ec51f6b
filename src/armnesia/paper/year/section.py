"""The report's section on a year of deletions: picture, table and paragraphs with computed numbers."""

from collections.abc import Mapping

from armnesia.paper.cells import Row
from armnesia.paper.pictures import save_picture
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table, with_error
from armnesia.paper.year.picture import picture_of_year
from armnesia.paper.year.simulation import (
    BUDGET,
    INITIAL_LOG,
    K_OF_MAIN_ARM,
    MONTHLY_LOG,
    MONTHS,
    REQUESTS,
    STRATEGIES,
    K,
    YearResult,
    simulate,
)

TITLES = {
    "hard": "mostly people shown the best arm",
    "rival": "mostly people shown the second-best arm",
    "even": "anyone",
}
_SHARE_OF_DATASETS, _SHARE_WHEN_QUICK = 50, 125
"""The plan's number of data sets is divided by this: a year is twelve releases of thirteen strategies."""

Results = Mapping[str, Mapping[str, YearResult]]
"""By requests and by strategy."""


def year_section(run: Run) -> Section:
    """Simulate the years, and describe the results."""
    plan = run.plan
    datasets = max(2, plan.datasets // (_SHARE_WHEN_QUICK if plan.quick else _SHARE_OF_DATASETS))
    # A quick run is shorter than the start of the worker processes.
    n_jobs = 1 if plan.quick else run.n_jobs
    found = {
        name: simulate(requests, datasets=datasets, seed=plan.seed, n_jobs=n_jobs)
        for name, requests in REQUESTS.items()
    }
    run.rows += _result_rows(found)
    picture = picture_of_year(
        {f"Who asks: {TITLES[name]}": _lines(by_strategy) for name, by_strategy in found.items()}
    )
    save_picture(picture, run.pictures, "year")
    return Section("A year of monthly deletions", _paragraphs(found), [picture], [_table(found, datasets)])


def _result_rows(found: Results) -> list[Row]:
    """One row per strategy and month."""
    return [
        {
            "figure": "year",
            "panel": requests,
            "model": "fixed",
            "varied": "month",
            "x": float(month),
            "n": INITIAL_LOG.n + month * MONTHLY_LOG.n,
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
        for requests, by_strategy in found.items()
        for name, year in by_strategy.items()
        for month, (value, error) in enumerate(zip(*year.by_month, strict=True), start=1)
    ]


def _lines(found: Mapping[str, YearResult]) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for name, year in found.items():
        values, errors = year.by_month
        lines.append(
            {"method": _method(name), "penalty": STRATEGIES[name].penalty, "values": values, "errors": errors}
        )
    return lines


def _paragraphs(found: Results) -> list[str]:
    hard, rival = (
        {name: _last_month(year) for name, year in found[case].items()} for case in ("hard", "rival")
    )
    return [
        f"The log begins with {INITIAL_LOG.n} records; every month {MONTHLY_LOG.n} new ones come in, each arm"
        f" in turn, and then {K} are deleted as one request at (ε, δ) = ({BUDGET.epsilon:g},"
        f" {BUDGET.delta:g}). The arm released in answer is served for the month. Of the"
        f" deleted records, {K_OF_MAIN_ARM} are of the best arm (hard) or of the second best (rival), or all"
        " records are equally likely to be deleted (even). Which records of an arm are deleted does not"
        " depend on their rewards.",
        "With a retained penalty the statistics are rolled back and nothing else is kept. The gain of tilt"
        " and of frozen rollback then lasts one release, and in the hard case the loss grows as the best"
        f" arm has fewer and fewer records: in month {MONTHS} the sub-optimality of rollback, which is"
        f" retraining, is {hard['rollback']}, that of tilt {hard['tilt']}. With a frozen penalty (level"
        f" request_shape: the numbers of deleted records are kept) that of tilt is {hard['tilt, frozen']};"
        f" without any deletion it is {hard['no deletion']}.",
        "A frozen penalty follows the decision that would be served without any deletion, whether that is"
        " better or worse. In the rival case the penalty of the second-best arm rises under rollback, which"
        f" favours the best arm: in month {MONTHS} the sub-optimality of rollback is {rival['rollback']},"
        f" that of tilt with a frozen penalty {rival['tilt, frozen']}, and without any deletion it is"
        f" {rival['no deletion']}.",
        "Algorithm 2 and its strict version roll back at this budget: with a frozen penalty, each month's"
        " deletions then cost their penalty for that month only. Gaussian noise is added to all arms that"
        " lose records, which here are all. Mixing takes requests of one arm only, and imitation rollback"
        " needs another learner; they are not shown.",
    ]


def _last_month(year: YearResult) -> str:
    values, errors = year.by_month
    return with_error(values[-1], errors[-1])


def _table(found: Results, datasets: int) -> Table:
    rows: list[list[object]] = []
    for requests, by_strategy in found.items():
        for name, year in by_strategy.items():
            kept = "" if year.level is None else STRATEGIES[name].penalty
            rows.append(
                [
                    requests,
                    _method(name),
                    kept,
                    year.level or "",
                    with_error(*year.average),
                    _last_month(year),
                    with_error(*year.churn, digits=2),
                ]
            )
    header = ["requests", "method", "penalty", "level"]
    header += ["year's average", f"month {MONTHS}", "changes per year"]
    fewer = len(found["hard"]["gaussian"].losses)
    caption = (
        "Expected sub-optimality, and how often the served arm is expected to change: exact given each data"
        f" set, ± is one standard error over {datasets:,} of them (Gaussian: {fewer:,})."
    )
    return Table(header, rows, caption=caption)


def _method(name: str) -> str:
    return name.removesuffix(", frozen")
