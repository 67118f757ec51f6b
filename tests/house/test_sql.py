"""SQL stands where databases and files are read and written, and nowhere else."""

from pathlib import Path

import pytest

from scripts.house import SQL_FOLDERS, House
from tests.house.this_house import HOUSE


def test_sql_stands_in_logs_and_storage_only() -> None:
    assert HOUSE.misplaced_sql() == {}


def test_the_folders_with_sql_have_some() -> None:
    """The search works: without its exceptions it finds them."""
    for folder in SQL_FOLDERS:
        assert any(
            "SELECT" in path.read_text("utf-8")
            for module, path in HOUSE.modules.items()
            if module.startswith(f"{folder}.")
        )


@pytest.mark.parametrize(
    "line",
    [
        "session.query('SELECT 1')",
        "SQL = 'INSERT INTO arm VALUES (?)'",
        "SQL = (\n    'UPDATE vault'\n)",
        "f'DELETE FROM {table}'",
    ],
)
def test_a_planted_statement_is_seen(tmp_path: Path, line: str) -> None:
    for folder in ("vault/storage", "vault/state", "logs"):
        (tmp_path / "armnesia" / folder).mkdir(parents=True)
        (tmp_path / "armnesia" / folder / "module.py").write_text(f"{line}\n", encoding="utf-8")
    assert House(tmp_path / "armnesia").misplaced_sql() == {"armnesia.vault.state.module": 1}
