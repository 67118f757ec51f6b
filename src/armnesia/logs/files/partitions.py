"""Partition columns of files: values in names of folders, `day=2026-01-31/`, as Hive and Spark write them.

Names and values are taken from the paths here, not by DuckDB, which would look at every folder up to the
root, and replace columns of the same name without a word.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from armnesia.core.errors import InvalidLogError
from armnesia.core.messages import listed

MISSING = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile("(?:%[0-9A-Fa-f]{2})+")


class Partition(NamedTuple):
    """A column whose value is the same in all rows of a file."""

    name: str
    values: tuple[str | None, ...]
    """Of each file."""


@dataclass(frozen=True)
class Partitions:
    """What the names of folders say of files."""

    columns: tuple[Partition, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Names that cannot be read as columns, and why."""

    @classmethod
    def of(cls, paths: Sequence[str], own: Iterable[str]) -> "Partitions":
        """The partition columns of files that have columns of their `own`.

        Folders are columns if all files lie below folders of the same names in the same order.

        >>> Partitions.of(["/logs/day=1/a.csv", "/logs/day=2/b.csv"], ["action", "reward"]).columns
        (Partition(name='day', values=('1', '2')),)
        """
        of_folder: dict[str, tuple[tuple[str, str], ...]] = {}
        for folder in map(os.path.dirname, paths):
            if folder not in of_folder:
                of_folder[folder] = _folders(folder)
        if not any(of_folder.values()):
            return cls()
        names_of = {folder: tuple(name for name, _ in found) for folder, found in of_folder.items()}
        first, *others = of_folder
        other = next((each for each in others if names_of[each] != names_of[first]), None)
        if other is not None:
            reason = (
                f"is a partition of some files only: those in {first!r} lie in"
                f" {_shown(names_of[first])}, those in {other!r} in {_shown(names_of[other])}; give files"
                " that are partitioned alike"
            )
            return cls(refused={name: reason for names in names_of.values() for name in names})
        return cls._alike(paths, names_of[first], of_folder, set(own))

    @classmethod
    def _alike(
        cls,
        paths: Sequence[str],
        names: Sequence[str],
        of_folder: Mapping[str, Sequence[tuple[str, str]]],
        own: set[str],
    ) -> "Partitions":
        columns, refused = [], {}
        for place, name in enumerate(names):
            texts = {folder: found[place][1] for folder, found in of_folder.items()}
            reason = _ambiguous(name, names, own) or _unreadable(name, texts)
            if reason is not None:
                refused[name] = reason
                continue
            value_of = {folder: _value(text) for folder, text in texts.items()}
            columns.append(Partition(name, tuple(value_of[os.path.dirname(path)] for path in paths)))
        return cls(tuple(columns), refused)

    def check(self, wanted: Iterable[str]) -> None:
        """Refuse names that cannot be read as columns, if they are wanted."""
        for name in sorted(set(wanted) & self.refused.keys()):
            raise InvalidLogError(f"column {name!r} {self.refused[name]}")

    def of_file(self, place: int) -> "Partitions":
        """The same of one of the files."""
        columns = tuple(Partition(name, (values[place],)) for name, values in self.columns)
        return Partitions(columns, self.refused)


def _folders(folder: str) -> tuple[tuple[str, str], ...]:
    """Names and texts of the partitions that a folder is in, the outermost first.

    As in Spark, these are the lowest folders `name=value` that follow each other.

    >>> _folders("/a=0/logs/day=1/country=DE/new")
    (('day', '1'), ('country', 'DE'))
    """
    found: list[tuple[str, str]] = []
    for part in reversed(folder.split(os.sep)):
        name, equals, text = part.partition("=")
        if equals and name:
            found.insert(0, (unescaped(name) or name, text))
        elif found:
            break
    return tuple(found)


def _value(text: str) -> str | None:
    return None if text == MISSING else unescaped(text)


def unescaped(text: str) -> str | None:
    """A text as it was before its characters became %2F and the like; None if they are no text.

    A percent sign that begins no such group stands for itself.

    >>> unescaped("50%25 of 1%2F2"), unescaped("100%"), unescaped("caf%C3%A9"), unescaped("%FF")
    ('50% of 1/2', '100%', 'café', None)
    """
    try:
        return _ESCAPED.sub(lambda found: unquote_to_bytes(found[0]).decode(), text)
    except UnicodeDecodeError:
        return None


def _ambiguous(name: str, names: Sequence[str], own: set[str]) -> str | None:
    if names.count(name) > 1:
        return "is the name of two partitions, one in the other; rename the folders of one of them"
    if name in own:
        return (
            "is in the files and in the names of their folders, and the two may differ; rename the folders,"
            " or leave the column out of the files"
        )
    return None


def _unreadable(name: str, texts: Mapping[str, str]) -> str | None:
    """Why the values of a partition are none; engines disagree about what an empty one means."""
    for folder, text in texts.items():
        if not text:
            return f"has an empty value in the folder {folder!r}; a missing value is written {name}={MISSING}"
        if unescaped(text) is None or not _is_unicode(text):
            return f"has a value that is not UTF-8 text, in the folder {folder!r}; rename it"
    return None


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(names: Sequence[str]) -> str:
    return listed(map(partial("{}=…".format), names)) if names else "none"
