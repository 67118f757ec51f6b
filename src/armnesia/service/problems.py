"""Errors as the service tells them: RFC 9457 problem details, one sentence each, without anybody's name.

The messages of the vault may quote names and values, so that none of them is passed on: an error is told by
its class.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any, NamedTuple

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from armnesia.core.errors import (
    ArmnesiaError,
    ChangedRecordError,
    DamagedDatabaseError,
    DatabaseError,
    ImpossibleDeletionError,
    InvalidInputError,
    InvalidLogError,
    OtherColumnsError,
    OutdatedSourceError,
    PolicyError,
    RefusedArmError,
    SimilarNameError,
    SourceError,
    UndeclaredActionError,
    UnfinishedError,
    UnknownEntryError,
    UnreadableSourceError,
    UnsupportedError,
    VaultBusyError,
    VaultError,
)

MEDIA_TYPE = "application/problem+json"
_URN = "urn:armnesia:problem:"


class Kind(NamedTuple):
    """A kind of problem: its status, and what is told of it."""

    status: int
    sentence: str
    retry_after: int | None = None
    """Seconds."""


KINDS = {
    "unauthorized": Kind(401, "The request needs a token that is valid: Authorization: Bearer TOKEN."),
    "forbidden": Kind(403, "The role of the token does not allow this."),
    "not-found": Kind(404, "There is nothing at this address."),
    "no-decision": Kind(404, "The vault has no decision with this key."),
    "no-certificate": Kind(404, "The vault has no deletion, and no certificate, with this number."),
    "no-request": Kind(404, "There is no request with this id."),
    "method-not-allowed": Kind(405, "This address does not take requests of this method."),
    "similar-name": Kind(
        409,
        "The vault holds rows of a person or record spelled nearly as one in the request: name it as the"
        " vault does, or state by exactly that the names are meant as they are; nothing was changed.",
    ),
    "beyond-policy": Kind(409, "The policy of the vault does not allow this request; nothing was changed."),
    "external-vault": Kind(
        409, "The vault counts its records at their sources, so that none can be added here."
    ),
    "key-in-use": Kind(409, "A request with the same Idempotency-Key is being answered.", 1),
    "changed-source": Kind(
        409,
        "A source of the vault has changed since it was counted, and a preview counts nothing again: run"
        " armnesia ingest with it; nothing was changed.",
    ),
    "unreadable-source": Kind(
        409,
        "A source of the vault is gone or cannot be read: make it readable again or restore it or, if"
        " it no longer exists, run armnesia restore --without; nothing was changed.",
    ),
    "unfinished-erasure": Kind(
        409,
        "Rows were not erased at every source of the vault: armnesia erase says why, and does the rest.",
    ),
    "cancelled": Kind(
        409, "The request with this id was cancelled, and nothing will be done; send a new one by another id."
    ),
    "not-pending": Kind(409, "Only a request that is pending can be cancelled."),
    "other-columns": Kind(
        409,
        "The vault has its actions, rewards, users or ids from another column, that of its first ingest: name"
        " the field as that column; nothing was changed.",
    ),
    "changed-record": Kind(
        409,
        "The vault holds a record with this id and another content: give the row an id of its own, or, if"
        " its action, reward or key was corrected, send it with replace; nothing was changed.",
    ),
    "refused-arm": Kind(
        409,
        "A new row has an arm that its decision does not offer: leave it out, or offer the arm with armnesia"
        " arms add; nothing was changed.",
    ),
    "refused-by-vault": Kind(
        409, "The vault refuses this in its present state; armnesia verify and status say more."
    ),
    "no-permission": Kind(
        409,
        "The vault may not erase rows at their sources: that is permitted when an external vault is created;"
        " nothing was changed.",
    ),
    "erasure-running": Kind(
        409, "An erasure at the sources is under way; GET /v1/erasures says how far it is."
    ),
    "not-erasable": Kind(
        409, "Rows cannot be erased at a source as it is; armnesia erase says where and why."
    ),
    "body-too-large": Kind(413, "The body of the request is larger than this service takes."),
    "batch-too-large": Kind(413, "The request has more names or rows than this service takes at once."),
    "invalid-request": Kind(422, "A part of the request is not as documented; nothing was changed."),
    "invalid-value": Kind(422, "The vault does not accept a value in the request; nothing was changed."),
    "invalid-rows": Kind(422, "The rows are not a log that the vault can read; nothing was changed."),
    "undeclared-action": Kind(
        422,
        "A row has an action that the vault does not have; offer a new arm with armnesia arms add; nothing"
        " was changed.",
    ),
    "unsupported": Kind(422, "No guarantee is known for this combination; nothing was changed."),
    "another-body": Kind(422, "The Idempotency-Key was used with another request; nothing was changed."),
    "internal-error": Kind(500, "The service failed; its log says where."),
    "vault-busy": Kind(503, "Another process is changing the vault; nothing was changed, try again.", 1),
    "too-busy": Kind(503, "Too many requests are waiting; nothing was changed, try again.", 1),
    "vault-unreadable": Kind(
        503, "The vault cannot be read, nor can tokens be checked; armnesia verify and status say more.", 5
    ),
    "database-unavailable": Kind(503, "The database of the vault does not answer; try again later.", 5),
}
"""The kinds of problems by the last part of their `type`."""

_BY_CLASS: Mapping[type[ArmnesiaError], str] = {
    VaultBusyError: "vault-busy",
    DatabaseError: "database-unavailable",
    DamagedDatabaseError: "vault-unreadable",
    SimilarNameError: "similar-name",
    OtherColumnsError: "other-columns",
    ChangedRecordError: "changed-record",
    RefusedArmError: "refused-arm",
    PolicyError: "beyond-policy",
    UnknownEntryError: "no-certificate",
    VaultError: "refused-by-vault",
    UnsupportedError: "unsupported",
    OutdatedSourceError: "changed-source",
    UnreadableSourceError: "unreadable-source",
    UnfinishedError: "unfinished-erasure",
    UndeclaredActionError: "undeclared-action",
    ImpossibleDeletionError: "refused-by-vault",
    InvalidLogError: "invalid-rows",
    InvalidInputError: "invalid-value",
}
_BY_STATUS = {
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
}


class ProblemDetails(BaseModel):
    """A problem, as RFC 9457 has it."""

    type: str = Field(examples=[f"{_URN}vault-busy"])
    title: str = Field(examples=["Service Unavailable"])
    status: int = Field(examples=[503])
    detail: str = Field(examples=[KINDS["vault-busy"].sentence], description="One sentence.")
    errors: list[dict[str, str]] | None = Field(
        default=None, description="Which parts of the request it is about, the first few, and why."
    )
    source: str | None = Field(default=None, description="The id of the source that it is about.")


class Problem(Exception):  # noqa: N818 (the word of RFC 9457)
    """A problem of a kind in `KINDS`, to be told to the caller.

    >>> Problem("vault-busy").to_dict()["status"]
    503
    """

    def __init__(
        self,
        kind: str,
        *,
        errors: Iterable[Mapping[str, str]] = (),
        source: str | None = None,
    ) -> None:
        super().__init__(kind)
        self.source = source
        self.kind, self.status = kind, KINDS[kind].status
        self.errors = [dict(each) for each in errors]
        self.retry_after = KINDS[kind].retry_after

    def to_dict(self) -> dict[str, Any]:
        """The body of the answer."""
        return {
            "type": _URN + self.kind,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": KINDS[self.kind].sentence,
            **({"errors": self.errors} if self.errors else {}),
            **({} if self.source is None else {"source": self.source}),
        }

    def response(self) -> JSONResponse:
        """The answer."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.to_dict(), self.status, headers, MEDIA_TYPE)


