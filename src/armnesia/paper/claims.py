"""Every quantitative or comparative claim of the paper, beside the true value and with a verdict.

`claims.csv` has a row for each claim; rows without a text add numbers to it. A row names a measure, and the
points where it is taken: by a pattern of figure, panel and varied parameter, and by x. What is printed is a
number, the two ends of a range, or the points whose value is meant. `how` is one of these:

- extreme: the least or largest value counts. If `repeated`, the paper's protocol is repeated at that point.
- share: the share of points for which the measure holds.
- all: the measure takes all points at once.
"""

import csv
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib import resources
from typing import Any

from armnesia import theory
from armnesia.learners import LCB
from armnesia.paper import settings
from armnesia.paper.comparisons import Estimate, Point, points, ratio
from armnesia.paper.figures import figure_1_cells, figure_2_cells, figure_3_cells, one_arm_cells
from armnesia.paper.protocol import paper_protocol, paper_protocol_shared
from armnesia.paper.section import DEPENDS, FAILS, HOLDS, WITHIN_ERROR, Claim, Section, Table
from armnesia.paper.settings import C_STAR, DELTA, ENVIRONMENT, Plan, Run, as_in_the_figure
from armnesia.paper.table_2 import PRINTED_TABLE_2, TABLE_2_NS, table_2_cells
from armnesia.privacy import Budget, privacy_curve
from armnesia.simulation import Cell, Environment, FixedSample, OneArm, Row, evaluate
from armnesia.unlearners import Rollback

M = ENVIRONMENT.n_actions
FOUR = ("rollback", "gaussian", "mixing", "adaptive")
PROTOCOL_OF = {"new data sets": paper_protocol, "shared data sets": paper_protocol_shared}
CONDITIONS = {"=": operator.eq, "≥": operator.ge, "≤": operator.le}
WORDS = (
    "A claim holds if the true numbers agree with the printed ones to half a point. It holds within sampling"
    " error if they agree to half a point and two standard errors. These combine our error (±) and that of"
    " the paper's protocol, which we repeat at the same point. 'Exact' values are not sampled. No error (–)"
    " is computed for shares of sampled points.",
    "Words are read as numbers. 'Most' is more than half, and 'almost all' is 90 %. 'No meaningful'"
    " difference and 'nearly none' are at most 5 %. 'Competitive' and 'no degradation' are at most 11 % above"
    " the best, as the paper says of the easy case. 'Significantly' is at least 11 %. A comparison without a"
    " number is judged by the true order.",
    "The verdict depends on the reading if two readings of the paper's words lead to different verdicts. '200"
    " independent data sets', 'averaged over 10 runs' can mean new data sets in each run. It can also mean"
    " that all runs share them, with new requests and new noise. The standard error of the protocol, in"
    " points, follows the name of the reading. With shared data sets it is about three times as large.",
    "The paper leaves parts of its protocol open. Our choices: a request takes consecutive records of its"
    " arm, from the start of a random block of 50 records. The easy arm is that of mean 0.06, and τ = 1/N. N"
    " runs from 1000 to 5000 in steps of 100, and k from 20 to 500 in steps of 20. γ is 0.05, 0.1, …, 0.5,"
    " 0.6, …, 1, 1.2, …, 2. With --quick it is about every fourth of these values. Where k is not varied it"
    " is 80, as in Section 4.1. The first 5 blocks of appendix B.1 would be 100 records. With these Algorithm"
    " 2 still adds noise at N = 2200.",
)

Measure = Callable[[Point], Estimate]


@dataclass(frozen=True)
class ClaimedNumber:
    """One number of a claim: as printed, its true value and where, and the error of the paper's protocol."""

    printed: float
    kind: str
    true: Estimate
    paper_error: float = 0.0
    place: str = ""
    label: str = ""


Readings = Mapping[str, Sequence[ClaimedNumber]]
"""The numbers of a claim by the way in which it is read; "" if there is one way only."""


def verdict(readings: Readings) -> str:
    """Judge a claim: in each reading, every number is right to half a point, or to two standard errors more.

    >>> sharp, blurred = (ClaimedNumber(35.0, "about", Estimate(27.0, 0.0), error) for error in (1.0, 5.0))
    >>> verdict({"": [sharp]}), verdict({"": [blurred]}), verdict({"new": [sharp], "shared": [blurred]})
    ('does not hold', 'holds within sampling error', 'depends on the reading')
    """
    found = {_verdict(numbers) for numbers in readings.values()}
    if FAILS in found and len(found) > 1:
        return DEPENDS
    return next(worst for worst in (FAILS, WITHIN_ERROR, HOLDS) if worst in found)


