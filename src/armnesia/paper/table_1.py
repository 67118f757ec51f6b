"""Table 1 of the paper, evaluated: every bound, with its constants, beside the loss of its method."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from armnesia import theory
from armnesia.paper.comparisons import loss
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import BASE_GAMMA, BASE_K, BASE_N, C_STAR, DELTA, ENVIRONMENT, Plan, Run
from armnesia.privacy import Budget
from armnesia.simulation import Cell, DataModel, DistributionModel, Environment, FixedSample

FORMS: tuple[theory.Form, ...] = ("printed", "derived", "exact")
LOWER = "Lower bound"
OF_LOWER = Budget(epsilon=1.0, delta=0.0)
WORDS = (
    "Each row of the paper's Table 1, and mixing (Theorem A.10). τ is 1/N, the best arm is requested, and the"
    " threshold is 1.3 γ₀. 'O(·)' is the expression in the table, without constants. 'printed' has the"
    " constants of the proof; in 'derived' every step is checked; 'exact' computes tails and expectations."
    " Upper bounds in brackets exceed the largest gap and say nothing.",
    "The last column is the expected loss of the bound's method; '<' precedes its rounding or sampling error."
    " Lower bounds are at ε = 1, δ = 0. Beside them is the loss of a (0, 0) method: rollback, or imitation if"
    " C* < 2. It is on the worse of the proof's two instances. The printed bound for C* < 2 is for records"
    " drawn from the whole log. Its other two forms are for records of one arm.",
)


@dataclass(frozen=True)
class Line:
    """A row: the setting, the name of its bound, the expression in Table 1, and the method with its loss."""

    where: str
    name: str
    setting: theory.Setting
    expression: float
    method: str

    def bound(self, form: theory.Form) -> theory.Bound:
        """The bound in one of its forms."""
        return next(
            bound for bound in theory.bounds(self.setting, form=form) if bound.name.startswith(self.name)
        )

    def cells(self, plan: Plan, environment: Environment) -> list[Cell]:
        """The setting in an environment; for a lower bound, the two instances of its proof."""
        setting = self.setting
        cell = plan.cell(
            ("table1", f"{self.where} {self.name}", "N", setting.n),
            setting.n,
            dict(setting.deletions),
            [self.method],
            gamma=setting.budget.gamma,
            c_star=setting.c_star,
            environment=environment,
        )
        if self.method == "imitation" and plan.protocol == "exact":  # it has a formula for every N
            cell = replace(cell, protocol="exact")
        if self.name != LOWER:
            return [cell]
        k = setting.deletions[0][1]
        if setting.c_star is None:
            n_arm = setting.n // setting.n_actions
            pair = theory.hard_instances_fixed(n_arm=n_arm, k=k)
            models: Sequence[DataModel] = [FixedSample((n_arm, n_arm))] * 2
        else:
            pair = theory.hard_instances_distribution(
                n=setting.n, c_star=setting.c_star, k=k, deletion="one_arm"
            )
            models = [DistributionModel(setting.n, policy) for policy in pair.policies or ()]
        worlds = zip(map(Environment.bernoulli, pair.means), models, strict=True)
        return [replace(cell, environment=world, model=model) for world, model in worlds]


def lines(
    *, n: int, m: int, k: int, gammas: tuple[float, float], c_star: float, small: tuple[int, int, float]
) -> list[Line]:
    """All rows, at γ below and above γ₀; `small` has N, k and C* for C* < 2."""
    n_arm, log_term = n // m, math.log(n * m)
    noise, rollback = (Budget.from_gamma(gamma, delta=DELTA) for gamma in gammas)
    fixed = partial(theory.Setting.fixed, counts=[n_arm] * m, best=0, threshold_scale=1.3)
    chance = partial(theory.Setting.distribution, n_actions=m, best=0, threshold_scale=1.3)
    one, two, by_chance = {0: k}, {0: k, 1: k}, partial(chance, n=n, c_star=c_star, deletions={0: k})
    n_2, k_2, c_2 = small
    close = partial(chance, n=n_2, c_star=c_2, deletions={0: k_2})

    def width(count: float) -> float:
        return math.sqrt(log_term / max(count, 1 / c_star))

    left, rest = n_arm - k // 2, k - k // 2
    noisy, rolled = width(n_arm) + k * noise.gamma / n_arm, width(n_arm - k)
    mixed = width(left) + rest * noise.gamma * math.sqrt(log_term) / left
    at_chance = [
        min(width(n / c_star - 2 * k), width(n / c_star) + k * budget.gamma * c_star / n)
        for budget in (noise, rollback)
    ]
    imitation = (n_2 + k_2) / 2 * math.log(2 / c_2) - (n_2 - k_2) / 2 * math.log(c_2 / (8 * (c_2 - 1)))
    close_lower = (2 - c_2) * math.exp(-1 - (n_2 - k_2) * (2 - c_2) * math.log(2 / (c_2 - 1)))
    m_f, m_d = "M_f, one arm", f"M_d, C* = {c_star:g}"
    in_close = f"M_d, C* = {c_2:g}, N = {n_2}, k = {k_2}"
    return [
        Line(f"{m_f}, γ < γ₀", "Algorithm 2", fixed(deletions=one, budget=noise), noisy, "adaptive"),
        Line(f"{m_f}, γ ≥ γ₀", "Algorithm 2", fixed(deletions=one, budget=rollback), rolled, "adaptive"),
        Line(f"{m_f}, γ < γ₀, k′ = k/2", "Mixing", fixed(deletions=one, budget=noise), mixed, "mixing"),
        Line(m_f, LOWER, fixed(deletions=one, budget=OF_LOWER), math.exp(-1) / math.sqrt(n_arm - k),
             "rollback"),
        Line("M_f, two arms, γ < γ₀′", "Multi-source", fixed(deletions=two, budget=noise), noisy,
             "multi_source"),
        Line("M_f, two arms, γ ≥ γ₀′", "Multi-source", fixed(deletions=two, budget=rollback), rolled,
             "multi_source"),
        Line(f"{m_d}, γ = {noise.gamma:g}", "Algorithm 2", by_chance(budget=noise), at_chance[0], "adaptive"),
        Line(f"{m_d}, γ = {rollback.gamma:g}", "Algorithm 2", by_chance(budget=rollback), at_chance[1],
             "adaptive"),
        Line(m_d, LOWER, by_chance(budget=OF_LOWER), math.exp(-1) * math.sqrt(c_star / (n - k)), "rollback"),
        Line(in_close, "Imitation", close(budget=rollback), math.exp(min(imitation, 700)), "imitation"),
        Line(in_close, LOWER, close(budget=OF_LOWER), close_lower, "imitation"),
    ]  # fmt: skip


def table_1_section(run: Run) -> Section:
    """The rows in the paper's setting, and in one where the bounds say something."""
    gammas = (BASE_GAMMA / 2, BASE_GAMMA)
    papers = lines(n=BASE_N, m=5, k=BASE_K, gammas=gammas, c_star=C_STAR, small=(900, BASE_K, 1.3))
    large = lines(n=20_000, m=2, k=1000, gammas=(0.05, 0.5), c_star=4.0, small=(100, 10, 1.02))
    captions = (
        "The paper's setting: N = 3000, five arms, k = 80 of each requested arm, γ = 0.25 and 0.5.",
        "Two arms of means 0.9 and 0.1: N = 20,000, k = 1000 of each requested arm, γ = 0.05 and 0.5.",
    )
    tables = [
        _table(run, papers, ENVIRONMENT, captions[0]),
        _table(run, large, Environment.bernoulli((0.9, 0.1)), captions[1]),
    ]
    return Section("Table 1: the bounds", WORDS, tables=tables)


def _table(run: Run, rows: Sequence[Line], environment: Environment, caption: str) -> Table:
    cells = [line.cells(run.plan, environment) for line in rows]
    found = iter(run.evaluate([cell for each in cells for cell in each]))
    shown = []
    for line, each in zip(rows, cells, strict=True):
        worst = max((next(found) for _ in each), key=lambda row: float(row["suboptimality"]))
        vacuous = math.inf if line.name == LOWER else float(environment.gaps.max())
        values = [line.expression, *(line.bound(form).value for form in FORMS)]
        numbers = [_number(value, vacuous) for value in values]
        proof = line.bound("derived").reference.split(" (")[0]
        shown.append([line.where, line.name, proof, *numbers, loss(worst)])
    return Table(["setting", "bound of", "proof", "O(·)", *FORMS, "loss"], shown, caption=caption)


def _number(value: float, vacuous: float) -> str:
    if value < 1e-300:
        return "< 1e-300"
    text = f"{value:.4f}" if 1e-3 <= value < 10 else f"{value:.1e}"
    return f"({text})" if value >= vacuous else text
