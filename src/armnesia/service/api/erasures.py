"""Erasing rows of forgotten people at the sources of an external vault."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.responses import Response

from armnesia.service.answer_types import ErasingRun, SourceErasures
from armnesia.service.api.answers import Body, answer
from armnesia.service.idempotency import IdempotencyKey
from armnesia.service.problems import Problem
from armnesia.service.running import Service, done, service_of
from armnesia.service.tokens import Caller, Route, access
from armnesia.vault import Role, Vault

router = APIRouter(tags=["erasures"], route_class=Route)
_SHOWN = ("id", "to_erase", "to_purge")
"""Of a source: not where it is."""


class Erasure(Body):
    """How far to go."""

    purge: bool = Field(
        default=True,
        description="Also remove what still holds the rows, as far as the retention of a table allows.",
    )


_DEFAULTS = Erasure()


@router.post(
    "/v1/erasures",
    summary="Erase rows of forgotten people at their sources",
    status_code=202,
    **access(Role.OPERATOR, 409, answers={202: {"model": SourceErasures, "description": "It is begun."}}),
)
async def create_erasure(
    request: Request, token: Caller, body: Erasure = _DEFAULTS, idempotency_key: IdempotencyKey = None
) -> Response:
    """Begin an erasure for everybody who is forgotten; `GET /v1/erasures` says how far it is."""
    service = service_of(request)

    async def begun() -> JSONResponse:
        run = begin_erasure(service, purge=body.purge)
        return answer(await _facts(service, run), 202, Location="/v1/erasures")

    place = (token.number, "erasures", idempotency_key)
    return await service.answers.once(place, await request.body(), begun)


@router.get(
    "/v1/erasures",
    summary="How far rows are erased at their sources",
    **access(Role.READER, model=SourceErasures),
)
async def show_erasures(request: Request) -> JSONResponse:
    """The state of each source, what is due there, and the last erasure that this service has begun."""
    service = service_of(request)
    return answer(await _facts(service, service.erasing.last))


def begin_erasure(service: Service, *, purge: bool) -> ErasingRun:
    """Begin an erasure, if the vault has the permission."""
    if not service.worker.may_erase_at_source:
        raise Problem("no-permission")
    return service.erasing.begin(purge=purge)


async def _facts(service: Service, run: ErasingRun | None) -> dict[str, Any]:
    last = None if run is None else dict(run)  # before the rest, which then tells what it has done
    return {**await done(service.worker.read(_sources)), "last_run": last}


def _sources(vault: Vault) -> dict[str, Any]:
    found = vault.source_erasures().to_dict()
    sources = [{name: each[name] for name in _SHOWN} for each in found["sources"]]
    return {**found, "sources": sources}
