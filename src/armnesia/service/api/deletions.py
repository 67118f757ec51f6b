"""Forgetting people."""

from collections.abc import Awaitable
from itertools import islice
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.responses import Response

from armnesia.core.errors import InvalidNameError, NameReason, SimilarNameError
from armnesia.service.answer_types import DeletionDone, DeletionPreview, DeletionSummary
from armnesia.service.api.answers import Body, answer
from armnesia.service.idempotency import IdempotencyKey
from armnesia.service.problems import Problem, problem_of
from armnesia.service.running import Service, done, service_of
from armnesia.service.source_erasing import source_steps
from armnesia.service.tokens import Caller, Route, access
from armnesia.vault import ForgetRequest, Role, Token

PATH, ROLE = "/v1/deletions", Role.OPERATOR
router = APIRouter(tags=["deletions"], route_class=Route)
_Result = TypeVar("_Result")

Name = Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=-(2**63), lt=2**63)]
EntryNumber = Annotated[int, Path(ge=1, lt=2**63, description="The number of a ledger entry.", examples=[7])]


class Deletion(Body):
    """Whom to forget: people, or single records by their id; everything else has the vault's default."""

    users: list[Name] | None = Field(None, min_length=1, fail_fast=True, examples=[["user-3"]])
    records: list[Name] | None = Field(None, min_length=1, fail_fast=True)
    exactly: bool = Field(False, description="The names are meant as they are, whatever is spelled alike.")
    unlearner: str | None = Field(None, max_length=100, examples=["rollback"])
    unlearner_options: dict[str, float | int | str | bool] | None = Field(None, max_length=20)
    epsilon: float | None = Field(None, ge=0)
    delta: float | None = Field(None, ge=0, le=1)
    dry_run: bool = Field(False, description="Say what would be done, and do nothing.")

    def to_request(self) -> ForgetRequest:
        """The request to the vault."""
        return ForgetRequest(**{name: value for name, value in dict(self).items() if name != "dry_run"})


_ANSWERS: dict[int, dict[str, Any]] = {
    201: {"model": DeletionDone, "description": "Forgotten; there is a new ledger entry."},
    200: {
        "model": DeletionDone | DeletionPreview,
        "description": "The same request was answered before; or a dry run.",
    },
}


@router.post(
    PATH,
    summary="Forget people or records",
    **access(ROLE, 409, 413, answers=_ANSWERS),
    status_code=201,
)
async def create_deletion(
    request: Request, token: Caller, body: Deletion, idempotency_key: IdempotencyKey = None
) -> Response:
    """Forget, with a certificate; the certificate of one name is opened for it."""
    return await answer_deletion(service_of(request), token, body, await request.body(), idempotency_key)


async def answer_deletion(
    service: Service, token: Token, body: Deletion, content: bytes, idempotency_key: str | None
) -> Response:
    """Answer a request to forget; `content` is its body as it was sent."""
    if (body.users is None) == (body.records is None):
        message = "exactly one of users and records must be given"
        raise Problem("invalid-request", errors=[{"at": "body", "message": message}])
    if len(body.users or body.records or ()) > service.settings.names:
        raise Problem("batch-too-large")
    asked = body.to_request()
    if body.dry_run:
        found = await _or_where(body, service.preview(lambda vault: vault.preview(**vars(asked))))
        return answer(found.to_dict())
    place = (token.number, "deletions", idempotency_key)
    return await service.answers.once(place, content, lambda: _forget(service, body, asked))


async def _or_where(body: Deletion, answered: Awaitable[_Result]) -> _Result:
    """The answer of the vault; if it refuses names, the problem says at which places they stand."""
    try:
        return await answered
    except (SimilarNameError, InvalidNameError) as error:
        refused = error.similar.keys() if isinstance(error, SimilarNameError) else {error.name}
        message = "spelled nearly as one that the vault holds"
        if isinstance(error, InvalidNameError):
            message = _REASONS[error.reason]
        field, names = ("users", body.users) if body.users is not None else ("records", body.records or [])
        places = (place for place, name in enumerate(names) if {str(name), str(name).strip()} & refused)
        errors = [
            {"at": f"body/{field}/{place}", "message": message} for place in islice(places, _MOST_SHOWN)
        ]
        raise Problem(problem_of(error).kind, errors=errors) from error


_MOST_SHOWN = 20
_REASONS: dict[NameReason, str] = {
    "empty": "is empty",
    "long": "is longer than a name can be",
    "type": "is not as the vault names people: they are named by integers, or the vault has no records yet",
    "header": "is the name of the column that the vault has its people from: leave it out, or add exactly",
    "kind": "is of a kind that files write in several ways: send text, or add exactly",
    "control": (
        "has a control character, or an invisible one at an end: check how the names were read, or add"
        " exactly"
    ),
}


async def _forget(service: Service, body: Deletion, asked: ForgetRequest) -> JSONResponse:
    result = await _or_where(body, service.forget(asked))
    facts = result.to_dict()
    del facts["recounted_because"]  # it names the place of a source
    facts |= source_steps(facts, may_erase=service.worker.may_erase_at_source)
    where = f"/v1/deletions/{facts['sequence']}"
    return answer(facts, 200 if result.repeated else 201, Location=where)


@router.get(
    "/v1/deletions/{number}",
    summary="The state of a deletion",
    **access(Role.READER, 404, model=DeletionSummary),
)
async def show_deletion(request: Request, number: EntryNumber) -> JSONResponse:
    """The main facts, whether erasure is complete, and what is left to do at the sources."""
    # By the writer, which knows what has left the files; nothing is stored.
    worker = service_of(request).worker
    facts = await done(worker.write(lambda vault: vault.deletion(number)))
    return answer({**facts, **source_steps(facts, may_erase=worker.may_erase_at_source)})
