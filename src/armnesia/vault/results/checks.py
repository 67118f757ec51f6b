"""What verifications found, and the ledger that they read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, overload

from armnesia.core.errors import VaultError
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.ledger import Entry, Head


@dataclass(frozen=True)
class Verification:
    """What verification found: each problem is one sentence that says where; notes are not problems."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    records: int
    entries: int
    certificates: int

    @classmethod
    def of_damage(cls, damage: VaultError, problems: Sequence[str] = (), notes: Sequence[str] = ()) -> Self:
        """Of a vault that cannot be opened, or read to its end; `problems` are those found until then."""
        found = dict.fromkeys([f"database: {damage}", *problems])
        return cls(tuple(found), (*notes, "not everything was checked, and nothing was counted"), 0, 0, 0)

    @property
    def holds(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The keys `holds`, `problems`, `notes`, `records`, `entries` and `certificates`."""
        lists = {"problems": list(self.problems), "notes": list(self.notes)}
        return {"holds": self.holds, **vars(self), **lists}


@dataclass(frozen=True)
class LedgerCheck:
    """The ledger compared with a head that was kept elsewhere."""

    problems: tuple[str, ...]
    checked: Head

    @property
    def holds(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The keys `holds`, `problems` and `checked`."""
        return {"holds": self.holds, "problems": list(self.problems), "checked": str(self.checked)}


@dataclass(frozen=True)
class LedgerEntries(Sequence[Entry]):
    """The entries of the ledger, from the first; each is made of its text when it is asked for."""

    texts: tuple[str, ...]

    @property
    def head(self) -> Head:
        """The head of the ledger: that of the last entry."""
        return self[-1].head

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> "LedgerEntries": ...
    def __getitem__(self, place: int | slice) -> "Entry | LedgerEntries":
        if isinstance(place, slice):
            return LedgerEntries(self.texts[place])
        return Entry.from_text(self.texts[place])

    def save(self, path: str | Path) -> None:
        """Write the entries to a new file, one per line, as they are hashed; `LedgerCopy.read` reads it."""
        with (
            private_files.atomic_write(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.writelines(f"{text}\n" for text in self.texts)

    def to_dict(self) -> dict[str, Any]:
        """The keys `head` and `entries`."""
        return {"head": str(self.head), "entries": [dict(entry.fields) for entry in self]}
