"""How deleted bytes leave the files of an SQLite vault.

Three things erase deleted bytes: `secure_delete` overwrites what is deleted; copies that SQLite leaves in
the unused space of pages are overwritten in the file (`sqlite_unused_space.py`); a truncating checkpoint
empties the write-ahead log.

The pages to look at are those in the log. The log can disappear or be used again before somebody has looked
at them: by a kill, an error of the disk, or another program that closes the file last. So every transaction
that changes something also changes a mark in the file, its user version, to a number of its own; the mark
says that nothing is left only after all copies are overwritten. Whoever finds another mark, and has not made
it, looks at all pages of the file.
"""

import os
import sqlite3
from dataclasses import dataclass, field

from armnesia.core.randomness import secret_bytes
from armnesia.vault.storage.sqlite_unused_space import SharedFile, pages_with_leftovers

UNKNOWN, CLEAN, _FIRST_OWN_MARK = 0, 2, 1 << 16
"""Marks of a file: any page may have copies of cells in unused space; none has, with its log or without; and
the first of the random marks of single transactions. Files of earlier versions of armnesia have 0 or 1.
"""


@dataclass(eq=False)
class SqliteErasure:
    """What one connection knows of copies of cells in unused space, and how it removes them."""

    connection: sqlite3.Connection
    file: SharedFile
    log_path: str
    leftovers: set[int] | None = None
    """The pages in whose unused space copies of cells are to be overwritten; None: any page."""
    _known: tuple[int, int] | None = field(default=None, init=False)
    """The mark and the data version of which this holds."""

    def is_done(self) -> bool:
        """Whether there is nothing to erase: no page is left to be looked at, and the log is empty."""
        return self._version()[0] == CLEAN and self._log_is_empty()

    def may_overwrite_pages(self) -> bool:
        """Whether a transaction that begins may write over pages in use, by a damaged list of free ones.

        As long as the log is not empty, the list is not looked at.
        """
        return self._log_is_empty() and self.file.names_used_pages_as_free()

    def _log_is_empty(self) -> bool:
        return os.path.getsize(self.log_path) == 0

    def set_own_mark(self) -> None:
        """Say in this transaction that only this connection knows which pages have copies of cells."""
        mark = _FIRST_OWN_MARK + int.from_bytes(secret_bytes(4)) // 4
        self.connection.execute(f"PRAGMA user_version = {mark}")
        assert self._known is not None  # of this transaction
        self._known = (mark, self._known[1])  # nobody else commits meanwhile

    def _version(self) -> tuple[int, int]:
        """The mark, and a number that changes if another connection commits or uses the log again."""
        ((mark,),) = self.connection.execute("PRAGMA user_version").fetchall()
        ((changes,),) = self.connection.execute("PRAGMA data_version").fetchall()
        return mark, changes

    def note_leftovers(self) -> int:
        """Find out which pages have copies of cells, within a write transaction, before it writes.

        Returns the mark of the file.
        """
        version = self._version()
        if version != self._known:
            self.leftovers = set() if version[0] == CLEAN else None
        try:
            if self.leftovers is not None and not self._log_is_empty():
                self.leftovers |= pages_with_leftovers(self.log_path)
        except OSError:
            self.leftovers = None
        self._known = version
        return version[0]

    def leave_nothing(self) -> bool:
        """Leave an empty log and a file without copies; False if somebody else uses them.

        Copies are overwritten while the log is empty. If it still had them, a process that is killed would
        leave a log that puts them back into the file.
        """
        if not self._mark_clean(overwrite=False):
            if not self._truncate_log() or not self._mark_clean(overwrite=True):
                return False
            self.connection.execute("PRAGMA shrink_memory")  # pages in the cache have the copies still
        return self._truncate_log()

    def _truncate_log(self) -> bool:
        ((busy, _, _),) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not busy

    def _mark_clean(self, *, overwrite: bool) -> bool:
        """Mark the file as clean, if it is or can be made so while nobody else writes to it."""
        # The checkpoint puts the mark on the disk; if it is lost before that, all pages are looked at.
        ((durability,),) = self.connection.execute("PRAGMA synchronous").fetchall()
        self.connection.execute("PRAGMA synchronous = NORMAL")
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            is_marked = self.note_leftovers() == CLEAN
            is_clean = self.leftovers == set()
            if not is_clean and overwrite and self._log_is_empty():
                self.file.overwrite_leftovers(self.leftovers)
                is_clean = True
            if is_clean and not is_marked:
                self.connection.execute(f"PRAGMA user_version = {CLEAN}")
            elif is_marked and not is_clean:  # another program has written to the file
                self.set_own_mark()
            self.connection.execute("COMMIT")
            return is_clean
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self.connection.execute(f"PRAGMA synchronous = {durability}")
