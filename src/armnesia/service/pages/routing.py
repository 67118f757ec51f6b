"""Who sees a page: session and role are checked before a form is read, and the form before it is used."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from armnesia.service.pages.sessions import Session, Sessions
from armnesia.service.pages.templating import is_part, rendered
from armnesia.service.problems import KINDS, Problem, problem_of
from armnesia.service.running import service_of
from armnesia.service.structured_log import described
from armnesia.service.tokens import TOKEN
from armnesia.vault import Role, Token

COOKIE = "armnesia_session"
SIGN_IN = "/page/sign-in"
FORM_BYTES = 1_000_000
"""The largest form. What is larger would be written to a temporary file, and a form may name people."""
_ROLE, _VISITOR, _FORM = "x-role", "armnesia.visitor", "armnesia.form"
_NO_FORM = "The form could not be read; nothing was changed."
_SENTENCES = {
    "forbidden": "The role of your token does not allow this; ask for a token of the role operator.",
    "not-found": "There is no such page.",
    "body-too-large": "The form is larger than this page takes; nothing was changed.",
}


@dataclass(frozen=True)
class Visitor:
    """Somebody who has signed in."""

    id: str
    session: Session
    token: Token

    def may(self, role: Role) -> bool:
        """Whether the role of the token suffices."""
        return self.token.role.includes(role)


class Refusal(Exception):  # noqa: N818 (it is told to a person)
    """A page that is refused, in one sentence."""

    def __init__(self, kind: str, sentence: str, status: int) -> None:
        super().__init__(kind)
        self.kind, self.sentence, self.status = kind, sentence, status


class PageRoute(APIRoute):
    """A page that says which role it needs (`needs`), or that it needs none (`for_anybody`)."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check who asks, then answer; errors are told as pages."""
        answer, extra = super().get_route_handler(), self.openapi_extra or {}
        if _ROLE not in extra:
            raise TypeError(f"{self.path} must say which role it needs")
        role = extra[_ROLE]

        async def answer_if_allowed(request: Request) -> Response:
            try:
                if role is not None:
                    refused = await _enter(request, Role(role))
                    if refused is not None:
                        return refused
                return await answer(request)
            except Exception as error:
                return _told(request, error)
            finally:
                if _FORM in request.scope:
                    await request.scope[_FORM].close()

        return answer_if_allowed


def needs(role: Role) -> dict[str, Any]:
    """What a page needs to be open to a role and those above it."""
    return {"openapi_extra": {_ROLE: str(role)}, "response_model": None}


def for_anybody() -> dict[str, Any]:
    """What a page needs to be open to whoever has not signed in."""
    return {"openapi_extra": {_ROLE: None}, "response_model": None}


async def _enter(request: Request, role: Role) -> Response | None:
    """Let in whoever has a session of a sufficient role; others are sent to sign in."""
    id_ = request.cookies.get(COOKIE, "")
    sessions: Sessions = request.app.state.sessions
    session = sessions.find(id_)
    if session is None:
        return _to_sign_in(request, bool(id_))
    try:
        token = await service_of(request).guard.check_digest(session.token)
    except Problem as problem:
        if problem.kind != "unauthorized":
            raise
        sessions.end(id_)  # its token was revoked, or has expired
        return _to_sign_in(request, True)
    request.scope[TOKEN] = token
    request.scope[_VISITOR] = Visitor(id_, session, token)
    if not token.role.includes(role):
        raise Problem("forbidden")
    if request.method == "POST":
        check_origin(request)
        given = request.headers.get("x-csrf-token") or field(await form_of(request), "csrf")
        if not session.accepts(given):
            sentence = "The form was not made by this session; open the page again. Nothing was changed."
            raise Refusal("forged-form", sentence, 403)
    return None


def check_origin(request: Request) -> None:
    """Refuse a form that another site has sent, where the browser says so."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal("forged-form", "The form was sent by another site; nothing was changed.", 403)


def _to_sign_in(request: Request, had_session: bool) -> Response:
    where = f"{SIGN_IN}?ended=1" if had_session else SIGN_IN
    if is_part(request):
        return Response(status_code=401, headers={"HX-Redirect": where})
    return RedirectResponse(where, 303)


async def form_of(request: Request) -> FormData:
    """The form that was sent; read once, and never to a file."""
    if _FORM not in request.scope:
        if len(await request.body()) > FORM_BYTES:
            raise Problem("body-too-large")
        try:
            request.scope[_FORM] = await request.form(max_files=1, max_fields=50, max_part_size=FORM_BYTES)
        except (ValueError, LookupError):  # in an encoding that is none
            raise Refusal("invalid-request", _NO_FORM, 400) from None
    form: FormData = request.scope[_FORM]
    return form


def field(form: Mapping[str, Any], name: str) -> str:
    """The text of a field; empty if it was not sent, or is a file.

    >>> field({"head": " 12:ab "}, "head"), field({}, "head")
    ('12:ab', '')
    """
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def _told(request: Request, error: Exception) -> Response:
    """The page that tells an error in one sentence."""
    if isinstance(error, HTTPException) and isinstance(error.__cause__, Problem):
        error = error.__cause__
    if isinstance(error, RequestValidationError):  # of an address that somebody has typed
        error = Refusal("not-found", _SENTENCES["not-found"], 404)
    if isinstance(error, HTTPException):  # a form that is none
        error = Refusal("invalid-request", _NO_FORM, 400)
    if isinstance(error, Refusal):
        kind, sentence, status, headers = error.kind, error.sentence, error.status, {}
    else:
        problem = problem_of(error)
        kind, status = problem.kind, problem.status
        sentence = _words_of(problem)
        headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    own = described(error) if not isinstance(error, Problem | Refusal) else {}
    request.scope["armnesia.problem"] = {"problem": kind, **own}
    values = {"sentence": sentence, "status": status}
    return rendered(request, "problem.html", values, status=status, headers=headers)


def sentence_of(error: Exception) -> str:
    """What a person is told of a refusal of the vault."""
    return _words_of(problem_of(error))


def _words_of(problem: Problem) -> str:
    """The sentence of a problem, with the source that it is about."""
    sentence = _SENTENCES.get(problem.kind, KINDS[problem.kind].sentence)
    return sentence if problem.source is None else f"{sentence} It is source {problem.source}."


async def _visitor(request: Request) -> Visitor:
    """Not a plain function, for which each request would need a thread."""
    visitor: Visitor = request.scope[_VISITOR]
    return visitor


Signed = Annotated[Visitor, Depends(_visitor)]
"""Whoever has signed in."""
