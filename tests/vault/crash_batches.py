"""Kills an ingest that commits in between, again and again: what is left is whole batches, from the first on.

Like `crash_driver`: the child acknowledges each batch, on the disk, when it is committed, and is killed by
SIGKILL after a random delay or at a random step of its own. What it left is compared with a vault in plain
Python that has taken in the first rows of the file, for every number of batches.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armnesia.logs import Source
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.storage.postgres import PostgresDatabase
from armnesia.vault.storage.sqlite import SqliteDatabase
from tests.databases import Place
from tests.vault.crash_driver import (
    ACTIONS,
    NEVER,
    acknowledge,
    acknowledged_in,
    count_steps,
    end_of,
    none_of,
)
from tests.vault.forked_children import Nursery
from tests.vault.plain_vault import Observation, PlainVault, Record, columns_of, observed, write_csv

BATCH_ROWS = 40
BATCH = "a batch"
"""What is acknowledged of one."""
BATCHES = 7
"""The last of them is shorter than the others."""


def ingest(vault: Vault, file: str, ids: bool) -> int:
    """Take a file in, in batches; how many rows were added."""
    return vault.ingest(file, user="user", id="id" if ids else None, batch_rows=BATCH_ROWS).added


def work(url: str, keys: str, file: str, ids: bool, acknowledgements: str, die_at: int | None = None) -> None:
    """What the child does; with `die_at` it counts its steps and dies at that one."""
    # A batch is made of whole chunks, and a chunk is larger than our files.
    defaults: Any = Source.rows.__kwdefaults__
    defaults["chunk"] = BATCH_ROWS
    steps, started = [0], time.perf_counter()
    if die_at is not None:
        count_steps(steps, die_at)
    with Vault.open(url, keys=keys) as vault, open(acknowledgements, "w", encoding="utf-8") as lines:
        for database in (SqliteDatabase, PostgresDatabase):
            _after_commit(database, lines)
        ingest(vault, file, ids)
        acknowledge(lines, {"steps": steps[0], "seconds": time.perf_counter() - started})


def _after_commit(database: Any, lines: Any) -> None:
    original = database.writing

    @contextmanager
    def acknowledging(self: Any) -> Iterator[Any]:
        with original(self) as session:
            yield session
        acknowledge(lines, BATCH)

    database.writing = acknowledging


@dataclass(frozen=True)
class Kind:
    """A kind of vault and of file."""

    mode: str
    ids: bool
    """Without ids there are few different rows: equal ones are in one batch, and in several."""
    declared: bool
    """Whether the vault knows its actions before; otherwise the first batch fixes them."""

    def records(self, chance: random.Random) -> list[Record]:
        """The rows of a file, the last batch of which is not full."""
        return [
            Record(
                chance.choice(ACTIONS),
                chance.randrange(5 if self.ids else 2),
                f"person-{chance.randrange(60 if self.ids else 6)}",
                f"row-{row}" if self.ids else None,
            )
            for row in range(BATCH_ROWS * (BATCHES - 1) + chance.randint(1, BATCH_ROWS - 1))
        ]


@dataclass(frozen=True)
class Filling:
    """A vault, a file that it is to take in, and what it holds after each number of the file's batches."""

    place: Place
    file: Path
    records: list[Record]
    ids: bool
    after: list[Observation]

    @classmethod
    def begin(cls, kind: Kind, place: Place, folder: Path, chance: random.Random) -> "Filling":
        """A new vault in which somebody is forgotten already, and which may have some rows of the file."""
        records, file = kind.records(chance), folder / "log.csv"
        write_csv(file, records)
        model = PlainVault(ACTIONS, managed=kind.mode == "managed")
        actions = ACTIONS if kind.declared else None
        with place.create(Configuration(actions=actions, user_type=UserType.TEXT, mode=kind.mode)) as vault:
            vault.forget(users=["person-3"])
            model.forget(("users", ("person-3",)))
            if model.managed and kind.ids and kind.declared:
                some = records[BATCH_ROWS - 5 : BATCH_ROWS + 5]
                vault.ingest(columns_of(some), user="user", id="id")
                model.ingest(some)
            after = [observed(vault)]
        for batches in range(1, BATCHES + 1):
            grown = model.copy()
            grown.ingest(records[: batches * BATCH_ROWS])
            if not kind.declared:
                grown.note("actions")
            after.append(grown.expected())
        return cls(place, file, records, kind.ids, after)

    def batches_in(self, vault: Vault, at_least: int = 0) -> tuple[int, list[str]]:
        """How many batches of the file are in a vault, and what is wrong with it."""
        problems = [f"verify: {problem}" for problem in vault.verify().problems]
        found = observed(vault)
        if found not in self.after:
            whole = [rows_in(each) for each in self.after]
            return 0, [*problems, f"rows: {rows_in(found)} that are not those of whole batches: {whole}"]
        # A batch of which nothing is new leaves no trace: the last of those that look the same.
        batches = max(number for number, expected in enumerate(self.after) if expected == found)
        if batches < at_least:
            problems.append(f"batches: {batches}, although {at_least} were there or acknowledged")
        return batches, problems

    def complete(self) -> None:
        """Send the file again: what is missing comes in, and nothing twice."""
        with self.place.open() as vault:
            missing = rows_in(self.after[-1]) - rows_in(observed(vault))
            for new in (missing, 0):
                added = ingest(vault, str(self.file), self.ids)
                _, problems = self.batches_in(vault, at_least=BATCHES)
                none_of(problems if added == new else [*problems, f"added: {added} rows, not {new}"])


