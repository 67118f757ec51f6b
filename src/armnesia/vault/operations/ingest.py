"""Ingesting: rows come in once, whatever is sent twice, and all of a batch or nothing of it."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError, VaultError
from armnesia.core.progress import Progress
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import checked_actions
from armnesia.logs import CHUNK, Rows, Source, storable_labels
from armnesia.logs.identities import identities
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.operations.readmit import LISTED, suppressed_among
from armnesia.vault.state.connection import Opened, appended
from armnesia.vault.state.sealed_state import State, new_stream
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import EXTERNAL, RECORD_COLUMNS

_MOST_UNDECLARED = 100
"""Actions that a first batch may fix; more of them are rather people, or times, or prices."""
_INCOMING = {
    "managed": "identity {blob} PRIMARY KEY, owner {blob}, arm INTEGER, units BIGINT",
    "external": "identity {blob} PRIMARY KEY, owner {blob}, content {blob}, source INTEGER, arm INTEGER,"
    " units BIGINT",
}
_DIFFERS = {
    "managed": "r.arm <> i.arm OR r.units <> i.units OR coalesce(r.owner, '') <> coalesce(i.owner, '')",
    "external": "r.content <> i.content",
}


@dataclass(frozen=True)
class Ingested:
    """What became of the rows of a source."""

    rows: int
    added: int
    already_there: int
    suppressed: int
    served: Any

    def __add__(self, other: "Ingested") -> "Ingested":
        return Ingested(
            self.rows + other.rows,
            self.added + other.added,
            self.already_there + other.already_there,
            self.suppressed + other.suppressed,
            other.served,
        )


def ingest(
    opened: Opened,
    source: Source,
    *,
    nobody: bool = False,
    batch_rows: int | None = None,
    progress: Progress | None = None,
) -> Ingested:
    """Take a source's rows in: in one transaction, or in one for every `batch_rows` rows.

    A batch that fails leaves nothing. What came in with earlier batches of the same source is not added
    twice when the source is sent again. Where people were forgotten, a source without a user column could
    bring their rows back unnoticed: it is refused, unless its rows are said to be `nobody`'s.
    """
    if nobody and source.columns.user is not None:
        raise InvalidInputError("rows that belong to nobody have no user column; leave out one of the two")
    if batch_rows is not None and (not isinstance(batch_rows, int) or batch_rows < 1):
        raise InvalidInputError(f"batch_rows must be a whole number, 1 or more; got {batch_rows!r}")
    with opened.reading() as session:
        state = opened.load(session)
        _check_people_stay_out(session, source, nobody)
        unrecognised = source.columns.id is None and _keeps_out(session, "record")
    if unrecognised:
        warnings.warn(
            "single records were forgotten here: without the id column they are not recognised, and come"
            " in again with this source if it has them",
            stacklevel=3,
        )
    if state.configuration.mode == EXTERNAL and source.description["kind"] == "frame":
        raise VaultError("an external vault looks people up at the source: give a file or a table")
    declared = _declared(state, source)
    size = min(batch_rows or CHUNK, CHUNK)
    chunks = partial(source.rows, declared, state.configuration.reward_range, chunk=size)
    if batch_rows is not None:  # a bad row far down must not leave the batches before it
        for _ in chunks():
            pass
    done = Ingested(0, 0, 0, 0, state.served_action)
    for batch in _batches(chunks(), batch_rows):
        with opened.database.expecting_many_rows(), opened.writing() as session:
            loader = Loader(opened, session, source, declared)
            _check_people_stay_out(session, source, nobody)  # some may have been forgotten just now
            for rows in batch:
                loader.take(rows)
                if progress is not None:
                    progress(done.rows + loader.seen)
            done += loader.finish()
        if loader.state.head != loader.before.head:
            opened.pin.write(loader.state.head)
    return done


def _check_people_stay_out(session: Session, source: Source, nobody: bool) -> None:
    """Refuse rows of which nobody can tell whose they are, where some may belong to who was forgotten."""
    if source.columns.user is None and not nobody and _keeps_out(session, "user"):
        raise VaultError(
            "people were forgotten here: name the user column, so that their rows stay out; or, if the rows"
            " belong to nobody, say so by nobody=True (--nobody)"
        )


def _keeps_out(session: Session, kind: str) -> bool:
    """Whether any "user", or any "record", is on the suppression list: the first one found is enough."""
    return bool(session.query("SELECT 1 FROM suppressed WHERE readmitted IS NULL AND kind = ? LIMIT 1", kind))


def _declared(state: State, source: Source) -> tuple[Any, ...]:
    if state.configuration.actions is not None:
        return state.configuration.actions
    labels = storable_labels(source.action_labels())
    if "" in labels:
        raise InvalidLogError(f"{source.columns.described('action')} must have no empty labels; got one")
    if len(labels) > _MOST_UNDECLARED:
        raise InvalidLogError(
            f"{source.columns.described('action')} has {len(labels)} different values, which would be the"
            f" vault's actions for good, in public; is it the right column? Name more than {_MOST_UNDECLARED}"
            " actions at armnesia init"
        )
    return checked_actions(labels)


def _batches(chunks: Iterable[Rows], batch_rows: int | None) -> Iterator[Iterator[Rows]]:
    """Group chunks into batches of at least so many rows; without a number, all of them are one batch."""
    remaining = iter(chunks)
    if batch_rows is None:
        yield remaining
        return
    for first in remaining:
        yield _some(first, remaining, batch_rows)


def _some(first: Rows, remaining: Iterator[Rows], batch_rows: int) -> Iterator[Rows]:
    yield first
    taken = len(first.arms)
    while taken < batch_rows:
        rows = next(remaining, None)
        if rows is None:
            return
        taken += len(rows.arms)
        yield rows


class Loader:
    """One batch, in one transaction."""

    def __init__(
        self,
        opened: Opened,
        session: Session,
        source: Source,
        actions: tuple[Any, ...],
    ) -> None:
        self.opened, self.session, self.source = opened, session, source
        self.before = opened.load(session)
        self.mode = self.before.configuration.mode
        configuration = self.before.configuration
        if configuration.actions is None:
            configuration = configuration.with_actions(actions)
        elif configuration.actions != actions:  # another process was the first to bring some
            raise VaultError("the vault's actions were fixed meanwhile by another ingest; ingest again")
        self.state = replace(self.before, configuration=configuration)
        if self.state.stream is None:
            self.state = replace(self.state, stream=new_stream(configuration))
        self.ring = opened.ring(self.before)
        self.suppressing = {kind for kind in LISTED if _keeps_out(session, kind)}
        self.tallies = self.before.tallies
        self.number = self._source_number() if self.mode == EXTERNAL else 0
        self.counts = np.zeros(len(actions), dtype=np.int64)
        self.sums = np.zeros(len(actions), dtype=object)
        self.seen = self.added = self.already_there = self.suppressed = 0
        columns = _INCOMING[self.mode].format(blob=opened.database.blob)
        session.execute(f"CREATE TEMPORARY TABLE incoming ({columns})")

    def take(self, rows: Rows) -> None:
        """Put a chunk into the vault: what is not there yet and is nobody's who was forgotten."""
        names = identities(self.ring.record_identity, rows)
        records = self._records(rows, names)
        self.seen += len(names)
        self.suppressed += len(names) - len(records)
        fresh = {record[0]: record for record in records}
        self.session.load(
            "incoming", self._incoming_columns(), sorted(fresh.values(), key=lambda row: row[0])
        )
        self._check_same_content(rows, names)
        # Not IN: SQLite would walk through all that the vault holds, for one row that comes in.
        known = self.session.execute(
            "DELETE FROM incoming WHERE EXISTS (SELECT 1 FROM record r WHERE r.identity = incoming.identity)"
        )
        if known:
            left = self.session.query("SELECT identity FROM incoming")
            fresh = {bytes(identity): fresh[bytes(identity)] for (identity,) in left}
        tally = self.session.query("SELECT arm, count(*), sum(units) FROM incoming GROUP BY arm")
        for arm, count, total in tally:
            self.counts[arm] += count
            self.sums[arm] += int(total)
        columns = RECORD_COLUMNS[self.mode]
        width = len(columns.split(","))
        self.tallies = self.tallies.toggled(self.ring, "record", (row[:width] for row in fresh.values()))
        added = self.session.execute(
            f"{self.opened.database.insert_all} record ({columns})"
            f" SELECT {columns} FROM incoming ORDER BY identity"
        )
        self.session.execute(f"{self.opened.database.empty} incoming")
        self.added += added
        self.already_there += len(records) - added

    def finish(self) -> Ingested:
        """Store the new statistics and let the learner decide anew."""
        state = replace(self.state, tallies=self.tallies)
        if self.added:
            stream = state.known_stream
            new = ArmStatistics(
                stream.statistics.actions, self.counts, self.sums, stream.statistics.reward_range
            )
            state = state.with_stream(stream.add(new))
        statements = []
        if self.before.configuration.actions is None:  # fixed from now on: the ledger says since when
            actions = list(state.known_stream.statistics.actions)
            _, state, to_ledger = appended(state, "actions", actions=actions)
            statements.append(to_ledger)
        if state != self.before:
            self.opened.store(self.session, self.before, state, *statements)
        self.session.execute("DROP TABLE incoming")  # on a server it is a file, which would outlive the batch
        self.state = state
        return Ingested(self.seen, self.added, self.already_there, self.suppressed, state.served_action)

    def _records(self, rows: Rows, names: list[bytes]) -> list[Row]:
        forgotten = self._forgotten(rows, names)
        chosen = (place for place in range(len(names)) if place not in forgotten)
        owners = {user: None if user is None else self.ring.owner_digest(user) for user in set(rows.users)}
        if self.mode != EXTERNAL:
            return [(names[p], owners[rows.users[p]], rows.arms[p], rows.units[p]) for p in chosen]
        return [self._digested(rows, names[p], p, owners[rows.users[p]]) for p in chosen]

    def _digested(self, rows: Rows, identity: bytes, place: int, owner: bytes | None) -> Row:
        user, arm, units = rows.users[place], rows.arms[place], rows.units[place]
        content = self.ring.record_content(identity, user, arm, units)
        return (identity, owner, content, self.number, arm, units)

    def _forgotten(self, rows: Rows, names: list[bytes]) -> set[int]:
        """The places of rows that were forgotten, by their owner or by themselves."""
        places: set[int] = set()
        if "user" in self.suppressing:
            digests = {user: self.ring.user_digest(user) for user in set(rows.users) if user is not None}
            listed = suppressed_among(self.session, list(digests.values()))
            names_out = {user for user, digest in digests.items() if digest in listed}
            places |= {place for place, user in enumerate(rows.users) if user in names_out}
        if "record" in self.suppressing:
            of_rows = [self.ring.suppressed_record_digest(name) for name in names]
            listed = suppressed_among(self.session, of_rows)
            places |= {place for place, digest in enumerate(of_rows) if digest in listed}
        return places

    def _check_same_content(self, rows: Rows, names: list[bytes]) -> None:
        # A cross join, which SQLite never turns round: it takes what comes in, and looks each row up.
        different = self.session.query(
            "SELECT i.identity FROM incoming i CROSS JOIN record r"
            f" WHERE r.identity = i.identity AND ({_DIFFERS[self.mode]})"
        )
        if different:
            others = {bytes(identity) for (identity,) in different}
            first = next(place for place, name in enumerate(names) if name in others)
            raise VaultError(
                f"{len(different)} rows have an id that the vault holds with another action, reward or user:"
                f" the first is row {rows.positions[first]}; an id must mean one row for ever; nothing was"
                " ingested"
            )

    def _incoming_columns(self) -> str:
        extra = ", arm, units" if self.mode == EXTERNAL else ""
        return RECORD_COLUMNS[self.mode] + extra

    def _source_number(self) -> int:
        """The number of this source; a source that is sent again keeps its number."""
        text = canonical(self.source.description)
        found = self.session.query("SELECT number FROM source WHERE description = ?", text)
        if found:
            return int(found[0][0])
        ((number,),) = self.session.query("SELECT coalesce(max(number), 0) + 1 FROM source")
        self.session.execute("INSERT INTO source (number, description) VALUES (?, ?)", number, text)
        self.tallies = self.tallies.toggled(self.ring, "source", [(number, text)])
        return int(number)
