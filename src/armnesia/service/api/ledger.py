"""The ledger and the certificates, which name nobody."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from armnesia.service.answer_types import CertificateFile, LedgerHead, LedgerPage
from armnesia.service.api.answers import answer
from armnesia.service.api.deletions import EntryNumber
from armnesia.service.running import done, service_of
from armnesia.service.tokens import Route, access
from armnesia.vault import Role, Vault
from armnesia.vault.ledger.checkpoint import Checkpoint, Note

router = APIRouter(tags=["ledger"], route_class=Route)


@router.get("/v1/ledger", summary="The ledger", **access(Role.READER, model=LedgerPage))
async def list_ledger(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53, description="The number of the entry before.")] = 0,
    limit: Annotated[int, Query(ge=1, description="At most the limit of the service.")] = 100,
) -> JSONResponse:
    """The entries after one of them; `next` is where the next page begins."""
    service = service_of(request)
    most = min(limit, service.settings.page)
    return answer(await done(service.worker.read(lambda vault: _page(vault, after, most))))


def _page(vault: Vault, after: int, most: int) -> dict[str, Any]:
    """Some entries, parsed here: in the thread that answers, others would wait for it."""
    found = vault.ledger(after=after, most=most)
    last = after + len(found)
    return {**found.to_dict(), "next": last if len(found) == most and found.head.size > last else None}


@router.get(
    "/v1/ledger/head",
    summary="The head of the ledger",
    description="The checkpoint is the head, signed: kept elsewhere, it shows if the ledger was changed.",
    **access(Role.READER, model=LedgerHead),
)
async def show_head(request: Request) -> JSONResponse:
    """How many entries there are, and the root over them."""
    text = await done(service_of(request).worker.read(lambda vault: vault.checkpoint()))
    return answer({"head": str(Checkpoint.of(Note.read(text))), "checkpoint": text})


@router.get(
    "/v1/certificates/{number}",
    summary="The certificate of a deletion",
    description="It names nobody; `armnesia certificate verify` checks it.",
    **access(Role.READER, 404, model=CertificateFile),
)
async def show_certificate(request: Request, number: EntryNumber) -> JSONResponse:
    """The entry with its proof for the ledger as it is now, and the later entries that concern it."""
    made = await done(service_of(request).worker.read(lambda vault: vault.certificate(entry=number)))
    return answer(made.to_dict())
