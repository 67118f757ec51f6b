"""The state of the service and its vault, in words."""

from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from armnesia.core.messages import counted
from armnesia.service.answer_types import SourcesDue
from armnesia.service.api.health import health_facts
from armnesia.service.pages.routing import PageRoute, needs
from armnesia.service.pages.templating import rendered, time_words
from armnesia.service.problems import KINDS
from armnesia.service.running import service_of
from armnesia.vault import Role

router = APIRouter(route_class=PageRoute)


class Finding(NamedTuple):
    """One thing that was looked at: whether it is well, and a sentence."""

    what: str
    state: str
    """`good`, `waiting` or `bad`."""
    sentence: str


@router.get("/page/health", **needs(Role.READER))
async def show_health(request: Request) -> Response:
    """What `GET /health` says, in words."""
    facts = await health_facts(service_of(request))
    findings = [
        _database(facts),
        _keys(facts),
        *_sources(facts["sources"]),
        _verified(facts),
        _queue(facts),
    ]
    return rendered(request, "health.html", {"findings": findings, "status": facts["status"]})


def _database(facts: dict[str, Any]) -> Finding:
    if facts["database"] == "ok":
        entries = counted(facts["ledger_length"], "entry", "entries")
        return Finding("Database", "good", f"It answers, and its ledger has {entries}.")
    return Finding("Database", "bad", KINDS[facts["database"]].sentence)


def _keys(facts: dict[str, Any]) -> Finding:
    if facts["keys"] == "ok":
        return Finding("Keys", "good", "They open the vault, and its seal is unbroken.")
    if facts["keys"] == "unreadable":
        sentence = "Their file is gone, or lacks some: copy it from your backup before this service ends."
        return Finding("Keys", "bad", sentence)
    return Finding("Keys", "bad", "They could not be checked, because the vault cannot be read.")


def _sources(due: SourcesDue | None) -> list[Finding]:
    """What is due at the sources of an external vault."""
    if due is None:
        return []
    number = counted(due["erasures_due"], "source")
    if due["erasures_due"] and not due["may_erase"]:
        sentence = (
            f"Rows of forgotten people may still lie at {number}, where this vault may not erase them: erase"
            " them there by other means."
        )
        return [Finding("Sources", "waiting", sentence)]
    if due["erasures_due"]:
        sentence = f"Rows of forgotten people may still lie at {number}: run armnesia erase --purge."
        return [Finding("Sources", "waiting", sentence)]
    if due["purges_due"]:
        sources = counted(due["purges_due"], "source")
        sentence = (
            f"Files of {sources} still hold erased rows: run armnesia erase --purge when their retention is"
            " over."
        )
        return [Finding("Sources", "waiting", sentence)]
    return [Finding("Sources", "good", "No rows of forgotten people are left to erase at a source.")]


def _verified(facts: dict[str, Any]) -> Finding:
    found = facts["verified"]
    if found is None:
        sentence = "This service has not verified the vault yet; armnesia verify does so at once."
        return Finding("Verification", "waiting", sentence)
    if found["holds"]:
        return Finding(
            "Verification", "good", f"The last one, of {time_words(found['time'])}, found no problem."
        )
    if found["failure"] is not None:
        sentence = (
            f"The last one, of {time_words(found['time'])}, could not be finished: armnesia verify says why."
        )
        return Finding("Verification", "bad", sentence)
    problems = counted(found["problems"], "problem")
    sentence = f"The last one, of {time_words(found['time'])}, found {problems}: armnesia verify names them."
    return Finding("Verification", "bad", sentence)


def _queue(facts: dict[str, Any]) -> Finding:
    waiting = facts["waiting"]
    if waiting < 100:
        return Finding(
            "Queue", "good", f"{counted(waiting, 'request waits', 'requests wait')} to be written."
        )
    return Finding("Queue", "waiting", f"{waiting:,} requests wait to be written; new ones take longer.")
