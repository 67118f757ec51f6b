"""One page that holds everything: words, tables and pictures in a single file that needs no network."""

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from armnesia import __version__
from armnesia.core.errors import InvalidInputError
from armnesia.core.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICT_CLASSES = {
    "holds": "holds",
    "holds within sampling error": "nearly",
    "does not hold": "fails",
}
"""The verdicts that a cell may state, and how they are coloured; the words say it all without colour."""

ABOUT = (
    "This page repeats the experiments of a paper on unlearning in offline bandits, and sets every figure, "
    "table and number of it beside our own value.",
    "Our values are exact wherever that is possible; where they are sampled, their error is shown.",
    "Where a claim of the paper does not hold, the page says so, and why.",
)

SHARPNESS = 192
"""Pixels an inch in the page's pictures: twice what they are shown at, for fine screens and for print."""


@dataclass(frozen=True)
class Table:
    """Rows under a header; a cell that is a verdict is coloured, and one that is a number stands right."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise InvalidInputError(
                    f"rows must have a cell for each of the {len(self.header)} columns; got {list(row)!r}"
                )


@dataclass(frozen=True)
class Section:
    """A part of the report: words, then pictures with one caption, then tables."""

    title: str
    paragraphs: Sequence[str] = ()
    pictures: Sequence["Figure"] = ()
    tables: Sequence[Table] = ()
    caption: str = ""


def write_report(
    path: Path,
    sections: Sequence[Section],
    *,
    title: str,
    facts: Mapping[str, object],
    about: Sequence[str] = ABOUT,
) -> None:
    """Write the whole report into one HTML file; `facts` say how it was computed, the version on top."""
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


def save_picture(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Write a picture as PNG and as SVG; return the two files. The same picture gives the same bytes."""
    import matplotlib  # noqa: PLC0415 (an extra)

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for ending, metadata in {"png": {"Software": None}, "svg": {"Date": None}}.items():
        files.append(folder / f"{name}.{ending}")
        # Without a fixed salt the identifiers in an SVG differ from run to run.
        salt = matplotlib.rc_context({"svg.hashsalt": "armnesia"})
        with atomic_write(files[-1], replace=True) as temporary, salt:
            figure.savefig(temporary, format=ending, metadata=metadata)
    return files


def _anchors(sections: Sequence[Section]) -> list[str]:
    """Names for links within the page: from the titles, and numbered, so that no two are the same."""
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
    """All pictures of a section as one figure with one caption."""
    if not section.pictures:
        return f'<p class="caption">{_text(section.caption)}</p>\n' if section.caption else ""
    images = "".join(_image(picture, section.title) for picture in section.pictures)
    caption = f"<figcaption>{_text(section.caption)}</figcaption>\n" if section.caption else ""
    return f"<figure>\n{images}{caption}</figure>\n"


def _image(picture: "Figure", described: str) -> str:
    buffer = io.BytesIO()
    picture.savefig(buffer, format="png", dpi=SHARPNESS, metadata={"Software": None})
    # Shown at 96 pixels an inch, as wide as it was drawn: its letters then have the size they were given.
    width = round(picture.get_figwidth() * 96)
    data = b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{escape(described)}" width="{width}" src="data:image/png;base64,{data}">\n'


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
    """One cell of a column of a kind; verdicts are coloured wherever they stand.

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
    """Whether a cell is a number or a range, with at most a comparison, an error and a unit; or is empty.

    >>> [_is_number(value) for value in (3, "≥ 76 %", "27.1–74.0 %", "0.012 ± 0.001", "", "about 3")]
    [True, True, True, True, True, False]
    """
    number = r"[−+-]?\d[\d.,]*(e[+-]?\d+)?"
    pattern = rf"([<>≤≥±]\s*)?{number}(\s*[–/±]\s*{number})*(\s*%)?"
    return value in (None, "") or re.fullmatch(pattern, str(value)) is not None


def _text(value: object) -> str:
    """Any text as HTML that shows just that text, but for the models' indices.

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
"""Dark on white, lines of a readable length, and sensible on a telephone and on paper."""
