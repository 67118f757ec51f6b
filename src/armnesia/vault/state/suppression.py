"""The suppression list and the answered requests: their lines, by digest, and how lines are exchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.table_digests import Tallies
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import COLUMNS

_AT_ONCE = 500
_READ = (
    "WITH asked (one) AS (VALUES {})"
    " SELECT 'suppressed', digest, kind, since, readmitted FROM suppressed JOIN asked ON digest = one"
    " UNION ALL SELECT 'request', digest, opening, sequence, NULL FROM request JOIN asked ON digest = one"
)


@dataclass(frozen=True)
class Lines:
    """Some lines of both lists, as their tables hold them.

    `suppressed`: (digest, kind, since, readmitted); `request`: (digest, sequence, opening).
    """

    suppressed: Mapping[bytes, Row] = field(default_factory=dict)
    request: Mapping[bytes, Row] = field(default_factory=dict)

    def keeps_out(self, digest: bytes) -> bool:
        """Whether this is the digest of somebody, or some record, forgotten and not readmitted."""
        return digest in self.suppressed and self.suppressed[digest][-1] is None


def read_lines(session: Session, digests: Sequence[bytes]) -> Lines:
    """The lines that these digests have in either list."""
    suppressed: dict[bytes, Row] = {}
    request: dict[bytes, Row] = {}
    for start in range(0, len(digests), _AT_ONCE):
        some = digests[start : start + _AT_ONCE]
        for table, digest, text, number, readmitted in session.query(
            _READ.format(", ".join(["(?)"] * len(some))), *some
        ):
            if table == "suppressed":
                suppressed[digest] = (digest, text, number, readmitted)
            else:
                request[digest] = (digest, number, text)
    return Lines(suppressed, request)


def exchanged(
    ring: Keyring, tallies: Tallies, before: Lines, after: Lines
) -> tuple[Tallies, list[tuple[str, tuple[Any, ...]]]]:
    """The tallies with other lines in place of those read before, and the statements that store them."""
    statements: list[tuple[str, tuple[Any, ...]]] = []
    for table in ("suppressed", "request"):
        old, new = getattr(before, table), getattr(after, table)
        gone = [line for digest, line in old.items() if new.get(digest) != line]
        come = [line for digest, line in new.items() if old.get(digest) != line]
        if gone or come:
            tallies = tallies.toggled(ring, table, [*gone, *come])
        statements += [
            (f"DELETE FROM {table} WHERE digest = ?", (line[0],)) for line in gone if line[0] not in new
        ]
        statements += [(_PUT[table], line) for line in come]
    return tallies, statements


def _putting(table: str) -> str:
    columns = COLUMNS[table]
    digest, *others = columns.split(", ")
    setting = ", ".join(f"{name} = excluded.{name}" for name in others)
    marks = ", ".join(["?", *("?" for _ in others)])
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({digest}) DO UPDATE SET {setting}"


_PUT = {table: _putting(table) for table in ("suppressed", "request")}
