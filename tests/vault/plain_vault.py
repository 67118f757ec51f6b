"""A vault in plain Python: what the real one must hold after each operation; and what it does hold."""

import copy
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from armnesia import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.vault import MANAGED, Vault
from tests.vault.raw_vaults import arms_in

Identity: TypeAlias = tuple[Any, ...]
Request: TypeAlias = tuple[str, tuple[str, ...]]
"""("users" or "records", sorted names)."""


class Record(NamedTuple):
    """One logged decision; the reward is a number of quarters, which every way of writing it keeps exact."""

    action: str
    quarters: int
    user: str | None
    id: str | None = None

    @property
    def units(self) -> int:
        return self.quarters * UNIT // 4

    @property
    def page(self) -> str:
        """The key of its decision, in vaults with key columns."""
        return f"page {self.quarters % 3}"


def columns_of(records: Sequence[Record]) -> dict[str, list[Any]]:
    """The records as columns; with an id column if they have ids."""
    columns: dict[str, list[Any]] = {
        "action": [record.action for record in records],
        "reward": [record.quarters / 4 for record in records],
        "user": [record.user for record in records],
        "page": [record.page for record in records],
    }
    return columns | ({"id": [record.id for record in records]} if has_ids(records) else {})


def vault_columns(*, ids: bool) -> dict[str, str]:
    """The columns of a vault that takes in such records."""
    return {"action": "action", "reward": "reward", "user": "user"} | ({"id": "id"} if ids else {})


def without_ids(records: Sequence[Record]) -> list[Record]:
    return [record._replace(id=None) for record in records]


def has_ids(records: Sequence[Record]) -> bool:
    return records[0].id is not None


def write_csv(path: Path, records: Sequence[Record]) -> None:
    columns = columns_of(records)
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n", encoding="utf-8")


def write_table(path: Path, table: str, records: Sequence[Record]) -> None:
    """Write a table into an SQLite file, which is read faster than a file of text; a table stays as it is."""
    columns = columns_of(records)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})")
        if connection.execute(f"SELECT 1 FROM {table}").fetchone() is None:
            marks = ", ".join("?" * len(columns))
            rows = zip(*columns.values(), strict=True)
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


class Observation(NamedTuple):
    """Everything of a vault that must change together, read in one transaction."""

    arms: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]
    """The key of each decision, and (count, sum of units, gone) of each of its arms."""
    rows: tuple[tuple[str | None, int, int], ...] | int
    """(owner, arm, units) of each row, sorted; of an external vault, how many are counted."""
    suppressed: tuple[int, int]
    """How many users and how many records are kept out."""
    kinds: tuple[str, ...]
    """Of the entries of the ledger."""
    requests: int
    """Whose people the vault can open."""
    served_by: str | None
    """Of the one decision; None with key columns."""


_USERS: set[str | None] = set()
"""Everyone whom a plain vault has met: a real one names them by keyed digests only."""


def observed(vault: Vault) -> Observation:
    """What a vault holds."""
    managed = vault.configuration.mode == MANAGED
    users = [user for user in _USERS if user is not None]
    digests = [None, *vault.all_keys.owner_digests(users)]
    owners = dict(zip(digests, [None, *users], strict=True))
    with vault.database.reading() as session:
        decisions = session.query("SELECT key, statistics, served_by FROM decision")
        rows: Any = session.query("SELECT owner, arm, units FROM record") if managed else ()
        kept_out = Counter(
            kind for (kind,) in session.query("SELECT kind FROM suppressed WHERE readmitted IS NULL")
        )
        kinds = session.query("SELECT kind FROM entry ORDER BY number")
        ((requests,),) = session.query("SELECT count(*) FROM people")
    return Observation(
        tuple(sorted((key, tuple(arms_in(statistics))) for key, statistics, _ in decisions)),
        tuple(sorted(((owners.get(owner, "nobody known"), *rest) for owner, *rest in rows), key=repr))
        if managed
        else sum(count for _, text, _ in decisions for count, *_ in arms_in(text)),
        (kept_out["user"], kept_out["record"]),
        tuple(kind for (kind,) in kinds),
        requests,
        None if vault.configuration.by else decisions[0][2] if decisions else "default",
    )


