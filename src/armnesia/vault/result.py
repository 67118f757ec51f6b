"""What every result has: fields that do not change, and one form as JSON."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from armnesia.vault.ledger.checkpoint import Checkpoint


class Result:
    """A frozen dataclass that an operation returns."""

    OPTIONAL: ClassVar[tuple[str, ...]] = ()
    """Fields that JSON has only where they are not None."""
    HIDDEN: ClassVar[tuple[str, ...]] = ()
    """Fields that JSON never has."""
    DERIVED: ClassVar[tuple[str, ...]] = ()
    """Properties that JSON has, too."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON holds it: heads, paths and types are texts."""
        derived = {name: plain(getattr(self, name)) for name in self.DERIVED}
        values = derived | {k: v for k, v in plain_fields(self).items() if k not in self.HIDDEN}
        return {
            name: value for name, value in values.items() if value is not None or name not in self.OPTIONAL
        }


def plain(value: Any) -> Any:
    """A value of a result as JSON holds it.

    >>> plain({"A": (1, 2), "B": Checkpoint("armnesia/v-1", 1, bytes(2))})
    {'A': [1, 2], 'B': '1:0000'}
    """
    if isinstance(value, Checkpoint | StrEnum | Path):
        return str(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON holds them."""
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
