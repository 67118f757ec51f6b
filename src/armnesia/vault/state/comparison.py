"""Comparing the statistics with the rows: those in the vault, or those at its sources as they are now."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.core.progress import Watched
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import Rows, reopen_source, source_name
from armnesia.logs.identities import identities
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.operations.readmit import LISTED, suppressed_among
from armnesia.vault.state.sealed_state import State, arm_rows
from armnesia.vault.storage.database import Row, Session, rows_in

Listed = dict[str, set[bytes]]
"""The digests of people ("user") and of single records ("record") that are to be kept out."""


def listed_now(session: Session) -> Listed:
    """Whom the suppression list keeps out."""
    found: Listed = {kind: set() for kind in LISTED}
    for digest, kind in session.stream("SELECT digest, kind FROM suppressed WHERE readmitted IS NULL"):
        found.setdefault(kind, set()).add(bytes(digest))
    return found


class RowsSeen:
    """What the rows of a managed vault add up to, and which of them should not be there."""

    def __init__(self, ring: Keyring, listed: Listed) -> None:
        self._ring, self._users, self._records = ring, listed["user"], listed["record"]
        self.arms: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        self.forgotten: list[bytes] = []
        """The identities of rows that are somebody's who was forgotten, or were forgotten themselves."""

    def each(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, looked at as they go by."""
        for row in rows:
            identity, owner, arm, units = row
            tally = self.arms[arm]
            tally[0] += 1
            tally[1] += units
            if self._is_forgotten(identity, owner):
                self.forgotten.append(bytes(identity))
            yield row

    def _is_forgotten(self, identity: bytes, owner: bytes | None) -> bool:
        if self._users and owner is not None and self._ring.digest_of_owner(owner) in self._users:
            return True
        return bool(self._records) and self._ring.suppressed_record_digest(identity) in self._records

    def statistics(self, like: ArmStatistics) -> ArmStatistics:
        """The statistics that all rows add up to."""
        tallies = [self.arms[arm] for arm in range(like.n_actions)]
        counts, sums = ([tally[part] for tally in tallies] for part in (0, 1))
        try:
            if len(self.arms) == like.n_actions:
                return ArmStatistics(like.actions, np.array(counts), np.array(sums), like.reward_range)
        except InvalidInputError:
            pass
        raise VaultError(
            "the vault has rows that no ingest has put there, of arms or rewards that there are not: put a"
            " backup in its place"
        )

    def problems(self, state: State) -> list[str]:
        """What is wrong with the rows, or with the statistics."""
        found = {arm: (count, total) for arm, (count, total) in self.arms.items()}
        problems = _differences(state, found, "the vault's rows")
        if self.forgotten:
            problems.append(
                f"records: {len(self.forgotten)} rows of forgotten people, or that were forgotten, are in the"
                " vault"
            )
        return problems


@dataclass
class _Counted:
    """What an external source holds, against what the vault has counted of it.

    A row that stands in several sources is counted with the one that brought it first.
    """

    here: int = 0
    unknown: int = 0
    changed: int = 0
    forgotten: int = 0


def at_sources(
    session: Session, state: State, ring: Keyring, watched: Watched
) -> tuple[list[str], list[str]]:
    """Compare with the sources as they are now, forgotten people left out: problems, and notes."""
    problems: list[str] = []
    notes: list[str] = []
    m = 0 if state.stream is None else state.stream.statistics.n_actions
    totals = np.zeros((m, 2), dtype=object)
    for number, description in session.query("SELECT number, description FROM source ORDER BY number"):
        what = json.loads(description)
        where = f"source {source_name(what)!r}"
        counted = _Counted()
        try:
            for rows, names in _rows_at(what, state, ring):
                _compare(session, ring, number, rows, names, counted, totals)
                watched.add(len(names))
        except ArmnesiaError as error:
            problems.append(f"{where}: {error}")
            continue
        ((held,),) = session.query("SELECT count(*) FROM record WHERE source = ?", number)
        for n, what_of_it in (
            (held - counted.here, "rows that the vault has counted are no longer there"),
            (counted.changed, "rows have changed since they were ingested"),
        ):
            if n > 0:
                problems.append(f"{where}: {n} {what_of_it}")
        if counted.unknown:
            notes.append(f"{where}: {counted.unknown} rows are new since the last ingest")
        if counted.forgotten:
            notes.append(
                f"{where}: {counted.forgotten} rows of forgotten people are still present; delete them"
            )
    found = {arm: (int(count), int(total)) for arm, (count, total) in enumerate(totals)}
    return problems + _differences(state, found, "the sources' rows"), notes


def _rows_at(
    description: dict[str, object], state: State, ring: Keyring
) -> Iterator[tuple[Rows, list[bytes | None]]]:
    """The rows of a source with their identities; None where an id was met before: it is the same row."""
    statistics = state.known_stream.statistics
    for rows in reopen_source(description).rows(statistics.actions, statistics.reward_range):
        names = identities(ring.record_identity, rows)
        again = rows.ordinals if rows.ids is not None else [0] * len(names)
        yield rows, [None if met else name for name, met in zip(names, again, strict=True)]


def _compare(
    session: Session,
    ring: Keyring,
    number: int,
    rows: Rows,
    names: list[bytes | None],
    counted: _Counted,
    totals: np.ndarray,
) -> None:
    known = [name for name in names if name is not None]
    sql = "SELECT identity, owner, content, source FROM record WHERE identity IN ({})"
    held = {bytes(identity): row for identity, *row in rows_in(session, sql, known)}
    users = {user: ring.user_digest(user) for user in set(rows.users) if user is not None}
    gone_users = suppressed_among(session, list(users.values()))
    gone_records = suppressed_among(session, [ring.suppressed_record_digest(name) for name in known])
    for place, name in enumerate(names):
        if name is None:
            continue
        user, arm, units = rows.users[place], rows.arms[place], rows.units[place]
        if name in held:
            owner, content, source = held[name]
            true_owner = None if user is None else ring.owner_digest(user)
            counted.changed += (owner, content) != (true_owner, ring.record_content(name, user, arm, units))
            if source == number:
                counted.here += 1
                totals[arm] += (1, units)
        elif (user is not None and users[user] in gone_users) or (
            gone_records and ring.suppressed_record_digest(name) in gone_records
        ):
            counted.forgotten += 1
        else:
            counted.unknown += 1


def _differences(state: State, found: dict[int, tuple[int, int]], source: str) -> list[str]:
    """Where the statistics are not what the rows add up to."""
    problems = []
    arms = [] if state.stream is None else arm_rows(state.stream)
    for arm, label, count, total, _ in arms:
        true_count, true_total = found.get(arm, (0, 0))
        if (count, total) != (true_count, true_total):
            problems.append(
                f"statistics of action {label}: {count} records with reward units {total} are noted,"
                f" {source} give {true_count} with {true_total}"
            )
    unknown = set(found) - {arm for arm, *_ in arms}
    if unknown - {arm for arm in unknown if found[arm] == (0, 0)}:
        problems.append(f"records: rows of {len(unknown)} arms that the vault does not have")
    return problems
