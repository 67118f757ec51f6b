"""The results beyond the paper, by setting, and their distance to the loss of no deletion."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from armnesia.paper.beyond.cells import EPSILONS, PEOPLE_K, WITHOUT_BUDGET
from armnesia.paper.cells import Row
from armnesia.paper.comparisons import Estimate, ratio

COMPARED_METHODS = (
    *("rollback", "gaussian", "gaussian joint", "mixing", "adaptive", "multi_source"),
    *("centred_gaussian", "strict_adaptive", "frozen_rollback", "tilt"),
)
"""Every method but the oracle, in the order of tables and pictures."""


@dataclass
class SettingResults:
    """The rows of one setting (data model, N and request), by method and ε."""

    panel: str
    n: int
    request: str
    rows: dict[tuple[str, float | None], Row] = field(default_factory=dict)
    oracles: dict[str, Row] = field(default_factory=dict)

    @property
    def oracle(self) -> Row:
        """The row of no deletion; the exact one if there is one."""
        return self.oracles.get("exact") or next(iter(self.oracles.values()))

    def row(self, method: str, epsilon: float) -> Row | None:
        """A method's row at ε; None if it was not computed."""
        return self.rows.get((method, None if method in WITHOUT_BUDGET else epsilon))

    def distance(self, method: str, epsilon: float) -> Estimate | None:
        """Sub-optimality divided by that of no deletion, on the same data sets if both are sampled."""
        row = self.row(method, epsilon)
        if row is None:
            return None
        return ratio(row, self.oracles.get(row["protocol"], self.oracle))

    @property
    def epsilons(self) -> list[float]:
        """The values of ε at which tilt was computed."""
        return [epsilon for epsilon in EPSILONS if ("tilt", epsilon) in self.rows]

    @property
    def at_most_half_deleted(self) -> bool:
        """Whether one arm loses no more than half of its expected N/5 records."""
        return self.one_arm and bool(self.oracle["k"] <= self.n / 10)

    @property
    def one_arm(self) -> bool:
        """Whether the request is for records of a single arm."""
        return str(self.oracle["arms"]).isdigit()


def results_by_setting(rows: Iterable[Row]) -> list[SettingResults]:
    """Group rows by setting, in order; a setting that two sweeps share is listed once."""
    found: dict[tuple[str, int, str], SettingResults] = {}
    for row in rows:
        key = row["panel"], row["n"], _request(row)
        setting = found.setdefault(key, SettingResults(*key))
        if row["method"] == "oracle":
            setting.oracles[row["protocol"]] = row
        else:
            setting.rows[row["method"], None if row["method"] in WITHOUT_BUDGET else row["epsilon"]] = row
    return list(found.values())


def _request(row: Row) -> str:
    """The deleted records, as text.

    >>> _request({"arms": "0", "k": 80}), _request({"arms": "0 1", "k": 40})
    ('80 of arm 0', '40 each of arms 0, 1')
    """
    if row["arms"] == "any":
        return f"{row['k']} of random people"
    arms = row["arms"].split()
    if len(arms) == 1:
        return f"{row['k']} of arm {arms[0]}"
    if len(arms) == 5 and row["k"] * 5 > PEOPLE_K:
        others = (PEOPLE_K - row["k"]) // 4
        return f"{row['k']} of arm 0, {others} each of the others"
    return f"{row['k']} each of arms {', '.join(arms)}"


def distances(settings: Iterable[SettingResults], method: str, epsilon: float) -> list[float]:
    """A method's distances to no deletion at ε, in the settings where it was computed."""
    found = (setting.distance(method, epsilon) for setting in settings)
    return [distance.value for distance in found if distance is not None]
