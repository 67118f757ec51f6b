"""Links in the documentation lead to files and headings that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def mislabelled_links(page: Path) -> list[str]:
    """Links whose text is the name of another page than the one they lead to."""
    links = re.findall(r"\[([\w-]+\.md)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    return [link for name, link in links if Path(link.partition("#")[0] or page).name != name]


def broken_links(page: Path) -> list[str]:
    """Links of a page to a file or a heading that does not exist; other sites are not asked."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        place, _, anchor = link.partition("#")
        target = page.parent / place if place else page
        if "://" in link:
            continue
        text = target.read_text(encoding="utf-8") if target.suffix == ".md" and target.exists() else None
        if not target.exists() or (anchor and text is not None and anchor not in anchors(text)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []
    assert mislabelled_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# Names of people\n")
    page = tmp_path / "a.md"
    page.write_text(
        "[x](b.md#names-of-people) [y](b.md#names) [z](c.md) [w](#here) [v](https://a.b/#c)\n## Here\n"
    )
    assert broken_links(page) == ["b.md#names", "c.md"]
    page.write_text("[b.md](b.md) [a.md](b.md#names-of-people) [a.md](#here) [text](b.md)\n## Here\n")
    assert mislabelled_links(page) == ["b.md#names-of-people"]
