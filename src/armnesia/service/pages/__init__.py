"""The page: what a person sees in a browser, over the same vault and with the same tokens as the API."""

import asyncio

from fastapi import FastAPI

from armnesia.service.pages import (
    certificates,
    decisions,
    explore,
    forget,
    health,
    ledger,
    requests,
    signing_in,
    static,
)
from armnesia.service.pages.sessions import Sessions

_ROUTERS = tuple(
    module.router
    for module in (signing_in, static, decisions, forget, requests, ledger, certificates, explore, health)
)


def mount(app: FastAPI, *, secure_cookies: bool = False) -> None:
    """Add the page to an application; `secure_cookies`: browsers reach it by TLS only."""
    app.state.sessions = Sessions()
    app.state.service.sweeps.append(app.state.sessions.sweep)
    app.state.secure_cookies, app.state.exploring = secure_cookies, asyncio.Semaphore(1)
    for router in _ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.include_router(signing_in.last_router, include_in_schema=False)
