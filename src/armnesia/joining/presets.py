"""How experimentation platforms name the columns of their exports: a preset is one entry here.

Which page of a platform's documentation each follows, and what is an assumption: docs/joining.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of, listed
from armnesia.logs.conditions import Condition, Where, conditions


@dataclass(frozen=True)
class JoinColumns:
    """Which columns have what, and which rows are read; without a value column, each row counts as 1."""

    experiment: str = "experiment"
    action: str = "action"
    user: str = "user"
    time: str = "time"
    metric_user: str = "user"
    metric_time: str = "time"
    value: str | None = "value"
    event: str | None = None
    """The column of the event's name, if the metric has all events: then a condition must name one."""
    exposure_where: tuple[Condition, ...] = ()
    metric_where: tuple[Condition, ...] = ()

    def named(self, columns: Mapping[str, str]) -> "JoinColumns":
        """The same with other columns; user and time are those of both tables, where these are alike.

        >>> found = PRESETS["growthbook"].named({"user": "anonymous_id"})
        >>> found.user, found.metric_user, found.time
        ('anonymous_id', 'anonymous_id', 'timestamp')
        """
        roles = [each.name for each in fields(self)[:-3]]
        given = dict(columns)
        for role, name in columns.items():
            if role not in roles or not (isinstance(name, str) and name):
                raise InvalidInputError(
                    f"columns must name columns by {listed(roles)}; got {role!r}: {name!r}"
                )
            if role in ("user", "time") and getattr(self, role) == getattr(self, f"metric_{role}"):
                given.setdefault(f"metric_{role}", name)
        return replace(self, **given)  # type: ignore[arg-type]

    def of_exposures(self) -> dict[str, str]:
        """The columns of the exposures, by their roles."""
        return {role: getattr(self, role) for role in ("experiment", "action", "user", "time")}

    def of_metric(self) -> dict[str, str]:
        """The columns of the metric, by their roles."""
        value = {} if self.value is None else {"value": self.value}
        return {"user": self.metric_user, "time": self.metric_time, **value}

    def check_metric(self, preset: str | None, aggregate: str) -> None:
        """Refuse a metric of which it is not said what to add up."""
        if self.event is not None and self.event not in {each.column for each in self.metric_where}:
            raise InvalidInputError(
                f"a metric of preset {preset} is a table of all events: select one with metric_where"
                f" (--metric-where '{self.event} = NAME')"
            )
        if aggregate == "sum" and self.value is None:
            raise InvalidInputError(
                f"preset {preset} has no column of values: name it with value (--value-column), such as"
                " properties.revenue, or use aggregate any or count"
            )

    def only(self, exposures: Where | None, metric: Where | None) -> "JoinColumns":
        """The same with further conditions, which replace its own on the same columns.

        >>> [str(each) for each in PRESETS["posthog"].only("event = $pageview", None).exposure_where]
        ["event = '$pageview'"]
        """

        def added(own: tuple[Condition, ...], where: Where | None) -> tuple[Condition, ...]:
            given = conditions(where)
            return (*(each for each in own if each.column not in {new.column for new in given}), *given)

        return replace(
            self,
            exposure_where=added(self.exposure_where, exposures),
            metric_where=added(self.metric_where, metric),
        )


PRESETS = {
    "growthbook": JoinColumns(
        *("experiment_id", "variation_id", "user_id", "timestamp"), *("user_id", "timestamp", "value")
    ),
    "posthog": JoinColumns(
        *("properties.$feature_flag", "properties.$feature_flag_response", "distinct_id", "timestamp"),
        *("distinct_id", "timestamp", None, "event"),
        exposure_where=conditions("event = $feature_flag_called"),
    ),
    "statsig": JoinColumns(
        *("name", "experiment_group", "unit_id", "first_exposure_utc"),
        *("user_id", "timestamp", "event_value", "event_name"),
    ),
    "launchdarkly": JoinColumns(
        *("experiment_iteration_id", "variation_id", "context_key", "received_time"),
        *("context_key", "received_time", "event_value", "event_key"),
        exposure_where=conditions("context_kind = user"),
        metric_where=conditions("context_kind = user"),
    ),
}


def named_preset(name: str | None) -> JoinColumns:
    """The preset of this name; without a name, the columns that the other commands use by default.

    >>> named_preset("growthbook").action, named_preset(None).action
    ('variation_id', 'action')
    """
    if name is not None and name not in PRESETS:
        raise InvalidInputError(f"preset must be {any_of(list(PRESETS))}; got {name!r}")
    return JoinColumns() if name is None else PRESETS[name]
