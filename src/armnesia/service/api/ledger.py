"""The ledger and the certificates, which name nobody."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from armnesia.service.answer_types import CertificateFile, CertificatesToReissue, LedgerHead, LedgerPage
from armnesia.service.api.answers import answer
from armnesia.service.api.deletions import EntryNumber
from armnesia.service.running import done, service_of
from armnesia.service.tokens import Route, access
from armnesia.vault import Role, Vault

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
    head, entries = await done(service.worker.read(lambda vault: _page(vault, after, most)))
    last = after + len(entries)
    return answer(
        {
            "head": head,
            "entries": entries,
            "next": last if len(entries) == most and int(head.partition(":")[0]) > last else None,
        }
    )


def _page(vault: Vault, after: int, most: int) -> tuple[str, list[dict[str, Any]]]:
    """The head and some entries, parsed here: in the thread that answers, others would wait for it."""
    head = str(vault.head)
    return head, [dict(entry.fields) for entry in vault.ledger(after=after, most=most)]


@router.get(
    "/v1/ledger/head",
    summary="The head of the ledger",
    description="Kept elsewhere, it detects truncation and rewriting.",
    **access(Role.READER, model=LedgerHead),
)
async def show_head(request: Request) -> JSONResponse:
    """The number and the hash of the last entry."""
    return answer({"head": str(await done(service_of(request).worker.read(lambda vault: vault.head)))})


@router.get(
    "/v1/certificates",
    summary="The certificates to issue again",
    description="They were signed with a key that was compromised; `armnesia finish` signs them again.",
    **access(Role.READER, model=CertificatesToReissue),
)
async def list_certificates(request: Request) -> JSONResponse:
    """The numbers of their ledger entries."""
    head, numbers = await done(
        service_of(request).worker.read(lambda vault: (str(vault.head), vault.certificates_to_reissue()))
    )
    return answer({"head": head, "to_reissue": numbers})


@router.get(
    "/v1/certificates/{number}",
    summary="The certificate of a deletion",
    description="It names nobody; `armnesia certificate verify` checks it.",
    **access(Role.READER, 404, model=CertificateFile),
)
async def show_certificate(request: Request, number: EntryNumber) -> JSONResponse:
    """The certificate of a ledger entry; one that has to be signed is signed."""
    made = await done(service_of(request).worker.write(lambda vault: vault.certificate_of_entry(number)))
    return answer(made.to_dict())
