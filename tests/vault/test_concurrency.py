"""Many processes on one vault: the end is that of a serial replay, and readers see whole deletions only.

`make hard-test` runs the long version.
"""

import os
import time
from pathlib import Path

import pytest

from armnesia.vault import Configuration, UserType
from tests.databases import Place, fresh_place
from tests.vault.concurrent_workers import ACTIONS, Judge, Note, batch, notes_of
from tests.vault.forked_children import nursery
from tests.vault.plain_vault import columns_of, vault_columns

PROCESSES, OPERATIONS = (8, 2000) if "ARMNESIA_HARD_TEST" in os.environ else (4, 120)


@pytest.mark.slow
def test_many_processes_come_to_the_end_of_a_serial_replay(
    database: str, place: Place, tmp_path: Path
) -> None:
    place.create(
        Configuration(actions=ACTIONS, user_type=UserType.TEXT, columns=vault_columns(ids=True))
    ).close()
    files = [tmp_path / f"notes-{number}" for number in range(PROCESSES)]
    started = time.perf_counter()
    with nursery("tests.vault.concurrent_workers") as children:
        workers = [
            children.start(
                "tests.vault.concurrent_workers",
                "work",
                url=place.url,
                keys=str(place.keys),
                seed=seed,
                operations=OPERATIONS // PROCESSES,
                batches=OPERATIONS // 4,
                notes=str(file),
            )
            for seed, file in enumerate(files)
        ]
        assert [children.wait(worker) for worker in workers] == [0] * PROCESSES
    notes = notes_of(files)
    assert len(notes) == OPERATIONS
    with place.open() as vault:
        assert Judge(vault, notes).problems() == []
        print(
            f"{database}: {OPERATIONS} operations of {PROCESSES} processes in"
            f" {time.perf_counter() - started:.0f} s; {vault.head.size} entries,"
            f" {vault.status().records} records"
        )


def _notes_and_judge(tmp_path: Path) -> tuple[Judge, list[Note]]:
    """What two processes might have noted, and a vault that agrees."""
    vault = fresh_place("sqlite", tmp_path).create(
        Configuration(actions=ACTIONS, user_type=UserType.TEXT, columns=vault_columns(ids=True))
    )
    person = str(batch(1)[0].user)
    notes: list[Note] = []
    for number in (1, 2):
        done = vault.ingest(columns_of(batch(number)), user="user", id="id")
        notes.append({"kind": "ingest", "batch": number, "added": done.added, "rows": done.rows})
    for _ in range(2):
        answer = vault.forget(users=[person])
        before = [[each.entry, each.names] for each in answer.forgotten_before]
        told = {"entry": answer.entry, "repeated": answer.repeated, "records": answer.records}
        notes.append({"kind": "forget", "names": answer.names.names, "before": before, **told})
    status = vault.status(scores=True)
    counts = [score.count for score in status.scores or ()]
    head = str(vault.head)
    notes.append(
        {"kind": "status", "records": status.records, "counts": counts, "suppressed": 1, "head": head}
    )
    served = vault.decide()
    notes.append({"kind": "decide", "action": served.action, "by": served.by, "head": head})
    notes.append({"kind": "preview", "repeated": True, "records": 0})
    notes.append({"kind": "verify", "problems": []})
    return Judge(vault, notes), notes


def test_the_judge_finds_nothing_wrong_with_true_notes(tmp_path: Path) -> None:
    judge, _ = _notes_and_judge(tmp_path)
    assert judge.problems() == []
    judge.vault.close()


@pytest.mark.parametrize(
    ("kind", "lie", "problem"),
    [
        ("ingest", {"batch": 3}, "a serial replay gives"),
        ("ingest", {"added": 0}, "records were added"),
        ("forget", {"repeated": True}, "were answered"),
        ("forget", {"entry": 7}, "were answered"),
        ("status", {"records": 0}, "do not add up"),
        ("status", {"suppressed": 0}, "people suppressed"),
        ("status", {"head": "2:" + "ab" * 32}, "not in the ledger"),
        ("decide", {"action": "Z", "by": "release"}, "was not released"),
        ("preview", {"records": 2}, "who were forgotten"),
        ("verify", {"problems": ["ledger: cut off"]}, "cut off"),
    ],
)
def test_the_judge_finds_what_cannot_have_happened(
    tmp_path: Path, kind: str, lie: Note, problem: str
) -> None:
    judge, notes = _notes_and_judge(tmp_path)
    next(note for note in notes if note["kind"] == kind).update(lie)
    assert any(problem in found for found in judge.problems())
    judge.vault.close()


def test_the_judge_notices_a_lost_update(tmp_path: Path) -> None:
    judge, _ = _notes_and_judge(tmp_path)
    with judge.vault.database.writing() as session:
        session.execute("DELETE FROM record WHERE identity = (SELECT min(identity) FROM record)")
    found = judge.problems()
    assert any("a serial replay gives" in problem for problem in found)
    assert any(problem.startswith("verify") for problem in found)
    judge.vault.close()