def _verdict(numbers: Sequence[ClaimedNumber]) -> str:
    right = sharply_right = True
    for number in numbers:
        short = number.printed - number.true.value
        missed_by = {"about": abs(short), "at least": short, "at most": -short}[number.kind]
        rounding = 0.5 if number.printed > DELTA else 1e-9  # δ and comparisons are sharp
        sharply_right &= missed_by <= rounding
        right &= missed_by <= rounding + 2 * math.hypot(number.paper_error, number.true.error)
    return HOLDS if sharply_right else WITHIN_ERROR if right else FAILS


class Evidence:
    """The points of Figures 1 to 3 and of Table 2, and what the paper's protocol gives at them."""

    def __init__(self, plan: Plan, evaluate_cells: Callable[[Sequence[Cell]], list[Row]]) -> None:
        plan = replace(plan, protocol="exact")  # claims are compared with true values, whatever figures show
        figures = [*figure_1_cells(plan), *figure_2_cells(plan), *figure_3_cells(plan), *table_2_cells(plan)]
        easy = one_arm_cells(plan, "2", [settings.EASY], settings.RATIOS)
        more = [cell for cell in easy if tuple(cell.labels.values())[1:3] == ("M_f easy", "N")]
        more += table_2_cells(plan, settings.BASE_K)
        self._evaluate = evaluate_cells
        self.rows = evaluate_cells(figures)
        self._all_rows = self.rows + evaluate_cells(more)
        self._cells = {tuple(cell.labels.values()): cell for cell in [*figures, *more]}

    def points(self, pattern: str, x: str = "") -> list[Point]:
        """The points whose figure, panel and varied parameter fit a pattern, and x a condition."""
        sign, limit = x.split() if x else ("≥", "0")
        return points(
            row
            for row in self._all_rows
            if fnmatchcase(f"{row['figure']}/{row['panel']}/{row['varied']}", pattern)
            and CONDITIONS[sign](row["x"], float(limit))
        )

    def is_exact(self, row: Mapping[str, str]) -> bool:
        """Whether what is computed of all points, or as a share of them, has exact values only."""
        among = self.points(row["points"], row["x"]) if row["how"] in ("all", "share") else []
        return not any(each["standard_error"] for point in among for each in point.values())

    def errors_of_paper(self, chosen: Sequence[Point], measure: Measure) -> dict[str, list[float]]:
        """The standard errors of a measure by the paper's protocol at some points, for each reading of it."""
        cells = [self._cells[as_in_the_figure(row_of(point))] for point in chosen]
        repeated = [replace(cell, evaluate=how) for how in PROTOCOL_OF.values() for cell in cells]
        rows = iter(self._evaluate(repeated))
        errors = iter([measure({name: next(rows) for name in cell.unlearners}).error for cell in repeated])
        return {reading: [next(errors) for _ in cells] for reading in PROTOCOL_OF}


def claims_of_paper() -> list[list[dict[str, str]]]:
    """The rows of each claim, in the paper's order."""
    text = resources.files("armnesia.paper").joinpath("claims.csv").read_text(encoding="utf-8")
    claims: list[list[dict[str, str]]] = []
    for row in csv.DictReader(text.splitlines(), delimiter="|"):
        if row["where"]:
            claims.append([])
        claims[-1].append(row)
    return claims


def numbers_of(row: Mapping[str, str], evidence: Evidence) -> Readings:
    """The numbers of one row, by reading."""
    name, *options = row["measure"].split()
    measure, kind = partial(MEASURES[name], *options), row["kind"]
    among = evidence.points(row["points"], row["x"])
    if row["how"] in ("all", "share"):
        value = measure(among) if row["how"] == "all" else 100 * sum(map(measure, among)) / len(among)
        true = Estimate(value)
        return {row["reading"]: [ClaimedNumber(float(row["printed"]), kind, true, label=row["label"])]}
    if "/" in row["printed"]:
        printed = [measure(_ends(measure, evidence.points(row["printed"]), kind)[0]).value]
    else:
        printed = [float(each) for each in row["printed"].split()]
    chosen = _ends(measure, among, kind)[: len(printed)]
    errors = {row["reading"]: [0.0] * len(chosen)}
    if row["how"] == "repeated":
        errors = evidence.errors_of_paper(chosen, measure)
    return {
        reading: [
            ClaimedNumber(each, kind, measure(point), error, _name(point), row["label"])
            for each, point, error in zip(printed, chosen, of_reading, strict=True)
        ]
        for reading, of_reading in errors.items()
    }


