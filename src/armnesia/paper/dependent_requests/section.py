"""The report's section on requests that depend on rewards."""

from armnesia.paper.pictures import style_of
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
)
from armnesia.privacy import Budget
from armnesia.simulation import FixedSample, OneArm, evaluate_all
from armnesia.simulation.requests import Choice

CHOICES: dict[Choice, str] = {
    "random": "anyone",
    "highest": "the highest rewards",
    "lowest": "the lowest rewards",
}


def dependent_requests_section(run: Run) -> Section:
    """Figure 1's methods when requests do and do not depend on rewards (M_f, base setting, sampled)."""
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
    return Section(
        "When requests depend on rewards",
        [
            "The paper assumes that requests do not depend on the rewards. If the people with the best (or"
            " the worst) outcomes of an arm ask to be forgotten, what is left of it is biased, and rollback"
            " and Algorithm 2 follow the bias: in the hard case their sub-optimality rises if the best"
            " outcomes are deleted, and falls if the worst are. Noise on the old score does not depend on"
            " what is left, so it has no such bias. The guarantees do not need the assumption.",
        ],
        tables=[Table(header, rows, caption="N = 3000, k = 80, γ = 0.5, M_f; ± is one standard error.")],
    )
