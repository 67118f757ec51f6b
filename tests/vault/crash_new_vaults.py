"""Kills a process that makes a successor or a copy of a vault, and looks at both places.

The old vault must be as it was; with a successor its ledger may have the entry that names it. A vault at the
new place must be whole; otherwise there is none that opens, and what is left can be removed.
"""

import random
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, UserType, Vault
from tests.databases import Place, fresh_place
from tests.vault.crash_driver import (
    ACTIONS,
    NEVER,
    acknowledge,
    acknowledged_in,
    count_steps,
    end_of,
    half_done,
    none_of,
)
from tests.vault.forked_children import Nursery
from tests.vault.plain_vault import PlainVault, Record, columns_of, observed

RECORDS = [Record("ABC"[row % 3], row % 5, f"person-{row % 40}", f"{row}") for row in range(120)]
FORGOTTEN = tuple(f"person-{number}" for number in range(6))
KINDS = ("successor", "copy")
LAST = 8
"""So many of the last steps are where every second process is killed."""


def make(kind: str, old: Place, new: Place) -> None:
    """Make the new vault of the old one."""
    if kind == "copy":
        with old.open() as vault:
            vault.copy_to(new.url, keys=new.keys)
        return
    configuration = Configuration(actions=("B", "A", "C"), reward_range=(0.0, 2.0))
    Vault.create(new.url, configuration, keys=new.keys, successor_of=old.url, successor_keys=old.keys).close()


def work(kind: str, old: list[str], new: list[str], acknowledgements: str, die_at: int | None = None) -> None:
    """What the child does; with `die_at` it counts its steps and dies at that one."""
    steps = [0]
    if die_at is not None:
        count_steps(steps, die_at)
    with open(acknowledgements, "w", encoding="utf-8") as lines:
        make(kind, *(Place(url, Path(keys)) for url, keys in (old, new)))
        acknowledge(lines, {"steps": steps[0]})


@dataclass
class NewVaultCrashes:
    """One old vault, of which successors and copies are made by processes that are killed."""

    database: str
    nursery: Nursery
    chance: random.Random
    folder: Path
    kills: int = 0
    left: dict[str, int] = field(default_factory=dict)
    """How often a kill has left what."""

    def __post_init__(self) -> None:
        self.old = fresh_place(self.database, self.folder)
        self.model = PlainVault(ACTIONS)
        with self.old.create(Configuration(actions=ACTIONS, user_type=UserType.TEXT)) as vault:
            vault.ingest(columns_of(RECORDS), user="user", id="id")
            self.model.ingest(RECORDS)
            vault.forget(users=FORGOTTEN)
            self.model.forget(("users", FORGOTTEN))
            vault.compact()
            assert vault.finish().erasure == "complete"

    def kill(self, kind: str, times: int) -> None:
        """Kill so many processes that make a new vault of this kind."""
        end, acknowledged = self._round(kind, fresh_place(self.database, self.folder), NEVER)
        assert end == 0
        self._follow(kind)
        steps = acknowledged[-1]["steps"]
        for number in range(times):
            new = fresh_place(self.database, self.folder)
            first = steps - LAST if number % 2 else 1  # the commits are among the last
            end, _ = self._round(kind, new, self.chance.randint(max(first, 1), steps))
            assert end == -signal.SIGKILL
            self.kills += 1
            self._look_at(kind, new)

    def _look_at(self, kind: str, new: Place) -> None:
        named = self._old_is_whole(kind)
        found = self._new_is_whole(kind, new)
        assert named or not found or kind == "copy", "the old vault does not know its successor"
        what = f"{kind}: {'whole' if found else 'none'}{', named' if named else ''}"
        self.left[what] = self.left.get(what, 0) + 1
        if not found:  # as the pages say: remove what is left, and begin again
            for file in (new.keys, new.keys.with_name(new.keys.name + ".head")):
                file.unlink(missing_ok=True)
            if self.database == "sqlite":
                for end in ("", "-wal", "-shm"):
                    Path(f"{new.path}{end}").unlink(missing_ok=True)
            make(kind, self.old, new)
            self._follow(kind)
            assert self._new_is_whole(kind, new)

    def _follow(self, kind: str) -> None:
        if kind == "successor":
            self.model.note("succeeded")

    def _old_is_whole(self, kind: str) -> bool:
        """Whether the old vault names a new successor."""
        after = self.model.copy()
        if kind == "successor":
            after.note("succeeded")
        with self.old.open() as vault:
            with vault._connection.database.writing():
                pass  # a server may still be at what the dead one sent last: then its lock is waited for
            none_of(half_done(vault, self.model, after))
            named = observed(vault) != self.model.expected()
        self.model = after if named else self.model
        return named

    def _new_is_whole(self, kind: str, new: Place) -> bool:
        """Whether there is a new vault; if there is, it must be whole."""
        try:
            vault = new.open()
        except VaultError:
            return False
        with vault:
            if kind == "copy":
                none_of(half_done(vault, self.model, self.model))
                return True
            assert vault.verify().problems == ()
            assert vault.status().suppressed == len(FORGOTTEN)
            done = vault.ingest(columns_of(RECORDS), user="user", id="id")
            assert (done.added, done.suppressed) == (102, 18)
        return True

    def _round(self, kind: str, new: Place, die_at: int) -> tuple[int, list[Any]]:
        """How the child ended, and what it has acknowledged."""
        lines = self.folder / "acknowledged"
        lines.unlink(missing_ok=True)
        old, made = ([place.url, str(place.keys)] for place in (self.old, new))
        child = self.nursery.start(
            "tests.vault.crash_new_vaults",
            "work",
            kind=kind,
            old=old,
            new=made,
            acknowledgements=str(lines),
            die_at=die_at,
        )
        return end_of(self.nursery, child, None), acknowledged_in(lines)
