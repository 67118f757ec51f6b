"""What endpoints return: the JSON of results, and its documentation."""

from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from armnesia.core.json_values import json_value


class Body(BaseModel):
    """The body of a request: unknown fields are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Documented(BaseModel):
    """The body of an answer as the OpenAPI document describes it; answers are made by `to_dict()`."""


def answer(result: Any, status: int = 200, **headers: str) -> JSONResponse:
    """An answer with this JSON."""
    return JSONResponse(
        json_value(result), status, {name.replace("_", "-"): value for name, value in headers.items()}
    )
