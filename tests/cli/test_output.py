"""Progress bars."""

import pytest
from rich.console import Console

from armnesia.cli.output import progress_bar


@pytest.mark.parametrize(("total", "shown"), [(None, " 450,000 "), (2_000_000, " 450,000/2,000,000 ")])
def test_a_bar_counts_in_thousands_and_of_how_many_only_where_that_is_known(
    total: int | None, shown: str
) -> None:
    bar = progress_bar(quiet=True)
    bar.update(bar.add_task("rows", total=total), completed=450_000)
    screen = Console(width=100)
    with screen.capture() as captured:
        screen.print(bar.get_renderable())
    assert shown in captured.get()
    assert "?" not in captured.get()
