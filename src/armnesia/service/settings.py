"""The limits of the service."""

from dataclasses import dataclass

from armnesia.core.errors import InvalidInputError

_AT_LEAST_ONE = ("body_bytes", "names", "rows", "page", "waiting", "readers")
_POSITIVE = ("token_seconds", "note_seconds")


@dataclass(frozen=True)
class Settings:
    """How much the service takes on; whatever is above is refused, and nothing is done.

    >>> Settings(rows=0)
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: rows must be a whole number, 1 or more; got 0
    """

    body_bytes: int = 4_000_000
    """The largest body of a request."""
    names: int = 1_000
    """The most people, or records, of one request to forget."""
    rows: int = 10_000
    """The most rows that are added by one request."""
    page: int = 1_000
    """The most decisions or ledger entries of one answer."""
    waiting: int = 1_000
    """Requests that wait for the one writer; more are asked to come back."""
    readers: int = 4
    """Connections that read at the same time."""
    token_seconds: float = 1.0
    """How long a list of tokens is used: a token that is revoked is refused after that."""
    note_seconds: float = 60.0
    """How often the uses of tokens are noted in the vault."""
    verify_hours: float = 24.0
    """How often the vault is verified; 0: never."""

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInputError(f"{name} must be a whole number, 1 or more; got {value!r}")
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} must be positive; got {getattr(self, name)!r}")
        if not self.verify_hours >= 0:
            raise InvalidInputError(f"verify_hours must be 0 or more; got {self.verify_hours!r}")
