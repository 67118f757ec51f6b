"""Forgetting: whom, what that would do, the confirmation, and the certificates."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from armnesia.core.errors import ArmnesiaError, DatabaseError, InvalidInputError, VaultError
from armnesia.service.pages.certificates import attachment, in_words, saved, zipped
from armnesia.service.pages.names import NamesError, checked_names, typed_names, uploaded_names
from armnesia.service.pages.preview import guarantee_sentence, preview_request, shown_places
from armnesia.service.pages.routing import PageRoute, Refusal, Signed, field, form_of, needs, sentence_of
from armnesia.service.pages.templating import is_part, rendered
from armnesia.service.pages.work import Job, Kind, Prepared
from armnesia.service.problems import Problem, problem_of
from armnesia.service.running import Service, done, service_of
from armnesia.service.structured_log import described, log
from armnesia.service.tokens import name_of
from armnesia.vault import Certificate, ForgetRequest, Role
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
        found = await done(service_of(request).worker.read(lambda vault: preview_request(vault, prepared)))
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
        before = await done(service.worker.read(lambda vault: preview_request(vault, prepared)))
        misspelled = before.similar.keys() & set(before.preview.not_held)
        kept = [name for name in prepared.names if name not in misspelled]
        names = [*kept, *(other for others in before.similar.values() for other in others)]
        prepared = Prepared(prepared.kind, checked_names(names, service.settings.names))
    else:
        prepared = Prepared(prepared.kind, prepared.names, exactly=True)
    chosen = prepared
    found = await done(service.worker.read(lambda vault: preview_request(vault, chosen)))
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
        found = await done(service_of(request).worker.read(lambda vault: preview_request(vault, prepared)))
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
        service, asked = service_of(request), prepared.to_request(name_of(visitor.token))
        job = Job(prepared.words, prepared.kind, utc_now(), prepared.names)
        prepared.job, prepared.names = visitor.session.jobs.put(job), ()
        # A moment is waited: perhaps it is done by then.
        await asyncio.wait([service.begin(_forget(service, asked, job))], timeout=_SECONDS_TO_WAIT)
    return RedirectResponse(f"/page/forget/jobs/{prepared.job}", 303)


async def _forget(service: Service, asked: ForgetRequest, job: Job) -> None:
    """Answer a request."""
    try:
        result = await done(service.worker.forget(asked))
    except Exception as error:
        log("request of the page refused", {"problem": problem_of(error).kind, **described(error)})
        # A plain VaultError is about the vault, and perhaps about its journal, which is written at the end.
        is_failure = isinstance(error, DatabaseError) or type(error) is VaultError
        is_refusal = isinstance(error, ArmnesiaError | Problem) and not is_failure
        job.refusal = sentence_of(error) if is_refusal else _FAILED
        job.stage, job.names = "refused" if is_refusal else "unknown", ()
        return
    own = {"not_held": result.not_held, "at_source": service.worker.is_external}
    job.result, job.stage = {**result.to_dict(), **own}, "done"


_FAILED = "The service failed; its log says where, and the ledger says whether the request was answered."


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
async def show_certificate(request: Request, visitor: Signed, number: str) -> Response:
    """The certificate that names the one person of a request, in words."""
    made = await _certificate(request, _job(visitor, number))
    address = f"/page/forget/jobs/{number}"
    return in_words(request, made, address, address)


@router.get("/page/forget/jobs/{number}/certificate.{form}", **needs(Role.OPERATOR))
async def download_certificate(request: Request, visitor: Signed, number: str, form: str) -> Response:
    """The file of a certificate that names its person, or its words as a page to print."""
    return saved(await _certificate(request, _job(visitor, number)), form)


async def _certificate(request: Request, job: Job) -> Certificate:
    """That of a request for one name, for the ledger as it is now."""
    if job.result is None or len(job.names) != 1:
        raise Problem("no-certificate")
    asked: dict[str, Any] = {job.kind: list(job.names), "entry": job.result["entry"]}
    return await done(service_of(request).worker.read(lambda vault: vault.certificate(**asked)))


@router.get("/page/forget/jobs/{number}/certificates.zip", **needs(Role.OPERATOR))
async def download_all(request: Request, visitor: Signed, number: str) -> Response:
    """The certificates of all names, each opened for it alone, and a list of whose they are."""
    job = _job(visitor, number)
    if job.result is None:
        raise Problem("no-certificate")
    worker = service_of(request).worker
    content = await done(worker.read(lambda vault: zipped(vault, job.kind, job.names)))
    return attachment(content, f"certificates-{job.result['entry']}.zip", "application/zip")
