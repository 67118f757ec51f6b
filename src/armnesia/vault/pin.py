"""The pinned head: how long the ledger was when this machine last saw it, kept beside the keys.

A database that is put back from a backup has a shorter ledger, and people in it who were forgotten since.
The pin notices. It is written after a commit, in place and without waiting for the disk: it may lag behind,
never run ahead, and lagging only means that it notices a little less.
"""

import os
from pathlib import Path

from armnesia.errors import InvalidInputError, VaultError
from armnesia.vault.ledger import Head

_LENGTH = 128


class Pin:
    """The file that holds the head."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, head: Head) -> None:
        """Pin this head."""
        line = str(head).ljust(_LENGTH - 1) + "\n"
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(descriptor, line.encode(), 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise VaultError(
                f"the head could not be pinned in {str(self.path)!r}: {error.strerror}; the vault itself is"
                " changed as asked"
            ) from None

    def read(self) -> Head | None:
        """The pinned head; None where none was pinned yet."""
        try:
            text = self.path.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise VaultError(f"the pinned head {str(self.path)!r} cannot be read: {error.strerror}") from None
        try:
            return Head.parse(text)
        except InvalidInputError as error:
            raise VaultError(f"the pinned head {str(self.path)!r} has been changed: {error}") from None
