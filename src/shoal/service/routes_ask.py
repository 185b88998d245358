"""Routes that ask: assign, suggest, clusters, cards, the map, the timeline, events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Body, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from shoal.service.answers import Refused, json_response, json_text, table_response
from shoal.service.catalog import SORTS, Entry, timeline_of
from shoal.service.live import live_events
from shoal.service.record import LearnedItem
from shoal.service.schemas import ItemIn, ItemsIn, SuggestIn
from shoal.service.service import Service
from shoal.service.view import View

router = APIRouter()
Format = Annotated[Literal["json", "csv", "ndjson"], Query(description="How to write the answer.")]
BULK_LINES = 1000
SMALL_BODY = 20_000  # bytes that are read at once


def service_of(request: Request) -> Service:
    """The service behind the application."""
    return request.app.state.service  # type: ignore[no-any-return]


def answer(view: View, value: dict[str, Any]) -> Response:
    """JSON with the number of the snapshot that gave it."""
    return json_response({"snapshot": view.snapshot, **value}, headers={"X-Shoal-Snapshot": str(view.snapshot)})


@router.post("/assign", summary="Which cluster each item belongs to", openapi_extra={
    "requestBody": {"required": True, "content": {
        "application/json": {"schema": {"anyOf": [
            {"$ref": "#/components/schemas/ItemsIn"}, {"$ref": "#/components/schemas/ItemIn"},
        ]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
    }},
})  # fmt: skip
async def assign(request: Request, top: Annotated[int, Query(ge=1, le=100)] = 1, format: Format = "json") -> Response:
    """Nothing is learned. ``cluster`` -1: unassigned. Newline-delimited JSON in gives newline-delimited JSON out."""
    service = service_of(request)
    view = service.view
    if is_bulk(request):
        return BulkResponse(_assign_lines(request, view, top), media_type="application/x-ndjson")
    items = await read_items(request, service.limits.max_items)
    rows = await run_in_threadpool(view.assign, items, top)
    if format != "json":
        return table_response(rows, format, view.snapshot, "assigned", ("id", "cluster", "score", "unknown_features"))
    return answer(view, {"items": rows})


class BulkResponse(StreamingResponse):
    """Answers while the body is still being read; waiting for the client to leave would swallow the body."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.stream_response(send)


async def _assign_lines(request: Request, view: View, top: int) -> AsyncIterator[bytes]:
    try:
        async for _, items in bulk_items(request):
            for row in await run_in_threadpool(view.assign, items, top):
                yield (json_text(row) + "\n").encode("utf-8", "replace")
    except Refused as refused:  # the answer has begun: the error is its last line
        yield (json_text({"error": {"status": refused.status_code, "message": refused.message}}) + "\n").encode()


@router.post("/suggest", summary="Features that go with those given")
def suggest(request: Request, asked: Annotated[SuggestIn, Body()], format: Format = "json") -> Response:
    """Each suggestion has its probability and the clusters and features that produced it."""
    view = service_of(request).view
    rows = view.suggest(asked.observed, asked.rejected, asked.n)
    if format != "json":
        return table_response(rows, format, view.snapshot, "suggestions", ("feature", "probability", "reasons"))
    return answer(view, {"suggestions": rows})


@router.get("/complete", summary="Feature names that contain some letters")
def complete(
    request: Request, letters: Annotated[str, Query(max_length=1000)], n: Annotated[int, Query(ge=1, le=100)] = 10
) -> Response:
    """Names that begin with the letters come first."""
    view = service_of(request).view
    return answer(view, {"features": view.complete(letters, n)})


@router.get("/clusters", summary="All clusters: searched, sorted, paged")
def clusters(
    request: Request,
    search: Annotated[str, Query(max_length=1000, description="Words in the name, id or features.")] = "",
    sort: Literal["size", "name", "id", "recent", "uncertainty"] = "size",
    order: Literal["descending", "ascending"] = "descending",
    only: Annotated[Literal["named", "pinned", "bursting", "active"] | None, Query(description="Which.")] = None,
    page: Annotated[int, Query(ge=1, le=10**9)] = 1,
    page_size: Annotated[int, Query(ge=1, le=1000)] = 50,
    format: Format = "json",
) -> Response:
    """CSV and newline-delimited JSON hold all clusters that were found, not one page."""
    assert sort in SORTS
    view = service_of(request).view
    found = view.catalog.find(search, sort, order == "descending", only) if view.state.is_fitted else []
    if format != "json":
        rows = [entry.as_dict() for entry in found]
        return table_response(rows, format, view.snapshot, "clusters", [*Entry.__dataclass_fields__])
    shown = found[(page - 1) * page_size : page * page_size]
    facts = {"total": len(found), "page": page, "page_size": page_size}
    return answer(view, {**facts, "clusters": [entry.as_dict() for entry in shown]})


@router.get("/clusters/{cluster}", summary="The card of one cluster")
def card(request: Request, cluster: int, format: Format = "json") -> Response:
    """Features with uncertainty, neighbors and what sets it apart, typical and borderline items, history.

    CSV and newline-delimited JSON hold the features.
    """
    view = service_of(request).view
    found = view.card(cluster)
    if format != "json":
        return table_response(found["features"], format, view.snapshot, f"cluster-{cluster}", ("name", "value"))
    return answer(view, found)


@router.get("/clusters/{cluster}/items", summary="Recent items of a cluster")
def items(
    request: Request, cluster: int, n: Annotated[int, Query(ge=1, le=20_000)] = 100, format: Format = "json"
) -> Response:
    """The best fitting first."""
    view = service_of(request).view
    rows = [item._asdict() | {"features": list(item.features)} for item in view.record.items_of(cluster)[:n]]
    if format != "json":
        return table_response(rows, format, view.snapshot, f"items-{cluster}", LearnedItem._fields)
    return answer(view, {"items": rows})


