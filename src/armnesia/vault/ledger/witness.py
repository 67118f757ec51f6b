"""A witness: a file elsewhere, or a URL, that gets every checkpoint of the ledger.

Whoever keeps the checkpoints notices that journal and database were put back together. Which witness there
is, and what it has, stands in a file beside the keys. It is told after the journal, as far as that works: a
checkpoint that it missed is made up for by the next one.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     witness = Witness(Path(folder) / "keys.witness")
...     witness.name(f"{folder}/kept.txt")
...     witness.tell(3, lambda: "a signed note")
...     witness.told, Path(folder, "kept.txt").read_text()
(3, 'a signed note')
"""

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import shown
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import read_object

_PATIENCE, _PAUSE = 3.0, 60.0
"""Seconds to wait for an answer, and before another attempt after one that failed."""


@dataclass
class Witness:
    """The witness that this file names, if there is one."""

    path: Path
    _failed: float = field(default=float("-inf"), init=False)

    @classmethod
    def beside(cls, keys: Path) -> "Witness":
        """The witness of the vault with this file of keys."""
        return cls(keys.with_name(keys.name + ".witness"))

    @property
    def to(self) -> str | None:
        """The file or the URL; None if there is none."""
        return self._read()[0]

    @property
    def told(self) -> int:
        """How many entries the last checkpoint had that it got."""
        return self._read()[1]

    def name(self, to: str) -> None:
        """Tell this file or URL from now on; an empty text ends it."""
        scheme = to.partition("://")[0] if "://" in to else ""
        if scheme not in ("", "https", "http"):
            raise InvalidInputError(f"a witness must be a file or an http(s) URL; got {shown(to)}")
        if not to:
            self.path.unlink(missing_ok=True)
            return
        place = to if scheme else str(Path(to).absolute())
        private_files.write(self.path, json.dumps({"to": place, "told": 0}), replace=True)

    def ahead_of(self, size: int, told: int) -> str | None:
        """What it means if the witness had more entries than a ledger of this size; None if it had not."""
        if told <= size:
            return None
        return (
            f"the witness {self.to} has a checkpoint of {told} entries, and the ledger {size}: an older copy"
            " of database and journal was put back together; restore with a newer journal, or, if there is"
            " none, name the witness again (armnesia ledger --witness) and forget whoever was forgotten since"
        )

    def tell(self, size: int, checkpoint: Callable[[], str]) -> None:
        """Send the checkpoint of this size, unless the last attempt failed just before."""
        try:
            to, told = self._read()
            if to is None or told >= size or time.monotonic() - self._failed < _PAUSE:
                return
            if to.startswith(("http://", "https://")):
                request = urllib.request.Request(to, checkpoint().encode(), {"Content-Type": "text/plain"})
                urllib.request.urlopen(request, timeout=_PATIENCE).close()
            else:
                with open(to, "a", encoding="utf-8") as file:
                    file.write(checkpoint())
            private_files.write(self.path, json.dumps({"to": to, "told": size}), replace=True)
        except (OSError, ValueError, VaultError, HTTPException):
            self._failed = time.monotonic()

    def _read(self) -> tuple[str | None, int]:
        if not self.path.exists():
            return None, 0
        document = read_object(private_files.read(self.path), str(self.path))
        if not isinstance(document.get("to"), str) or type(document.get("told")) is not int:
            raise InvalidInputError(f"{self.path} must have to and told; name the witness again")
        return document["to"], document["told"]