def rows_in(found: Observation) -> int:
    """How many rows the statistics have counted."""
    return sum(count for _, arms in found.arms for count, _, _ in arms)


@dataclass
class BatchCrashes:
    """Vaults that are filled by processes which are killed."""

    nursery: Nursery
    chance: random.Random
    folder: Path
    new_place: Callable[[], Place]
    kills: int = 0
    left: Counter[int] = field(default_factory=Counter)
    """How often so many batches were there after a kill."""

    def kill(self, kind: Kind, times: int) -> None:
        """Kill so many processes that fill vaults of a kind, each vault several times until it is full."""
        measured = Filling.begin(kind, self.new_place(), self.folder, self.chance)
        end, acknowledged = self._round(measured, None, NEVER)
        seconds, steps = acknowledged[-1]["seconds"], acknowledged[-1]["steps"]
        assert (end, acknowledged.count(BATCH)) == (0, BATCHES)
        measured.complete()
        wanted = self.kills + times
        while self.kills < wanted:
            filling, there = Filling.begin(kind, self.new_place(), self.folder, self.chance), 0
            while there < BATCHES and self.kills < wanted:
                there = self._kill_once(filling, there, seconds, steps)
            filling.complete()

    def _kill_once(self, filling: Filling, there: int, seconds: float, steps: int) -> int:
        """How many batches are there afterwards: those that were, and those acknowledged, at least."""
        by_delay = self.chance.random() < 0.5
        delay = self.chance.uniform(0, seconds) if by_delay else None
        end, acknowledged = self._round(filling, delay, None if by_delay else self.chance.randint(1, steps))
        if end == 0:  # it was faster than the one that was measured
            return BATCHES
        assert end == -signal.SIGKILL
        with filling.place.open() as vault:
            with vault._connection.database.writing():
                pass  # a server may still be at what the dead one sent last: then its lock is waited for
            batches, problems = filling.batches_in(vault, at_least=max(there, acknowledged.count(BATCH)))
        none_of(problems)
        self.kills += 1
        self.left[batches] += 1
        return batches

    def _round(self, filling: Filling, delay: float | None, die_at: int | None) -> tuple[int, list[Any]]:
        """How the child ended, and what it has acknowledged."""
        lines = self.folder / "acknowledged"
        lines.unlink(missing_ok=True)
        child = self.nursery.start(
            "tests.vault.crash_batches",
            "work",
            url=filling.place.url,
            keys=str(filling.place.keys),
            file=str(filling.file),
            ids=filling.ids,
            acknowledgements=str(lines),
            die_at=die_at,
        )
        return end_of(self.nursery, child, delay), acknowledged_in(lines)