def _ends(measure: Measure, among: Sequence[Point], kind: str) -> list[Point]:
    """The point that decides on a limit, or both ends of a range."""
    ordered = sorted(among, key=lambda point: measure(point).value)
    return {"at least": ordered[:1], "at most": ordered[-1:], "about": [ordered[0], ordered[-1]]}[kind]


def _name(point: Point) -> str:
    row = row_of(point)
    place = f"N = {row['n']}, k = {row['k']}, " if row["figure"] == "3" else ""
    return f"{place}{row['varied']} = {row['x']:g}"


def judge(rows: Sequence[Mapping[str, str]], evidence: Evidence) -> Claim:
    """A claim with its true values and its verdict."""
    readings: dict[str, list[ClaimedNumber]] = defaultdict(list)
    for row in rows:
        for reading, numbers in numbers_of(row, evidence).items():
            readings[reading] += numbers
    claim, last = rows[0], list(readings.values())[-1]
    shown = {reading: _shown(numbers, claim["unit"]) for reading, numbers in readings.items()}
    each = [f"{reading}: {values}" for reading, values in shown.items()]
    ours = next(iter(shown.values())) if len(set(shown.values())) == 1 else "; ".join(each)
    error = max(number.true.error for numbers in readings.values() for number in numbers)
    without_error = "exact" if all(map(evidence.is_exact, rows)) else "–"
    error_shown = (f"{error:.1f}" if error >= 0.05 else "< 0.1") if error else without_error
    places = " and ".join(dict.fromkeys(number.place for number in last if number.place))
    why = " ".join(filter(None, (places and f"At {places}.", claim["why"], _words_on(readings))))
    paper = claim["paper"].format(last[0].printed)
    return Claim(claim["where"], claim["claim"], paper, ours, error_shown, verdict(readings), why)


def _shown(numbers: Sequence[ClaimedNumber], unit: str) -> str:
    """The values with their labels; those of one label are the ends of a range."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for number in numbers:
        value, digits = number.true.value, 1 if unit else 2
        texts[number.label][f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.0e}"] = None
    parts = [f"{'–'.join(values)} {unit} {label and f'({label})'}".strip() for label, values in texts.items()]
    return ", ".join(parts).replace("-", "−")


def _words_on(readings: Readings) -> str:
    """The errors of the paper's protocol by reading, and the verdicts of readings that differ."""
    verdicts = {reading: _verdict(numbers) for reading, numbers in readings.items()}
    parts = []
    for reading, numbers in readings.items():
        errors = ", ".join(f"{number.paper_error:.1f}" for number in numbers)
        of_protocol = f" ± {errors}" if reading in PROTOCOL_OF else ""
        judged = f": {verdicts[reading]}" if len(set(verdicts.values())) > 1 else ""
        if of_protocol or judged:
            parts.append(f"{reading}{of_protocol}{judged}")
    return f"Readings: {'; '.join(parts)}." if parts else ""


def claims_section(run: Run) -> Section:
    """All claims with their verdicts; they become part of the run's results."""
    evidence = Evidence(run.plan, run.evaluate)
    if not run.rows:  # otherwise the figures, computed before, have recorded the same points
        run.rows += evidence.rows
    run.claims = [judge(rows, evidence) for rows in claims_of_paper()]
    header = ["where", "claim", "paper", "ours", "± (points)", "verdict", "why"]
    rows = [astuple(claim) for claim in run.claims]
    verdicts = [claim.verdict for claim in run.claims]
    counts = [verdicts.count(each) for each in (HOLDS, WITHIN_ERROR, DEPENDS, FAILS)]
    counted = (
        f"Claims: {len(rows)}. Of these, {counts[0]} hold and {counts[1]} hold within sampling error."
        f" {counts[2]} depend on the reading, and {counts[3]} do not hold."
    )
    return Section("The paper's claims", [counted, *WORDS], tables=[Table(header, rows)])


# Measures of a point that are sampled.


def row_of(point: Point) -> Row:
    """Any row of a point: its setting."""
    return next(iter(point.values()))


def loss_of(point: Point, method: str) -> float:
    """The sub-optimality of a method."""
    return float(point[method]["suboptimality"])


def loses_more(method: str, other: str, point: Point) -> Estimate:
    """How much more than another a method loses, in per cent."""
    found = ratio(point[method], point[other])
    return Estimate(100 * (found.value - 1), 100 * found.error)


def loses_less(method: str, other: str, point: Point) -> Estimate:
    """How much less than another a method loses, in per cent."""
    more = loses_more(method, other, point)
    return Estimate(-more.value, more.error)


