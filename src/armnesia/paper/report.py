"""The report: text, tables and pictures in one HTML file that needs no network."""

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from armnesia.core.files import atomic_write
from armnesia.core.version import __version__
from armnesia.paper.section import DEPENDS, FAILS, HOLDS, WITHIN_ERROR, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICT_CLASSES = {HOLDS: "holds", WITHIN_ERROR: "nearly", DEPENDS: "depends", FAILS: "fails"}
"""The style sheet's class for each verdict."""

ABOUT = (
    "This page repeats the experiments of a paper on unlearning in offline bandits. It shows our value beside"
    " every figure, table and number of it. Values are exact where possible, and sampled ones have an error."
    " Where a claim of the paper does not hold, the page says so, and why."
)

MANY_COLUMNS = 8
"""A table with more columns is set smaller, and its errors may stand below their values."""
PIXELS_PER_INCH = 192
"""Pixels per inch of the embedded pictures: twice that of the page, for sharp screens and print."""


def write_report(
    path: Path, sections: Sequence[Section], *, title: str, facts: Mapping[str, object], about: str = ABOUT
) -> None:
    """Write the report; `facts` say how it was computed, after the version of the package."""
    slugs = [re.sub("[^a-z0-9]+", "-", section.title.lower()).strip("-") for section in sections]
    named = {
        f"{number}-{slug}": each for number, (slug, each) in enumerate(zip(slugs, sections, strict=True), 1)
    }
    template = Template(resources.files("armnesia.paper").joinpath("report.html").read_text(encoding="utf-8"))
    facts = {"version": f"armnesia {__version__}", **facts}
    page = template.substitute(
        title=_text(title),
        about=_text(about),
        facts="".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>\n" for name, value in facts.items()),
        contents="".join(
            f'<li><a href="#{name}">{_text(each.title)}</a></li>\n' for name, each in named.items()
        ),
        body="".join(_section(section, name) for name, section in named.items()),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, replace=True) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _section(section: Section, name: str) -> str:
    words = "".join(f"<p>{_text(paragraph)}</p>\n" for paragraph in section.paragraphs)
    images = "".join(_image(picture, section.title) for picture in section.pictures.values())
    caption = f"<figcaption>{_text(section.caption)}</figcaption>\n" if section.caption else ""
    figure = f"<figure>\n{images}{caption}</figure>\n" if images or caption else ""
    tables = "".join(map(_table, section.tables))
    return f'<section id="{name}">\n<h2>{_text(section.title)}</h2>\n{words}{figure}{tables}\n</section>\n'


def _image(picture: "Figure", alt: str) -> str:
    buffer = io.BytesIO()
    picture.savefig(buffer, format="png", dpi=PIXELS_PER_INCH, metadata={"Software": None})
    # A browser shows 96 pixels per inch: at this width the text has the size that it was drawn with.
    width = round(picture.get_figwidth() * 96)
    data = b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{escape(alt)}" width="{width}" src="data:image/png;base64,{data}">\n'


def _table(table: Table) -> str:
    caption = f"<caption>{_text(table.caption)}</caption>\n" if table.caption else ""
    columns = range(len(table.header))
    kinds = ["number" if all(_is_number(row[place]) for row in table.rows) else "" for place in columns]
    header = "".join(
        f'<th scope="col" class="{kind}">{_text(name)}</th>'
        for name, kind in zip(table.header, kinds, strict=True)
    )
    rows = "".join(f"<tr>{''.join(map(_cell, row, kinds))}</tr>\n" for row in table.rows)
    many = "many" if len(columns) > MANY_COLUMNS else ""
    return (
        f'<div class="wide"><table class="{many}">\n{caption}<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>\n"
    )


def _cell(value: object, kind: str) -> str:
    """One table cell; `kind` is the class of its column, and a verdict has a class of its own.

    >>> print(_cell("holds", ""), _cell(0.25, "number"), _cell("a < b", ""))
    <td class="verdict holds">holds</td> <td class="number">0.25</td> <td class="">a &lt; b</td>
    """
    text = "" if value is None else str(value)
    if text in VERDICT_CLASSES:
        kind = f"verdict {VERDICT_CLASSES[text]}"
    elif text and not kind and _is_number(text):
        kind = "unbroken"
    return f'<td class="{kind}">{_text(text).replace("± ", "±&nbsp;")}</td>'


def _is_number(value: object) -> bool:
    """Whether a cell is empty, a number or a range; a comparison sign, an error, % and brackets are allowed.

    >>> [_is_number(value) for value in (3, "≥ 76 %", "27.1–74.0 %", "0.012 ± 0.001", "(0.2)", "about 3")]
    [True, True, True, True, True, False]
    """
    number = r"[−+-]?\d[\d.,]*(e[+-]?\d+)?"
    pattern = rf"\(?([<>≤≥±]\s*)?{number}(\s*[–/±]\s*{number})*(\s*%)?\)?"
    return value in (None, "") or re.fullmatch(pattern, str(value)) is not None


def _text(value: object) -> str:
    """Escape a text for HTML; the indices of M_f and M_d become subscripts.

    >>> _text("M_f & <M_d>")
    'M<sub>f</sub> &amp; &lt;M<sub>d</sub>&gt;'
    """
    return re.sub(r"\bM_([fd])\b", r"M<sub>\1</sub>", escape(str(value)))
