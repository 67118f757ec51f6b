"""Fixtures of the tests of the vault's commands."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import made_once
from tests.cli.examples import INGEST, write_clicks


@pytest.fixture
def clicks(folder: Path) -> Path:
    """The small log in the working folder."""
    return write_clicks(folder / "clicks.csv")


@pytest.fixture
def vault(clicks: Path, run: Any) -> Path:
    """The working folder with a vault that has the small log in it."""
    with made_once(clicks.parent, "vault of clicks") as is_first:
        if is_first:
            assert run("init", "--actions", "A,B,C", "--user-type", "text").code == 0
            assert run(*INGEST).code == 0
    return clicks.parent
