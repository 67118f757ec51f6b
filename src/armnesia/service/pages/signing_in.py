"""Signing in with a token, and out."""

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from armnesia.service.pages.routing import (
    COOKIE,
    SIGN_IN,
    PageRoute,
    Signed,
    check_origin,
    field,
    for_anybody,
    form_of,
    needs,
)
from armnesia.service.pages.sessions import LIFETIME, Sessions
from armnesia.service.pages.templating import rendered
from armnesia.service.problems import Problem
from armnesia.service.running import service_of
from armnesia.service.tokens import TOKEN
from armnesia.vault import Role
from armnesia.vault.operations.tokens import token_digest

router = APIRouter(route_class=PageRoute)
last_router = APIRouter(route_class=PageRoute)
"""What no other page answers."""
_FIRST = "/page/decisions"
_NOT_ACCEPTED = "This token is not accepted: it is misspelled, revoked or expired."


@router.get("/", **for_anybody())
async def first_page() -> Response:
    """The page begins with the decisions."""
    return RedirectResponse(_FIRST, 303)


@router.get("/page", **for_anybody())
async def start() -> Response:
    """The page begins with the decisions."""
    return RedirectResponse(_FIRST, 303)


@router.get(SIGN_IN, **for_anybody())
async def show_sign_in(request: Request, ended: bool = False) -> Response:
    """The form for the token."""
    return rendered(request, "sign_in.html", {"ended": ended, "error": ""})


@router.post(SIGN_IN, **for_anybody())
async def sign_in(request: Request) -> Response:
    """Begin a session, if the token is accepted."""
    check_origin(request)
    digest = token_digest(field(await form_of(request), "token"))
    try:
        request.scope[TOKEN] = await service_of(request).guard.check_digest(digest)
    except Problem as problem:
        if problem.kind != "unauthorized":
            raise
        request.scope["armnesia.problem"] = {"problem": problem.kind}
        return rendered(request, "sign_in.html", {"ended": False, "error": _NOT_ACCEPTED}, status=401)
    sessions: Sessions = request.app.state.sessions
    sessions.end(request.cookies.get(COOKIE, ""))
    response = RedirectResponse(_FIRST, 303)
    response.set_cookie(
        COOKIE,
        sessions.begin(digest),
        max_age=int(LIFETIME),
        path="/page",
        secure=request.app.state.secure_cookies,
        httponly=True,
        samesite="strict",
    )
    return response


@router.post("/page/sign-out", **needs(Role.READER))
async def sign_out(request: Request, visitor: Signed) -> Response:
    """End the session."""
    request.app.state.sessions.end(visitor.id)
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(COOKIE, path="/page", httponly=True, samesite="strict")
    return response


@last_router.get("/page/{rest:path}", **needs(Role.READER))
async def nothing_here(rest: str) -> Response:
    """There is no such page."""
    raise Problem("not-found")
