"""Whether the service works, and its numbers."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.responses import Response

from armnesia.core.errors import ArmnesiaError
from armnesia.service.answer_types import Health, Live
from armnesia.service.api.answers import answer
from armnesia.service.problems import problem_of, responses, unreadable
from armnesia.service.running import Service, done, service_of
from armnesia.service.source_erasing import sources_due
from armnesia.service.tokens import Route, access
from armnesia.vault import Role, Vault

router = APIRouter(tags=["health"], route_class=Route)
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


_NUMBERS = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The numbers."}


@router.get(
    "/healthz",
    summary="Whether the process works",
    description="The one address that needs no token; it says nothing of the vault.",
    responses={503: {"model": Live}},
    response_model=Live,
    openapi_extra={"security": []},
)
async def healthz(request: Request) -> JSONResponse:
    """For a supervisor that has no token."""
    alive = service_of(request).is_alive
    return answer({"status": "ok" if alive else "failing"}, 200 if alive else 503)


@router.get(
    "/health",
    summary="The state of the vault",
    **access(Role.READER, model=Health, answers={503: {**responses()[503], "model": Health}}),
)
async def health(request: Request) -> JSONResponse:
    """Status 503 if the vault cannot be read, its keys are gone, or its last verification failed."""
    facts = await health_facts(service_of(request))
    return answer(facts, 503 if facts["status"] == "failing" else 200)


async def health_facts(service: Service) -> dict[str, Any]:
    """The state of a service and its vault."""
    facts: dict[str, Any] = {
        "status": "ok",
        "database": "ok",
        "keys": "ok",
        "ledger_length": None,
        "sources": None,
        "waiting": service.worker.waiting,
        "verified": service.verified,
    }
    try:
        facts |= await done(service.worker.read(_facts))
    except (ArmnesiaError, OSError) as error:  # the seal is checked with the keys
        facts |= {"status": "failing", "database": problem_of(error).kind, "keys": "unknown"}
    is_verified = service.verified is None or service.verified["holds"]
    if not service.is_alive or not is_verified or facts["keys"] != "ok" or facts["database"] != "ok":
        facts["status"] = "failing"
    return facts


def _facts(vault: Vault) -> dict[str, Any]:
    return {
        "keys": _state_of_keys(vault),
        "ledger_length": vault.head.size,
        "sources": sources_due(vault),
    }


def _state_of_keys(vault: Vault) -> str:
    """Of their file: what this process has read of it would still do, until it ends."""
    try:
        vault.check_keys()
    except ArmnesiaError:
        return "unreadable"
    return "ok"


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    **access(Role.READER, answers={200: _NUMBERS}),
    response_class=PlainTextResponse,
)
async def metrics(request: Request) -> Response:
    """Requests, latencies, deletions, what is due at sources, and the length of the ledger."""
    service = service_of(request)
    await _measure(service)
    return Response(service.metrics.text(), media_type=_TEXT)


async def _measure(service: Service) -> None:
    try:
        size, sources = await done(service.worker.read(lambda vault: (vault.head.size, sources_due(vault))))
    except ArmnesiaError as error:
        raise unreadable(error) from error
    service.metrics.ledger_length.set(size)
    if sources is not None:
        service.metrics.source_erasures_due.set(sources["erasures_due"])
        service.metrics.source_purges_due.set(sources["purges_due"])
    service.metrics.waiting.set(service.worker.waiting)