def problem_of(error: BaseException) -> Problem:
    """What is told of an error: that of the nearest class; any other error is the service's own.

    >>> problem_of(VaultBusyError("the vault '/srv/ann.db' is in use")).to_dict()["detail"]
    'Another process is changing the vault; nothing was changed, try again.'
    >>> problem_of(ZeroDivisionError()).status
    500
    """
    if isinstance(error, Problem):
        return error
    known = (_BY_CLASS[kind] for kind in type(error).__mro__ if kind in _BY_CLASS)
    source = error.source if isinstance(error, SourceError) else None
    return Problem(next(known, "internal-error"), source=source)


def unreadable(error: ArmnesiaError) -> Problem:
    """What is told of a vault that cannot be read, whatever was asked of it.

    >>> unreadable(VaultError("the vault was changed")).status
    503
    """
    found = problem_of(error)
    return found if found.status == HTTPStatus.SERVICE_UNAVAILABLE else Problem("vault-unreadable")


def problem_of_status(status: int) -> Problem:
    """What is told of a request that no handler has seen."""
    return Problem(_BY_STATUS.get(status, "invalid-request"))


def problem_of_validation(errors: Iterable[Mapping[str, Any]], known: frozenset[str]) -> Problem:
    """Say which parts of a request are wrong, and why; only names of documented fields are repeated.

    >>> found = {"loc": ("body", "users", 0), "msg": "Input should be a valid string", "input": 1.5}
    >>> problem_of_validation([found], frozenset(["body", "users"])).errors
    [{'at': 'body/users/0', 'message': 'Input should be a valid string'}]
    """
    return Problem(
        "invalid-request",
        errors=[
            {"at": "/".join(_shown(part, known) for part in each["loc"]), "message": _message(each)}
            for each in islice(errors, _MOST_ERRORS)
        ],
    )


_MOST_ERRORS = 20
_NOT_JSON = "must be JSON, sent with Content-Type: application/json"


def _message(error: Mapping[str, Any]) -> str:
    """Why a part is wrong; a body that was sent as a form, or in another type, arrives as text."""
    is_no_json = tuple(error["loc"]) == ("body",) and isinstance(error.get("input"), bytes | str)
    return _NOT_JSON if is_no_json or error.get("type") == "json_invalid" else str(error["msg"])


def _shown(part: object, known: frozenset[str]) -> str:
    """A part of a place: a number, or the name of a documented field."""
    return str(part) if isinstance(part, int) or part in known else "…"


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of an endpoint, for the OpenAPI document."""
    shared = {401, 403, 422, 500, 503}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted(shared | set(statuses))
    }