@router.get("/map", summary="Where each cluster lies on the map")
def map_(request: Request, format: Format = "json") -> Response:
    """Columns, not rows: ten thousand clusters are one small answer."""
    view = service_of(request).view
    entries, places = (view.catalog.entries, view.catalog.map) if view.state.is_fitted else ([], np.zeros((0, 2)))
    columns = {name: [getattr(entry, name) for entry in entries] for name in ("id", "name", "size", "bursting")}
    columns |= {"x": places[:, 0].round(5).tolist(), "y": places[:, 1].round(5).tolist()}
    if format != "json":
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return table_response(rows, format, view.snapshot, "map", [*columns])
    return answer(view, columns)


@router.get("/timeline", summary="Items of the largest clusters over time")
def timeline(request: Request, n: Annotated[int, Query(ge=1, le=100)] = 20, format: Format = "json") -> Response:
    """Counts in bins of equal length, for the clusters with the most items in them."""
    view = service_of(request).view
    known = view.catalog.at if view.state.is_fitted else {}
    totals = {id_: sum(bins.values()) for id_, bins in view.record.timeline.items() if id_ in known}
    largest = sorted(totals, key=lambda id_: (-totals[id_], id_))[:n]
    entries = [view.catalog.entries[view.catalog.at[id_]] for id_ in largest]
    rows = [{"id": entry.id, "name": entry.name, **timeline_of(view.state, entry.id)} for entry in entries]
    if format != "json":
        return table_response(rows, format, view.snapshot, "timeline", ("id", "name", "start", "bin_seconds", "counts"))
    return answer(view, {"clusters": rows})


@router.get("/events", summary="Births, bursts, merges, deaths and edits")
def events(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**62, description="Only events with a larger number.")] = 0,
    kind: Annotated[str | None, Query(max_length=50)] = None,
    cluster: int | None = None,
    n: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    format: Format = "json",
) -> Response:
    """In order; poll with ``after`` set to ``last``. Events older than the last 10,000 are gone."""
    view = service_of(request).view
    found = [
        event
        for event in view.record.events
        if event["event"] > after
        and (kind is None or event["kind"] == kind)
        and (cluster is None or cluster in (event["cluster"], event["into"]))
    ][:n]
    if format != "json":
        return table_response(
            found, format, view.snapshot, "events", ("event", "kind", "cluster", "into", "time", "note")
        )
    return answer(view, {"last": found[-1]["event"] if found else after, "events": found})


@router.get("/events/stream", summary="The same, and items as they arrive, as server-sent events", responses={
    200: {"content": {"text/event-stream": {}}},
})  # fmt: skip
async def events_stream(
    request: Request, after: Annotated[int | None, Query(ge=0, le=2**62)] = None
) -> StreamingResponse:
    """Events named "event", "items" and "stats"."""
    service = service_of(request)
    streams = request.app.state.streams
    if len(streams) >= service.limits.max_streams:
        raise Refused(429, f"{len(streams)} listeners are connected, the most allowed.", {"Retry-After": "10"})
    return StreamingResponse(live_events(service, streams, after), media_type="text/event-stream")


# --- reading items ----------------------------------------------------------------------------------------------------


def is_bulk(request: Request) -> bool:
    """Whether the body is newline-delimited JSON."""
    return request.headers.get("content-type", "").startswith("application/x-ndjson")


async def read_items(request: Request, most: int) -> list[dict[str, Any]]:
    """The items of a JSON body: {"items": [...]}, or one item. A long one is read where it holds up nobody."""
    body = await request.body()
    return await run_in_threadpool(items_of, body, most) if len(body) > SMALL_BODY else items_of(body, most)


def items_of(text: bytes, most: int) -> list[dict[str, Any]]:
    """The items of a JSON text, checked."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(422, f"the body is not JSON: {error}.") from None
    if isinstance(body, dict) and "items" not in body:
        body = {"items": [body]}
    if isinstance(body, dict) and isinstance(body.get("items"), list) and len(body["items"]) > most:
        raise Refused(413, f"{len(body['items']):,} items; at most {most:,} in one request. Send NDJSON for more.")
    try:
        return [item.plain() for item in ItemsIn.model_validate(body).items]
    except ValidationError as error:
        raise Refused(422, first_trouble(error.errors())) from None


async def bulk_items(request: Request) -> AsyncIterator[tuple[int, list[dict[str, Any]]]]:
    """Items of newline-delimited JSON, a thousand lines at a time, with the number of the first line."""
    number, chunk, rest, first = 0, [], b"", 1
    most = int(1e6 * service_of(request).limits.max_body_mb)
    async for piece in request.stream():
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > most:
            raise Refused(413, f"line {number + 1} is longer than {most:,} bytes.")
        for line in whole:
            number += 1
            if line.strip():
                chunk.append(_parsed(line, number))
            if len(chunk) >= BULK_LINES:
                yield first, chunk
                chunk, first = [], number + 1
    if rest.strip():
        chunk.append(_parsed(rest, number + 1))
    if chunk:
        yield first, chunk


def _parsed(line: bytes, number: int) -> dict[str, Any]:
    try:
        return ItemIn.model_validate(json.loads(line)).plain()
    except ValidationError as error:
        raise Refused(422, f"line {number}: {first_trouble(error.errors())}", line=number) from None
    except (ValueError, RecursionError) as error:
        raise Refused(422, f"line {number} is not JSON: {error}.", line=number) from None


def first_trouble(errors: Any) -> str:
    """The first of pydantic's findings, in a sentence."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where + ': ' if where else ''}{first['msg']}{more}."[:1000]
