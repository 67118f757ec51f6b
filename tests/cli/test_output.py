"""Progress bars and tables."""

import pytest
from rich.console import Console

from armnesia.cli.output import progress_bar, table


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


def test_without_a_terminal_progress_is_told_in_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reproduction into a file printed nothing for minutes."""
    clock = iter([100.0, 103.0, 111.0, 112.0, 130.0])
    monkeypatch.setattr("armnesia.cli.output.time.monotonic", lambda: next(clock))
    bar = progress_bar(quiet=False)
    monkeypatch.setattr(bar, "get_time", lambda: 0.0)
    with bar:
        task = bar.add_task("Figure 1", total=40)
        for done in (1, 2, 3, 4000):
            bar.update(task, completed=done)
    assert capsys.readouterr() == ("", "armnesia: Figure 1: 2/40\narmnesia: Figure 1: 4,000/40\n")


def test_progress_is_not_told_beside_json(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(quiet=True) as bar:
        bar.update(bar.add_task("rows", total=None), completed=1)
    assert capsys.readouterr() == ("", "")


def test_no_heading_and_no_number_is_cut_off() -> None:
    names = ["experiment", "forgotten", "P(released)", "P(reference)"]
    screen = Console(width=40)
    with screen.capture() as captured:
        screen.print(table("Audit", names, [["checkout", 12, 0.123456, 1.5e-7]]))
    assert "…" not in captured.get()
    rows = [line[1:-1].replace("│", "┃").split("┃") for line in captured.get().splitlines()[2:]]
    folded = ["".join(row[place].strip() for row in rows if len(row) == 4) for place in range(4)]
    assert folded == ["experimentcheckout", "forgotten12", "P(released)0.12346", "P(reference)1.5e-07"]
