"""Certificates to read and to save, for the ledger as it is now."""

import csv
import io
import zipfile
from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from armnesia.core.spreadsheets import as_text
from armnesia.service.api.deletions import EntryNumber
from armnesia.service.pages.routing import PageRoute, needs
from armnesia.service.pages.templating import rendered
from armnesia.service.pages.work import Kind
from armnesia.service.problems import Problem
from armnesia.service.running import done, service_of
from armnesia.vault import Certificate, Role, Vault

router = APIRouter(route_class=PageRoute)


async def _certificate(request: Request, number: int) -> Certificate:
    return await done(service_of(request).worker.read(lambda vault: vault.certificate(entry=number)))


@router.get("/page/certificates/{number}", **needs(Role.READER))
async def show_certificate(request: Request, number: EntryNumber) -> Response:
    """A certificate that names nobody, in words."""
    made = await _certificate(request, number)
    return in_words(request, made, f"/page/certificates/{number}", f"/page/ledger/{number}")


@router.get("/page/certificates/{number}/certificate.{form}", **needs(Role.READER))
async def download_certificate(request: Request, number: EntryNumber, form: str) -> Response:
    """The file of a certificate, or its words as a page to print."""
    return saved(await _certificate(request, number), form)


def in_words(request: Request, made: Certificate, address: str, back: str) -> Response:
    """A certificate as a page; its files are below `address`."""
    values = {"words": made.words(), "address": address, "back": back}
    return rendered(request, "certificate.html", values)


def saved(made: Certificate, form: str) -> Response:
    """A certificate as a file to be saved: in JSON, which can be verified, or in HTML."""
    name = f"certificate-{made.entry.number}.{form}"
    if form == "json":
        return attachment(made.to_json().encode(), name, "application/json")
    if form == "html":
        return attachment(made.words().html().encode(), name, "text/html; charset=utf-8")
    raise Problem("not-found")


def attachment(content: bytes, name: str, media_type: str) -> Response:
    """A file to be saved, under a name that names nobody."""
    return Response(
        content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def zipped(vault: Vault, kind: Kind, names: Sequence[str]) -> bytes:
    """Numbered files, whose names tell nobody whose they are, and an index for the operator only."""
    index, content = io.StringIO(), io.BytesIO()
    rows = csv.writer(index, lineterminator="\n", quoting=csv.QUOTE_ALL)
    rows.writerow(["file", "name", "entry", "outcome"])
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, made) in enumerate(vault.certificates(**{kind: list(names)}), 1):
            if made is None or made.person is None:
                continue
            file = f"certificate-{number:06}.json"
            archive.writestr(file, made.to_json())
            rows.writerow([file, as_text(str(name)), made.entry.number, made.person.outcome])
        archive.writestr("index.csv", index.getvalue())
    return content.getvalue()
