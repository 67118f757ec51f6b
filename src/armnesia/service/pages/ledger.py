"""The ledger: its entries, its chain and its head."""

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
from armnesia.vault.ledger.certificate_text import CERTIFIED

router = APIRouter(route_class=PageRoute)
_CHECKED_AT_ONCE = 20_000
"""Entries: the chain of a longer ledger is checked if somebody asks for it."""
_SEARCHED = 5_000


@router.get("/page/ledger", **needs(Role.READER))
async def show_ledger(request: Request, page: int = 1) -> Response:
    """The entries, the newest first."""
    head, rows = await done(service_of(request).worker.read(lambda vault: _entries(vault, page)))
    return _listed(request, head, rows, "")


@router.post("/page/ledger", **needs(Role.READER))
async def search_ledger(request: Request) -> Response:
    """The entries that have a number, a day, a hash or a word."""
    form = await form_of(request)
    search, page = field(form, "search"), whole_number(field(form, "page"))
    worker = service_of(request).worker
    if not search:
        head, rows = await done(worker.read(lambda vault: _entries(vault, page)))
    else:
        head, rows = await done(worker.read(lambda vault: _found(vault, search, page)))
    return _listed(request, head, rows, search)


def _listed(request: Request, head: Any, rows: ListPage, search: str) -> Response:
    values = {
        "head": head,
        "listed": rows,
        "search": search,
        "searched": _SEARCHED,
        "check_now": head.sequence <= _CHECKED_AT_ONCE,
    }
    return rendered(request, "ledger.html", values)


def _entries(vault: Vault, number: int) -> tuple[Any, ListPage]:
    """A page of all entries, read by their numbers."""
    head = vault.head
    pages = max(1, -(-head.sequence // PAGE))
    number = min(max(number, 1), pages)
    last = head.sequence - (number - 1) * PAGE
    first = max(0, last - PAGE)
    entries = vault.ledger(after=first, most=last - first)
    return head, ListPage([_row(each) for each in reversed(entries)], number, pages, head.sequence)


def _found(vault: Vault, search: str, number: int) -> tuple[Any, ListPage]:
    head = vault.head
    if search.isdecimal() and search.isascii():
        wanted = whole_number(search, 0)
        entries = list(vault.ledger(after=wanted - 1, most=1)) if 1 <= wanted <= head.sequence else []
    else:
        entries = [each for each in newest_first(vault, _SEARCHED) if _matches(each, search.casefold())]
    return head, ListPage.of([_row(each) for each in entries], number)


def _matches(entry: Entry, search: str) -> bool:
    return (
        entry.time.casefold().startswith(search)
        or entry.hash.startswith(search)
        or search in KIND_WORDS[entry.kind].casefold()
        or search == entry.kind
    )


def _row(entry: Entry) -> dict[str, Any]:
    facts = entry.fields
    method = facts.get("unlearner")
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "words": KIND_WORDS[entry.kind],
        "method": method["name"] if method else "",
        "hash": entry.hash,
        "certified": entry.kind in CERTIFIED,
    }


@router.get("/page/ledger/check", **needs(Role.READER))
async def check_chain(request: Request) -> Response:
    """Whether every entry follows from the one before, up to the head."""
    found = await done(service_of(request).worker.read(lambda vault: vault.check_ledger(vault.head)))
    return rendered(request, "parts/chain.html", {"found": found, "error": "", "kept": False})


@router.post("/page/ledger/check", **needs(Role.READER))
async def compare_head(request: Request) -> Response:
    """Whether the ledger has the entry of a head that was kept elsewhere."""
    text = field(await form_of(request), "head")
    try:
        found = await done(service_of(request).worker.read(lambda vault: vault.check_ledger(text)))
        values = {"found": found, "error": "", "kept": True}
    except InvalidInputError:
        error = "A head is a number, a colon and 64 digits or letters from a to f, as in 12:3f8a…"
        values = {"found": None, "error": error, "kept": True}
    return rendered(request, "parts/chain.html", values)


@router.get("/page/ledger/{number}", **needs(Role.READER))
async def show_entry(request: Request, number: EntryNumber) -> Response:
    """One entry, with all its facts."""
    entries = await done(
        service_of(request).worker.read(lambda vault: vault.ledger(after=number - 1, most=1))
    )
    if not entries:
        raise Problem("not-found")
    text = json.dumps(dict(entries[0].fields), indent=2, ensure_ascii=False, sort_keys=True)
    values = {"entry": _row(entries[0]), "text": text, "previous": entries[0].previous}
    return rendered(request, "entry.html", values)
