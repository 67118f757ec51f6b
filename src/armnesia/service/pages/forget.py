"""Forgetting: whom, what that would do, the confirmation, and the certificates."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from armnesia.core.errors import ArmnesiaError, DatabaseError, InvalidInputError, UnfinishedError
from armnesia.service.pages.certificate_files import current, zipped
from armnesia.service.pages.names import NamesError, checked_names, typed_names, uploaded_names
from armnesia.service.pages.preview import guarantee_sentence, preview_request, shown_places
from armnesia.service.pages.routing import PageRoute, Refusal, Signed, field, form_of, needs, sentence_of
from armnesia.service.pages.templating import is_part, rendered
from armnesia.service.pages.work import Job, Kind, OpenedFor, Prepared
from armnesia.service.problems import Problem, problem_of
from armnesia.service.running import Service, done, service_of
from armnesia.service.source_erasing import source_steps
from armnesia.service.structured_log import described, log
from armnesia.vault import ForgetRequest, Role, Vault
from armnesia.vault.keys.canonical_json import utc_now

router = APIRouter(route_class=PageRoute)
_SECONDS_TO_WAIT = 1.0
"""Most requests are answered sooner, and need no progress."""


@router.get("/page/forget", **needs(Role.OPERATOR))
async def show_form(request: Request) -> Response:
    """Whom to forget."""
    return _form(request)


def _form(
    request: Request,
    error: NamesError | None = None,
    names: str = "",
    column: str = "",
    kind: Kind = "users",
) -> Response:
    values = {
        "names": names,
        "column": column,
        "error": None if error is None else {"sentence": str(error), "field": error.field},
        "kind": kind,
        "most": service_of(request).settings.names,
    }
    return rendered(request, "forget.html", values, status=200 if error is None else 422)


@router.post("/page/forget/preview", **needs(Role.OPERATOR))
async def preview(request: Request, visitor: Signed) -> Response:
    """What forgetting them would do; the names are kept in the session until that is confirmed."""
    form = await form_of(request)
    kind: Kind = "records" if field(form, "kind") == "records" else "users"
    try:
        names = checked_names(await _names(form), service_of(request).settings.names)
        prepared = Prepared(kind, names)
        found = await service_of(request).preview(lambda vault: preview_request(vault, prepared))
    except InvalidInputError as error:
        return _form(request, NamesError.of(error), field(form, "names"), field(form, "column"), kind)
    prepared.found = found
    return _to_preview(visitor, prepared)


async def _names(form: Any) -> list[str]:
    uploaded = form.get("file")
    if isinstance(uploaded, UploadFile) and uploaded.filename:
        if field(form, "names"):
            raise NamesError("Give names or a file, not both; choose the file again.", "file")
        return uploaded_names(await uploaded.read(), field(form, "column"))
    return typed_names(field(form, "names"))


@router.post("/page/forget/spelling", **needs(Role.OPERATOR))
async def choose_spelling(request: Request, visitor: Signed) -> Response:
    """Preview a request again, by the spellings of the vault or by those that were typed."""
    form = await form_of(request)
    prepared = _prepared(visitor, field(form, "prepared"))
    service = service_of(request)
    if field(form, "choice") == "vault":
        before = await service.preview(lambda vault: preview_request(vault, prepared))
        misspelled = before.similar.keys() & set(before.preview.not_held)
        kept = [name for name in prepared.names if name not in misspelled]
        names = [*kept, *(other for others in before.similar.values() for other in others)]
        prepared = Prepared(prepared.kind, checked_names(names, service.settings.names))
    else:
        prepared = Prepared(prepared.kind, prepared.names, exactly=True)
    chosen = prepared
    found = await service.preview(lambda vault: preview_request(vault, chosen))
    prepared.found = found
    return _to_preview(visitor, prepared)


def _to_preview(visitor: Signed, prepared: Prepared) -> Response:
    """To a page with an address, to which one can come back."""
    return RedirectResponse(f"/page/forget/previews/{visitor.session.prepared.put(prepared)}", 303)


@router.get("/page/forget/previews/{number}", **needs(Role.OPERATOR))
async def show_preview(request: Request, visitor: Signed, number: str) -> Response:
    """What a request would do: as it was computed a moment ago, and again if one comes back."""
    prepared = _prepared(visitor, number)
    if prepared.job:
        return RedirectResponse(f"/page/forget/jobs/{prepared.job}", 303)
    found, prepared.found = prepared.found, None
    if found is None:
        found = await service_of(request).preview(lambda vault: preview_request(vault, prepared))
    own = found.own
    values = {
        "prepared": number,
        "words": prepared.words,
        "names": prepared.names,
        "kind": prepared.kind,
        "found": found,
        "facts": found.preview,
        "places": shown_places(found),
        "sentence": None if own is None else guarantee_sentence(own.guarantee),
    }
    return rendered(request, "preview.html", values)


def _prepared(visitor: Signed, number: str) -> Prepared:
    found = visitor.session.prepared.get(number)
    if found is None:
        raise Refusal("not-prepared", "This preview is no longer kept; make it again.", 409)
    return found


@router.post("/page/forget/confirm", **needs(Role.OPERATOR))
async def confirm(request: Request, visitor: Signed) -> Response:
    """Forget them, once, however often the button is pressed."""
    prepared = _prepared(visitor, field(await form_of(request), "prepared"))
    if not prepared.job:
        service, asked, names = service_of(request), prepared.to_request(), prepared.names
        job = Job(prepared.words, prepared.kind, len(names), utc_now(), names)
        prepared.job, prepared.names = visitor.session.jobs.put(job), ()
        await _begin(service, _forget(service, asked, job))
    return _to_job(prepared.job)


async def _begin(service: Service, work: Coroutine[Any, Any, None]) -> None:
    """Begin some work, and wait a moment: perhaps it is done by then."""
    await asyncio.wait([service.begin(work)], timeout=_SECONDS_TO_WAIT)


def _to_job(number: str) -> Response:
    return RedirectResponse(f"/page/forget/jobs/{number}", 303)


async def _forget(service: Service, asked: ForgetRequest, job: Job) -> None:
    """Answer a request, and open the certificate of everybody in it."""
    try:
        result = await done(service.worker.forget(asked))
    except Exception as error:
        log("request of the page refused", {"problem": problem_of(error).kind, **described(error)})
        is_refusal = isinstance(error, ArmnesiaError | Problem) and not isinstance(error, DatabaseError)
        job.refusal = sentence_of(error) if is_refusal else _FAILED
        job.stage, job.names = "refused" if is_refusal else "unknown", ()
        if isinstance(error, UnfinishedError):
            job.stage = "unfinished"
        return
    facts = {name: value for name, value in result.to_dict().items() if name != "certificate"}
    job.result = {**facts, **source_steps(facts, may_erase=service.worker.may_erase_at_source)}
    await _open_certificates(service, job)


_FAILED = "The service failed; its log says where, and the ledger says whether the request was answered."


async def _open_certificates(service: Service, job: Job) -> None:
    """Open the certificates of a request that was answered: whatever fails here, it stays so."""
    job.stage = "certificates"
    try:
        await done(service.worker.write(lambda vault: _open_each(vault, job)))
    except Exception as error:
        log("certificates not opened", {"problem": problem_of(error).kind, **described(error)})
        job.stage = "unopened"
        return
    job.stage, job.names = "done", ()


def _open_each(vault: Vault, job: Job) -> None:
    job.certificates.clear()
    for name, certificate in vault.certificates(**{job.kind: list(job.names)}):
        if certificate is not None and certificate.opening is not None:
            sequence = int(certificate.body["sequence"])
            job.certificates.append(OpenedFor(name, sequence, certificate.opening, certificate.held))


@router.post("/page/forget/jobs/{number}/certificates", **needs(Role.OPERATOR))
async def open_certificates(request: Request, visitor: Signed, number: str) -> Response:
    """Open the certificates of a request where that has failed."""
    job = _job(visitor, number)
    if job.stage == "unopened":
        service = service_of(request)
        await _begin(service, _open_certificates(service, job))
    return _to_job(number)


def _job(visitor: Signed, number: str) -> Job:
    found = visitor.session.jobs.get(number)
    if found is None:
        raise Refusal("no-job", "This session has no such request; the ledger has all that were made.", 404)
    return found


@router.get("/page/forget/jobs/{number}", **needs(Role.OPERATOR))
async def show_job(request: Request, visitor: Signed, number: str) -> Response:
    """How far a request is, or what it did."""
    values = {"job": _job(visitor, number), "number": number}
    if is_part(request):
        return rendered(request, "parts/job.html", values)
    return rendered(request, "job.html", values)


@router.get("/page/forget/jobs/{number}/certificate", **needs(Role.OPERATOR))
async def print_certificate(request: Request, visitor: Signed, number: str, place: int = 1) -> Response:
    """A certificate that names its person, to be printed."""
    opened = _opened(_job(visitor, number), place)
    made = await done(service_of(request).worker.write(lambda vault: current(vault, opened)))
    values = {
        "certificate": made,
        "download": f"/page/forget/jobs/{number}/certificate.json?place={place}",
        "back": f"/page/forget/jobs/{number}",
    }
    return rendered(request, "certificate.html", values)


@router.get("/page/forget/jobs/{number}/certificate.json", **needs(Role.OPERATOR))
async def download_certificate(request: Request, visitor: Signed, number: str, place: int = 1) -> Response:
    """The file of a certificate that names its person."""
    opened = _opened(_job(visitor, number), place)
    made = await done(service_of(request).worker.write(lambda vault: current(vault, opened)))
    return attachment(made.to_json().encode(), f"certificate-{opened.sequence}.json", "application/json")


@router.get("/page/forget/jobs/{number}/certificates.zip", **needs(Role.OPERATOR))
async def download_all(request: Request, visitor: Signed, number: str) -> Response:
    """The certificates of all names, each opened for it alone, and a list of whose they are."""
    job = _job(visitor, number)
    if not job.certificates:
        raise Problem("no-certificate")
    content = await done(service_of(request).worker.write(lambda vault: zipped(vault, job.certificates)))
    entry = 0 if job.result is None else job.result["sequence"]
    return attachment(content, f"certificates-{entry}.zip", "application/zip")


def _opened(job: Job, place: int) -> OpenedFor:
    if not 1 <= place <= len(job.certificates):
        raise Problem("no-certificate")
    return job.certificates[place - 1]


def attachment(content: bytes, name: str, media_type: str) -> Response:
    """A file to be saved, under a name that names nobody."""
    return Response(
        content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
