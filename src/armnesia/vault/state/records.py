"""Which records a request is about: in the vault itself, or at the source it was read from."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import Source, label_text, reopen_source
from armnesia.logs.identities import identities
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.connection import Opened
from armnesia.vault.state.sealed_state import State
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import EXTERNAL, MANAGED, RECORD_COLUMNS

_TALLY = f"arm, count(*), sum(units), min(CASE WHEN units IN (0, {UNIT}) THEN 1 ELSE 0 END)"
_AT_ONCE = 500


@dataclass(frozen=True)
class Wanted:
    """Whose records, or which records, are to be forgotten; all of them are one request.

    >>> Wanted.of(users=["u-2", "u-1", "u-2"]).request
    {'users': ['u-1', 'u-2']}
    """

    users: tuple[str, ...] = ()
    records: tuple[str, ...] = ()

    @classmethod
    def of(cls, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None) -> "Wanted":
        """Check and sort what is asked for."""
        if (users is None) == (records is None):
            raise InvalidInputError("say what to forget: either users or records, not both")
        given = users if users is not None else records
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            got = "a single text" if isinstance(given, str) else f"a single {type(given).__name__}"
            raise InvalidInputError(f"what to forget must be a list of names; got {got}")
        labels = {label_text(label) for label in given}
        texts = tuple(sorted(label for label in labels if label))
        if not texts or len(texts) < len(labels):
            raise InvalidInputError(
                "what to forget must name at least one user or record, none of them empty"
            )
        return cls(users=texts) if users is not None else cls(records=texts)

    @property
    def request(self) -> dict[str, list[str]]:
        """The request as the commitment and the certificate spell it."""
        return {"users": list(self.users)} if self.users else {"records": list(self.records)}

    def singly(self) -> list["Wanted"]:
        """The request of each person, or record, alone."""
        return [Wanted(users=(user,)) for user in self.users] or [Wanted(records=(r,)) for r in self.records]

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the request, of people or of records."""
        return self.users or self.records

    @property
    def name(self) -> str:
        """The one name of a request of one."""
        (name,) = self.names
        return name

    def digests(self, ring: Keyring) -> list[tuple[bytes, str]]:
        """What goes on the suppression list."""
        if self.users:
            return [(ring.user_digest(user), "user") for user in self.users]
        return [
            (ring.suppressed_record_digest(identity), "record") for identity in self.record_identities(ring)
        ]

    def record_identities(self, ring: Keyring) -> list[bytes]:
        """The identities of the records named by their id."""
        return [ring.record_identity("id", record) for record in self.records]

    def row_keys(self, ring: Keyring) -> list[bytes]:
        """What rows have in their `row_column` if they are meant, for each name."""
        return [ring.owner_digest(user) for user in self.users] or self.record_identities(ring)

    @property
    def row_column(self) -> str:
        """The column of rows by which they are found."""
        return "owner" if self.users else "identity"


class Holding(ABC):
    """The records of one request; `None` stands for no records at all."""

    def __init__(self, wanted: Wanted, keyring: Keyring) -> None:
        self.wanted = wanted
        self.keyring = keyring

    @abstractmethod
    def found(self, session: Session, state: State) -> DeletionRequest | None:
        """What is held."""

    @abstractmethod
    def taken(self, session: Session, state: State) -> tuple[DeletionRequest | None, list[Row]]:
        """What is held, and the rows that it was, which are deleted in this transaction."""

    def conditions(self) -> Iterator[tuple[str, tuple[bytes, ...]]]:
        """The records as conditions in SQL, a few hundred at a time."""
        column, values = self.wanted.row_column, self.wanted.row_keys(self.keyring)
        for start in range(0, len(values), _AT_ONCE):
            some = tuple(values[start : start + _AT_ONCE])
            marks = ", ".join("?" * len(some))
            yield (f"{column} = ?" if len(some) == 1 else f"{column} IN ({marks})"), some

    def names_with_records(self, session: Session) -> int:
        """Of how many of those who are named there are records."""
        counting = f"SELECT count(DISTINCT {self.wanted.row_column}) FROM record WHERE "
        return sum(
            int(number)
            for condition, values in self.conditions()
            for (number,) in session.query(counting + condition, *values)
        )

    def _deleted(self, session: Session, mode: str) -> list[Row]:
        return [
            row
            for condition, values in self.conditions()
            for row in session.query(
                f"DELETE FROM record WHERE {condition} RETURNING {RECORD_COLUMNS[mode]}", *values
            )
        ]


