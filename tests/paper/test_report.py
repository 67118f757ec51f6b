"""The report is one readable file that needs nothing else."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import armnesia
from armnesia.core.errors import InvalidInputError
from armnesia.paper.report import ABOUT, write_report
from armnesia.paper.section import Section, Table
from armnesia.plotting.panels import Curve, Panel, picture_of_panels

PANEL = Panel("a panel", "N", "loss", [Curve("tilt", [1, 2], [0.1, 0.2])])


def picture() -> Any:
    return picture_of_panels([[PANEL]], title="A picture")


VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Reads a page, insisting that every tag is closed in turn; keeps its tags, text, links and names."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def values_of(self, attribute: str) -> list[str]:
        return [str(attributes[attribute]) for _, attributes in self.tags if attribute in attributes]


CLAIMS = Table(
    ["where", "paper", "ours", "verdict"],
    [
        ["4.1", "35–77 %", "27.1–74.0 %", "does not hold"],
        ["4.2", "≤ 11 %", "11.0 %", "holds"],
        ["appendix", "8 %", "11.2 %", "holds within sampling error"],
    ],
    caption="Claims under M_f",
)


SECTIONS = [
    Section("First things", ["One.", "Two."], {"one": picture()}, caption="What is seen"),
    Section("The claims", ["Read them."], tables=[CLAIMS]),
    Section("First things", ["The same title again."], caption="a caption alone"),
]


EVIL = "<script src=\"https://evil.example/x.js\">alert('x')</script> & \"'"


def report(folder: Path, sections: list[Section], **changes: Any) -> tuple[str, Page]:
    path = folder / "deep" / "report.html"
    options: dict[str, Any] = {"title": "The paper", "facts": {"seed": 7, "protocol": "exact"}} | changes
    write_report(path, sections, **options)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    source = path.read_text("utf-8")
    return source, Page(source)


def test_the_reader_of_pages_sees_planted_faults() -> None:
    for fault in ("<p>", "</p>", "<p><b></p></b>"):
        with pytest.raises(AssertionError):
            Page(f"<div>{fault}</div>")


def test_a_report_reads_from_top_to_bottom(tmp_path: Path) -> None:
    source, page = report(tmp_path, SECTIONS)
    assert source.startswith("<!DOCTYPE html>")
    in_order = [
        "The paper",
        *ABOUT,
        "How it was computed",
        f"armnesia {armnesia.__version__}",
        "seed",
        "7",
        "Contents",
        "First things",
        "The claims",
        "First things",
        "One.",
        "Two.",
        "What is seen",
        "Read them.",
        "Claims under Mf",
        "27.1–74.0 %",
        "The same title again.",
        "a caption alone",
    ]
    place = 0
    for words in in_order:
        place = page.text.find(words, place)
        assert place >= 0, words
        place += len(words)


def test_the_contents_lead_to_the_sections(tmp_path: Path) -> None:
    _, page = report(tmp_path, SECTIONS)
    names = page.values_of("id")
    assert len(names) == len(set(names))
    links = page.values_of("href")
    assert {link.removeprefix("#") for link in links} == set(names)
    assert links[: len(SECTIONS)] == ["#1-first-things", "#2-the-claims", "#3-first-things"]


def test_a_report_needs_no_network_and_no_script(tmp_path: Path) -> None:
    source, page = report(tmp_path, SECTIONS)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "base", "form"}
    assert all(value.startswith("data:image/png;base64,") for value in page.values_of("src"))
    assert all(value.startswith("#") for value in page.values_of("href"))
    assert not re.search(r"https?://|//\w|@import|url\(", re.sub(r"base64,[A-Za-z0-9+/=]*", "", source))
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


def test_pictures_are_embedded_described_and_shown_at_their_size(tmp_path: Path) -> None:
    _, page = report(tmp_path, SECTIONS)
    (image,) = [attributes for tag, attributes in page.tags if tag == "img"]
    assert image["alt"] == "First things"
    assert image["width"] == "1104"


def test_verdicts_are_words_with_colours(tmp_path: Path) -> None:
    source, _ = report(tmp_path, SECTIONS)
    assert '<td class="verdict fails">does not hold</td>' in source
    assert '<td class="verdict holds">holds</td>' in source
    assert '<td class="verdict nearly">holds within sampling error</td>' in source


def test_columns_of_numbers_stand_right_and_their_headers_too(tmp_path: Path) -> None:
    source, _ = report(tmp_path, SECTIONS)
    assert '<th scope="col" class="number">ours</th>' in source
    assert '<td class="number">11.0 %</td>' in source
    # A column with a word in it is a column of words, but a range in it stays on one line.
    assert '<td class="unbroken">4.1</td>' in source
    assert '<td class="">appendix</td>' in source


@pytest.mark.parametrize("table", [Table(["a", "b"], []), Table(["a", "b"], [[None, 3], ["", -1.5]])])
def test_tables_may_be_empty_or_have_empty_cells(tmp_path: Path, table: Table) -> None:
    source, page = report(tmp_path, [Section("t", tables=[table])])
    assert "None" not in page.text
    assert source.count("<tr>") == 1 + len(table.rows)


def test_a_table_with_a_row_too_short_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"each of the 2 columns; got .*only one"):
        Table(["a", "b"], [["only one"]])


def test_everything_is_escaped(tmp_path: Path) -> None:
    table = Table([EVIL], [[EVIL]], caption=EVIL)
    section = Section(EVIL, [EVIL], {"one": picture()}, [table], caption=EVIL)
    source, page = report(tmp_path, [section], title=EVIL, facts={EVIL: EVIL}, about=EVIL)
    assert "<script" not in source
    assert not {tag for tag, _ in page.tags} & {"script"}
    # Title twice, about, fact's name and value, contents, heading, paragraph, caption, and a table's three.
    assert page.text.count("alert('x')") == 12
    assert all(value.startswith(("#", "data:")) for name in ("src", "href") for value in page.values_of(name))


def test_a_new_report_takes_the_place_of_the_old(tmp_path: Path) -> None:
    report(tmp_path, SECTIONS)
    _, page = report(tmp_path, [], title="Empty")
    assert "Empty" in page.text
    assert "First things" not in page.text
