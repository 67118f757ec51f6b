"""Makes pages of templates: every value is escaped, and nothing is loaded from anywhere else."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from armnesia.core.messages import counted as _counted
from armnesia.service.pages.charts import interval_chart, probability_chart, scale_chart
from armnesia.service.pages.static import static_url
from armnesia.vault import Role
from armnesia.vault.keys.canonical_json import parse_time

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No script and no style stands in a page itself, and no other host is ever asked."""


_SPACE = "\u00a0"
"""At which no line is broken."""


def _time(text: str) -> Markup:
    """A time for people, and for programs.

    >>> print(_time("2026-11-16T21:55:29.393491Z"))
    <time datetime="2026-11-16T21:55:29.393491Z">16 Nov 2026, 21:55 UTC</time>
    """
    return Markup('<time datetime="{}">{}</time>').format(text, time_words(text))


def time_words(text: str) -> str:
    """A time in a sentence.

    >>> time_words("2026-11-16T21:55:29.393491Z")
    '16 Nov 2026, 21:55 UTC'
    """
    return f"{parse_time(text):%-d %b %Y, %H:%M} UTC"


def _day(text: str) -> str:
    return f"{parse_time(text):%-d %b %Y}"


def _days_left(text: str) -> str:
    """How long until a time.

    >>> _days_left("2020-01-01T00:00:00.000000Z")[-12:]
    'days overdue'
    """
    days = (parse_time(text) - datetime.now(UTC)).days
    if days < 0:
        return f"{_counted(-days, 'day')} overdue"
    return "today" if days == 0 else f"in {_counted(days, 'day')}"


def percent(value: float) -> str:
    """A probability for people; one that is not 0 or 1 is never shown as if it were.

    >>> [percent(value).replace(_SPACE, " ") for value in (0, 0.00004, 0.25, 0.123, 0.99999, 1)]
    ['0 %', '< 0.1 %', '25 %', '12.3 %', '> 99.9 %', '100 %']
    """
    if 0 < value < 0.001:
        return f"<{_SPACE}0.1{_SPACE}%"
    if 0.999 < value < 1:
        return f">{_SPACE}99.9{_SPACE}%"
    return f"{100 * value:.3g}{_SPACE}%"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, for people.

    >>> counted(1203, "record"), counted(1, "entry", "entries")
    ('1,203 records', '1 entry')
    """
    return _counted(number, noun, plural).replace(str(number), f"{number:,}", 1)


def _decimal(value: float) -> str:
    return f"{value:.4g}"


_ENVIRONMENT = Environment(
    loader=PackageLoader("armnesia.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    time=_time, day=_day, days_left=_days_left, percent=percent, decimal=_decimal, counted=counted
)
_ENVIRONMENT.globals.update(
    static=static_url,
    interval_chart=interval_chart,
    probability_chart=probability_chart,
    scale_chart=scale_chart,
    operator=Role.OPERATOR,
)


def rendered(
    request: Request,
    template: str,
    values: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """A page, or a part of one."""
    shared = {"visitor": request.scope.get("armnesia.visitor"), "part": is_part(request)}
    text = _ENVIRONMENT.get_template(template).render({**shared, **(values or {})})
    own = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, **(headers or {})}
    return HTMLResponse(text, status, own)


def is_part(request: Request) -> bool:
    """Whether htmx asks for a part of a page, not the browser for all of it."""
    return request.headers.get("hx-request") == "true"
