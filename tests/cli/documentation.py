"""docs/command-line.md as data: the section of every command, the shared options, and the JSON keys."""

import re
from pathlib import Path
from typing import Any

from armnesia.cli.app import GROUPS

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def sections(level: int) -> dict[str, str]:
    """The text below each heading of a level, up to the next heading of that level or above."""
    parts = re.split(rf"^(#{{2,{level}}}) (.*)$", PAGE, flags=re.MULTILINE)[1:]
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {title: text for marks, title, text in triples if len(marks) == level}


PANELS = sections(2)
SHARED = PANELS["Shared options"] + "".join(
    text for title, text in sections(3).items() if not title.startswith("`")
)
INNER = "|".join(inner for group in GROUPS.values() for inner in group.commands)
DOCUMENTED = {
    " ".join(re.findall(rf"^[a-z-]+(?: (?:{INNER})\b)?", title.strip("`"))): text
    for title, text in sections(3).items()
    if title.startswith("`")
}


def documented_keys(command: str, variant: str = "") -> dict[str, set[str]]:
    """The keys of a command, each with the keys of its objects: `Keys: `a`, `b` {`c`}.`"""
    (line,) = re.findall(rf"^Keys{re.escape(variant)}: (.*)\.$", DOCUMENTED[command], re.MULTILINE)
    line = re.sub(r"\([^)]*\)", "", line)
    keys = re.findall(r"`(\w+)`\s*(?:\[?\{([^}]*)\}\]?)?", line)
    return {key: set(re.findall(r"`(\w+)`", inner)) for key, inner in keys}


def assert_documented(command: str, variant: str, result: dict[str, Any]) -> None:
    keys = documented_keys(command, variant)
    assert set(result) == set(keys), command
    for key, inner in keys.items():
        value = result[key]
        if inner and value:
            assert set(value[0] if isinstance(value, list) else value) == inner, f"{command}: {key}"