def to_best(method: str, point: Point) -> Estimate:
    """How much more than the best of the four methods and itself one loses, in per cent."""
    best = min({*FOUR, method} & set(point), key=partial(loss_of, point))
    return loses_more(method, best, point)


def apart(method: str, other: str, point: Point) -> Estimate:
    """How far a method is from another, in per cent of it, whichever is better."""
    found = loses_more(method, other, point)
    return Estimate(abs(found.value), found.error)


def gain_of_mixing(point: Point) -> Estimate:
    """How much less the best k′/k loses than the better of 0 and 1, in per cent."""
    end = min(("mixing 0", "mixing 1"), key=partial(loss_of, point))
    return loses_less(min(point, key=partial(loss_of, point)), end, point)


def spread_of_mixing(point: Point) -> Estimate:
    """How much more than the best k′/k the worst one loses, in per cent."""
    worst, best = (choose(point, key=partial(loss_of, point)) for choose in (max, min))
    return loses_more(worst, best, point)


def gain_of_imitation(point: Point) -> Estimate:
    """How much less than Algorithm 2 Algorithm 6 loses; what is printed as 0.0000 cannot be reduced."""
    is_zero = loss_of(point, "adaptive") < 0.5e-4
    return Estimate(0.0) if is_zero else loses_less("imitation", "adaptive", point)


# Measures of a point by theory, with equal counts.


def setting_of(point: Point) -> tuple[int, int, float]:
    """N, k and γ."""
    row = row_of(point)
    return row["n"], row["k"], row["gamma"]


