"""What every request passes before a route sees it: host, token, limits; and the headers of every answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.service.answers import Refused, error_response
from shoal.service.limits import Limits
from shoal.service.tokens import Tokens

CONTENT_SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN_PATHS = ("/", "/healthz", "/readyz", "/favicon.ico")  # and the page's own files: they hold no data
WRITING = ("/learn", "/undo")
JSON_TYPES = ("application/json", "application/x-ndjson")
BULK = "application/x-ndjson"


def writes(scope: Scope) -> bool:
    """Whether a request wants to change something."""
    return scope["method"] == "POST" and (scope["path"] in WRITING or scope["path"].startswith("/clusters/"))


class Gate:
    """Passes a request on, or refuses it; a refusal has the shape of every error."""

    def __init__(self, app: ASGIApp, limits: Limits, tokens: Tokens, hosts: tuple[str, ...], metrics: Any) -> None:
        self.app, self.limits, self.tokens, self.hosts, self.metrics = app, limits, tokens, hosts, metrics
        self.n_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, sent = time.perf_counter(), _Sent(send)
        try:
            self._check(scope)
            self.n_requests += 1
            try:
                await self.app(scope, self._limited(scope, receive), sent)
            finally:
                self.n_requests -= 1
        except Refused as refused:
            if not sent.began:
                answer = error_response(
                    refused.status_code, refused.message, dict(refused.headers or {}), **refused.facts
                )
                await answer(scope, receive, sent)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.count(scope["method"], route, sent.status, time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_token(scope, headers)
        if scope["path"] not in ("/healthz", "/readyz", "/metrics") and self.n_requests >= self.limits.max_requests:
            raise Refused(
                429, f"{self.n_requests} requests are under way, the most allowed. Try again.", {"Retry-After": "1"}
            )
        if scope["method"] == "POST":
            # A page of another origin cannot send these types without asking first, and it is not answered.
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in JSON_TYPES:
                raise Refused(415, f"Content-Type is {kind or 'missing'!r}; send {' or '.join(JSON_TYPES)}.")
            most = self._most_bytes(headers)
            length = headers.get("content-length", "0")
            if length.isdigit() and int(length) > most:
                raise Refused(413, f"the body has {int(length):,} bytes; at most {most:,} are accepted.")

    def _check_host(self, headers: Headers) -> None:
        """Without tokens, only requests that name this host: a foreign name that leads here is an attack."""
        if not self.hosts:
            return
        host = headers.get("host", "")
        name = host[: host.rfind("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if name.lower() not in self.hosts:
            raise Refused(403, "this host name is not served without a token. Use localhost, or start with a token.")

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        if not self.tokens or scope["path"] in OPEN_PATHS or scope["path"].startswith("/assets/"):
            return
        granted = self.tokens.grants(headers.get("authorization"))
        if writes(scope):
            if granted == "read":
                raise Refused(403, "this token may read, but not write.")
            if granted != "write":
                self._unauthorized()
        elif self.tokens.protect_reads and not granted:
            self._unauthorized()

    @staticmethod
    def _unauthorized() -> None:
        raise Refused(401, "a valid token is needed: Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"})

    def _most_bytes(self, headers: Headers) -> int:
        bulk = headers.get("content-type", "").startswith(BULK)
        return int(1e6 * (self.limits.max_bulk_mb if bulk else self.limits.max_body_mb))

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """``receive`` with an end to how much and how long."""
        if scope["method"] != "POST":
            return receive
        headers = Headers(scope=scope)
        most, bulk = self._most_bytes(headers), headers.get("content-type", "").startswith(BULK)
        n_bytes, deadline, whole = 0, time.monotonic() + self.limits.body_seconds, False

        async def limited() -> Message:
            nonlocal n_bytes, deadline, whole
            if whole:
                return await receive()
            if bulk:  # a long body may take long, but each piece of it may not
                deadline = time.monotonic() + self.limits.body_seconds
            try:
                message = await asyncio.wait_for(receive(), max(0.001, deadline - time.monotonic()))
            except TimeoutError:
                raise Refused(408, f"the body did not come within {self.limits.body_seconds:g} seconds.") from None
            n_bytes += len(message.get("body", b""))
            if n_bytes > most:
                raise Refused(413, f"the body has more than {most:,} bytes, the most accepted.")
            whole = not message.get("more_body", False)
            return message

        return limited


class _Sent:
    """``send``, which remembers the status and adds the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self.send, self.status, self.began = send, 500, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.began = message["status"], True
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            if "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await self.send(message)
