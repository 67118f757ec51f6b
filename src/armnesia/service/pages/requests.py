"""What is to be done: requests of controllers, and what is due at the sources of an external vault."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from armnesia.service.api.erasures import begin_erasure
from armnesia.service.opendsr.desk import COMPLETED, Desk
from armnesia.service.pages.history import newest_first
from armnesia.service.pages.routing import PageRoute, Signed, needs
from armnesia.service.pages.templating import rendered
from armnesia.service.problems import KINDS
from armnesia.service.running import done, service_of
from armnesia.service.source_erasing import sources_due
from armnesia.service.tokens import name_of
from armnesia.vault import Role, SubjectRequest, Token, Vault

router = APIRouter(route_class=PageRoute)
_MOST, _SEARCHED, _MOST_LISTED = 20, 1_000, 200
_OBSTACLES = {
    "similar-name": "The vault holds nothing under a name in this request, but records under a nearly equal"
    " spelling. Ask the controller, by the id of the request, whom it means.",
    "beyond-policy": "The policy of the vault does not allow this request.",
    "invalid-value": "A name in this request is not how this vault names people. Ask the controller, by the"
    " id of the request, whom it means.",
}
_AT_A_SOURCE = ("changed-source", "unreadable-source")
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
    found = await done(service_of(request).worker.read(lambda vault: _facts(vault, visitor.token)))
    erasing = service_of(request).erasing.last
    desk: Desk | None = getattr(request.app.state, "desk", None)
    for each in found["subject_requests"]:
        each["next_try"] = None if desk is None else desk.next_try(each["id"])
    values = {
        **found,
        "opendsr": desk is not None,
        "sees_all": visitor.token.role is Role.ADMIN,
        "jobs": list(visitor.session.jobs),
        "erasing": erasing,
        "erasing_failed": ""
        if erasing is None or erasing["problem"] is None
        else KINDS[erasing["problem"]].sentence,
    }
    return rendered(request, "requests.html", values)


@router.post("/page/requests/erase", **needs(Role.OPERATOR))
async def erase_at_sources(request: Request) -> Response:
    """Begin to erase rows at their sources; pressed again meanwhile, the button does nothing."""
    service = service_of(request)
    if service.erasing.last is None or service.erasing.last["state"] != "running":
        begin_erasure(service, purge=True)
    return RedirectResponse("/page/requests", 303)


def _facts(vault: Vault, token: Token) -> dict[str, Any]:
    """What is in the vault for whoever has this token."""
    own = [
        each
        for each in vault.subject_requests()
        if token.role is Role.ADMIN or each.controller == name_of(token)
    ]
    own.sort(key=lambda each: (each.status in (COMPLETED, "cancelled"), each.due))
    return {
        "subject_requests": [_subject_request(each) for each in own[:_MOST_LISTED]],
        "sources": sources_due(vault),
        "deletions": [each for each in newest_first(vault, _SEARCHED) if each.kind == "forget"][:_MOST],
    }


def _subject_request(request: SubjectRequest) -> dict[str, Any]:
    is_over = request.status not in ("pending", "in_progress")
    return {
        "id": request.id,
        "controller": request.controller,
        "received": request.received,
        "due": request.due,
        "status": _STATUS_WORDS[request.status] if request.sequence is None or is_over else _FORGOTTEN,
        "open": not is_over,
        "obstacle": _OBSTACLES.get(request.obstacle, KINDS[request.obstacle].sentence)
        if request.obstacle
        else "",
        "by_hand": request.obstacle not in _AT_A_SOURCE,
        "entry": request.sequence,
    }
