"""Fixtures of the tests of commands on a log."""

from pathlib import Path

import pytest

from tests.cli.examples import write_clicks


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """The small log."""
    return write_clicks(tmp_path / "clicks.csv")