@dataclass
class PlainVault:
    """The records, who was forgotten, and what the ledger has to tell."""

    actions: tuple[str, ...]
    managed: bool = True
    frozen: bool = False
    keyed: bool = False
    """Whether each page is a decision of its own."""
    records: dict[Identity, Record] = field(default_factory=dict)
    suppressed: set[tuple[str, Any]] = field(default_factory=set)
    answered: dict[tuple[str, Any], int] = field(default_factory=dict)
    """The entry that has forgotten each name last."""
    said: dict[tuple[str, Any], str] = field(default_factory=dict)
    """The outcome that the certificate of a name says."""
    gone: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By page and action."""
    pages: set[str] = field(default_factory=set)
    """Those that have had a record."""
    kinds: list[str] = field(default_factory=lambda: ["init"])
    served_by: str = "default"
    retired: set[str] = field(default_factory=set)
    counted: set[int] = field(default_factory=set)
    """The numbers of the sources that were counted, where that is noted."""
    listed: dict[tuple[str, str], tuple[int, int | None]] = field(default_factory=dict)
    """Since which entry a name is forgotten, and which readmitted it."""

    def copy(self) -> "PlainVault":
        return copy.deepcopy(self)

    def ingest(self, records: Iterable[Record], source: str | None = None) -> tuple[int, int, int]:
        """Added, there already, kept out. A vault without rows knows them by their place in a source."""
        added = already = kept_out = 0
        seen: Counter[Record] = Counter()
        for place, record in enumerate(records):
            _USERS.add(record.user)
            identity = self.identity(record, seen[record]) if source is None else (source, place)
            seen[record] += 1
            if self.keeps_out(record):
                kept_out += 1
            elif identity in self.records:
                already += 1
            else:
                self.records[identity] = record
                self.pages.add(record.page)
                added += 1
        if added:
            self.served_by = "learner"
        return added, already, kept_out

    def keeps_out(self, record: Record) -> bool:
        return ("users", record.user) in self.suppressed or ("records", record.id) in self.suppressed

    def contradicts(self, records: Iterable[Record]) -> bool:
        """Whether an id is held with another content, by a correction."""
        held = [(self.records.get((r.id,), r), r) for r in records if r.id and not self.keeps_out(r)]
        return any(one != other for one, other in held)

    def correct(self, records: Sequence[Record]) -> tuple[int, int, int, int]:
        """Added, replaced, there already, kept out."""
        replaced = 0
        for record in records:
            before = self.records.get((record.id,))
            if before is not None and before != record and not self.keeps_out(record):
                del self.records[(record.id,)]
                replaced += 1
        added, already, kept_out = self.ingest(records)
        if replaced:
            self.kinds.append("correct")
        return added - replaced, replaced, already, kept_out

    def restore(self, backup: "PlainVault") -> None:
        """Take the records of a backup of this vault, without those of people forgotten since."""
        copied = len(backup.kinds)
        out = {
            name
            for name, (since, readmitted) in self.listed.items()
            if since > copied or readmitted is None or readmitted > copied
        }
        self.records = {
            identity: record
            for identity, record in backup.records.items()
            if ("users", record.user) not in out and ("records", record.id) not in out
        }
        self.pages = backup.pages | {page for (page, _), number in self.gone.items() if number}
        self.kinds.append("restored")

    @staticmethod
    def identity(record: Record, ordinal: int) -> Identity:
        return (record.id,) if record.id is not None else (*record, ordinal)

    def held(self, request: Request) -> list[Identity]:
        """The records that a request is about."""
        kind, names = request
        wanted = {identity: r.user if kind == "users" else r.id for identity, r in self.records.items()}
        return [identity for identity, name in wanted.items() if name in names]

    def is_repeated(self, request: Request) -> bool:
        """Whether all of them are forgotten already."""
        return not self.new_names(request)

    def new_names(self, request: Request) -> tuple[str, ...]:
        """Those who are not forgotten yet: an entry is about them alone."""
        kind, names = request
        return tuple(name for name in names if (kind, name) not in self.suppressed)

    def forget(self, request: Request) -> dict[str, int]:
        """How many records of each action were deleted."""
        deleted: Counter[str] = Counter()
        (kind, _), names = request, self.new_names(request)
        if not names:
            return {}
        found = set()
        for identity in self.held((kind, names)):
            record = self.records.pop(identity)
            deleted[record.action] += 1
            self.gone[record.page, record.action] += self.frozen
            found.add(record.user if kind == "users" else record.id)
        self.served_by = "release"  # held or not, which readers must not see
        self.kinds.append("forget")
        for name in names:
            self.listed[kind, name] = (len(self.kinds), None)
            self.answered[kind, name] = len(self.kinds)
            held = "deleted" if self.managed else "uncounted"
            self.said[kind, name] = held if name in found else "nothing"
        self.suppressed |= {(kind, name) for name in names}
        return dict(deleted)

    def readmit(self, request: Request) -> None:
        """Let them in again."""
        kind, names = request
        self.suppressed -= {(kind, name) for name in names}
        self.kinds.append("readmit")
        for name in names:
            since, _ = self.listed[kind, name]
            self.listed[kind, name] = (since, len(self.kinds))

    def change_arm(self, kind: str, arm: str) -> None:
        """Add or retire an arm of the one decision, or of all, which decide again."""
        if arm not in self.actions:
            self.actions = (*self.actions, arm)
        (self.retired.discard if kind == "add_arm" else self.retired.add)(arm)
        self.kinds.append("arms")
        offers_data = any(record.action not in self.retired for record in self.records.values())
        self.served_by = "learner" if offers_data else "default"

    def note(self, kind: str) -> None:
        """Something that changes the ledger only."""
        self.kinds.append(kind)

    def statistics(self) -> ArmStatistics:
        return statistics_of(self.actions, self.records.values())

    def expected(self) -> Observation:
        """What must be observed."""
        rows = [(r.user, self.actions.index(r.action), r.units) for r in self.records.values()]
        kinds = Counter(kind for kind, _ in self.suppressed)
        return Observation(
            self._arms(),
            tuple(sorted(rows, key=repr)) if self.managed else len(rows),
            (kinds["users"], kinds["records"]),
            tuple(self.kinds),
            self.kinds.count("forget"),
            None if self.keyed else self.served_by,
        )

    def _arms(self) -> tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]:
        """What the decisions add up to."""
        parts = {f'["{page}"]': {page} for page in self.pages} if self.keyed else {"[]": self.pages}
        found = []
        for key, pages in sorted(parts.items()):
            own = statistics_of(self.actions, [each for each in self.records.values() if each.page in pages])
            gone = [sum(self.gone[page, action] for page in pages) for action in self.actions]
            found.append((key, tuple(zip(own.counts.tolist(), own.sums.tolist(), gone, strict=True))))
        return tuple(found)


def statistics_of(actions: tuple[str, ...], records: Iterable[Record]) -> ArmStatistics:
    """Count and add up, without any of the vault's own code."""
    counts, sums = Counter[str](), Counter[str]()
    for record in records:
        counts[record.action] += 1
        sums[record.action] += record.units
    return ArmStatistics(
        actions,
        np.array([counts[action] for action in actions], dtype=np.int64),
        np.array([sums[action] for action in actions], dtype=np.int64),
        (0.0, 1.0),
    )
