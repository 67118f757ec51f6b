"""Verifying: everything that can be recomputed is recomputed, and everything else is checked against it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armnesia.errors import ArmnesiaError, VaultError
from armnesia.statistics import ArmStatistics
from armnesia.vault.certificate import Certificate
from armnesia.vault.claims import CERTIFIED
from armnesia.vault.database import Session, rows_in
from armnesia.vault.identities import Occurrences, identities
from armnesia.vault.keyring import Keyring
from armnesia.vault.ledger import Entry, Head, check_chain
from armnesia.vault.opened import Opened
from armnesia.vault.progress import Progress, Watched
from armnesia.vault.schema import EXTERNAL
from armnesia.vault.sources import Rows, reopen_source, source_name
from armnesia.vault.state import State, arm_rows
from armnesia.vault.suppression import suppressed_among
from armnesia.vault.tallies import tallied

_TALLIED = ("records", "suppression list", "answered requests", "sources")


@dataclass(frozen=True)
class Verification:
    """What was found: each problem is one sentence that says where; `notes` are facts, not faults."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    records: int
    entries: int
    certificates: int

    @property
    def holds(self) -> bool:
        """Whether there is nothing wrong."""
        return not self.problems


@dataclass
class _Counted:
    """What an external source holds, against what the vault has counted of it.

    A row that stands in several sources is counted with the one that brought it first.
    """

    here: int = 0
    unknown: int = 0
    changed: int = 0
    forgotten: int = 0


def verify(opened: Opened, head: Head | None = None, progress: Progress | None = None) -> Verification:
    """Recompute the statistics and compare bit for bit; check seal, ledger and certificates.

    `head` is a head that was kept elsewhere; the one pinned beside the keys is always checked.
    """
    problems: list[str] = []
    notes: list[str] = []
    heads, watched = _heads(opened, head), Watched(progress)
    if opened.pin.read() is None:
        notes.append(
            "no head is pinned beside the keys: an old copy of the vault in its place is not noticed"
        )
    with opened.database.reading() as session:
        try:
            state = opened.load(session)
        except ArmnesiaError as error:
            problems.append(f"state: {error}")
            try:
                state = unsealed_state(session, opened)
            except VaultError as worse:  # nothing else can be measured by such a state
                return Verification((*problems, f"state: {worse}"), (), 0, 0, 0)
        ring = opened.keyring.at(digest_version=state.digest_key, signing_version=state.signing_key)
        problems += ledger_problems(session, state, heads)
        certificates = 0
        for problem in _certificate_problems(session, opened.keyring):
            certificates += 1
            problems += problem
        problems += _tally_problems(session, state, ring, opened.mode, watched)
        if opened.mode == EXTERNAL:
            found, remarks = _at_sources(session, state, ring, watched)
            notes += remarks
        else:
            found = _from_rows(session, state, ring)
        problems += found
        ((records,),) = session.query("SELECT count(*) FROM record")
    unique = tuple(dict.fromkeys(problems))
    return Verification(unique, tuple(notes), int(records), state.head.sequence, certificates)


def check_ledger(opened: Opened, head: Head) -> list[str]:
    """Check the ledger against a head that was kept elsewhere, and against the one pinned beside the keys."""
    heads = _heads(opened, head)
    with opened.database.reading() as session:
        state = unsealed_state(session, opened)
        return list(dict.fromkeys(ledger_problems(session, state, heads)))


def _heads(opened: Opened, head: Head | None) -> list[Head]:
    """The heads to check against. To be read before the ledger: others may lengthen both meanwhile."""
    return [known for known in (head, opened.pin.read()) if known is not None]


def unsealed_state(session: Session, opened: Opened) -> State:
    """The state as it is, for saying more about what is wrong with it."""
    try:
        return opened.load(session, check_seal=False)
    except (ValueError, KeyError, TypeError) as error:
        raise VaultError(
            f"the vault's configuration or statistics cannot even be read ({type(error).__name__}):"
            " they were changed by something other than armnesia"
        ) from None