class ManagedHolding(Holding):
    """Rows in the vault."""

    def found(self, session: Session, state: State) -> DeletionRequest | None:
        """Add the rows up."""
        rows = (
            row
            for condition, values in self.conditions()
            for row in session.query(f"SELECT {_TALLY} FROM record WHERE {condition} GROUP BY arm", *values)
        )
        return request_of(state, ((arm, n, total, bool(binary)) for arm, n, total, binary in rows))

    def taken(self, session: Session, state: State) -> tuple[DeletionRequest | None, list[Row]]:
        """Delete the rows and add them up."""
        rows = self._deleted(session, MANAGED)
        return request_of_rows(state, ((arm, units) for *_, arm, units in rows)), rows


class ExternalHolding(Holding):
    """Rows at the sources: the vault holds their digests only, and looks at the sources when asked."""

    def __init__(self, wanted: Wanted, opened: Opened) -> None:
        super().__init__(wanted, opened.keyring)
        self.at_source: dict[bytes, tuple[bytes, int, int]] = {}
        with opened.reading() as session:
            state, sources = opened.load(session), self._sources(session)
        self._look_up(sources, state)  # may take long, so not in the transaction that others wait for

    def found(self, session: Session, state: State) -> DeletionRequest | None:
        """Match what the vault counted with what the sources say."""
        held = [
            row
            for condition, values in self.conditions()
            for row in session.query(f"SELECT identity, content FROM record WHERE {condition}", *values)
        ]
        if any(bytes(identity) not in self.at_source for identity, _ in held):
            self._look_up(self._sources(session), state)  # another process may have ingested since
        lost = sum(bytes(identity) not in self.at_source for identity, _ in held)
        changed = sum(
            self.at_source[bytes(identity)][0] != bytes(content)
            for identity, content in held
            if bytes(identity) in self.at_source
        )
        if lost or changed:
            raise VaultError(
                f"of the {len(held)} rows that the vault has counted for this request, {lost} are no longer"
                f" at their source and {changed} have changed there: forget before deleting at the source;"
                " now run armnesia rebuild"
            )
        return request_of_rows(state, (self.at_source[bytes(identity)][1:] for identity, _ in held))

    def taken(self, session: Session, state: State) -> tuple[DeletionRequest | None, list[Row]]:
        """Match, then delete the digests."""
        return self.found(session, state), self._deleted(session, EXTERNAL)

    def _sources(self, session: Session) -> list[dict[str, Any]]:
        """The sources that brought rows of this request: another one may be gone and hinders nobody."""
        needed = {
            number
            for condition, values in self.conditions()
            for (number,) in session.query(f"SELECT DISTINCT source FROM record WHERE {condition}", *values)
        }
        known = session.query("SELECT number, description FROM source ORDER BY number")
        return [json.loads(description) for number, description in known if number in needed]

    def _look_up(self, sources: list[dict[str, Any]], state: State) -> None:
        for description in sources:
            self._look_at(reopen_source(description), state)

    def _look_at(self, source: Source, state: State) -> None:
        if (source.columns.user if self.wanted.users else source.columns.id) is None:
            return  # no row of this source is named by the request
        statistics = state.known_stream.statistics
        selected = source.rows(
            statistics.actions,
            statistics.reward_range,
            users=self.wanted.users or None,
            ids=self.wanted.records or None,
        )
        for rows in selected:
            for place, identity in enumerate(identities(self.keyring.record_identity, rows)):
                arm, units = rows.arms[place], rows.units[place]
                content = self.keyring.record_content(identity, rows.users[place], arm, units)
                self.at_source[identity] = (content, arm, units)


def holding_of(opened: Opened, wanted: Wanted) -> Holding:
    """The records of a request, wherever the vault keeps them."""
    if opened.mode == MANAGED:
        return ManagedHolding(wanted, opened.keyring)
    return ExternalHolding(wanted, opened)


def request_of(state: State, tallies: Iterable[tuple[int, int, int, bool]]) -> DeletionRequest | None:
    """Tallies (arm, count, sum of units, all 0 or 1) as a request; None if there is nothing."""
    found = list(tallies)
    if not found:
        return None
    statistics = state.known_stream.statistics
    counts, sums = [0] * statistics.n_actions, [0] * statistics.n_actions
    for arm, count, total, _ in found:
        counts[arm] += count
        sums[arm] += int(total)
    records = ArmStatistics(statistics.actions, np.array(counts), np.array(sums), statistics.reward_range)
    return DeletionRequest(records, all(binary for *_, binary in found))


def request_of_rows(state: State, rows: Iterable[tuple[int, int]]) -> DeletionRequest | None:
    """Rows (arm, units) as a request; None if there are none."""
    return request_of(state, ((arm, 1, units, units in (0, UNIT)) for arm, units in rows))
