"""Kills a process in the middle of its work on a vault, again and again, and looks at what is left.

The child does a list of operations and acknowledges each, on the disk, when it is finished. It is killed by
SIGKILL: after a random delay, or at a random step of its own, which are the places just before a statement,
a commit, the line of the journal and the writing of keys.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from armnesia.vault import Forgotten, Vault
from armnesia.vault.db.postgres import PostgresDatabase, PostgresSession
from armnesia.vault.db.sqlite import SqliteDatabase, SqliteSession
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.journal import Journal
from tests.databases import Place
from tests.vault.forked_children import Nursery
from tests.vault.plain_vault import PlainVault, Record, Request, columns_of, observed, write_table

Operation: TypeAlias = list[Any]
"""["ingest", number of the batch, source, table], ["replace", number of the corrections, columns],
["users" or "records", names], ["add_arm" or "retire_arm", arm] or ["rotate"]."""

NEVER = 0
ACTIONS, NEW_ARM = ("A", "B", "C"), "D"


def perform(vault: Vault, operation: Operation) -> list[Any]:
    """Do one operation; what is acknowledged of it."""
    match operation:
        case ["ingest", _, source, table]:
            done = vault.ingest(source, user="user", id="id", table=table)
            return [done.added, done.already_there, done.suppressed]
        case ["replace", _, columns]:
            done = vault.ingest(columns, user="user", id="id", replace=True)
            return [done.added, done.replaced, done.already_there, done.suppressed]
        case ["add_arm" | "retire_arm" as what, arm]:
            return [getattr(vault, what)(arm).action]
        case ["rotate"]:
            return [vault.rotate_signing_key().version]
    kind, names = operation
    forgotten = forget(vault, (kind, names))
    return [forgotten.entry, [[each.entry, each.names] for each in forgotten.forgotten_before]]


def forget(vault: Vault, request: Request) -> Forgotten:
    """Forget users or records."""
    kind, names = request
    return vault.forget(users=names) if kind == "users" else vault.forget(records=names)


def work(
    url: str, keys: str, operations: list[Operation], acknowledgements: str, die_at: int | None = None
) -> None:
    """What the child does; with `die_at` it counts its steps and dies at that one."""
    steps = [0]
    if die_at is not None:
        count_steps(steps, die_at)
    with Vault.open(url, keys=keys) as vault, open(acknowledgements, "w", encoding="utf-8") as file:
        for operation in operations:
            acknowledge(file, perform(vault, operation))
        acknowledge(file, {"steps": steps[0]})


def acknowledge(file: Any, result: Any) -> None:
    """Write it down in a way that outlives the process."""
    file.write(json.dumps(result) + "\n")
    file.flush()
    os.fsync(file.fileno())


def count_steps(steps: list[int], die_at: int) -> None:
    """Count the steps from now on, in this process."""

    def step() -> None:
        steps[0] += 1
        if steps[0] == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    for session in (SqliteSession, PostgresSession):
        for name in ("query", "execute", "load"):
            _before(session, name, step)
        one_by_one(session, step)
    for database in (SqliteDatabase, PostgresDatabase):
        _before_commit(database, step)
    _before(Journal, "catch_up", step)
    _before(private_files, "write", step)


def _before(owner: Any, name: str, step: Callable[[], None]) -> None:
    original = getattr(owner, name)

    def stepping(*arguments: Any, **options: Any) -> Any:
        step()
        return original(*arguments, **options)

    setattr(owner, name, stepping)


def one_by_one(session: Any, step: Callable[[], None]) -> None:
    """Let statements that are sent together be steps of their own."""
    together = session.execute_together

    def apart(self: Any, statements: Iterable[Any]) -> None:
        for statement in statements:
            step()
            together(self, [statement])

    session.execute_together = apart


def _before_commit(database: Any, step: Callable[[], None]) -> None:
    original = database.writing

    @contextmanager
    def stepping(self: Any) -> Iterator[Any]:
        with original(self) as session:
            yield session
            step()

    database.writing = stepping


def request_of(operation: Operation) -> Request | None:
    """The request, if the operation is one to forget."""
    kind = operation[0]
    return (kind, tuple(sorted(operation[1]))) if kind in ("users", "records") else None


def half_done(vault: Vault, before: PlainVault, after: PlainVault) -> list[str]:
    """What is wrong with a vault that must be as it was before an operation, or as after it, as a whole."""
    problems = [f"verify: {problem}" for problem in vault.verify().problems]
    found = observed(vault)
    if found not in (before.expected(), after.expected()):
        for name, is_now, was, would_be in zip(
            found._fields, found, before.expected(), after.expected(), strict=True
        ):
            problems.append(f"{name}: {is_now}, which was {was} and would be {would_be} after the operation")
    return problems


def not_once(vault: Vault, acknowledged: dict[tuple[str, str], int]) -> list[str]:
    """What is wrong with names that were forgotten, each by an entry, which must stay that one."""
    problems, size = [], vault.head.size
    for (kind, name), number in acknowledged.items():
        again = forget(vault, (kind, (name,)))
        if not again.repeated or again.entry != number:
            problems.append(f"entry {number}: the same request is not answered by it again")
        elif again.certificate is None or again.certificate.verify(vault.public_key()):
            problems.append(f"entry {number}: its certificate does not verify")
    if vault.head.size != size:
        problems.append("ledger: asking for what was answered has made it longer")
    return problems


def end_of(nursery: Nursery, child: int, delay: float | None) -> int:
    """How a child ended, which is killed after the delay, if there is one."""
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)  # it is not waited for yet, so the number is still its own
    return nursery.wait(child)


def acknowledged_in(file: Path) -> list[Any]:
    """What a child has acknowledged; a line that it was killed in is left out."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def none_of(problems: list[str]) -> None:
    """Fail if there are problems."""
    if problems:
        raise AssertionError("\n".join(problems))


