"""Routes that change something: learn, name, merge, split, pin, undo."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from shoal.service.answers import Refused, json_response, table_response
from shoal.service.routes_ask import Format, answer, bulk_items, is_bulk, read_items, service_of
from shoal.service.schemas import MergeIn, NameIn, PinIn, SplitIn, UndoIn
from shoal.service.service import Service
from shoal.service.writer import QueueFull

router = APIRouter()
LONGEST_WAIT = 60.0
COMMIT_SECONDS = 60.0
EDIT_COLUMNS = ("edit", "action", "cluster", "at", "undone")


@router.post("/learn", status_code=202, summary="Learn items", openapi_extra={
    "requestBody": {"required": True, "content": {
        "application/json": {"schema": {"anyOf": [
            {"$ref": "#/components/schemas/ItemsIn"}, {"$ref": "#/components/schemas/ItemIn"},
        ]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
    }},
})  # fmt: skip
async def learn(
    request: Request,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait until it is learned.")] = 0.0,
) -> Response:
    """When this is answered, the items are on disk and will be learned exactly once, whatever happens.

    Items with an id that came before are counted as ``known`` and not learned again. Readers see the items when the
    snapshot has reached ``position``.
    """
    service = service_of(request)
    if is_bulk(request):
        facts = await _learn_bulk(request, service)
    else:
        items = await read_items(request, service.limits.max_items)
        receipt = await asyncio.wait_for(asyncio.wrap_future(service.learn(items)), COMMIT_SECONDS)
        facts = {"accepted": receipt.accepted, "known": receipt.known, "position": receipt.position}
    writer = service.require_writer()
    learned = service.view.snapshot >= facts["position"]
    if wait and not learned:
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(writer.seen(facts["position"])), wait)
            learned = True
    if wait and learned:
        service.show_readers()
    facts |= {"learned": learned, "lag_items": max(0, writer.lag_items)}
    return json_response({"snapshot": service.view.snapshot, **facts}, 202)


async def _learn_bulk(request: Request, service: Service) -> dict[str, Any]:
    """Line by line; what was accepted before a bad line stays accepted."""
    facts: dict[str, Any] = {"accepted": 0, "known": 0, "position": 0}
    try:
        async for _, items in bulk_items(request):
            receipt = await asyncio.wait_for(asyncio.wrap_future(await _submit(service, items)), COMMIT_SECONDS)
            facts["accepted"] += receipt.accepted
            facts["known"] += receipt.known
            facts["position"] = max(facts["position"], receipt.position)
    except Refused as refused:
        refused.facts = {**refused.facts, **facts}
        raise
    return facts


async def _submit(service: Service, items: list[dict[str, Any]]) -> Any:
    """One upload waits for its turn, where many small requests would be sent away."""
    for _ in range(600):
        try:
            return service.learn(items)
        except QueueFull:
            await asyncio.sleep(0.1)
    raise QueueFull("learning is far behind; go on later from the line after those accepted.")


def _who(request: Request) -> str:
    if request.client is None:  # over the socket of this machine's own readers, who say for whom they ask
        return request.headers.get("x-shoal-client", "?")
    return request.client.host


async def _edit(request: Request, edit: dict[str, Any]) -> Response:
    service = service_of(request)
    result = await run_in_threadpool(service.edit, edit, _who(request))
    return answer(service.view, result)


@router.post("/clusters/{cluster}/name", summary="Name a cluster")
async def name(request: Request, cluster: int, asked: Annotated[NameIn, Body()]) -> Response:
    """An empty name takes the name away."""
    return await _edit(request, {"action": "name", "cluster": cluster, "name": asked.name})


@router.post("/clusters/{cluster}/pin", summary="Keep a cluster whatever is learned")
async def pin(request: Request, cluster: int, asked: Annotated[PinIn, Body()]) -> Response:
    """A pinned cluster is not removed and not merged into another by learning."""
    return await _edit(request, {"action": "pin", "cluster": cluster, "pinned": asked.pinned})


@router.post("/clusters/{cluster}/merge", summary="Merge other clusters into this one")
async def merge(request: Request, cluster: int, asked: Annotated[MergeIn, Body()]) -> Response:
    """``changed`` lists the remembered items that moved."""
    clusters = list(dict.fromkeys(asked.clusters))
    return await _edit(request, {"action": "merge", "cluster": cluster, "clusters": clusters})


@router.post("/clusters/{cluster}/split", summary="Divide a cluster in two")
async def split(request: Request, cluster: int, asked: Annotated[SplitIn | None, Body()] = None) -> Response:
    """By its remembered items; ``new_cluster`` is the id of the new one."""
    return await _edit(request, {"action": "split", "cluster": cluster})


@router.post("/undo", summary="Undo the newest edit")
async def undo(request: Request, asked: Annotated[UndoIn, Body()]) -> Response:
    """The model is then as if the edit had not been made; what was learned since stays learned."""
    return await _edit(request, {"action": "undo", "edit": asked.edit})


@router.get("/edits", summary="Edits, the newest first")
def edits(request: Request, format: Format = "json") -> Response:
    """``undoable`` is the edit that can be undone now, or null with the reason."""
    service = service_of(request)
    view, writer = service.view, service.writer
    undoable, why = (None, "this is a read-only replica.") if writer is None else writer.learner.undoable(
        writer.journal.last_position + 1
    )  # fmt: skip
    if format != "json":
        return table_response(view.record.edits[::-1], format, view.snapshot, "edits", EDIT_COLUMNS)
    return answer(view, {"undoable": undoable, "why_not": why or None, "edits": view.record.edits[::-1]})
