"""Results as tables for people and as JSON for programs, from the same values."""

import codecs
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

console = Console(highlight=False)
_LONGEST_NAME = 24  # a first column of names up to this length is kept in one line


def plain(value: Any) -> Any:
    """Turn a result into what JSON can hold: infinity becomes "inf", NaN (no data) becomes null.

    >>> plain({"epsilon": np.float64("inf"), "means": np.array([0.5, np.nan])})
    {'epsilon': 'inf', 'means': [0.5, None]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def emit(result: Mapping[str, Any], as_json: bool, *shown: Any) -> None:
    """Print the result as JSON, or else what is shown of it to people."""
    if as_json:
        print(json.dumps(plain(result), ensure_ascii=not _prints_unicode(), indent=2))
    else:
        for item in shown:
            console.print(item, soft_wrap=isinstance(item, str))  # so that paths are not broken


def print_as_utf8(written: str) -> None:
    """Print a file's text so that, sent into a file, it is that file: whatever the terminal's encoding."""
    if _prints_unicode():
        print(written, end="")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(written.encode("utf-8"))
    sys.stdout.flush()


def _prints_unicode() -> bool:
    """Whether stdout takes every letter; what is no file, such as a notebook, has no encoding and does."""
    encoding = getattr(sys.stdout, "encoding", None)
    return encoding is None or codecs.lookup(encoding).name.startswith("utf")


def table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]], whole: Collection[str] = ()
) -> Group:
    """Make a table below its title; numbers go right, and columns that are `whole` are never wrapped."""
    made = Table()
    listed = [[text(cell) for cell in row] for row in rows]
    for position, column in enumerate(columns):
        cells = [row[position] for row in listed]
        numeric = all(_looks_numeric(cell) for cell in cells)
        is_name = position == 0 and all(len(cell) <= _LONGEST_NAME for cell in cells)
        no_wrap = is_name or column in whole
        made.add_column(column, justify="right" if numeric else "left", no_wrap=no_wrap)
    for row in listed:
        made.add_row(*map(Text, row))  # a name may look like markup
    return Group(Text(title, style="bold"), made)


def progress_bar(*, quiet: bool) -> Progress:
    """A bar on stderr for people who wait; nothing where nobody looks."""
    people = Console(stderr=True)
    columns = (TextColumn("{task.description:>9}"), BarColumn(), DoneColumn(), TimeElapsedColumn())
    return Progress(*columns, console=people, transient=True, disable=quiet or not people.is_terminal)


class DoneColumn(ProgressColumn):
    """How much is done, and of how much, where that is known.

    >>> [DoneColumn.words(1234567, total) for total in (None, 2e6)]
    ['1,234,567', '1,234,567/2,000,000']
    """

    def render(self, task: Task) -> Text:
        """Write it for one bar."""
        return Text(self.words(task.completed, task.total), style="progress.download")

    @staticmethod
    def words(completed: float, total: float | None) -> str:
        """Write it, in thousands."""
        return f"{int(completed):,}" + ("" if total is None else f"/{int(total):,}")


@contextmanager
def counting_rows(*, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar that counts rows, of which nobody knows yet how many there are."""
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task("rows", total=None)
        yield lambda rows: bar.update(task, completed=rows)


def text(value: Any) -> str:
    """Show a value to people.

    >>> text(0.123456789), text(1e-05), text(float("nan")), text(True)
    ('0.12346', '1e-05', '–', 'yes')
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.5g}"
    return str(value)


def _looks_numeric(shown: str) -> bool:
    return (
        shown == "–"
        or shown.replace(",", "").replace("inf", "0").lstrip("-").replace(".", "").replace("e-", "").isdigit()
    )
