"""The certificates of ledger entries, which name nobody."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from armnesia.service.api.deletions import EntryNumber
from armnesia.service.pages.forget import attachment
from armnesia.service.pages.routing import PageRoute, needs
from armnesia.service.pages.templating import rendered
from armnesia.service.running import done, service_of
from armnesia.vault import Certificate, Role

router = APIRouter(route_class=PageRoute)


async def _certificate(request: Request, number: int) -> Certificate:
    return await done(service_of(request).worker.write(lambda vault: vault.certificate_of_entry(number)))


@router.get("/page/certificates/{number}", **needs(Role.READER))
async def show_certificate(request: Request, number: EntryNumber) -> Response:
    """A certificate to read or print."""
    values = {
        "certificate": await _certificate(request, number),
        "download": f"/page/certificates/{number}/certificate.json",
        "back": f"/page/ledger/{number}",
    }
    return rendered(request, "certificate.html", values)


@router.get("/page/certificates/{number}/certificate.json", **needs(Role.READER))
async def download_certificate(request: Request, number: EntryNumber) -> Response:
    """The file of a certificate."""
    made = await _certificate(request, number)
    return attachment(made.to_json().encode(), f"certificate-{number}.json", "application/json")
