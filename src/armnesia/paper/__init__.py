"""The paper's figures, tables and claims as data: settings → cells → tidy rows → pictures and a report."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """`paper.reproduce`, when it is first used: the settings alone are needed without it."""
    if name != "reproduce":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
