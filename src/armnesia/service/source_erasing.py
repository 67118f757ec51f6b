"""Erasing rows at the sources of an external vault: what is due there, and the erasures of this service.

An erasure reads and writes whole sources, which can take minutes. So it has a thread and a connection of its
own: the writer of the vault waits for its short transactions only.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.service.answer_types import SourcesDue
from armnesia.service.problems import Problem, problem_of
from armnesia.service.structured_log import described, log
from armnesia.vault import EXTERNAL, Vault
from armnesia.vault.keys.canonical_json import time_text, utc_now
from armnesia.vault.ledger.source_claim import SourceState


@dataclass
class ErasingRun:
    """One erasure at all sources, begun by this service."""

    begun: str
    purge: bool
    state: Literal["running", "done", "failed"] = "running"
    ended: str | None = None
    problem: str | None = None
    """Why it failed, as a kind of problem."""
    source: int | None = None
    """The number of the source that this is about, if it is known."""


class SourceErasing:
    """The erasures of one service: one at a time, in a thread, with a connection of its own."""

    def __init__(self, open_vault: Callable[[], Vault]) -> None:
        self._open = open_vault
        self._thread: threading.Thread | None = None
        self.last: ErasingRun | None = None

    def begin(self, *, purge: bool) -> ErasingRun:
        """Begin an erasure for everybody who is forgotten; refused while there is one."""
        if self.last is not None and self.last.state == "running":
            raise Problem("erasure-running")
        run = self.last = ErasingRun(utc_now(), purge)
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
                vault.erase_at_sources(purge=run.purge)
            found = None
        except Exception as error:
            found = _problem_of(error)
            log("erasure at the sources failed", {"problem": found.kind, **described(error)}, logging.ERROR)
        if found is not None:
            run.problem, run.source = found.kind, found.source
        run.ended, run.state = utc_now(), "done" if found is None else "failed"


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
    waits = [datetime.fromisoformat(each.due) for each in found.sources if each.purge_pending and each.due]
    return {
        "may_erase": found.permitted,
        "erasures_due": found.pending,
        "purges_due": found.purges_pending,
        "purge_from": time_text(max(waits)) if waits else None,
    }


def source_steps(deletion: Mapping[str, Any], *, may_erase: bool) -> dict[str, str | None]:
    """The field `source_steps`: what is left to do at the sources for a deletion; none in a managed vault.

    >>> source_steps({"kind": "forget", "source": "untouched"}, may_erase=True)
    {'source_steps': 'the rows still lie at their source: run armnesia erase'}
    >>> source_steps({"source": "purged"}, may_erase=True), source_steps({}, may_erase=False)
    ({'source_steps': None}, {})
    """
    state = deletion.get("source")
    if state is None:
        return {}
    if state == SourceState.PURGED:
        return {"source_steps": None}
    if state == SourceState.LOGICALLY_DELETED:
        return {"source_steps": "files of the source still hold the rows: run armnesia erase --purge"}
    # Of somebody whose rows were forgotten before, together with others, the vault holds nothing either.
    rows = "rows that are not counted may" if deletion["kind"] == "nothing_held" else "the rows"
    if may_erase:
        return {"source_steps": f"{rows} still lie at their source: run armnesia erase"}
    return {
        "source_steps": f"{rows} still lie at their source, where this vault may not erase them: erase them"
        " there by other means"
    }
