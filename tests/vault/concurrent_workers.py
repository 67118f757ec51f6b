"""Many processes at work on one vault, each noting what it did and saw; and a judge of their notes.

What is sent and who is forgotten is drawn from pools that all share: so the same batch is sent by several at
once, and several ask to forget the same person at once.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from armnesia.vault import Checkpoint, Vault
from armnesia.vault.ledger.merkle import Frontier
from tests.vault.plain_vault import PlainVault, Record, columns_of, observed
from tests.vault.raw_vaults import values

ACTIONS = ("A", "B", "C")
WEIGHTS = {"ingest": 30, "forget": 25, "decide": 15, "preview": 12, "status": 12, "verify": 5, "rotate": 1}
PEOPLE = 500
Note: TypeAlias = dict[str, Any]


def person(chance: random.Random) -> str:
    """Someone; some are met often, so that processes get in each other's way."""
    return f"person-{int(PEOPLE * chance.random() ** 2)}"


def batch(number: int) -> list[Record]:
    """The batch of this number, whoever sends it."""
    chance = random.Random(number)
    return [
        Record(
            chance.choice(ACTIONS),
            chance.randrange(5),
            person(chance),
            f"{number}-{row}",
        )
        for row in range(chance.randint(3, 12))
    ]


def work(url: str, keys: str, seed: int, operations: int, batches: int, notes: str) -> None:
    """What one of the processes does."""
    chance = random.Random(seed)
    with Vault.open(url, keys=keys, timeout=60) as vault, open(notes, "w", encoding="utf-8") as file:
        for _ in range(operations):
            (kind,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
            note = {"kind": kind, **_operate(vault, kind, chance, batches)}
            file.write(json.dumps(note) + "\n")


def _operate(vault: Vault, kind: str, chance: random.Random, batches: int) -> Note:  # noqa: PLR0911
    names = sorted({person(chance) for _ in range(chance.choice([1, 1, 3]))})
    match kind:
        case "ingest":
            number = chance.randrange(batches)
            done = vault.ingest(columns_of(batch(number)), user="user", id="id")
            return {"batch": number, "added": done.added, "rows": done.rows}
        case "forget":
            answer = vault.forget(users=names)
            return {
                "names": answer.names.names,
                "entry": answer.entry,
                "repeated": answer.repeated,
                "before": [[each.entry, each.names] for each in answer.forgotten_before],
                "records": answer.records,
            }
        case "decide":
            served = vault.decide()
            return {"action": served.action, "by": served.by, "head": str(served.head)}
        case "preview":
            would = vault.preview(users=names)
            return {"repeated": would.repeated, "records": sum(would.counts.values())}
        case "status":
            status = vault.status(scores=True)
            assert status.scores is not None
            return {
                "records": status.records,
                "counts": [score.count for score in status.scores],
                "suppressed": status.suppressed,
                "head": str(status.head),
            }
        case "verify":
            return {"problems": vault.verify().problems}
        case _:
            return {"version": vault.rotate_signing_key().version}


def notes_of(files: list[Path]) -> list[Note]:
    """What all of them noted."""
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@dataclass
class Judge:
    """Whether the notes and the vault could have come of the same operations one after another."""

    vault: Vault
    notes: list[Note]

    def problems(self) -> list[str]:
        return [
            *(f"verify: {problem}" for problem in self.vault.verify().problems),
            *self._against_serial_replay(),
            *self._certified_once(),
            *self._seen_by_readers(),
        ]

    def _of(self, kind: str) -> list[Note]:
        return [note for note in self.notes if note["kind"] == kind]

    def _deletions(self) -> dict[int, Note]:
        """The requests that were answered for the first time, by their entry in the ledger."""
        first = [note for note in self._of("forget") if not note["repeated"]]
        return {note["entry"]: note for note in sorted(first, key=lambda note: note["entry"])}

    def _against_serial_replay(self) -> list[str]:
        replay = PlainVault(ACTIONS)
        for number in sorted({note["batch"] for note in self._of("ingest")}):
            replay.ingest(batch(number))
        for deletion in self._deletions().values():
            replay.forget(("users", tuple(deletion["names"])))
        found, expected = observed(self.vault), replay.expected()
        problems = [
            f"{name}: {getattr(found, name)}, a serial replay gives {getattr(expected, name)}"
            for name in ("arms", "rows", "suppressed", "requests")
            if getattr(found, name) != getattr(expected, name)
        ]
        added = sum(note["added"] for note in self._of("ingest"))
        deleted = sum(note["records"] for note in self._of("forget"))
        if added - deleted != len(expected.rows):  # type: ignore[arg-type]
            problems.append(f"{added} records were added and {deleted} deleted; {expected.rows} are held")
        return problems

    def _certified_once(self) -> list[str]:
        problems = []
        first = [note["entry"] for note in self._of("forget") if not note["repeated"]]
        in_ledger = {entry.number for entry in self.vault.ledger().entries if entry.kind == "forget"}
        if set(first) != in_ledger or len(first) != len(in_ledger):
            problems.append(f"entries {sorted(in_ledger)} are in the ledger, {sorted(first)} were answered")
        deletions = self._deletions()
        for note in self._of("forget"):
            for entry, names in note["before"]:
                before = deletions.get(entry, {"names": []})
                if not set(names) <= set(before["names"]):
                    problems.append(f"a request was answered with entry {entry}, of another")
        return problems

    def _seen_by_readers(self) -> list[str]:
        """What readers saw must be the state after some entry of the ledger, and whole."""
        entries, frontier, heads = self.vault.ledger().entries, Frontier(), dict[str, int]()
        for (leaf,) in values(self.vault, "SELECT leaf FROM entry ORDER BY number"):
            frontier = frontier.append(leaf)
            heads[str(Checkpoint("", frontier.size, frontier.root))] = frontier.size
        deletions = self._deletions()
        problems = [problem for note in self._of("verify") for problem in note["problems"]]
        for note in (*self._of("decide"), *self._of("status")):
            if note["head"] not in heads:
                problems.append(f"a reader saw the head {note['head']}, which is not in the ledger")
                continue
            seen = heads[note["head"]]
            if note["kind"] == "decide" and note["by"] == "release":
                released = [entry.facts["released"] for entry in entries[:seen] if entry.kind == "forget"]
                if released[-1:] != [note["action"]]:
                    problems.append(f"a reader at entry {seen} saw an arm that was not released there")
            if note["kind"] == "status":
                gone = {name for number, d in deletions.items() if number <= seen for name in d["names"]}
                if note["suppressed"] != len(gone):
                    problems.append(f"a reader at entry {seen} saw {note['suppressed']} people suppressed")
                if note["records"] != sum(note["counts"]):
                    problems.append(f"a reader at entry {seen} saw counts that do not add up")
        for note in self._of("preview"):
            if note["repeated"] and note["records"]:
                problems.append("a reader saw records of people who were forgotten")
        return problems
