"""Reader processes answer questions themselves and pass on to the writer what only it can do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from shoal.service.answers import error_response, json_response
from shoal.service.gates import writes
from shoal.service.service import Service

WRITERS_OWN = ("/stats", "/edits", "/metrics", "/events/stream")
NOT_PASSED_ON = {"host", "connection", "transfer-encoding", "content-length", "keep-alive", "te", "upgrade"}


LONGEST_WAIT = 20.0
LOOK_SECONDS = 0.02


class Forward:
    """Sends writing requests, and views that only the writer has, to the writer's socket.

    What was changed is answered when this process sees it, too: whoever renames a cluster finds it renamed.
    """

    def __init__(self, app: ASGIApp, socket: str, service: Service) -> None:
        self.app = app
        self.service = service
        self.http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=socket, limits=httpx.Limits(max_connections=200)),
            base_url="http://localhost",
            timeout=120,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (writes(scope) or scope["path"] in WRITERS_OWN):
            await self.app(scope, receive, send)
            return
        await self._pass_on(Request(scope, receive), scope, receive, send)

    async def _pass_on(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in Headers(scope=scope).items() if name not in NOT_PASSED_ON]
        client = request.client.host if request.client else "?"
        body = request.stream() if request.method == "POST" else None
        url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        outgoing = self.http.build_request(
            request.method, url, headers=[*headers, ("x-shoal-client", client)], content=body
        )
        try:
            answer = await self.http.send(outgoing, stream=True)
        except httpx.HTTPError:
            refusal = error_response(503, "the writer does not answer just now.", {"Retry-After": "1"})
            await refusal(scope, receive, send)
            return
        kept = {name: value for name, value in answer.headers.items() if name not in NOT_PASSED_ON}
        if writes(scope) and answer.is_success:
            facts = json.loads(await answer.aread())
            await answer.aclose()
            facts = await self._seen_here(facts, waits="edit" in facts or "wait" in request.query_params)
            own = {name: value for name, value in kept.items() if name not in ("content-type", "content-encoding")}
            await json_response(facts, answer.status_code, own)(scope, receive, send)
            return
        await StreamingResponse(_pieces(answer), answer.status_code, kept)(scope, receive, send)

    async def _seen_here(self, facts: dict[str, Any], waits: bool) -> dict[str, Any]:
        """Wait for the snapshot that holds an edit, or items that are waited for, and say what is seen."""
        position, end = facts.get("edit", facts.get("position", 0)), time.monotonic() + LONGEST_WAIT
        if waits and facts.get("learned", True):
            while self.service.view.snapshot < position and time.monotonic() < end:
                await asyncio.sleep(LOOK_SECONDS)
        seen = self.service.view.snapshot
        return {**facts, "snapshot": seen} | ({"learned": seen >= position} if "learned" in facts else {})


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()
