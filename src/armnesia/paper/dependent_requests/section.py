"""The report's section on requests that depend on rewards."""

from collections.abc import Sequence

from armnesia.paper.cells import Row
from armnesia.paper.dependent_requests.picture import picture_of_dependent_requests
from armnesia.paper.dependent_requests.results import (
    COMPARED_METHODS,
    FEW_EPSILONS,
    SETTINGS,
    SHOWN,
    epsilons_of,
    evaluate_setting,
    insured_excess,
    rows_of_setting,
    value,
)
from armnesia.paper.pictures import save_picture, style_of
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table, with_error
from armnesia.paper.settings import (
    ARM_OF_CASE,
    BASE_GAMMA,
    BASE_K,
    BASE_N,
    DELTA,
    EASY,
    ENVIRONMENT,
    FIGURE_1_METHODS,
    HARD,
    METHODS,
    all_insured_from,
)
from armnesia.privacy import Budget
from armnesia.simulation import FixedSample, OneArm, evaluate_all
from armnesia.simulation.requests import Choice
from armnesia.unlearners import Tilt

CHOICES: dict[Choice, str] = {
    "random": "anyone",
    "highest": "the highest rewards",
    "lowest": "the lowest rewards",
}
TABLE_EPSILON = FEW_EPSILONS[1]


def dependent_requests_section(run: Run) -> Section:
    """Every method at the same (ε, δ), and Figure 1's methods at the paper's noise (M_f, sampled)."""
    points = [
        (setting, epsilon)
        for setting in SETTINGS
        for epsilon in (epsilons_of(run.plan) if setting in SHOWN else (TABLE_EPSILON,))
    ]
    rows: list[Row] = []
    for number, (setting, epsilon) in enumerate(points, start=1):
        rows += evaluate_setting(setting, epsilon, run.plan)
        if run.progress is not None:
            run.progress(run.label, number, len(points))
    run.rows += rows
    picture = picture_of_dependent_requests(rows)
    save_picture(picture, run.pictures, "dependent-requests")
    return Section(
        "When requests depend on rewards",
        [
            "The paper assumes that requests do not depend on the rewards. If the people with the best (or"
            " the worst) outcomes of an arm ask to be forgotten, what is left of it is biased, and rollback"
            " and Algorithm 2 follow the bias: in the hard case their sub-optimality rises if the best"
            " outcomes are deleted, and falls if the worst are. Noise on the old score does not depend on"
            " what is left, so it has no such bias. The guarantees do not need the assumption.",
            *_paragraphs(rows),
        ],
        [picture],
        tables=[_table_of_settings(rows), _table_at_the_papers_noise(run)],
    )


def _paragraphs(rows: Sequence[Row]) -> list[str]:
    def shown(setting_number: int, method: str) -> str:
        row = value(rows_of_setting(rows, SHOWN[setting_number]), method, TABLE_EPSILON)
        return f"{row['suboptimality']:.4f}"

    excess = insured_excess(TABLE_EPSILON)
    assert excess is not None  # at this ε the bound exists
    return [
        "The picture compares all methods at the same exact (ε, δ), δ = 10⁻⁵. The same number of records of"
        " the best arm is deleted: of anyone, those with the lowest rewards, records with twice the arm's"
        " mean (the mean of all its records stays the same), or those with the highest rewards."
        f" At ε = {TABLE_EPSILON:g}, tilt has {shown(0, 'tilt')}, {shown(1, 'tilt')}, {shown(2, 'tilt')} and"
        f" {shown(3, 'tilt')}, rollback {shown(0, 'rollback')}, {shown(1, 'rollback')},"
        f" {shown(2, 'rollback')} and {shown(3, 'rollback')}, the centred Gaussian"
        f" {shown(0, 'centred_gaussian')}, {shown(1, 'centred_gaussian')}, {shown(2, 'centred_gaussian')} and"
        f" {shown(3, 'centred_gaussian')}; no deletion has {shown(0, 'oracle')}.",
        "The insured bound is that of tilt where its reference gives both arms that may have been the old"
        " decision, the requested arm and the best of the others, at least h = (1−δ)/(1+e^ε). Then the old"
        " decision is kept with probability 1 − h, whoever asks, and the excess over no deletion is at most h"
        f" times the largest gap: {excess:.4f} at ε = {TABLE_EPSILON:g}. Tilt does so where the price,"
        f" e^(−ε)·h, is at most {Tilt().insurance:g} (see docs/theory.md); the bound is drawn there. At level"
        " retained all five arms may have been the old decision; from"
        f" ε = {all_insured_from():.2f} on tilt insures them all, and the bound is the same. At"
        f" ε = {TABLE_EPSILON:g} it has {shown(0, 'tilt retained')},"
        f" {shown(1, 'tilt retained')}, {shown(2, 'tilt retained')} and {shown(3, 'tilt retained')}.",
    ]


def _table_of_settings(rows: Sequence[Row]) -> Table:
    """All settings at one ε: every method, and the insured bound."""
    excess = insured_excess(TABLE_EPSILON)
    assert excess is not None  # at this ε the bound exists
    lines: list[list[object]] = []
    for setting in SETTINGS:
        chosen = rows_of_setting(rows, setting)
        found = [value(chosen, name, TABLE_EPSILON) for name in COMPARED_METHODS]
        values = [with_error(row["suboptimality"], row["standard_error"]) for row in found]
        bound = f"{found[0]['suboptimality'] + excess:.5f}"
        lines.append([setting.n, setting.k, setting.who, *values, bound])
    header = ["N", "deleted of the best arm", "who asks to be forgotten"]
    header += [*(style_of(name).name for name in COMPARED_METHODS), "insured bound"]
    caption = (
        f"Sub-optimality at (ε, δ) = ({TABLE_EPSILON:g}, 10⁻⁵), M_f, hard case; ± is one standard error."
    )
    return Table(header, lines, caption=caption)


def _table_at_the_papers_noise(run: Run) -> Table:
    model = FixedSample.round_robin(BASE_N, ENVIRONMENT.n_actions)
    methods = {name: METHODS[name] for name in FIGURE_1_METHODS}
    budget = Budget.from_gamma(BASE_GAMMA, delta=DELTA)
    rows: list[list[object]] = []
    for case in (HARD, EASY):
        for choice, who in CHOICES.items():
            request = OneArm(ARM_OF_CASE[case], BASE_K, choice)
            found = evaluate_all(
                *(ENVIRONMENT, model, request, methods, budget),
                protocol="sampled",
                datasets=run.plan.datasets,
                seed=run.plan.seed,
            )
            shown = [with_error(found[m].suboptimality, found[m].standard_error) for m in methods]
            rows.append([case, who, *shown])
    header = ["case", "who asks to be forgotten", *(style_of(name).name for name in FIGURE_1_METHODS)]
    return Table(
        header,
        rows,
        caption="The paper's methods at its noise: N = 3000, k = 80, γ = 0.5, M_f; ± is one standard error.",
    )
