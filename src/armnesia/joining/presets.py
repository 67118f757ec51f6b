"""How experimentation platforms name the columns of their exports: a preset is one entry here.

Which page of a platform's documentation each follows, and what is an assumption: docs/joining.md.
"""

from collections.abc import Mapping
from typing import NamedTuple

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of, listed
from armnesia.logs.conditions import Condition, Where, conditions


class Preset(NamedTuple):
    """The names of columns, and the rows that are read if no other condition on their column is given."""

    experiment: str = "experiment"
    action: str = "action"
    user: str = "user"
    time: str = "time"
    metric_user: str | None = None
    """If not named, as the user of the exposures; so is the time."""
    metric_time: str | None = None
    value: str | None = None
    event: str | None = None
    """The column of the event's name, if the metric has all events: then a condition must name one."""
    exposure_where: str | None = None
    metric_where: str | None = None

    def roles(
        self, columns: Mapping[str, str], experiment: str | None, *, with_value: bool
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The columns of the exposures and of the metric by their roles; those given replace the preset's.

        >>> shown, measured = PRESETS["growthbook"].roles({"user": "device"}, "checkout", with_value=True)
        >>> shown
        {'action': 'variation_id', 'user': 'device', 'time': 'timestamp'}
        >>> measured
        {'user': 'device', 'time': 'timestamp', 'value': 'value'}
        """
        own = dict(zip(self._fields[:7], self, strict=False))
        for role, name in columns.items():
            if role not in own or not (isinstance(name, str) and name):
                raise InvalidInputError(f"columns must name {listed(own, 10)}; got {role!r}: {name!r}")
        names = {role: name for role, name in {**own, **columns}.items() if name is not None}
        shown = {role: names[role] for role in ("experiment", "action", "user", "time")}
        measured = {role: names.get(f"metric_{role}", names[role]) for role in ("user", "time")}
        if experiment is not None:
            del shown["experiment"]
            if not experiment or "experiment" in columns:
                raise InvalidInputError(
                    f"experiment must be the name of the only one, without a column of it; got {experiment!r}"
                )
        if with_value or "value" in columns:  # else rows count, whatever else they say
            if "value" not in names:
                raise InvalidInputError(
                    "this preset has no column of values: name it with columns (--column value=NAME), such as"
                    " properties.revenue, or use aggregate any or count"
                )
            measured["value"] = names["value"]
        return shown, measured

    def where(
        self, exposures: Where | None, metric: Where | None
    ) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
        """The conditions of both tables; those given replace the preset's on the same columns."""
        found = []
        for own, given in ((self.exposure_where, exposures), (self.metric_where, metric)):
            asked = conditions(given)
            columns = {each.column for each in asked}
            found.append((*(each for each in conditions(own) if each.column not in columns), *asked))
        if self.event is not None and self.event not in {each.column for each in found[1]}:
            raise InvalidInputError(
                "a metric of this preset is a table of all events: select one with metric_where"
                f" (--metric-where '{self.event} = NAME')"
            )
        return found[0], found[1]


PRESETS = {
    "growthbook": Preset("experiment_id", "variation_id", "user_id", "timestamp", value="value"),
    "posthog": Preset(
        *("properties.$feature_flag", "properties.$feature_flag_response", "distinct_id", "timestamp"),
        event="event",
        exposure_where="event = $feature_flag_called",
    ),
    "statsig": Preset(
        *("name", "experiment_group", "unit_id", "first_exposure_utc", "user_id", "timestamp"),
        value="event_value",
        event="event_name",
    ),
    "launchdarkly": Preset(
        *("experiment_iteration_id", "variation_id", "context_key", "received_time"),
        value="event_value",
        event="event_key",
        exposure_where="context_kind = user",
        metric_where="context_kind = user",
    ),
}


def preset_of(name: str | None) -> Preset:
    """The preset of this name; without one, columns are named by their roles.

    >>> preset_of("growthbook").action, preset_of(None).action
    ('variation_id', 'action')
    """
    if name is not None and name not in PRESETS:
        raise InvalidInputError(f"preset must be {any_of(list(PRESETS))}; got {name!r}")
    return Preset(value="value") if name is None else PRESETS[name]
