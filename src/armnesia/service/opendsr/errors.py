"""Errors as OpenDSR has them."""

from fastapi.responses import JSONResponse

from armnesia.service.problems import KINDS, Problem

PREFIX = "/v2/"
_AS_400 = {405, 409, 413, 422}
"""What the specification wants told as 400; others, such as 401 and 404, say more."""


def error_response(problem: Problem) -> JSONResponse:
    """The answer to a request that is refused.

    >>> error_response(Problem("invalid-request")).status_code
    400
    """
    status = 400 if problem.status in _AS_400 else problem.status
    sentence = KINDS[problem.kind].sentence
    each = [{"message": f"{each['at']}: {each['message']}"} for each in problem.errors] or [
        {"message": sentence}
    ]
    errors = [{"domain": "Validation", "reason": problem.kind, **one} for one in each]
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": {"code": status, "message": sentence, "errors": errors}}, status, headers)
