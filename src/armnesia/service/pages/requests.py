"""What is to be done: requests of controllers, pending erasures, and certificates to be issued again."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from armnesia.service.api.erasures import begin_erasure
from armnesia.service.opendsr.desk import COMPLETED, Desk
from armnesia.service.opendsr.endpoints import controller_of
from armnesia.service.pages.history import newest_first
from armnesia.service.pages.routing import PageRoute, Signed, needs
from armnesia.service.pages.templating import rendered
from armnesia.service.problems import KINDS
from armnesia.service.running import done, service_of
from armnesia.service.source_erasing import sources_due
from armnesia.vault import Entry, Role, SubjectRequest, Token, Vault
from armnesia.vault.keys.canonical_json import parse_time, time_text
from armnesia.vault.ledger.certificate_text import CERTIFIED

router = APIRouter(route_class=PageRoute)
_MOST, _SEARCHED, _MOST_LISTED = 20, 1_000, 200
_DAYS = timedelta(days=30)
_OBSTACLES = {
    "similar-name": "The vault holds nothing under a name in this request, but records under a nearly equal"
    " spelling. Ask the controller, by the id of the request, whom it means.",
    "beyond-policy": "The policy of the vault does not allow this request.",
    "invalid-value": "A name in this request is not how this vault names people. Ask the controller, by the"
    " id of the request, whom it means.",
}
_AT_A_SOURCE = ("changed-source", "unreadable-source", "unfinished-erasure")
"""Obstacles that an operator who forgets the same people would meet as well."""
_FORGOTTEN = "in progress: forgotten, and not erased everywhere yet"
_STATUS_WORDS = {
    "pending": "waiting: can still be cancelled",
    "in_progress": "in progress",
    "completed": "completed",
    "cancelled": "cancelled by the controller",
}


@router.get("/page/requests", **needs(Role.OPERATOR))
async def show_requests(request: Request, visitor: Signed) -> Response:
    """The queue, the requests of this session, and the last deletions of all."""
    jobs = list(visitor.session.jobs)
    answered = {job.result["sequence"] for _, job in jobs if job.result is not None}
    found = await done(service_of(request).worker.write(lambda vault: _facts(vault, visitor.token, answered)))
    erasing = service_of(request).erasing.last
    desk: Desk | None = getattr(request.app.state, "desk", None)
    for each in found["subject_requests"]:
        each["next_try"] = None if desk is None else desk.next_try(each["id"])
    values = {
        **found,
        "opendsr": desk is not None,
        "sees_all": visitor.token.role is Role.ADMIN,
        "jobs": jobs,
        "erasing": erasing,
        "erasing_failed": ""
        if erasing is None or erasing.problem is None
        else KINDS[erasing.problem].sentence,
    }
    return rendered(request, "requests.html", values)


@router.post("/page/requests/erase", **needs(Role.OPERATOR))
async def erase_at_sources(request: Request) -> Response:
    """Begin to erase rows at their sources; pressed again meanwhile, the button does nothing."""
    service = service_of(request)
    if service.erasing.last is None or service.erasing.last.state != "running":
        begin_erasure(service, purge=True)
    return RedirectResponse("/page/requests", 303)


def _facts(vault: Vault, token: Token, answered: Iterable[int]) -> dict[str, Any]:
    """What is in the vault; `answered` are the ledger entries of the requests of this session."""
    own = [
        each
        for each in vault.subject_requests()
        if token.role is Role.ADMIN or each.controller == controller_of(token)
    ]
    own.sort(key=lambda each: (each.status in (COMPLETED, "cancelled"), each.due))
    last = [each for each in newest_first(vault, _SEARCHED) if each.kind in CERTIFIED][:_MOST]
    pending, reissue = vault.pending_erasures(), vault.certificates_to_reissue()
    return {
        "subject_requests": [_subject_request(each) for each in own[:_MOST_LISTED]],
        "pending": pending,
        "sources": sources_due(vault),
        "pending_due": None if pending.since is None else _due(pending.since),
        "to_reissue": reissue[:_MOST_LISTED],
        "n_to_reissue": len(reissue),
        "deletions": [_deletion(vault, each) for each in last],
        "answered": {
            number: _deletion(vault, vault.ledger(after=number - 1, most=1)[0]) for number in answered
        },
    }


def _due(time: str) -> str:
    """When what was pending at this time has to be done."""
    return time_text(parse_time(time) + _DAYS)


def _subject_request(request: SubjectRequest) -> dict[str, Any]:
    is_over = request.status not in ("pending", "in_progress")
    return {
        "id": request.id,
        "controller": request.controller,
        "received": request.received,
        "due": request.due,
        "status": _STATUS_WORDS[request.status] if request.sequence is None or is_over else _FORGOTTEN,
        "purge_from": "" if is_over else request.purge_from,
        "open": not is_over,
        "obstacle": _OBSTACLES.get(request.obstacle, KINDS[request.obstacle].sentence)
        if request.obstacle
        else "",
        "by_hand": request.obstacle not in _AT_A_SOURCE,
        "sequence": request.sequence,
    }


def _deletion(vault: Vault, entry: Entry) -> dict[str, Any]:
    facts = vault.deletion(entry.sequence)
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "held": entry.kind == "forget",
        "erasure": facts["erasure"],
        "source": facts.get("source"),
        "due": _due(entry.time),
    }
