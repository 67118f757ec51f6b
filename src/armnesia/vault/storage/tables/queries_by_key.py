"""Statements for many keys, a few hundred of them at a time."""

from collections.abc import Sequence

from armnesia.vault.storage.database import Row, Session

KEYS_AT_ONCE = 500


def query_by_keys(
    session: Session, before: str, column: str, keys: Sequence[bytes | str | int], after: str = ""
) -> list[Row]:
    """Run a statement for a few hundred keys at a time."""
    found: list[Row] = []
    for start in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[start : start + KEYS_AT_ONCE]
        condition = f"{column} = ?" if len(some) == 1 else f"{column} IN ({', '.join('?' * len(some))})"
        found += session.query(before + condition + after, *some)
    return found
