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
from armnesia.service.tokens import Caller, Route, access, name_of
from armnesia.vault import ForgetRequest, Role

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
    case: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="The number of the request in the controller's files; only its certificates show it.",
    )
    dry_run: bool = Field(False, description="Say what would be done, and do nothing.")

    def to_options(self) -> dict[str, Any]:
        """The arguments of `Vault.preview`."""
        return {name: value for name, value in dict(self).items() if name not in ("case", "dry_run")}


_ANSWERS: dict[int, dict[str, Any]] = {
    201: {"model": DeletionDone, "description": "Forgotten; there is a new ledger entry."},
    200: {
        "model": DeletionDone | DeletionPreview,
        "description": "The same request was answered before; or a dry run.",
    },
}


@router.post(
    "/v1/deletions",
    summary="Forget people or records",
    **access(Role.OPERATOR, 409, 413, answers=_ANSWERS),
    status_code=201,
)
async def create_deletion(
    request: Request, token: Caller, body: Deletion, idempotency_key: IdempotencyKey = None
) -> Response:
    """Forget, with a certificate; the certificate of one name is opened for it."""
    service = service_of(request)
    if (body.users is None) == (body.records is None):
        message = "exactly one of users and records must be given"
        raise Problem("invalid-request", errors=[{"at": "body", "message": message}])
    if len(body.users or body.records or ()) > service.settings.names:
        raise Problem("batch-too-large")
    options = body.to_options()
    if body.dry_run:
        found = await _or_where(body, done(service.worker.read(lambda vault: vault.preview(**options))))
        return answer(found.to_dict())
    asked = ForgetRequest(**options, case=body.case, by=name_of(token))
    place = (token.number, "deletions", idempotency_key)
    return await service.answers.once(place, await request.body(), lambda: _forget(service, body, asked))


async def _or_where(body: Deletion, answered: Awaitable[_Result]) -> _Result:
    """The answer of the vault; if it refuses names, the problem says at which places they stand."""
    try:
        return await answered
    except (SimilarNameError, InvalidNameError) as error:
        refused = error.similar.keys() if isinstance(error, SimilarNameError) else {error.name}
        message = "a likely spelling of one that the vault holds"
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
}


async def _forget(service: Service, body: Deletion, asked: ForgetRequest) -> JSONResponse:
    result = await _or_where(body, done(service.worker.forget(asked)))
    facts = result.to_dict()
    del facts["recounted_because"]  # it names the place of a source
    where = f"/v1/deletions/{result.entry}"
    return answer(facts, 200 if result.repeated else 201, Location=where)


@router.get(
    "/v1/deletions/{number}",
    summary="The main facts of a deletion",
    **access(Role.READER, 404, model=DeletionSummary),
)
async def show_deletion(request: Request, number: EntryNumber) -> JSONResponse:
    """What its certificate says, opened for nobody, and the kinds of later entries that concern it."""
    found = await done(service_of(request).worker.read(lambda vault: vault.certificate(entry=number)))
    return answer(found.summary())
