"""The command `research bounds`."""

from typing import Annotated, Any, cast

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import with_options_of, with_parameters
from armnesia.cli.research.setting import SettingOptions, as_in_the_paper, setting_options
from armnesia.simulation import FixedSample
from armnesia.theory import Setting
from armnesia.theory import bounds as all_bounds
from armnesia.unlearners import Adaptive


@with_parameters({Adaptive.name: Adaptive})
@with_options_of(setting_options, "setting")
def bounds(
    setting: SettingOptions,
    n_actions: Annotated[int, typer.Option(help="Number of arms, with --n.")] = 5,
    best: Annotated[int | None, typer.Option(help="The best arm, if known.")] = None,
    parameters: Any = None,
    form: Annotated[
        str,
        typer.Option(
            metavar="printed|derived|exact|tv",
            help="The constants: see docs/theory.md. With tv, upper bounds are exact.",
        ),
    ] = "derived",
    as_json: opt.AsJson = False,
) -> None:
    """Print every bound for a setting.

    The paper's and ours, with the conditions that each needs.
    """
    adaptive = as_in_the_paper(Adaptive, parameters)
    common: dict[str, Any] = {
        "deletions": setting.deletions,
        "budget": setting.budget,
        "best": best,
        "threshold": adaptive.threshold,
        "threshold_scale": adaptive.threshold_scale,
        "sensitivity": adaptive.sensitivity,
    }
    if setting.model == "fixed":
        sizes = setting.counts or FixedSample.round_robin(setting.size, n_actions).counts
        described = Setting.fixed(counts=sizes, **common)
    else:
        described = Setting.distribution(n=setting.size, n_actions=n_actions, c_star=setting.c_star, **common)
    found = all_bounds(described, form=cast(Any, form))  # any text; an unknown one is refused there
    notes = []
    if any(not bound.holds for bound in found):
        notes.append("A value whose conditions are not met is no bound.")
    if any("contenders" in condition.text for bound in found for condition in bound.unmet):
        notes.append("Contenders are the arms that tilt may insure; h = (1-delta)/(1+e^eps).")
    if form == "tv":
        notes.append("Of the form tv are lower bounds; upper bounds are exact.")
    rows = [
        [
            bound.kind,
            bound.name,
            bound.value,
            bound.holds,
            "; ".join(condition.text for condition in bound.unmet),
        ]
        for bound in found
    ]
    print_result(
        {**setting.budget.to_dict(), "bounds": [bound.to_dict() for bound in found]},
        as_json,
        table("Bounds", ["", "bound", "value", "proved here", "missing conditions"], rows),
        *notes,
    )
