"""What is served."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of, listed
from armnesia.logs.keys import KeyColumn
from armnesia.service.answer_types import Decisions, DecisionWithArms
from armnesia.service.api.answers import answer
from armnesia.service.problems import Problem
from armnesia.service.running import done, service_of
from armnesia.service.tokens import Route, access
from armnesia.vault import OPERATOR_ONLY, Role, ServedDecisions, Vault

router = APIRouter(tags=["decisions"], route_class=Route)

ONLY = "only"
"""The id of the decision of a vault without key columns."""
CONFIDENCE = 0.95
"""The probability with which an interval covers the expected reward of an arm."""


@router.get(
    "/v1/decisions",
    summary="The served arms",
    description="`where` keeps the decisions whose key has a value, as in where=country=DE; of a key with"
    " edges a number, as in where=age=25, or its interval, as in where=age=18..30.",
    **access(Role.READER, model=Decisions),
)
async def list_decisions(
    request: Request,
    where: Annotated[list[str], Query(max_length=20, examples=[["country=DE", "age=25"]])] = [],  # noqa: B006
    after: Annotated[int, Query(ge=0, le=2**53, description="How many to leave out.")] = 0,
    limit: Annotated[int, Query(ge=1, description="At most the limit of the service.")] = 100,
) -> JSONResponse:
    """The arm that each decision serves, some decisions at a time."""
    service = service_of(request)
    most = min(limit, service.settings.page)
    return answer(await done(service.worker.read(lambda vault: _listed(vault, where, after, most))))


def _listed(vault: Vault, where: Sequence[str], after: int, most: int) -> dict[str, Any]:
    """Some decisions; all are read only if some of several keys are asked for."""
    columns, end = vault.configuration.key_columns, after + most
    wanted = _wanted(where, columns)
    if wanted:
        found = _with_key(vault, wanted) if len(wanted) == len(columns) else vault.decisions()
        kept = [each for each in each_decision(found) if wanted.items() <= each["key"].items()]
        total, shown = len(kept), kept[after:end]
    else:
        found = vault.decisions(after=after, limit=most)
        total, shown = found.total, each_decision(found)
    return {
        "by": found.by,
        "head": str(found.head),
        "total": total,
        "decisions": shown,
        "next": end if end < total else None,
    }


def _with_key(vault: Vault, key: Mapping[str, str]) -> ServedDecisions:
    """The one decision with a key, or none."""
    none = vault.decisions(limit=0)
    try:
        served = vault.decide(key)
    except InvalidInputError:
        return none
    return replace(
        none, keys=(served.key or {},), actions=(served.action,), chosen_by=(served.by,), head=served.head
    )


@router.get(
    "/v1/decisions/{key:path}",
    summary="One decision with its arms",
    description="Count, mean, score and confidence interval of each arm, for operators: published before"
    " and after a deletion, they reveal what was deleted. A vault without key columns has the decision"
    f" `{ONLY}`.",
    **access(Role.OPERATOR, 404, model=DecisionWithArms),
)
async def show_decision(
    request: Request,
    key: Annotated[str, Path(description="The id of a decision.", examples=["country=DE&age=18..30"])],
) -> JSONResponse:
    """The arms of one decision."""
    try:
        found = await done(service_of(request).worker.read(lambda vault: decision_with_arms(vault, key)))
    except InvalidInputError:
        raise Problem("no-decision") from None
    return answer(found)


def decision_id(key: Mapping[str, str]) -> str:
    """The id of a decision in an address.

    >>> decision_id({"country": "DE", "age": "18..30"}), decision_id({})
    ('country=DE&age=18..30', 'only')
    """
    return urlencode(key) or ONLY


def interval(mean: float, count: int, reward_range: tuple[float, float]) -> list[float]:
    """The interval of Hoeffding's inequality, which holds for all bounded rewards.

    >>> [round(end, 3) for end in interval(0.5, 1000, (0.0, 1.0))]
    [0.457, 0.543]
    >>> interval(math.nan, 0, (0.0, 1.0))
    [0.0, 1.0]
    """
    low, high = reward_range
    if count == 0:
        return [float(low), float(high)]
    radius = (high - low) * math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * count))
    return [max(float(low), mean - radius), min(float(high), mean + radius)]


def each_decision(found: ServedDecisions) -> list[dict[str, Any]]:
    """The decisions, each with its id."""
    return [{"id": decision_id(each["key"]), **each} for each in found.to_dict()["decisions"]]


def _wanted(where: Sequence[str], columns: Sequence[KeyColumn]) -> dict[str, str]:
    """The values of keys that are asked for, as decisions have them."""
    wanted: dict[str, str] = {}
    for text in where:
        column = next((each for each in columns if text.startswith(f"{each.name}=")), None)
        if column is None:
            keys = [each.name for each in columns]
            known = f"where KEY is {any_of(keys)}" if keys else "but this vault has one decision, and no keys"
            raise _refused_where(f"must be KEY=VALUE, {known}")
        if column.name in wanted:
            raise _refused_where("must have each key once")
        value = text.removeprefix(f"{column.name}=")
        found = column.interval_of(value) if column.edges else value
        if found is None:
            raise _refused_where(f"{column.name} must be a number or one of {listed(column.intervals)}")
        wanted[column.name] = found
    return wanted


def _refused_where(message: str) -> Problem:
    return Problem("invalid-request", errors=[{"at": "query/where", "message": message}])


def decision_with_arms(vault: Vault, text: str) -> dict[str, Any]:
    """The decision with this id, and the numbers of its arms."""
    key = key_of(text)
    served, status = vault.decide(key), vault.status(scores=True, where=key)
    own = dict(served.key or {})
    arms = [
        {**vars(arm), "interval": interval(arm.mean, arm.count, status.configuration.reward_range)}
        for arm in status.scores or ()
    ]
    return {
        "id": decision_id(own),
        "key": own,
        **{name: value for name, value in served.to_dict().items() if name != "key"},
        "arms": arms,
        "confidence": CONFIDENCE,
        "note": OPERATOR_ONLY,
    }


def key_of(text: str) -> dict[str, str] | None:
    """The key of the decision with this id.

    >>> key_of("country=DE&age=18..30"), key_of("only")
    ({'country': 'DE', 'age': '18..30'}, None)
    """
    if text == ONLY:
        return None
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise Problem("no-decision") from None
    if len(dict(pairs)) < len(pairs):
        raise Problem("no-decision")
    return dict(pairs)
