"""A small log for the tests of the vault's commands, and the files that a refusal must leave alone."""

import csv
from pathlib import Path

COLUMNS = ("--action", "variant", "--reward", "clicked", "--user", "person")


def write_clicks(path: Path) -> Path:
    """100 rows of A and 100 of B; B leads as long as u1, with 40 rewarded rows of B, is not forgotten."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "variant", "clicked", "person"])
        writer.writerows((f"r{i}", "A", i % 2, f"a{i}") for i in range(100))
        writer.writerows(
            (f"r{100 + i}", "B", int(i % 5 < 3), "u1" if i % 5 < 2 else f"b{i}") for i in range(100)
        )
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
