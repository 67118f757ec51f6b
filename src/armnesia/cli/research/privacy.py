"""The commands `research calibrate` and `research curve`: noise and privacy alone."""

from typing import Annotated

import typer

from armnesia.cli.options import AsJson, Picture
from armnesia.cli.output import print_result, table
from armnesia.core.errors import InvalidInputError
from armnesia.plotting import picture_of_curve, save
from armnesia.privacy import Budget, privacy_curve

DEFAULT_EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
DEFAULT_DELTAS = (1e-3, 1e-5, 1e-10)


def calibrate(
    epsilon: Annotated[float, typer.Option(help="Privacy ε.")],
    delta: Annotated[float, typer.Option(help="Privacy δ.")],
    classic: Annotated[bool, typer.Option(help="The paper's formula, where it holds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the noise γ = σ/Δ that (ε, δ) needs."""
    budget = (Budget.classic if classic else Budget)(epsilon=epsilon, delta=delta)
    result = {
        "gamma": budget.gamma,
        "epsilon": epsilon,
        "delta": delta,
        "method": "classic" if classic else "analytic",
        "exact_delta": privacy_curve(budget.gamma).delta(epsilon),
    }
    row = [f"{budget.gamma:.10g}", *list(result.values())[1:]]
    print_result(result, as_json, table("Calibration", result, [row]))


def curve(
    gamma: Annotated[float, typer.Option(help="Noise γ = σ/Δ.")],
    epsilon: Annotated[list[float] | None, typer.Option(help="Print δ at this ε (repeatable).")] = None,
    delta: Annotated[list[float] | None, typer.Option(help="Print ε at this δ (repeatable).")] = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Compute the exact trade-off between ε and δ of noise γ."""
    if epsilon is None and delta is None:
        epsilon, delta = list(DEFAULT_EPSILONS), list(DEFAULT_DELTAS)
    exact = privacy_curve(gamma)
    if any(not value >= 0 for value in epsilon or []):
        raise InvalidInputError(f"--epsilon must be 0 or more; got {epsilon}")
    points = [{"epsilon": value, "delta": exact.delta(value)} for value in epsilon or []]
    points += [{"epsilon": exact.epsilon(value), "delta": value} for value in delta or []]
    if picture is not None:
        save(picture_of_curve(exact), picture)
    shown = table(f"Privacy of noise γ = {gamma:g}", ["ε", "δ"], [point.values() for point in points])
    print_result({"gamma": gamma, "points": points, "picture": picture}, as_json, shown)
