"""The service: an HTTP API over a vault, tokens, and OpenDSR; imported only where it is used."""

import importlib
from typing import Any

from armnesia.core.errors import MissingExtraError

_NAMES = {
    "Client": "armnesia.service.client",
    "ServiceError": "armnesia.service.client",
    "Settings": "armnesia.service.settings",
    "create_app": "armnesia.service.app",
}

__all__ = ["Client", "ServiceError", "Settings", "create_app"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_NAMES[name])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("armnesia"):
            raise
        raise MissingExtraError.naming("The service", "service") from error
    return getattr(module, name)
