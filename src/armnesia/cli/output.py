"""Printing: JSON for programs, lines and tables for people, from the same values."""

import codecs
import json
import math
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from armnesia.core.json_values import json_value
from armnesia.core.messages import printable

console = Console(highlight=False)
SECONDS_PER_LINE = 10.0
"""How often progress is told where there is no terminal."""
_LONGEST_NAME = 24  # a first column of names up to this length is not wrapped


def print_result(
    result: Mapping[str, Any] | Callable[[], Mapping[str, Any]], as_json: bool, *shown: RenderableType
) -> None:
    """Print the result as JSON, or else the lines and tables; no character of a line is markup or control.

    A function that makes the result is called for JSON only.
    """
    if as_json:
        written = result() if callable(result) else result
        print(json.dumps(json_value(written), ensure_ascii=not _prints_unicode(), indent=2))
        return
    for item in shown:
        if isinstance(item, str):
            console.print(Text(printable(item, keep="\n")), soft_wrap=True)  # a path must not be broken
        else:
            console.print(item)


def print_long_json(result: Mapping[str, Any], name: str, items: Iterable[Any]) -> None:
    """Print the result as JSON with one more key, a long list, whose items are made and printed one by one.

    >>> print_long_json({"head": "2:ab"}, "entries", ({"sequence": n} for n in (1,)))
    {
      "head": "2:ab",
      "entries": [
        {
          "sequence": 1
        }
      ]
    }
    """
    ascii_only = not _prints_unicode()
    print(
        json.dumps({**json_value(result), name: []}, ensure_ascii=ascii_only, indent=2)[: -len("]\n}")],
        end="",
    )
    between = "\n"
    for item in items:
        written = json.dumps(json_value(item), ensure_ascii=ascii_only, indent=2)
        print(between + textwrap.indent(written, "    "), end="")
        between = ",\n"
    print("]\n}" if between == "\n" else "\n  ]\n}")


def print_as_utf8(written: str) -> None:
    """Print the text of a file in UTF-8, whatever the encoding of stdout: redirected, it is that file."""
    if _prints_unicode():
        print(written, end="")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(written.encode("utf-8"))
    sys.stdout.flush()


def _prints_unicode() -> bool:
    """Whether stdout takes every character; one without an encoding, as in a notebook, does."""
    encoding = getattr(sys.stdout, "encoding", None)
    return encoding is None or codecs.lookup(encoding).name.startswith("utf")


def table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]], unwrapped: Collection[str] = ()
) -> Group:
    """Make a table below its title; numbers are right-aligned, columns in `unwrapped` keep to one line."""
    made = Table()
    listed = [[text(cell) for cell in row] for row in rows]
    for position, column in enumerate(columns):
        cells = [row[position] for row in listed]
        numeric = all(_looks_numeric(cell) for cell in cells)
        is_name = position == 0 and all(len(cell) <= _LONGEST_NAME for cell in cells)
        no_wrap = is_name or column in unwrapped
        # Where a line is too short, words and numbers go on in the next one: nothing is cut off.
        made.add_column(column, justify="right" if numeric else "left", no_wrap=no_wrap, overflow="fold")
    for row in listed:
        made.add_row(*(Text(printable(cell, keep="\n")) for cell in row))
    return Group(Text(title, style="bold"), made)


def progress_bar(*, quiet: bool) -> Progress:
    """Progress on stderr: a bar if that is a terminal, otherwise a line from time to time."""
    terminal = Console(stderr=True)
    if not quiet and not terminal.is_terminal:
        return _ProgressLines(console=terminal, disable=True)
    columns = (TextColumn("{task.description:>9}"), BarColumn(), DoneColumn(), TimeElapsedColumn())
    return Progress(*columns, console=terminal, transient=True, disable=quiet)


class _ProgressLines(Progress):
    """Progress as plain lines, for a file or a pipe; work that takes a few seconds prints none."""

    _written = 0.0

    def start(self) -> None:
        self._written = time.monotonic()

    def update(self, task_id: TaskID, **fields: Any) -> None:
        super().update(task_id, **fields)
        now = time.monotonic()
        if now - self._written >= SECONDS_PER_LINE:
            self._written = now
            task = self._tasks[task_id]
            done = DoneColumn.words(task.completed, task.total)
            print(f"armnesia: {task.description}: {done}", file=sys.stderr, flush=True)


class DoneColumn(ProgressColumn):
    """How much is done, and of how much, if that is known.

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
def counting_rows(*, quiet: bool, name: str = "rows") -> Iterator[Callable[[int], None]]:
    """A progress bar that counts rows, or what is named, whose total is not known."""
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task(name, total=None)
        yield lambda rows: bar.update(task, completed=rows)


@contextmanager
def counting_seconds(expected: float | None, *, quiet: bool) -> Iterator[None]:
    """A progress bar for work that reports nothing: the seconds so far, of those expected."""
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task("seconds", total=expected)
        ended = threading.Event()

        def count() -> None:
            start = time.monotonic()
            while not ended.wait(0.2):
                passed = time.monotonic() - start
                bar.update(task, completed=passed if expected is None else min(passed, expected))

        thread = threading.Thread(target=count, daemon=True)
        if not quiet:
            thread.start()
        try:
            yield
        finally:
            ended.set()


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
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.5g}"
    return str(value)


def _looks_numeric(shown: str) -> bool:
    return (
        shown == "–"
        or shown.replace(",", "").replace("inf", "0").lstrip("-").replace(".", "").replace("e-", "").isdigit()
    )
