"""Sampled evaluation beside a plain loop over records: the time of one data set, as a ratio.

The loop does what a first program would: draw every record, count, decide by LCB, choose U, run Algorithm 2
with drawn noise. The engine draws sums and integrates the noise out. Both estimate the same number, which
is checked (within 4 standard errors: a false alarm in 6·10⁻⁵ of runs). Exits with 1 below 200x.

Then, in the distribution model, the time in which `evaluate` reaches a relative error of 1 %, beside that of
plain sampling with exactly as many data sets as that needs. `evaluate` has to find the number: it may take
1.5 times as long, and the time of its pilot and of its smallest run more; exact values have no error. Exits
with 1 above that.
"""

import math
import random
import sys
import time

from armnesia import Adaptive, Budget, FrozenRollback, ImitationRollback, Rollback, Tilt, Unlearner
from armnesia.simulation import DistributionModel, Environment, FixedSample, OneArm, evaluate

MEANS = (0.10, 0.08, 0.06, 0.04, 0.02)
N, K, GAMMA, SCALE = 3000, 80, 0.2, 1.3
LOOPED, SAMPLED, FEWEST = 2000, 400_000, 200


def draw_records(rng: random.Random, *, in_turn: bool) -> list[tuple[int, int]]:
    """(arm, reward) of every record of a log."""
    records = []
    for i in range(N):
        arm = i % len(MEANS) if in_turn else rng.randrange(len(MEANS))
        records.append((arm, 1 if rng.random() < MEANS[arm] else 0))
    return records


def lcb(records: list[tuple[int, int]]) -> tuple[list[int], list[float]]:
    counts, sums = [0] * len(MEANS), [0] * len(MEANS)
    for arm, reward in records:
        counts[arm] += 1
        sums[arm] += reward
    log_term = math.log(len(MEANS) * N)
    scores = [
        one / n - math.sqrt(log_term / (2 * n)) if n else -1.0 for one, n in zip(sums, counts, strict=True)
    ]
    return counts, scores


def best(scores: list[float]) -> int:
    return max(range(len(scores)), key=scores.__getitem__)


def one_loss(rng: random.Random, *, in_turn: bool) -> float:
    """Algorithm 2 on one log, for a request of K records of arm 0: what the drawn arm gives up."""
    records = draw_records(rng, in_turn=in_turn)
    counts, scores = lcb(records)
    deleted = set(rng.sample([i for i, (arm, _) in enumerate(records) if arm == 0], K))
    threshold = SCALE * 4 / 3 * math.sqrt(math.pi * math.log(len(MEANS) * N) / (counts[0] - K))
    if best(scores) == 0 and threshold > GAMMA:
        scores[0] += rng.gauss(0.0, GAMMA * 1.5 * K / counts[0])
    else:
        scores = lcb([record for i, record in enumerate(records) if i not in deleted])[1]
    return MEANS[0] - MEANS[best(scores)]


def compare(name: str, model: FixedSample | DistributionModel, *, in_turn: bool) -> tuple[float, bool]:
    rng = random.Random(1)
    start = time.perf_counter()
    losses = [one_loss(rng, in_turn=in_turn) for _ in range(LOOPED)]
    loop = (time.perf_counter() - start) / LOOPED

    environment, budget = Environment.bernoulli(MEANS), Budget.from_gamma(GAMMA, delta=1e-5)
    unlearner = Adaptive.as_in_the_paper()
    start = time.perf_counter()
    result = evaluate(
        environment, model, OneArm(0, K), unlearner, budget, protocol="sampled", datasets=SAMPLED
    )
    engine = (time.perf_counter() - start) / SAMPLED

    mean = math.fsum(losses) / LOOPED
    error = math.sqrt(math.fsum((loss - mean) ** 2 for loss in losses) / (LOOPED * (LOOPED - 1)))
    apart = abs(mean - result.suboptimality) / math.hypot(error, result.standard_error)
    print(f"{name}")
    print(f"  loop over records  {1e6 * loop:9.2f} µs a data set   {mean:.6f} ± {error:.6f}")
    print(
        f"  sampled engine     {1e6 * engine:9.2f} µs a data set   "
        f"{result.suboptimality:.6f} ± {result.standard_error:.6f}"
    )
    print(f"  ratio              {loop / engine:9.0f}x (at least {FEWEST}x);  {apart:.1f} errors apart\n")
    return loop / engine, apart < 4


SETTINGS: list[tuple[int, float, int]] = [(1000, 5, 80), (3000, 5, 80), (3000, 2, 80), (900, 1.3, 580)]
UNLEARNERS: list[Unlearner | None] = [
    None,
    Rollback(),
    FrozenRollback(),
    Adaptive.as_in_the_paper(),
    Tilt(),
    ImitationRollback(),
]
PILOT_AND_FEWEST, PROBE, ENOUGH = 12_000, 50_000, 1.5


def to_one_percent(n: int, c_star: float, k: int, unlearner: Unlearner | None) -> bool:
    """Print the times of `evaluate` and of plain sampling; whether the first is short enough."""
    environment, budget = Environment.bernoulli(MEANS), Budget(epsilon=3.0, delta=1e-5)
    model = DistributionModel.with_coverage(n, n_actions=len(MEANS), best=0, c_star=c_star)
    setting = environment, model, OneArm(0, k), unlearner, budget
    start = time.process_time()
    found = evaluate(*setting, seed=1)
    own = time.process_time() - start
    start = time.process_time()
    probe = evaluate(*setting, protocol="sampled", datasets=PROBE, seed=2)
    each = (time.process_time() - start) / PROBE
    # Of a loss that the probe hardly saw: at least the gap between the best two arms, or none.
    value = found.suboptimality or found.interval[1]
    relative = probe.standard_error / value * math.sqrt(PROBE)
    if probe.suboptimality < 10 * probe.standard_error:
        relative = math.sqrt((MEANS[0] - MEANS[1]) / value)
    plain = each * (relative / 0.01) ** 2
    name = "no deletion" if unlearner is None else unlearner.name
    print(
        f"  N = {n}, C* = {c_star:<3} k = {k:<3} {name:18}  {found.suboptimality:.3e}"
        f" ± {found.relative_error:.1%}  {own:8.3f} s   plain {plain:10.3f} s   {found.protocol}"
    )
    return found.protocol == "exact" or own <= ENOUGH * plain + PILOT_AND_FEWEST * each


def main() -> int:
    evaluate(  # loads what is loaded once
        Environment.bernoulli(MEANS),
        FixedSample.round_robin(N, len(MEANS)),
        OneArm(0, K),
        Adaptive.as_in_the_paper(),
        Budget.from_gamma(GAMMA, delta=1e-5),
        protocol="sampled",
        datasets=10,
    )
    print(f"Algorithm 2, N = {N}, k = {K}, γ = {GAMMA}, one core")
    fixed = compare("fixed-sample model", FixedSample.round_robin(N, len(MEANS)), in_turn=True)
    by_chance = DistributionModel(N, (1 / len(MEANS),) * len(MEANS))
    drawn = compare("distribution model, C* = 5", by_chance, in_turn=False)
    enough = min(fixed[0], drawn[0]) >= FEWEST
    print("evaluate to 1 %, in the distribution model")
    soon = [to_one_percent(*setting, unlearner) for setting in SETTINGS for unlearner in UNLEARNERS]
    print(f"  {sum(soon)} of {len(soon)} in at most {ENOUGH} times plain sampling, plus the pilot")
    return 0 if enough and fixed[1] and drawn[1] and all(soon) else 1


if __name__ == "__main__":
    sys.exit(main())
