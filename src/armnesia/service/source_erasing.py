"""Erasing rows at the sources of an external vault: what is due there, and the erasures of this service.

An erasure reads and writes whole sources, which can take minutes. So it has a thread and a connection of its
own: the writer of the vault waits for its short transactions only.
"""

import logging
import threading
from collections.abc import Callable

from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.service.answer_types import ErasingRun, SourcesDue
from armnesia.service.problems import Problem, problem_of
from armnesia.service.structured_log import described, log
from armnesia.vault import EXTERNAL, Vault
from armnesia.vault.keys.canonical_json import utc_now


class SourceErasing:
    """The erasures of one service: one at a time, in a thread, with a connection of its own."""

    def __init__(self, open_vault: Callable[[], Vault]) -> None:
        self._open = open_vault
        self._thread: threading.Thread | None = None
        self.last: ErasingRun | None = None

    def begin(self, *, purge: bool) -> ErasingRun:
        """Begin an erasure for everybody who is forgotten; refused while there is one."""
        if self.last is not None and self.last["state"] == "running":
            raise Problem("erasure-running")
        run: ErasingRun = {
            "begun": utc_now(),
            "purge": purge,
            "state": "running",
            "ended": None,
            "problem": None,
            "source": None,
        }
        self.last = run
        self._thread = threading.Thread(target=self._erase, args=(run,), name="source-eraser", daemon=True)
        self._thread.start()
        return run

    def end(self, seconds: float) -> bool:
        """Wait for the erasure that is under way; whether it ended within so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _erase(self, run: ErasingRun) -> None:
        try:
            with self._open() as vault:
                vault.erase_at_sources(purge=run["purge"])
            found = None
        except Exception as error:
            found = _problem_of(error)
            log("erasure at the sources failed", {"problem": found.kind, **described(error)}, logging.ERROR)
        if found is not None:
            run["problem"], run["source"] = found.kind, found.source
        run["ended"], run["state"] = utc_now(), "done" if found is None else "failed"


def _problem_of(error: Exception) -> Problem:
    """What is told of an erasure that failed: its errors are about sources, and not about a request."""
    if isinstance(error, InvalidInputError | UnsupportedError | OSError):
        return Problem("not-erasable")
    return problem_of(error)


def sources_due(vault: Vault) -> SourcesDue | None:
    """What is left to do at the sources of an external vault; None of a vault that holds its rows."""
    if vault.configuration.mode != EXTERNAL:
        return None
    found = vault.source_erasures()
    return {
        "may_erase": found.permitted,
        "erasures_due": sum(each.to_erase for each in found.sources),
        "purges_due": sum(each.to_purge for each in found.sources),
    }
