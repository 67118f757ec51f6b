"""The application: endpoints, the layers around them, and the OpenAPI document."""

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.types import Scope

from armnesia import __version__
from armnesia.core.errors import ArmnesiaError
from armnesia.service.api import ROUTERS
from armnesia.service.frame import HEADERS, HSTS, Frame
from armnesia.service.opendsr.desk import Desk
from armnesia.service.opendsr.endpoints import router as opendsr_router
from armnesia.service.opendsr.errors import PREFIX, error_response
from armnesia.service.opendsr.processor import Processor
from armnesia.service.pages import mount
from armnesia.service.problems import (
    Problem,
    ProblemDetails,
    problem_of,
    problem_of_status,
    problem_of_validation,
)
from armnesia.service.running import Service
from armnesia.service.settings import Settings
from armnesia.service.structured_log import described
from armnesia.vault import Vault

_DESCRIPTION = (
    "Decisions of a vault, deletions with their certificates, and the ledger. Every request needs a token:"
    " its role is reader, operator or admin, in this order. No address names a person."
)


def create_app(
    open_vault: Callable[[], Vault],
    settings: Settings | None = None,
    *,
    processor: Processor | None = None,
    hosts: Collection[str] = ("*",),
    behind_tls_proxy: bool = False,
) -> FastAPI:
    """Make the application over a vault; `open_vault` makes a new connection to it.

    With a `processor`, requests of controllers are taken by OpenDSR. `hosts` are the names under which it may
    be called. `behind_tls_proxy`: browsers reach it by TLS only, and are told to remember that.

    >>> app = create_app(lambda: Vault.open("sqlite:///vault.db"))
    >>> sorted(app.openapi()["paths"])[:2]
    ['/health', '/healthz']
    """
    service = Service(open_vault, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if processor is not None:
            with open_vault() as vault:
                processor.check_vault(vault.configuration)
        async with service.running(*background):
            yield

    app = FastAPI(
        title="armnesia",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # its page would load programs from another host
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    background: list[Callable[[], Coroutine[Any, Any, None]]] = []
    if processor is not None:
        app.include_router(opendsr_router)
        app.state.processor, app.state.desk = processor, Desk(service.worker, processor)
        background.append(app.state.desk.run)
    mount(app, secure_cookies=behind_tls_proxy)
    _tell_problems(app)
    # A page of another site can have its own name point at this machine (DNS rebinding).
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(  # the last one added is the outermost
        Frame,
        tell=_answer_to,
        metrics=service.metrics,
        body_bytes=service.settings.body_bytes,
        headers={**HEADERS, **(HSTS if behind_tls_proxy else {})},
    )
    _document(app)
    return app


def _tell_problems(app: FastAPI) -> None:
    """Tell every error as a problem."""
    fields: set[str] = set()

    async def of_error(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        cause = error.__cause__ if error is problem else error
        own = {} if cause is None else described(cause)
        request.scope["armnesia.problem"] = {"problem": problem.kind, **own}
        return _answer_to(request.scope, problem)

    async def of_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, Problem):  # raised while the body was read
            return _answer_to(request.scope, error.__cause__)
        response = _answer_to(request.scope, problem_of_status(error.status_code))
        if "allow" in (names := {name.lower(): value for name, value in (error.headers or {}).items()}):
            response.headers["Allow"] = names["allow"]
        return response

    async def of_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        if not fields:
            fields.update(_names_in(app.openapi()))
        return _answer_to(request.scope, problem_of_validation(error.errors(), frozenset(fields)))

    app.add_exception_handler(ArmnesiaError, of_error)
    app.add_exception_handler(Problem, of_error)
    app.add_exception_handler(HTTPException, of_status)
    app.add_exception_handler(RequestValidationError, of_validation)


def _answer_to(scope: Scope, problem: Problem) -> Response:
    """The answer to a request that is refused, in the form that its caller expects."""
    return error_response(problem) if scope["path"].startswith(PREFIX) else problem.response()


def _names_in(document: Mapping[str, Any]) -> set[str]:
    """The names of all documented fields and parameters, which may be repeated in an answer."""
    names = {"body", "path", "query", "header"}
    for schema in document["components"]["schemas"].values():
        names |= set(schema.get("properties", ()))
    for methods in document["paths"].values():
        for endpoint in methods.values():
            names |= {each["name"] for each in endpoint.get("parameters", ())}
    return names


def _document(app: FastAPI) -> None:
    """Make the OpenAPI document, with the schema of problems."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):  # nothing refers to them
                schemas.pop(name, None)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
