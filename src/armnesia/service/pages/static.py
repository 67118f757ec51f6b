"""The style sheet, the scripts and the icon of the page."""

import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from armnesia.service.problems import Problem

_MEDIA_TYPES: Final = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "vendor/htmx.min.js": "text/javascript",
    "vendor/uPlot.iife.min.js": "text/javascript",
    "vendor/uPlot.min.css": "text/css",
}
"""All files that are served; no other can be asked for."""
_FOREVER = "public, max-age=31536000, immutable"

router = APIRouter()


@lru_cache
def _content(name: str) -> bytes:
    return files("armnesia.service.pages").joinpath("static", *name.split("/")).read_bytes()


@lru_cache
def static_url(name: str) -> str:
    """The address of a file, which is another one when its content changes.

    >>> static_url("page.css").partition("?")[0]
    '/page/static/page.css'
    """
    return f"/page/static/{name}?{hashlib.sha256(_content(name)).hexdigest()[:12]}"


@router.get("/page/static/{name:path}")
async def show_file(name: str) -> Response:
    """A file; whoever is to sign in needs them, so that they need no token."""
    if name not in _MEDIA_TYPES:
        raise Problem("not-found")
    return Response(_content(name), media_type=_MEDIA_TYPES[name], headers={"Cache-Control": _FOREVER})
