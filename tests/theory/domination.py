"""Whether upper bounds lie above the exact losses, and not far above."""

from armnesia.theory import Bound

Case = tuple[Bound, float, float]
"""A bound, the exact loss, and the largest gap."""


def informative(cases: list[Case]) -> list[tuple[float, float]]:
    """The values and losses of bounds that hold and are not vacuous."""
    return [
        (bound.value, loss)
        for bound, loss, gap in cases
        if bound.holds and bound.value > 0 and not bound.vacuous(gap)
    ]


def check(cases: list[Case], *, least: int, tight: float) -> None:
    """At least `least` bounds are informative, all exceed the loss, and `tight` times the best does not."""
    pairs = informative(cases)
    assert len(pairs) >= least
    assert [pair for pair in pairs if pair[1] > pair[0]] == []
    assert max(loss / value for value, loss in pairs) > tight