@dataclass
class Crashes:
    """One vault, its model, and the kills it has lived through."""

    place: Place
    model: PlainVault
    nursery: Nursery
    folder: Path
    chance: random.Random
    rows: int = 60
    most_batches: int = 10
    kills: int = 0
    killed_in: dict[str, int] = field(default_factory=dict)
    not_done: int = 0
    done_unacknowledged: int = 0
    acknowledged: dict[tuple[str, str], int] = field(default_factory=dict)
    """The entry that forgot each name first; nobody is readmitted."""
    batches: list[list[Record]] = field(default_factory=list)
    corrections: list[list[Record]] = field(default_factory=list)
    seconds: float = 0.0
    steps: int = 0

    def calibrate(self) -> None:
        """One round without a kill: how long it takes, and how many steps it has.

        It begins with rows: before, an external vault forgets nobody.
        """
        operations = sorted(self._operations(), key=lambda operation: operation[0] != "ingest")
        started = time.perf_counter()
        end, acknowledged = self._round(operations, None, NEVER)
        self.seconds = time.perf_counter() - started
        assert end == 0
        self.steps = acknowledged[-1]["steps"]
        self._follow(operations, acknowledged[:-1])

    def kill_once(self) -> None:
        """Rounds of work until one is killed; then everything is looked at."""
        while True:
            operations = self._operations()
            by_delay = self.chance.random() < 0.5
            delay = self.chance.uniform(0, self.seconds) if by_delay else None
            die_at = None if by_delay else self.chance.randint(1, self.steps)
            end, acknowledged = self._round(operations, delay, die_at)
            if end == -signal.SIGKILL:
                break
            assert end == 0
            self._follow(operations, acknowledged[:-1])
        self._look_at(operations, acknowledged)

    def kill_in(self, make: Callable[[], Operation], times: int) -> None:
        """Kill so many processes that do one operation, which is made anew each time, at a step of theirs."""
        steps = 0
        while times:
            operations = [make()]
            end, acknowledged = self._round(
                operations, None, self.chance.randint(1, steps) if steps else NEVER
            )
            if end == -signal.SIGKILL:
                self._look_at(operations, acknowledged)
                times -= 1
                continue
            assert end == 0
            steps = acknowledged[-1]["steps"]
            self._follow(operations, acknowledged[:-1])

    def _look_at(self, operations: list[Operation], acknowledged: list[Any]) -> None:
        """What a killed process has left."""
        self.kills += 1
        self._follow(operations, acknowledged[: len(operations)])
        with self.place.open() as vault:
            with vault.database.writing():
                pass  # a server may still be at what the dead one sent last: then its lock is waited for
            if len(acknowledged) < len(operations):
                self._finish(vault, operations[len(acknowledged)])
            none_of(half_done(vault, self.model, self.model))
            none_of(not_once(vault, {key: self.acknowledged[key] for key in list(self.acknowledged)[-4:]}))

    def check_all(self) -> None:
        """Every deletion that was ever acknowledged."""
        with self.place.open() as vault:
            none_of(not_once(vault, self.acknowledged))
            none_of(half_done(vault, self.model, self.model))

    def _finish(self, vault: Vault, operation: Operation) -> None:
        """Look at what a kill has left of an operation, and do it again."""
        after = self.model.copy()
        self._in_model(after, operation)
        none_of(half_done(vault, self.model, after))
        was_done = observed(vault) == after.expected()
        self.killed_in[operation[0]] = self.killed_in.get(operation[0], 0) + 1
        self.done_unacknowledged += was_done
        self.not_done += not was_done
        if (was_done and operation[0].endswith("_arm")) or (
            was_done and operation[0].startswith("rotate")
        ):  # which is refused a second time
            self.model = after
        elif was_done and operation[0] == "ingest" and not self.model.managed:
            self.model = after
            assert sum(perform(vault, operation)) == 0  # the source has nothing new
        else:
            self._follow([operation], [perform(vault, operation)])

    def _round(
        self, operations: list[Operation], delay: float | None, die_at: int | None
    ) -> tuple[int, list[Any]]:
        """How the child ended, and what it has acknowledged."""
        url, keys, file = self.place.url, str(self.place.keys), self.folder / "acknowledged"
        file.unlink(missing_ok=True)
        work = {"url": url, "keys": keys, "operations": operations, "acknowledgements": str(file)}
        child = self.nursery.start("tests.vault.crash_driver", "work", **work, die_at=die_at)
        return end_of(self.nursery, child, delay), acknowledged_in(file)

    def _follow(self, operations: list[Operation], acknowledged: list[Any]) -> None:
        """Do in the model what was acknowledged, and compare."""
        for operation, result in zip(operations, acknowledged, strict=False):
            request = request_of(operation)
            told = self._in_model(self.model, operation)
            if request is not None:
                kind, names = request
                before = {name: entry for entry, some in result[1] for name in some}
                for name in names:
                    assert before.get(name, result[0]) == self.model.answered[kind, name]
                    first = self.acknowledged.setdefault((kind, name), before.get(name, result[0]))
                    assert first == self.model.answered[kind, name]
            elif operation[0] == "ingest" and not self.model.managed:
                assert result[0] == told[0]  # what is kept out is counted in all sources
            elif operation[0] in ("ingest", "replace"):
                assert sum(result) == sum(told)

    def _ingest_in_model(self, model: PlainVault, number: int) -> tuple[int, int, int]:
        if model.managed:
            return model.ingest(self.batches[number])
        if number in model.counted:  # nothing is new
            return 0, 0, 0
        model.counted.add(number)
        return model.ingest(self.batches[number], f"batch_{number}")

    def _in_model(self, model: PlainVault, operation: Operation) -> Any:
        request = request_of(operation)
        if request is not None:
            return model.forget(request)
        if operation[0] == "ingest":
            return self._ingest_in_model(model, operation[1])
        if operation[0] == "replace":
            return model.correct(self.corrections[operation[1]])
        if operation[0].endswith("_arm"):
            return model.change_arm(*operation)
        return model.note("signing_key")

    def _operations(self) -> list[Operation]:
        """What the next child has to do: in random order, on random people."""
        people = [f"person-{self.chance.randrange(200)}" for _ in range(4)]
        held = [record.id for record in self.model.records.values()] or ["nothing"]
        operations: list[Operation] = [
            self._ingest(),
            self._ingest(),
            ["users", [people[0]]],
            ["users", sorted(set(people[1:]))],
            ["records", sorted(set(self.chance.choices(held, k=3)))],
        ]
        if self.model.managed:
            operations.append(self.correction())
        if self.chance.random() < 0.5:
            operations.append(self.change_of_arms())
        if self.chance.random() < 0.2:
            operations.append(["rotate"])
        self.chance.shuffle(operations)
        return operations

    def change_of_arms(self) -> Operation:
        """An arm is added, and retired the next time."""
        offered = NEW_ARM in self.model.actions and NEW_ARM not in self.model.retired
        return ["retire_arm" if offered else "add_arm", NEW_ARM]

    def correction(self) -> Operation:
        """Rows with ids of their own, which are added first, and replaced each time later."""
        rows = [
            Record(
                self.chance.choice(ACTIONS),
                self.chance.randrange(5),
                None if row % 5 == 0 else f"person-{row}",
                f"corrected-{row}",
            )
            for row in self.chance.sample(range(30), 12)
        ]
        self.corrections.append(rows)
        return ["replace", len(self.corrections) - 1, columns_of(rows)]

    def _ingest(self) -> Operation:
        """New records and some that were sent before; or a whole batch that was sent before."""
        if len(self.batches) < self.most_batches:
            self.batches.append(self._new_batch(len(self.batches)))
            number = len(self.batches) - 1
        else:
            number = self.chance.randrange(len(self.batches))
        batch = self.batches[number]
        if self.model.managed:
            return ["ingest", number, columns_of(batch), None]
        log = self.folder / "log.db"
        write_table(log, f"batch_{number}", batch)
        return ["ingest", number, f"sqlite:///{log}", f"batch_{number}"]

    def _new_batch(self, number: int) -> list[Record]:
        new = [
            Record(
                self.chance.choice(ACTIONS),
                self.chance.randrange(5),
                f"person-{self.chance.randrange(200)}",
                f"{number}-{row}",
            )
            for row in range(self.rows)
        ]
        return new + (self.chance.choice(self.batches)[:10] if self.batches else [])
