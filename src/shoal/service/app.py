"""The application: a list of routes over a service."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

import shoal
from shoal.errors import ShoalError, UnknownFeature
from shoal.service import routes_ask, routes_change
from shoal.service.answers import Refused, error_response, json_response, table_response
from shoal.service.edits import UnknownCluster
from shoal.service.gates import Gate
from shoal.service.routes_ask import Format, first_trouble, service_of
from shoal.service.schemas import ItemIn, ItemsIn
from shoal.service.service import Service
from shoal.service.state import CannotDo
from shoal.service.writer import QueueFull
from shoal.store.journal import JournalFull

log = logging.getLogger("shoal.service")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
ASSET_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (QueueFull, 429), (JournalFull, 507), (UnknownCluster, 404), (CannotDo, 409), (UnknownFeature, 404),
    (ShoalError, 400), (NotImplementedError, 409), (TimeoutError, 503),
)  # fmt: skip


def create_app(
    service: Service, *, hosts: tuple[str, ...] | None = None, forward: Callable[[Any], Any] | None = None
) -> FastAPI:
    """An ASGI application for a service.

    Parameters
    ----------
    service : Service
        Started and closed with the application.
    hosts : names or None
        Host names that requests may name; None: the local ones if no token is needed, else any.
    forward : function or None
        For reader processes: wraps the application to pass on what only the writer can do.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import SphericalKMeans
    >>> folder = tempfile.TemporaryDirectory()
    >>> app = create_app(Service(folder.name, SphericalKMeans(2)))
    >>> "/assign" in app.openapi()["paths"]
    True
    >>> app.state.service.close(); folder.cleanup()
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(int)  # loads what the first request would wait for
        threading.Thread(target=service.start, name="start", daemon=True).start()
        yield
        service.close()

    app = FastAPI(
        title="shoal", version=shoal.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        description="Clusters that learn: assign, suggest, learn, explore.",
    )  # fmt: skip
    app.state.service, app.state.streams = service, set()
    app.include_router(routes_ask.router, tags=["ask"])
    app.include_router(routes_change.router, tags=["change"])
    _add_status_routes(app)
    _add_page(app)
    _add_error_handlers(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    allowed = hosts if hosts is not None else () if service.tokens else LOCAL_HOSTS
    if forward is not None:
        app.add_middleware(_Wrapped, wrap=forward)
    app.add_middleware(Gate, limits=service.limits, tokens=service.tokens, hosts=allowed, metrics=service.metrics)
    return app


class _Wrapped:
    """Middleware from a function of an application."""

    def __init__(self, app: Any, wrap: Callable[[Any], Any]) -> None:
        self.app = wrap(app)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


def _add_status_routes(app: FastAPI) -> None:
    """These wait for nothing, so they are answered when all threads are taken, too."""

    @app.get("/stats", tags=["status"], summary="What the service is doing, in numbers")
    async def stats(request: Request, format: Format = "json") -> Response:
        facts = service_of(request).stats()
        if format != "json":
            return table_response([facts], format, facts["snapshot"], "stats")
        return json_response(facts)

    @app.get("/healthz", tags=["status"], summary="Whether the process answers")
    async def healthz(request: Request) -> Response:
        writer = service_of(request).writer
        return json_response({"ok": True, "read_only": (writer.read_only or None) if writer else None})

    @app.get("/readyz", tags=["status"], summary="Whether it is warm and takes requests", responses={503: {}})
    async def readyz(request: Request) -> Response:
        ready = service_of(request).ready
        return json_response({"ready": ready}) if ready else error_response(503, "starting up, or stopping.")

    @app.get("/metrics", tags=["status"], summary="For Prometheus", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        service = service_of(request)
        text = service.metrics.text(service.gauges())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_page(app: FastAPI) -> None:
    assets = _assets()

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return Response(assets["index.html"], media_type="text/html; charset=utf-8")

    @app.get("/assets/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        if name not in assets:
            raise Refused(404, "there is no such file.")
        kind = ASSET_TYPES["." + name.rpartition(".")[2]]
        return Response(assets[name], media_type=f"{kind}; charset=utf-8", headers={"Cache-Control": "no-cache"})

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return Response(assets["icon.svg"], media_type="image/svg+xml")


def _assets() -> dict[str, bytes]:
    """The files of the page, read once: no request can name another."""
    folders = (resources.files("shoal.service") / "page", resources.files("shoal.report") / "assets")
    return {
        file.name: file.read_bytes()
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
        if "." + file.name.rpartition(".")[2] in ASSET_TYPES
    }


def _add_error_handlers(app: FastAPI) -> None:
    """One shape for every error, and never a traceback."""

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        facts = error.facts if isinstance(error, Refused) else {}
        return error_response(error.status_code, str(error.detail), dict(error.headers or {}), **facts)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return error_response(422, first_trouble(error.errors()))

    async def known(request: Request, error: Exception) -> Response:
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        headers = {"Retry-After": "1"} if status in (429, 503, 507) else None
        return error_response(status, str(error) or "it took too long.", headers)

    for kind, _ in STATUSES:
        app.add_exception_handler(kind, known)

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return error_response(500, "the service failed at this request; the log has the details.")


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document, with the shapes of what is read by hand and of errors."""
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (ItemIn, ItemsIn):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    schemas["Error"] = {
        "type": "object", "required": ["error"], "properties": {"error": {
            "type": "object", "required": ["status", "kind", "message"], "properties": {
                "status": {"type": "integer"}, "kind": {"type": "string"}, "message": {"type": "string"},
            }}},
    }  # fmt: skip
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    statuses = {400: "Refused", 401: "A token is needed", 403: "Not allowed", 404: "Not there", 408: "Too slow",
                409: "The model cannot", 413: "Too large", 415: "Wrong type", 422: "Invalid", 429: "Too many requests",
                503: "Not ready", 507: "The disk is full"}  # fmt: skip
    for path in document["paths"].values():
        for operation in path.values():
            responses = operation.setdefault("responses", {})
            for status, meaning in statuses.items():
                responses[str(status)] = {"description": meaning, "content": content}
    app.openapi_schema = document
    return document
