"""Runs the command line as a user does: arguments in, text or JSON and an exit code out."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from armnesia.cli import main


class Outcome:
    """What a command printed, and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run_command(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return Outcome(code, captured.out, captured.err)

    return run_command
