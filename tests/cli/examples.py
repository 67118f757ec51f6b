"""A small log, and arguments that the tests of several commands share."""

import csv
import stat
from pathlib import Path

COLUMNS = ("--action-column", "variant", "--reward-column", "clicked")
USER_COLUMN = ("--user-column", "person")
INGEST = ("ingest", "clicks.csv", *COLUMNS, *USER_COLUMN, "--id-column", "row")
BUDGET = ("--epsilon", "1", "--delta", "1e-5")
GAUSSIAN = ("--unlearner", "gaussian", *BUDGET)
WEAKER_POLICY = ("--max-epsilon", "1", "--max-delta", "1e-5", "--levels", "retained,request_shape")


def users(*names: str) -> tuple[str, ...]:
    """The arguments that name these users."""
    return tuple(argument for name in names for argument in ("--user", name))


FOUR_BUSIEST = users("N711ZX", "N718TW", "N722TW", "N705TW")
"""Users of the bundled log, whose best arm changes without them."""


def write_clicks(path: Path) -> Path:
    """Write 100 rows of A and 100 of B; B leads until u1, with 40 rewarded rows of B, is forgotten."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "variant", "clicked", "person"])
        writer.writerows((f"r{i}", "A", i % 2, f"a{i}") for i in range(100))
        writer.writerows(
            (f"r{100 + i}", "B", int(i % 5 < 3), "u1" if i % 5 < 2 else f"b{i}") for i in range(100)
        )
    return path


def write_exposures(folder: Path) -> None:
    """Write shown.csv and bought.csv: two people saw a variant of checkout, and bob saw both."""
    shown = ["ann,A,2026-01-01T10:00:00Z", "bob,A,2026-01-01T10:00:00Z", "bob,B,2026-01-02T10:00:00Z"]
    lines = ["user,action,time,experiment", *(f"{line},checkout" for line in shown)]
    lines.append("cleo,B,2026-01-03T10:00:00Z,checkout")
    (folder / "shown.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    bought = "user,time,value\nann,2026-01-02T10:00:00Z,120\nann,2026-02-02T10:00:00Z,7\n"
    (folder / "bought.csv").write_text(bought, encoding="utf-8")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def mode_of(path: str | Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(Path(path).stat().st_mode)
