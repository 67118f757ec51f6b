"""The ledger: its entries and its head."""

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from armnesia.core.errors import InvalidInputError
from armnesia.service.api.deletions import EntryNumber
from armnesia.service.pages.history import KIND_WORDS, newest_first
from armnesia.service.pages.paging import PAGE, ListPage, whole_number
from armnesia.service.pages.routing import PageRoute, field, form_of, needs
from armnesia.service.pages.templating import rendered
from armnesia.service.problems import Problem
from armnesia.service.running import done, service_of
from armnesia.vault import Entry, Role, Vault

router = APIRouter(route_class=PageRoute)
_SEARCHED = 5_000


@router.get("/page/ledger", **needs(Role.READER))
async def show_ledger(request: Request, page: int = 1) -> Response:
    """The entries, the newest first."""
    checkpoint, rows = await done(service_of(request).worker.read(lambda vault: _entries(vault, page)))
    return _listed(request, checkpoint, rows, "")


@router.post("/page/ledger", **needs(Role.READER))
async def search_ledger(request: Request) -> Response:
    """The entries that have a number, a day or a word."""
    form = await form_of(request)
    search, page = field(form, "search"), whole_number(field(form, "page"))
    worker = service_of(request).worker
    if not search:
        checkpoint, rows = await done(worker.read(lambda vault: _entries(vault, page)))
    else:
        checkpoint, rows = await done(worker.read(lambda vault: _found(vault, search, page)))
    return _listed(request, checkpoint, rows, search)


def _listed(request: Request, checkpoint: str, rows: ListPage, search: str) -> Response:
    values = {
        "checkpoint": checkpoint,
        "listed": rows,
        "search": search,
        "searched": _SEARCHED,
    }
    return rendered(request, "ledger.html", values)


def _entries(vault: Vault, number: int) -> tuple[str, ListPage]:
    """A page of all entries, read by their numbers."""
    size = vault.head.size
    pages = max(1, -(-size // PAGE))
    number = min(max(number, 1), pages)
    last = size - (number - 1) * PAGE
    first = max(0, last - PAGE)
    entries = vault.ledger(after=first, most=last - first).entries
    rows = [_row(each) for each in reversed(entries)]
    return vault.checkpoint(), ListPage(rows, number, pages, size)


def _found(vault: Vault, search: str, number: int) -> tuple[str, ListPage]:
    if search.isdecimal() and search.isascii():
        wanted = whole_number(search, 0)
        entries = list(vault.ledger(after=wanted - 1, most=1)) if wanted >= 1 else []
    else:
        entries = [each for each in newest_first(vault, _SEARCHED) if _matches(each, search.casefold())]
    return vault.checkpoint(), ListPage.of([_row(each) for each in entries], number)


def _matches(entry: Entry, search: str) -> bool:
    return (
        entry.time.casefold().startswith(search)
        or search in KIND_WORDS[entry.kind].casefold()
        or search == entry.kind
    )


def _row(entry: Entry) -> dict[str, Any]:
    method = entry.facts.get("unlearner")
    return {
        "number": entry.number,
        "time": entry.time,
        "words": KIND_WORDS[entry.kind],
        "method": method["name"] if method else "",
        "certified": entry.kind == "forget",
    }


@router.post("/page/ledger/check", **needs(Role.READER))
async def compare_checkpoint(request: Request) -> Response:
    """Whether the ledger is still that of a checkpoint that was kept elsewhere."""
    text = field(await form_of(request), "checkpoint").replace("\r\n", "\n") + "\n"
    try:
        found = await done(service_of(request).worker.read(lambda vault: vault.check_ledger(text)))
        values = {"found": found, "error": ""}
    except InvalidInputError:
        values = {"found": None, "error": "This is no checkpoint: paste all its lines, as they were copied."}
    return rendered(request, "compared.html", values)


@router.get("/page/ledger/{number}", **needs(Role.READER))
async def show_entry(request: Request, number: EntryNumber) -> Response:
    """One entry, with all its facts."""
    entries = await done(
        service_of(request).worker.read(lambda vault: vault.ledger(after=number - 1, most=1))
    )
    if not entries:
        raise Problem("not-found")
    (entry,) = entries
    text = json.dumps(entry.to_dict(), indent=2, ensure_ascii=False, sort_keys=True)
    values = {"entry": _row(entry), "text": text}
    return rendered(request, "entry.html", values)
