"""Somebody who may write the database, without keys, puts old decisions back, or swaps them."""

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Configuration, Vault
from tests.red_team.attacks import Trial, Verdict

PAGES, PEOPLE, ROWS = 150, 30, 1500
_COLUMNS = ("key", "statistics", "served", "served_by", "seal")


def decision_rows(trials: int, seed: int) -> Iterator[Trial]:
    """Change a few decisions or nodes of a vault, and look what is served, forgotten and verified."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder, draw)
        for _ in range(trials):
            copy = folder / "copy"
            shutil.copytree(folder / "now", copy)
            what, pages = _change(folder, copy / "vault.db", draw)
            yield _verdict(copy, what, pages)
            shutil.rmtree(copy)


def _make(folder: Path, draw: random.Random) -> None:
    log = {
        "action": [draw.choice("ABC") for _ in range(ROWS)],
        "reward": [draw.randint(0, 1) for _ in range(ROWS)],
        "user": [f"user-{draw.randrange(PEOPLE)}" for _ in range(ROWS)],
        "page": [draw.randrange(PAGES) for _ in range(ROWS)],
    }
    now = folder / "now"
    now.mkdir()
    configuration = Configuration(actions=("A", "B", "C"), by=("page",))
    with Vault.create(f"sqlite:///{now}/vault.db", configuration) as vault:
        vault.ingest(log, user="user")
        vault.back_up(folder / "yesterday.db")
        vault.forget(users=["user-1", "user-2", "user-3"])


def _rows(path: Path, table: str) -> dict[int, tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0]: row for row in connection.execute(f"SELECT * FROM {table}")}


def _change(folder: Path, path: Path, draw: random.Random) -> tuple[str, list[str]]:
    """Do one thing; what it was, and the keys of the decisions that it was about."""
    old, new = (_rows(where, "decision") for where in (folder / "yesterday.db", path))
    differing = sorted(number for number in new if old[number] != new[number])
    chosen = draw.sample(differing, draw.randint(1, 3))
    what = draw.choice(["old rows", "old rows and nodes", "swapped statistics", "one column", "a copied row"])
    with closing(sqlite3.connect(path)) as connection, connection:
        if what == "swapped statistics":
            chosen = draw.sample(sorted(new), 2)
            first, second = (new[number] for number in chosen)
            while first[2:5] == second[2:5]:
                chosen = draw.sample(sorted(new), 2)
                first, second = (new[number] for number in chosen)
            for row, number in ((second, chosen[0]), (first, chosen[1])):
                connection.execute(
                    "UPDATE decision SET statistics = ?, served = ?, served_by = ? WHERE number = ?",
                    (*row[2:5], number),
                )
        elif what == "one column":
            place = draw.randrange(1, len(_COLUMNS))  # not the key, which is unique
            chosen = [number for number in chosen if old[number][place + 1] != new[number][place + 1]]
            if not chosen:
                place, chosen = 1, [differing[0]]
            for number in chosen:
                connection.execute(
                    f"UPDATE decision SET {_COLUMNS[place]} = ? WHERE number = ?",
                    (old[number][place + 1], number),
                )
        elif what == "a copied row":
            row = new[chosen[0]]
            chosen = [len(new) + 1]
            connection.execute(
                "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?)", (chosen[0], '["copied"]', *row[2:])
            )
        else:
            for number in chosen:
                connection.execute("DELETE FROM decision WHERE number = ?", (number,))
                connection.execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?)", old[number])
        if what == "old rows and nodes":
            for node in _rows(folder / "yesterday.db", "decision_node").values():
                connection.execute("UPDATE decision_node SET digests = ? WHERE node = ?", (node[1], node[0]))
    pages = ["copied"] if what == "a copied row" else [str(new[number][1])[2:-2] for number in chosen]
    return what, pages


def _verdict(copy: Path, what: str, pages: list[str]) -> Trial:
    url = f"sqlite:///{copy}/vault.db"
    with Vault.open(url) as vault:
        for page in pages:
            try:
                vault.decide(where={"page": page})
            except ArmnesiaError:
                continue
            return Trial(what, Verdict.MISSED, f"page {page} was decided")
        try:
            vault.decisions()
            return Trial(what, Verdict.MISSED, "all decisions were served")
        except ArmnesiaError as error:
            refused = str(error)
        problems = vault.verify().problems
    if not any(problem.startswith("decisions:") for problem in problems):
        return Trial(what, Verdict.MISSED, f"verify found {problems}")
    return Trial(what, Verdict.REFUSED, refused)
