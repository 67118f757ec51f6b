"""What is served: all decisions, and one with its arms."""

import math
import unicodedata
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from armnesia.core.errors import InvalidInputError
from armnesia.logs.keys import KeyColumn
from armnesia.service.api.decisions import ONLY, decision_id, decision_with_arms, each_decision, key_of
from armnesia.service.pages.history import BY_WORDS, reason_of
from armnesia.service.pages.paging import ListPage, whole_number
from armnesia.service.pages.routing import PageRoute, Signed, field, form_of, needs
from armnesia.service.pages.templating import rendered
from armnesia.service.problems import Problem
from armnesia.service.running import done, service_of
from armnesia.vault import Role, Vault

router = APIRouter(route_class=PageRoute)
_SORTS = {
    "order": "in order of appearance",
    "decision": "by decision",
    "arm": "by served arm",
    "why": "by what chose it",
}
_MOST_ARMS = 25
_ARM_SORTS = {"mean": "highest mean", "count": "most records", "arm": "name"}


@router.get("/page/decisions", **needs(Role.READER))
async def show_decisions(request: Request) -> Response:
    """All decisions; a vault without key columns has one, which is shown at once."""
    return await _listed(request, "", "order", 1)


@router.post("/page/decisions", **needs(Role.READER))
async def search_decisions(request: Request) -> Response:
    """Some decisions: what is searched for stands in no address, because somebody may type a name."""
    form = await form_of(request)
    sort = field(form, "sort")
    number = whole_number(field(form, "page"))
    return await _listed(request, field(form, "search"), sort if sort in _SORTS else "order", number)


async def _listed(request: Request, search: str, sort: str, number: int) -> Response:
    found = await done(
        service_of(request).worker.read(lambda vault: _list_page(vault, search.split(), sort, number))
    )
    if found is None:
        return RedirectResponse(f"/page/decisions/{ONLY}", 303)
    return rendered(request, "decisions.html", {**found, "search": search, "sort": sort, "sorts": _SORTS})


def _list_page(vault: Vault, searched: Sequence[str], sort: str, number: int) -> dict[str, Any] | None:
    """A page of decisions; all are read only to be searched or sorted. None if there is but one."""
    columns = vault.configuration.key_columns
    if not columns:
        return None

    def read(after: int, limit: int | None) -> tuple[list[dict[str, Any]], int]:
        found = vault.decisions(after=after, limit=limit)
        return [_row(each) for each in each_decision(found)], found.total

    by = [column.name for column in columns]
    if sort == "order" and not searched:
        listed = ListPage.read(number, read)
        return {"listed": listed, "all": listed.total, "by": by}
    rows, total = read(0, None)
    words = [_searched(word, columns) for word in searched]
    kept = [row for row in rows if all(word in row["text"] for word in words)]
    if sort != "order":
        kept.sort(
            key=lambda row: str(row[{"decision": "id", "arm": "action", "why": "why"}[sort]]).casefold()
        )
    return {"listed": ListPage.of(kept, number), "all": total, "by": by}


def _searched(word: str, columns: Sequence[KeyColumn]) -> str:
    """What a word is searched as: a number of a key with edges as the interval in which it lies.

    >>> _searched("Age=25", [KeyColumn("age", (18, 30))]), _searched("=DE", [KeyColumn("country")])
    (' age=18..30 ', '=de')
    """
    name, _, value = word.partition("=")
    for column in columns:
        interval = column.interval_of(value) if column.edges else None
        if interval is not None and searchable(column.name) == searchable(name):
            return searchable(f" {column.name}={interval} ")  # not a part of another interval
    return searchable(word)


def _row(decision: dict[str, Any]) -> dict[str, Any]:
    key = " ".join(f"{name}={value}" for name, value in decision["key"].items())
    return {
        **decision,
        "why": BY_WORDS[decision["by"]],
        "address": f"/page/decisions/{quote(decision['id'], safe='')}",
        "text": searchable(f" {key} {decision['action']}"),
    }


def searchable(text: str) -> str:
    """A text as it is compared with others: in lower case, without accents.

    >>> searchable("São Paulo"), searchable("STRASSE") == searchable("Straße")
    ('sao paulo', True)
    """
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in parts if not unicodedata.combining(each))


@router.get("/page/decisions/{key:path}", **needs(Role.READER))
async def show_decision(
    request: Request, visitor: Signed, key: str, sort: str = "mean", every: bool = False
) -> Response:
    """One decision; the numbers of its arms are for operators, because their change reveals deletions."""
    with_arms = visitor.may(Role.OPERATOR)
    try:
        found = await done(service_of(request).worker.read(lambda vault: _decision(vault, key, with_arms)))
    except InvalidInputError:
        raise Problem("no-decision") from None
    sort = sort if sort in _ARM_SORTS else "mean"
    arms = sorted(found["arms"], key=_arm_order(sort))
    shown = arms if every else _first(arms, found["action"])
    values = {
        **found,
        "arms": shown,
        "hidden": len(arms) - len(shown),
        "sort": sort,
        "sorts": _ARM_SORTS,
        "address": quote(key, safe=""),
    }
    return rendered(request, "decision.html", values)


def _decision(vault: Vault, text: str, with_arms: bool) -> dict[str, Any]:
    key = key_of(text)
    served = vault.decide(key)
    configuration = vault.configuration
    arms = decision_with_arms(vault, text)["arms"] if with_arms else []
    own = dict(served.key or {})
    return {
        "id": decision_id(own),
        "key": own,
        "action": served.action,
        "why": BY_WORDS[served.by],
        "reason": reason_of(vault, served.key, served.by),
        "arms": [{**arm, "mean": None if math.isnan(arm["mean"]) else arm["mean"]} for arm in arms],
        "scale": configuration.reward_range,
        "records": sum(arm["count"] for arm in arms),
    }


def _first(arms: list[dict[str, Any]], served: Any) -> list[dict[str, Any]]:
    """The first arms, and the served one wherever it is."""
    if len(arms) <= _MOST_ARMS + 5:
        return arms
    return [arm for place, arm in enumerate(arms) if place < _MOST_ARMS or arm["action"] == served]


def _arm_order(sort: str) -> Any:
    if sort == "arm":
        return lambda arm: str(arm["action"]).casefold()
    if sort == "count":
        return lambda arm: -arm["count"]
    return lambda arm: math.inf if arm["mean"] is None else -arm["mean"]
