"""Adding records."""

import math
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, Field, WithJsonSchema
from starlette.responses import Response

from armnesia.core.errors import ArmnesiaError, Fault, InvalidLogError, OtherColumnsError
from armnesia.service.answer_types import RecordsAdded
from armnesia.service.api.answers import Body, answer
from armnesia.service.idempotency import IdempotencyKey
from armnesia.service.problems import Problem, problem_of
from armnesia.service.running import done, service_of
from armnesia.service.tokens import Caller, Route, access
from armnesia.vault import EXTERNAL, Ingested, Role, Vault

_VALUE_SCHEMA = {"type": ["string", "number", "boolean", "null"]}
router = APIRouter(tags=["records"], route_class=Route)


def _checked_value(value: Any) -> Any:
    """Refuse what a cell of a log cannot be; numbers are never turned into others."""
    if value is None or type(value) in (str, bool):
        return value
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    raise ValueError("must be text, a number of at most 64 bits, true, false or null")


Value = Annotated[Any, AfterValidator(_checked_value), WithJsonSchema(_VALUE_SCHEMA)]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]


class Records(Body):
    """Rows, each with an id of its own: a row that is sent twice is added once.

    `action`, `reward`, `user` and `id` are the names of the fields that have them, which are the columns of
    the vault's first ingest.
    """

    rows: list[dict[str, Value]] = Field(
        min_length=1,
        fail_fast=True,
        description="Objects with the same fields, those of key columns among them.",
        examples=[[{"id": "r-1", "action": "A", "reward": 1, "user": "user-3"}]],
    )
    action: ColumnName = "action"
    reward: ColumnName = "reward"
    user: ColumnName | None = Field("user", description="null: the rows belong to no user.")
    id: ColumnName = "id"
    replace: bool = Field(False, description="Rows come in the place of the records with their ids.")
    dry_run: bool = Field(False, description="Say what would be done, and do nothing.")


@router.post(
    "/v1/records",
    summary="Add records",
    **access(Role.OPERATOR, 409, 413, model=RecordsAdded),
)
async def add_records(
    request: Request, token: Caller, body: Records, idempotency_key: IdempotencyKey = None
) -> Response:
    """Add rows, without those of forgotten people."""
    service = service_of(request)
    if len(body.rows) > service.settings.rows:
        raise Problem("batch-too-large")
    columns = _columns(body)

    async def add() -> JSONResponse:
        try:
            added = await done(service.worker.write(lambda vault: _ingest(vault, columns, body)))
        except ArmnesiaError as error:
            raise _placed(error) from error
        return answer(added.to_dict())

    place = (token.number, "records", None if body.dry_run else idempotency_key)
    return await service.answers.once(place, await request.body(), add)


def _columns(body: Records) -> dict[str, list[Any]]:
    """The rows by columns; all of them must have the same, and the id must be given."""
    names = set(body.rows[0])
    for role in ("action", "reward", "user"):
        if (column := getattr(body, role)) is not None and column not in names:
            raise _wrong(0, f"must have the field that {role} names, by default {role!r}")
    for number, row in enumerate(body.rows):
        if set(row) != names:
            raise _wrong(number, "must have the same fields as the first row")
        if not _is_name(row.get(body.id)):
            raise _wrong(number, "must have an id, which is text or a whole number")
        if body.user is not None and not (row.get(body.user) is None or _is_name(row[body.user])):
            raise _wrong(number, "must have a user that is text or a whole number, or null")
        if not isinstance(row[body.reward], int | float | None):
            raise _placed(InvalidLogError("rewards").at(Fault("reward", number + 1, "must be a number")))
    return {name: [row[name] for row in body.rows] for name in body.rows[0]}


def _is_name(value: Any) -> bool:
    """Whether a value names something: a decimal number may stand for several names."""
    return type(value) is int or (type(value) is str and value != "")


def _wrong(number: int, message: str) -> Problem:
    return Problem("invalid-request", errors=[{"at": f"body/rows/{number}", "message": message}])


def _ingest(vault: Vault, columns: dict[str, list[Any]], body: Records) -> Ingested:
    if vault.configuration.mode == EXTERNAL:
        raise Problem("external-vault")
    keys = [column.name for column in vault.configuration.key_columns]
    if not set(keys) <= columns.keys():
        message = f"must have the fields by which the vault tells decisions apart: {', '.join(keys)}"
        raise InvalidLogError("key columns are missing").at(Fault("", 1, message))
    try:
        return vault.ingest(
            columns,
            action=body.action,
            reward=body.reward,
            user=body.user,
            id=body.id,
            no_user=body.user is None,
            replace=body.replace,
            dry_run=body.dry_run,
        )
    except (TypeError, OverflowError) as error:  # mixed types in one column
        raise InvalidLogError("the columns have values of several types") from error


def _placed(error: ArmnesiaError) -> Problem:
    """The problem, with the rows and fields that it is about: what is wrong there, without the values."""
    errors = [
        {"at": f"body/rows/{fault.row - 1}" + (f"/{fault.role}" if fault.role else ""), "message": fault.rule}
        for fault in error.faults
    ]
    if isinstance(error, OtherColumnsError):
        message = f"must be the column that the vault has its {error.role}s from: {error.known}"
        if error.known is None:
            message = "must not be given: the vault knows its rows by their contents, and takes none here"
        errors = [{"at": f"body/{error.role}", "message": message}]
    return Problem(problem_of(error).kind, errors=errors)
