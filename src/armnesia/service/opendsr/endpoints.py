"""The endpoints of OpenDSR."""

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.responses import Response

from armnesia.core.errors import InvalidInputError
from armnesia.service.api.answers import Documented
from armnesia.service.opendsr.desk import CANCELLED, PENDING, Desk, status_body, with_status
from armnesia.service.opendsr.processor import FORMATS, IDENTITY_TYPE, Processor
from armnesia.service.problems import Problem
from armnesia.service.running import done, service_of
from armnesia.service.tokens import Caller, Route, access, name_of
from armnesia.vault import Role, SubjectRequest, Token, Vault
from armnesia.vault.keys.canonical_json import time_text

VERSION = "2.0"
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
_HEX = re.compile("[0-9a-fA-F]{64}")
_VAULT_ONLY = (
    "The people no longer count in decisions, and nothing of them is in the database of this processor; the"
    " log that it reads is not erased by it, but elsewhere."
)
_OPEN: dict[str, Any] = {"security": []}

router = APIRouter(tags=["OpenDSR"], route_class=Route)

RequestId = Annotated[str, Path(pattern=_UUID, examples=["a7551968-d5d6-44b2-9831-815ac9017798"])]


class Identity(BaseModel):
    """A person, as the controller names them."""

    model_config = ConfigDict(extra="forbid")
    identity_type: Annotated[str, Field(examples=[IDENTITY_TYPE])]
    identity_value: Annotated[str, Field(min_length=1, max_length=1000, examples=["user-3"])]
    identity_format: Annotated[str, Field(examples=["raw"])]


class OpenDsrRequest(BaseModel):
    """A request of a controller."""

    model_config = ConfigDict(extra="forbid")
    regulation: Literal["gdpr", "ccpa"]
    subject_request_id: Annotated[str, Field(pattern=_UUID)]
    subject_request_type: Annotated[str, Field(examples=["erasure"])]
    submitted_time: AwareDatetime
    subject_identities: Annotated[list[Identity], Field(min_length=1, fail_fast=True)]
    api_version: str | None = None
    status_callback_urls: Annotated[list[str], Field(max_length=10, fail_fast=True)] = []
    extensions: dict[str, dict[str, Any]] | None = None


class Discovery(Documented):
    """What this processor supports."""

    api_version: str
    supported_identities: list[dict[str, str]]
    supported_subject_request_types: list[str]
    processor_certificate: str
    completed_means: str | None = None
    """Only where something else erases rows at their sources."""


class Accepted(Documented):
    """A request that was received."""

    controller_id: str
    expected_completion_time: str
    received_time: str
    encoded_request: str
    subject_request_id: str
    api_version: str


class StatusOfRequest(Documented):
    """The status of a request."""

    controller_id: str
    expected_completion_time: str
    subject_request_id: str
    request_status: str
    api_version: str


class Cancelled(Documented):
    """A request that was cancelled."""

    controller_id: str
    received_time: str
    subject_request_id: str
    api_version: str


class ErrorObject(Documented):
    """An error, as section 7.6 of the specification has it."""

    class Error(Documented):
        """The status, a sentence, and each part that is wrong."""

        code: int
        message: str
        errors: list[dict[str, str]]

    error: Error


def _access(*statuses: int, model: Any) -> dict[str, Any]:
    """What `access` says, with errors in the form of OpenDSR."""
    found = access(Role.OPERATOR, *statuses, model=model)
    found["responses"] = {
        status: {"model": ErrorObject, "description": each["description"]}
        for status, each in found["responses"].items()
    }
    return found


def processor_of(request: Request) -> Processor:
    """The processor that a request was sent to."""
    processor: Processor = request.app.state.processor
    return processor


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def signed(request: Request, facts: dict[str, Any], status: int = 200) -> Response:
    """An answer, with the signature on its very bytes."""
    body = json.dumps(facts, ensure_ascii=False).encode()
    headers = processor_of(request).headers(body)
    return Response(body, status, headers, "application/json")


@router.get("/v2/discovery", summary="What is supported", response_model=Discovery, openapi_extra=dict(_OPEN))
async def discover(request: Request) -> Response:
    """Public: whoever verifies a signature needs the certificate."""
    processor = processor_of(request)
    identities = [
        {"identity_type": IDENTITY_TYPE, "identity_format": each} for each in FORMATS[processor.names]
    ]
    return signed(
        request,
        {
            "api_version": VERSION,
            "supported_identities": identities,
            "supported_subject_request_types": ["erasure"],
            "processor_certificate": f"https://{processor.domain}/v2/certificate.pem",
            **({"completed_means": _VAULT_ONLY} if processor.sources_erased_elsewhere else {}),
        },
    )


@router.get(
    "/v2/certificate.pem",
    summary="The certificate of signatures",
    response_model=None,
    responses={200: {"content": {"application/x-pem-file": {"schema": {"type": "string"}}}}},
    openapi_extra=dict(_OPEN),
    response_class=Response,
)
async def show_certificate(request: Request) -> Response:
    """The X.509 certificate, with its chain."""
    processor = processor_of(request)
    return Response(processor.pem, 200, processor.headers(processor.pem), "application/x-pem-file")


