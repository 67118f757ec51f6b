"""Small pictures in SVG, drawn here: they need no script, can be printed, and stand beside their numbers."""

from markupsafe import Markup

_WIDTH, _HEIGHT, _MARGIN = 300.0, 22.0, 6.0
_INNER = _WIDTH - 2 * _MARGIN


def _place(value: float, scale: tuple[float, float]) -> float:
    low, high = scale
    share = 0.5 if high == low else (value - low) / (high - low)
    return round(_MARGIN + _INNER * min(1.0, max(0.0, share)), 2)


def interval_chart(
    mean: float | None, interval: tuple[float, float], scale: tuple[float, float], served: bool
) -> Markup:
    """The mean of an arm and its interval on a scale; its numbers stand beside it, as text.

    >>> print(interval_chart(0.5, (0.25, 0.75), (0.0, 1.0), True))
    <svg class="interval served" viewBox="0 0 300 22" aria-hidden="true"><line class="track" x1="6" x2="294"
    y1="11" y2="11"/><line class="range" x1="78.0" x2="222.0" y1="11" y2="11"/><circle class="mean" cx="150.0"
    cy="11" r="5"/></svg>
    """
    low, high = (_place(end, scale) for end in interval)
    dot = Markup("")
    if mean is not None:
        dot = Markup('<circle class="mean" cx="{}" cy="11" r="5"/>').format(_place(mean, scale))
    return Markup(
        '<svg class="interval{}" viewBox="0 0 300 22" aria-hidden="true">'
        '<line class="track" x1="6" x2="294" y1="11" y2="11"/>'
        '<line class="range" x1="{}" x2="{}" y1="11" y2="11"/>{}</svg>'
    ).format(" served" if served else "", low, high, dot)


def scale_chart(scale: tuple[float, float]) -> Markup:
    """The scale of the intervals below it."""
    marks = [scale[0] + (scale[1] - scale[0]) * part / 4 for part in range(5)]
    anchors = ("start", "middle", "middle", "middle", "end")
    texts = Markup("").join(
        Markup('<text x="{}" y="15" text-anchor="{}">{}</text>').format(
            _place(mark, scale), anchor, f"{mark:g}"
        )
        for mark, anchor in zip(marks, anchors, strict=True)
    )
    return Markup('<svg class="scale" viewBox="0 0 300 22" aria-hidden="true">{}</svg>').format(texts)


def probability_chart(value: float) -> Markup:
    """A bar as long as a probability; its number stands beside it, as text.

    >>> print(probability_chart(0.5))
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track"
    width="100" height="8"/><rect class="share" width="50.0" height="8"/></svg>
    """
    return Markup(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="8"/><rect class="share" width="{}" height="8"/></svg>'
    ).format(round(100 * min(1.0, max(0.0, value)), 2))
