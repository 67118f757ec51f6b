"""How experimentation platforms name the columns of their exports. A preset is one entry here.

Which page of a platform's documentation each follows, and what is an assumption: docs/joining.md.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of
from armnesia.logs.conditions import Condition, Where, conditions


@dataclass(frozen=True)
class ExposureColumns:
    """Where a table of exposures has what; `where` are conditions that its rows must satisfy."""

    experiment: str = "experiment"
    action: str = "action"
    user: str = "user"
    time: str = "time"
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class MetricColumns:
    """Where a table of a metric has what; without a value column, each row counts as 1."""

    user: str = "user"
    time: str = "time"
    value: str | None = "value"
    where: tuple[Condition, ...] = ()
    event: str | None = None
    """The column of the event's name, if the table has all events: then a condition must name one."""


@dataclass(frozen=True)
class Preset:
    """The columns of both tables."""

    exposures: ExposureColumns = field(default_factory=ExposureColumns)
    metric: MetricColumns = field(default_factory=MetricColumns)


PRESETS = {
    "growthbook": Preset(
        ExposureColumns("experiment_id", "variation_id", "user_id", "timestamp"),
        MetricColumns("user_id", "timestamp", "value"),
    ),
    "posthog": Preset(
        ExposureColumns(
            "properties.$feature_flag",
            "properties.$feature_flag_response",
            "distinct_id",
            "timestamp",
            conditions("event = $feature_flag_called"),
        ),
        MetricColumns("distinct_id", "timestamp", None, event="event"),
    ),
    "statsig": Preset(
        ExposureColumns("name", "experiment_group", "unit_id", "first_exposure_utc"),
        MetricColumns("user_id", "timestamp", "event_value", event="event_name"),
    ),
    "launchdarkly": Preset(
        ExposureColumns(
            "experiment_iteration_id",
            "variation_id",
            "context_key",
            "received_time",
            conditions("context_kind = user"),
        ),
        MetricColumns(
            "context_key",
            "received_time",
            "event_value",
            conditions("context_kind = user"),
            event="event_key",
        ),
    ),
}


def named_preset(name: str | None) -> Preset:
    """The preset of this name; without a name, the columns that the other commands use by default.

    >>> named_preset("growthbook").exposures.action, named_preset(None).exposures.action
    ('variation_id', 'action')
    """
    if name is None:
        return Preset()
    if name not in PRESETS:
        raise InvalidInputError(f"preset must be {any_of(list(PRESETS))}; got {name!r}")
    return PRESETS[name]


def with_named(columns: Any, where: Where | None, **named: str | None) -> Any:
    """The same columns with those that were named; conditions replace the preset's on the same column.

    >>> columns = with_named(PRESETS["posthog"].exposures, "event = $pageview", user="person_id")
    >>> columns.user, [str(condition) for condition in columns.where]
    ('person_id', ["event = '$pageview'"])
    """
    given = conditions(where)
    changed: dict[str, Any] = {role: name for role, name in named.items() if name is not None}
    replaced = {condition.column for condition in given}
    kept = tuple(condition for condition in columns.where if condition.column not in replaced)
    return replace(columns, **changed, where=(*kept, *given))