@router.post(
    "/v2/requests",
    summary="Ask for the erasure of people",
    status_code=201,
    **_access(400, model=Accepted),
)
async def create_request(request: Request, token: Caller, body: OpenDsrRequest) -> Response:
    """Receive a request; the same one again has the same answer, unless it was cancelled."""
    raw, processor, service = await request.body(), processor_of(request), service_of(request)
    if len(body.subject_identities) > service.settings.names:
        raise Problem("batch-too-large")
    wanted = _subject_request(body, processor, name_of(token))
    try:
        stored = await done(service.worker.write(lambda vault: vault.add_subject_request(wanted, raw)))
    except InvalidInputError:
        raise _refusal("subject_request_id", "is that of another request") from None
    if stored.status == CANCELLED:
        raise Problem("cancelled")
    _desk(request).wake.set()
    return signed(
        request,
        {
            "controller_id": stored.controller,
            "expected_completion_time": stored.due,
            "received_time": stored.received,
            "encoded_request": base64.b64encode(raw).decode(),
            "subject_request_id": stored.id,
            "api_version": VERSION,
        },
        201,
    )


@router.get(
    "/v2/requests/{id}",
    summary="The status of a request",
    **_access(400, 404, model=StatusOfRequest),
)
async def show_request(request: Request, token: Caller, id: RequestId) -> Response:  # noqa: A002
    """A request whose rows are still at a source of an external vault is in progress."""
    found = await done(service_of(request).worker.read(lambda vault: _own(vault, id, token)))
    return signed(request, status_body(found))


@router.delete(
    "/v2/requests/{id}",
    summary="Cancel a request that is pending",
    status_code=202,
    **_access(400, 404, model=Cancelled),
)
async def cancel_request(request: Request, token: Caller, id: RequestId) -> Response:  # noqa: A002
    """Only a request that was not begun can be cancelled; its names are deleted."""
    received = time_text(datetime.now(UTC))
    found = await done(service_of(request).worker.write(lambda vault: _cancel(vault, id, token)))
    _desk(request).wake.set()
    facts = {"controller_id": found.controller, "received_time": received}
    return signed(request, {**facts, "subject_request_id": found.id, "api_version": VERSION}, 202)


def _own(vault: Vault, id_: str, token: Token) -> SubjectRequest:
    """The request, if it is of this controller; tokens of one name are one controller; an admin sees all."""
    found = vault.subject_request(id_)
    if found is None or (found.controller != name_of(token) and token.role is not Role.ADMIN):
        raise Problem("no-request")
    return found


def _cancel(vault: Vault, id_: str, token: Token) -> SubjectRequest:
    found = _own(vault, id_, token)
    if found.status != PENDING:
        raise Problem("not-pending")
    return vault.change_subject_request(found, with_status(found, CANCELLED, users=None))


def _subject_request(body: OpenDsrRequest, processor: Processor, controller: str) -> SubjectRequest:
    """Check what the schema cannot say."""
    if body.subject_request_type != "erasure":
        raise _refusal("subject_request_type", "must be erasure")
    if body.api_version is not None and not re.fullmatch(r"2(\.\d+)*", body.api_version):
        raise _refusal("api_version", "must be 2.0")
    if processor.domain in (body.extensions or {}):
        raise _refusal("extensions", "this processor has none")
    for url in body.status_callback_urls:
        if not processor.may_call(url):
            raise _refusal("status_callback_urls", "must be https, at a host that the processor has declared")
    try:
        submitted = body.submitted_time.astimezone(UTC)
    except OverflowError:
        raise _refusal("submitted_time", "must be in the years 1 to 9999 of UTC") from None
    users = sorted({_name(each, processor) for each in body.subject_identities})
    now = datetime.now(UTC)
    return SubjectRequest(
        id=body.subject_request_id,
        status=PENDING,
        controller=controller,
        received=time_text(now),
        submitted=time_text(submitted),
        due=time_text(now + timedelta(days=processor.days)),
        begin=time_text(now + timedelta(hours=processor.delay_hours)),
        regulation=body.regulation,
        urls=tuple(dict.fromkeys(body.status_callback_urls)),
        users=tuple(users),
    )


def _name(identity: Identity, processor: Processor) -> str:
    if identity.identity_type != IDENTITY_TYPE:
        raise _refusal("identity_type", f"must be {IDENTITY_TYPE}")
    if identity.identity_format not in FORMATS[processor.names]:
        raise _refusal("identity_format", f"must be {' or '.join(FORMATS[processor.names])}")
    if "\0" in identity.identity_value:  # which no vault can hold
        raise _refusal("identity_value", "must not have the character NUL")
    if identity.identity_format == "sha256" and not _HEX.fullmatch(identity.identity_value):
        raise _refusal("identity_value", "must be 64 hexadecimal digits in the format sha256")
    return processor.name_of(identity.identity_value, identity.identity_format)


def _refusal(field: str, message: str) -> Problem:
    return Problem("invalid-request", errors=[{"at": f"body/{field}", "message": message}])