def ledger_problems(session: Session, state: State, heads: list[Head]) -> list[str]:
    """What is wrong with the ledger, measured by itself, by the state and by heads kept elsewhere."""
    rows = session.query("SELECT sequence, entry, hash FROM ledger ORDER BY sequence")
    problems = [
        problem
        for head in (*heads, None)[: max(1, len(heads))]
        for problem in check_chain(rows, vault=state.vault, head=head, end=state.head)
    ]
    return [f"ledger: {problem}" for problem in problems]


def _certificate_problems(session: Session, keyring: Keyring) -> Iterator[list[str]]:
    """The problems of each certificate that is there or should be there."""
    entries: dict[int, str] = dict(session.query("SELECT sequence, entry FROM ledger"))
    public = [keyring.public_key(version + 1) for version in range(keyring.signing_version)]
    seen = set()
    for sequence, body, signature in session.query("SELECT sequence, body, signature FROM certificate"):
        seen.add(sequence)
        try:
            certificate = Certificate.from_stored(body, bytes(signature))
            found = certificate.verify(public)
            if certificate.body.get("sequence") != sequence:
                found.append("it is filed under another entry than its own")
            if Entry(certificate.body["entry"]).text != entries.get(sequence):
                found.append("its entry is not the one in the ledger")
        except (ArmnesiaError, KeyError, TypeError) as error:
            found = [str(error)]
        yield [f"certificate {sequence}: {problem}" for problem in found]
    for sequence, text in entries.items():
        if sequence not in seen and json_kind(text) in CERTIFIED:
            yield [f"certificate {sequence}: missing"]


def _tally_problems(
    session: Session, state: State, ring: Keyring, mode: str, watched: Watched
) -> Iterator[str]:
    """The tables whose rows are not those that armnesia put there."""
    found = tallied(session, ring, mode, watched)
    for table, noted, true in zip(_TALLIED, state.tallies, found, strict=True):
        if noted != true:
            yield f"{table}: rows were added, changed or taken away by something other than armnesia"


def json_kind(text: str) -> str | None:
    """The kind of an entry, if it can be read at all."""
    try:
        kind = json.loads(text)["kind"]
    except (ValueError, KeyError, TypeError):
        return None
    return kind if isinstance(kind, str) else None


def _from_rows(session: Session, state: State, ring: Keyring) -> list[str]:
    """Compare the statistics with the rows of the vault; look for rows of forgotten people."""
    tallies = session.query("SELECT arm, count(*), sum(units) FROM record GROUP BY arm")
    found = {arm: (int(count), int(total)) for arm, count, total in tallies}
    problems = _differences(state, found, "the vault's rows")
    owners = session.stream("SELECT DISTINCT owner FROM record WHERE owner IS NOT NULL")
    digests = [ring.digest_of_owner(bytes(owner)) for (owner,) in owners]
    still_there = len(suppressed_among(session, digests))
    if still_there:
        problems.append(f"records: rows of {still_there} forgotten users are in the vault")
    return problems


def _at_sources(
    session: Session, state: State, ring: Keyring, watched: Watched
) -> tuple[list[str], list[str]]:
    """Compare with the sources as they are now, forgotten people left out."""
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
    with Occurrences() as occurrences:
        for rows in reopen_source(description).rows(statistics.actions, statistics.reward_range):
            names = identities(ring.record_identity, rows, occurrences)
            again = occurrences.number(names) if rows.ids is not None else [0] * len(names)
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


def statistics_of_rows(session: Session, state: State) -> ArmStatistics:
    """The statistics that the rows of a managed vault add up to."""
    stream = state.known_stream
    counts = np.zeros(stream.statistics.n_actions, dtype=np.int64)
    sums = np.zeros(stream.statistics.n_actions, dtype=object)
    for arm, count, total in session.query("SELECT arm, count(*), sum(units) FROM record GROUP BY arm"):
        counts[arm], sums[arm] = count, int(total)
    return ArmStatistics(stream.statistics.actions, counts, sums, stream.statistics.reward_range)