def gamma_0(n: int, k: int) -> float:
    """γ₀ as printed."""
    return theory.gamma_0(n=n, n_arm=n // M, k=k, m=M, threshold="paper")


def true_delta(point: Point) -> Estimate:
    """δ of the classic calibration at its own ε."""
    n, k, gamma = setting_of(point)
    exact = float(LCB(confidence=1 / n).sensitivity([n // M], [k], M)[0])
    curve = privacy_curve(gamma * 1.5 * k / (n // M) / exact)  # σ is γ times the paper's sensitivity
    return Estimate(curve.delta(math.sqrt(2 * math.log(1.25 / DELTA)) / gamma))


def excess_of_gamma_0(point: Point) -> Estimate:
    """How far the printed γ₀ is above the exact one, in per cent."""
    n, k, _ = setting_of(point)
    exact = theory.gamma_0(n=n, n_arm=n // M, k=k, m=M, threshold="exact")
    return Estimate(100 * (gamma_0(n, k) / exact - 1))


def gain_of_mixing_bound(point: Point) -> Estimate:
    """`gain_of_mixing` for the printed upper bounds."""
    n, k, gamma = setting_of(point)
    case: Any = {"n": n, "n_best": n // M, "n_arm": n // M, "k": k, "m": M, "gamma": gamma}
    parts = range(0, k + 1, k // 20)
    bounds = [
        theory.mixing_fixed(**case, rolled_back=part, a0_is_best=True, form="printed").value for part in parts
    ]
    return Estimate(100 * (1 - min(bounds) / min(bounds[0], bounds[-1])))


def sharpness(form: theory.Form, point: Point) -> Estimate:
    """Theorem 3.11 in per cent of the generic bound, at C* = 1.3."""
    n, k, _ = setting_of(point)
    sharp = theory.imitation_distribution(n=n, c_star=1.3, k=k, form=form)
    generic = theory.lcb_distribution(n=n, c_star=1.3, m=M, form="printed")
    return Estimate(100 * sharp.value / generic.value)


def rise_with_factor(point: Point) -> Estimate:
    """How much the bound of Algorithm 2 rises with the factor 1.3, in per cent, just below 1.3 γ₀."""
    n, k, _ = setting_of(point)
    case: Any = {"n": n, "n_best": n // M, "n_arm": n // M, "k": k, "m": M, "a0_is_best": True}
    gamma = (1 - 1e-9) * 1.3 * gamma_0(n, k)
    high, low = (theory.adaptive_fixed(**case, gamma=gamma, threshold_scale=by) for by in (1.3, 1.0))
    return Estimate(100 * (high.value / low.value - 1))


# What holds at a point, or at a share of it.


def rank(method: str, point: Point) -> int:
    """The rank of a method among the four of Figure 1; a difference below 0.1 % is a tie."""
    return 1 + sum(loss_of(point, other) < 0.999 * loss_of(point, method) for other in FOUR)


def is_high(method: str, point: Point) -> bool:
    """Whether a method is best or second-best."""
    return rank(method, point) <= 2


def best_at_an_end(point: Point) -> bool:
    """Whether no k′/k between 0 and 1 is better by more than two standard errors."""
    gain = gain_of_mixing(point)
    return gain.value <= 2 * gain.error


def right_in_table_2(point: Point) -> float:
    """The share of a column's printed numbers that are right."""
    column = TABLE_2_NS.index(row_of(point)["n"])
    right = [
        abs(loss_of(point, method) - printed[column]) <= 0.5e-4 + 2 * point[method]["standard_error"]
        for method, printed in PRINTED_TABLE_2.items()
    ]
    return float(sum(right) / len(right))


# Measures of all points at once.


def counterexample(_: Sequence[Point]) -> float:
    """How much more rollback loses than no deletion if a third arm becomes best, in per cent."""
    case = Environment.bernoulli((0.5, 0.4, 0.1)), FixedSample((10, 400, 400)), OneArm(1, 390)
    budget = Budget(epsilon=1.0, delta=DELTA)  # neither uses it
    before, after = (evaluate(*case, method, budget).suboptimality for method in (None, Rollback()))
    return float(100 * (after / before - 1))


def spread_of_bounds(model: str, among: Sequence[Point]) -> float:
    """Largest over smallest ratio of the printed upper and lower bound for ε → 0, without √ln(Nm)."""
    ratios = []
    limit: Any = {"epsilon": 0, "delta": 0, "form": "printed"}
    for n, k, _ in map(setting_of, among):
        case: Any = {"n": n, "k": k, "m": M, "gamma": 1e9, "a0_is_best": True, "form": "printed"}
        if model == "M_f":
            upper = theory.adaptive_fixed(**case, n_best=n // M, n_arm=n // M)
            lower = theory.lower_fixed(**limit, n=n, k=k, n_arm=n // M)
        else:
            upper = theory.adaptive_distribution(**case, c_star=C_STAR)
            lower = theory.lower_distribution(**limit, n=n, k=k, c_star=C_STAR)
        ratios.append(upper.value / lower.value / math.sqrt(math.log(n * M)))
    return max(ratios) / min(ratios)


def exponent(side: str, _: Sequence[Point]) -> float:
    """The exponent of C* − 1 in a bound near C* = 1, in per cent of N − k."""
    n, k, c_star = 40, 8, 1.0001
    if side == "upper":
        bound = theory.imitation_distribution(n=n, c_star=c_star, k=k, form="exact")
    else:
        bound = theory.lower_distribution(n=n, c_star=c_star, k=k, epsilon=0, delta=0)
    return 100 * math.log(bound.value) / ((n - k) * math.log(c_star - 1))


def least_gain_of_factor(among: Sequence[Point]) -> float:
    """The least gain of Algorithm 2 over rollback, which it is without the factor, where that matters."""
    gains = []
    for point in among:
        n, k, gamma = setting_of(point)
        if gamma_0(n, k) <= gamma < 1.3 * gamma_0(n, k):
            gains.append(loses_less("adaptive", "rollback", point).value)
    return min(gains, default=0.0)


def ordered(which: str, among: Sequence[Point]) -> float:
    """The share of pairs, of the same or of other sweeps, where the point with noise has the larger k/N."""
    noise: list[tuple[str, float]] = []
    rolled: list[tuple[str, float]] = []
    for point in among:
        n, k, gamma = setting_of(point)
        (noise if gamma < 1.3 * gamma_0(n, k) else rolled).append((row_of(point)["varied"], k / n))
    right = [x > y for one, x in noise for other, y in rolled if (one == other) == (which == "same")]
    return 100 * sum(right) / len(right)


def growth(how: str, among: Sequence[Point]) -> float:
    """How much the lead of Algorithm 7 over Gaussian noise grows from one point to another, in per cent."""
    leads = [loss_of(point, "gaussian") - loss_of(point, "multi_source") for point in among]
    if how == "relative":
        leads = [lead / loss_of(point, "gaussian") for lead, point in zip(leads, among, strict=True)]
    first, last = leads
    return 100 * (last / first - 1)


MEASURES: dict[str, Callable[..., Any]] = {
    measure.__name__: measure
    for measure in (
        *(loses_less, loses_more, to_best, apart, gain_of_mixing, spread_of_mixing, gain_of_imitation),
        *(true_delta, excess_of_gamma_0, gain_of_mixing_bound, sharpness, rise_with_factor),
        *(is_high, best_at_an_end, right_in_table_2),
        *(counterexample, spread_of_bounds, exponent, least_gain_of_factor, ordered, growth),
    )
}
