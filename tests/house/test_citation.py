"""CITATION.cff names this version, its license and the paper, as the project's other files do."""

import re
import tomllib
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]


def test_the_citation_agrees_with_the_project_and_the_readme() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert cited["message"]
    assert {name: str(cited[name]) for name in ("title", "version", "license", "abstract")} == {
        "title": project["name"],
        "version": project["version"],
        "license": project["license"],
        "abstract": project["description"],
    }
    assert cited["authors"] == project["authors"]
    assert set(cited["keywords"]) <= set(project["keywords"])
    (paper,) = cited["references"]
    surnames = ", ".join(author["family-names"] for author in paper["authors"])
    named = f"*{paper['title']}* ({surnames}, {paper['year']})"
    assert named in re.sub(r"\s+", " ", (ROOT / "README.md").read_text("utf-8"))
