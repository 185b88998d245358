"""Reader processes answer questions themselves and pass on to the writer what only it can do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from shoal.service.answers import error_response
from shoal.service.gates import writes

WRITERS_OWN = ("/stats", "/edits", "/metrics", "/events/stream")
NOT_PASSED_ON = {"host", "connection", "transfer-encoding", "content-length", "keep-alive", "te", "upgrade"}


class Forward:
    """Sends writing requests, and views that only the writer has, to the writer's socket."""

    def __init__(self, app: ASGIApp, socket: str) -> None:
        self.app = app
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
        await StreamingResponse(_pieces(answer), answer.status_code, kept)(scope, receive, send)


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()
