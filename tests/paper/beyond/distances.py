"""A distance to no deletion that must have been computed."""

from armnesia.paper.beyond.results import SettingResults


def distance(setting: SettingResults, method: str, epsilon: float) -> float:
    measured = setting.distance(method, epsilon)
    assert measured is not None
    return measured.value
