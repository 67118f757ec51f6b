"""SQL stands where databases and files are read and written, and nowhere else."""

import re
from pathlib import Path

import armnesia

SOURCE = Path(armnesia.__file__).parent
STATEMENT = re.compile("SELECT|INSERT|UPDATE|DELETE FROM")
"""Statements in capitals, as everywhere in this project."""
ROOMS = ("logs", "joining", "vault/db")


def test_sql_stands_in_its_rooms_only() -> None:
    found = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if STATEMENT.search(path.read_text())}
    misplaced = [path for path in found if not any(path.is_relative_to(room) for room in ROOMS)]
    assert misplaced == []
    assert all(any(path.is_relative_to(room) for path in found) for room in ROOMS)
