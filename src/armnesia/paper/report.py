"""The report: text, tables and pictures in one HTML file that needs no network."""

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from armnesia.core.files import atomic_write
from armnesia.core.version import __version__
from armnesia.paper.section import FAILS, HOLDS, WITHIN_ERROR, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICT_CLASSES = {HOLDS: "holds", WITHIN_ERROR: "nearly", FAILS: "fails"}
"""The style sheet's class for each verdict."""

ABOUT = (
    "This page repeats the experiments of a paper on unlearning in offline bandits, and shows our value"
    " beside every figure, table and number of it.",
    "Our values are exact where possible; where they are sampled, their standard error is shown.",
    "Where a claim of the paper does not hold, the page says so, and why.",
)

PIXELS_PER_INCH = 192
"""Pixels per inch of the embedded pictures: twice that of the page, for sharp screens and print."""


def write_report(
    path: Path,
    sections: Sequence[Section],
    *,
    title: str,
    facts: Mapping[str, object],
    about: Sequence[str] = ABOUT,
) -> None:
    """Write the report; `facts` say how it was computed, after the version of the package."""
    names = _anchors(sections)
    contents = "".join(
        f'<li><a href="#{name}">{_text(section.title)}</a></li>\n'
        for name, section in zip(names, sections, strict=True)
    )
    body = "".join(_section(section, name) for name, section in zip(names, sections, strict=True))
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header id="top">
<h1>{_text(title)}</h1>
<p class="lead">{_text(" ".join(about))}</p>
</header>
<main>
<section>
<h2>How it was computed</h2>
{_facts({"version": f"armnesia {__version__}"} | dict(facts))}
</section>
<nav aria-label="Contents">
<h2>Contents</h2>
<ol>
{contents}</ol>
</nav>
{body}</main>
</body>
</html>
"""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, replace=True) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _anchors(sections: Sequence[Section]) -> list[str]:
    """Link targets within the page: the titles, numbered so that they are unique."""
    return [
        f"{number}-{re.sub('[^a-z0-9]+', '-', section.title.lower()).strip('-')}"
        for number, section in enumerate(sections, start=1)
    ]


def _facts(facts: Mapping[str, object]) -> str:
    entries = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>\n" for name, value in facts.items())
    return f"<dl>\n{entries}</dl>"


def _section(section: Section, name: str) -> str:
    words = "".join(f"<p>{_text(paragraph)}</p>\n" for paragraph in section.paragraphs)
    tables = "".join(_table(table) for table in section.tables)
    return (
        f'<section id="{name}">\n<h2>{_text(section.title)}</h2>\n{words}{_pictures(section)}{tables}'
        '<p class="up"><a href="#top">back to the top</a></p>\n</section>\n'
    )


def _pictures(section: Section) -> str:
    """All pictures of a section as one HTML figure with one caption."""
    if not section.pictures:
        return f'<p class="caption">{_text(section.caption)}</p>\n' if section.caption else ""
    images = "".join(_image(picture, section.title) for picture in section.pictures)
    caption = f"<figcaption>{_text(section.caption)}</figcaption>\n" if section.caption else ""
    return f"<figure>\n{images}{caption}</figure>\n"


def _image(picture: "Figure", alt: str) -> str:
    buffer = io.BytesIO()
    picture.savefig(buffer, format="png", dpi=PIXELS_PER_INCH, metadata={"Software": None})
    # A browser shows 96 pixels per inch: at this width the text has the size that it was drawn with.
    width = round(picture.get_figwidth() * 96)
    data = b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{escape(alt)}" width="{width}" src="data:image/png;base64,{data}">\n'


def _table(table: Table) -> str:
    caption = f"<caption>{_text(table.caption)}</caption>\n" if table.caption else ""
    kinds = [
        "number" if all(_is_number(row[place]) for row in table.rows) else ""
        for place in range(len(table.header))
    ]
    header = "".join(
        f'<th scope="col"{_class(kind)}>{_text(name)}</th>'
        for name, kind in zip(table.header, kinds, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(value, kind) for value, kind in zip(row, kinds, strict=True))}</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table>\n{caption}<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>\n"
    )


def _cell(value: object, kind: str = "") -> str:
    """One table cell; `kind` is the class of its column, and a verdict has a class of its own.

    >>> print(_cell("holds"), _cell(0.25, "number"), _cell("a < b"))
    <td class="verdict holds">holds</td> <td class="number">0.25</td> <td>a &lt; b</td>
    """
    text = "" if value is None else str(value)
    if text in VERDICT_CLASSES:
        kind = f"verdict {VERDICT_CLASSES[text]}"
    elif text and not kind and _is_number(text):
        kind = "unbroken"
    return f"<td{_class(kind)}>{_text(text)}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _is_number(value: object) -> bool:
    """Whether a cell is empty, a number or a range; a comparison sign, an error and % are allowed.

    >>> [_is_number(value) for value in (3, "≥ 76 %", "27.1–74.0 %", "0.012 ± 0.001", "", "about 3")]
    [True, True, True, True, True, False]
    """
    number = r"[−+-]?\d[\d.,]*(e[+-]?\d+)?"
    pattern = rf"([<>≤≥±]\s*)?{number}(\s*[–/±]\s*{number})*(\s*%)?"
    return value in (None, "") or re.fullmatch(pattern, str(value)) is not None


def _text(value: object) -> str:
    """Escape a text for HTML; the indices of M_f and M_d become subscripts.

    >>> _text("M_f & <M_d>")
    'M<sub>f</sub> &amp; &lt;M<sub>d</sub>&gt;'
    """
    return re.sub(r"\bM_([fd])\b", r"M<sub>\1</sub>", escape(str(value)))


_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body {
  margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 1152px;
  background: #fff; color: #1a1a1a;
  font: 17px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.4rem; line-height: 1.25; margin: 3rem 0 .75rem; padding-top: .75rem; }
h2 { border-top: 2px solid #1a1a1a; }
p, dl, figcaption, .caption { max-width: 72ch; }
p { margin: 0 0 .9rem; }
.lead { font-size: 1.1rem; }
a { color: #005a8c; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; margin: 0; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
nav ol { margin: 0; padding-left: 1.6rem; }
figure { margin: 1.5rem 0; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 0 1rem; }
figcaption, .caption { font-size: .92rem; color: #3d3d3d; }
.wide { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; width: 100%; min-width: 44rem; font-size: .92rem; line-height: 1.4; }
sub { line-height: 0; }
caption { text-align: left; font-weight: 600; padding: 0 0 .5rem; }
th, td { padding: .45rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid #d0d0d0; }
thead th { border-bottom: 2px solid #1a1a1a; vertical-align: bottom; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.unbroken { white-space: nowrap; }
.verdict { font-weight: 600; min-width: 9rem; border-left: 6px solid; }
.holds { background: #d9f0e6; border-left-color: #009e73; }
.nearly { background: #fdf0d0; border-left-color: #e69f00; }
.fails { background: #fbdfd0; border-left-color: #d55e00; }
.up { font-size: .85rem; margin-top: 1.5rem; }
@media (max-width: 640px) {
  body { padding: 1rem .9rem 3rem; font-size: 16px; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  .up { display: none; }
  a { color: inherit; text-decoration: none; }
  .wide { overflow: visible; }
  table { min-width: 0; font-size: 8.5pt; }
  th, td { padding: .3rem .4rem; }
  .verdict { min-width: 0; }
  caption, thead { break-after: avoid; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  thead { display: table-header-group; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
"""Lines of a readable length; rules for narrow screens and for print."""
