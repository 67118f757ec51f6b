"""Whether the service works, and its numbers."""

from datetime import UTC, datetime
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
from armnesia.vault import PendingErasures, Role, Vault
from armnesia.vault.keys.canonical_json import parse_time

router = APIRouter(tags=["health"], route_class=Route)
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


_NUMBERS = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The numbers."}


@router.get(
    "/live",
    summary="Whether the process works",
    description="The one address that needs no token; it says nothing of the vault.",
    responses={503: {"model": Live}},
    response_model=Live,
    openapi_extra={"security": []},
)
async def live(request: Request) -> JSONResponse:
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
        "pin": "unknown",
        "pin_lag": None,
        "ledger_length": None,
        "pending_erasures": None,
        "oldest_pending_seconds": None,
        "sources": None,
        "waiting": service.worker.waiting,
        "verified": None if service.verified is None else vars(service.verified),
    }
    try:
        facts |= await done(service.worker.look(_facts))
    except (ArmnesiaError, OSError) as error:  # the seal is checked with the keys
        facts |= {"status": "failing", "database": problem_of(error).kind, "keys": "unknown"}
    else:
        facts["pin"] = service.state_of_pin(facts["pin"])
        if service.damage is not None:  # in a part of the file that is not read here
            facts["database"] = "vault-unreadable"
    if facts["pin"] in ("missing", "recreated"):
        facts["status"] = "degraded"
    is_verified = service.verified is None or service.verified.holds
    if not service.is_alive or not is_verified or facts["keys"] != "ok" or facts["database"] != "ok":
        facts["status"] = "failing"
    return facts


def _facts(vault: Vault) -> dict[str, Any]:
    pin, pinned = vault.pin_file, vault.pinned_head  # before the head, which is pinned when it is read
    head, pending = vault.head, vault.pending_erasures()
    return {
        "keys": _state_of_keys(vault),
        "pin": pin,
        "pin_lag": None if pinned is None else head.sequence - pinned.sequence,
        "ledger_length": head.sequence,
        "pending_erasures": pending.number,
        "oldest_pending_seconds": _age(pending),
        "sources": sources_due(vault),
    }


def _state_of_keys(vault: Vault) -> str:
    """Of their file: what this process has read of it would still do, until it ends."""
    try:
        vault.check_keys()
    except ArmnesiaError:
        return "unreadable"
    return "ok"


def _age(pending: PendingErasures) -> float | None:
    if pending.since is None:
        return None
    return round((datetime.now(UTC) - parse_time(pending.since)).total_seconds(), 1)


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    **access(Role.READER, answers={200: _NUMBERS}),
    response_class=PlainTextResponse,
)
async def metrics(request: Request) -> Response:
    """Requests, latencies, deletions by unlearner, pending erasures, and the length of the ledger."""
    service = service_of(request)
    await _measure(service)
    return Response(service.metrics.text(), media_type=_TEXT)


async def _measure(service: Service) -> None:
    try:
        head, pending, sources = await done(
            service.worker.look(
                lambda vault: (vault.head.sequence, vault.pending_erasures().number, sources_due(vault))
            )
        )
    except ArmnesiaError as error:
        raise unreadable(error) from error
    service.metrics.ledger_length.set(head)
    service.metrics.pending_erasures.set(pending)
    if sources is not None:
        service.metrics.source_erasures_due.set(sources["erasures_due"])
        service.metrics.source_purges_due.set(sources["purges_due"])
    service.metrics.waiting.set(service.worker.waiting)
