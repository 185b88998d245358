"""Live events: what happened since the listener last heard, once a second."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

from shoal.service.answers import json_text
from shoal.service.service import Service

SECONDS = 0.5
ITEMS_AT_ONCE = 30  # more arrive than a person can read: the newest are shown, all are counted


async def live_events(service: Service, streams: set[object], after: int | None) -> AsyncIterator[bytes]:
    """Server-sent events: "event" for each event, "items" for new items, "stats" for the numbers."""
    me = object()
    streams.add(me)
    record = service.view.record
    last = record.next_event - 1 if after is None else after
    n_items, ticks = record.n_items, itertools.count()
    try:
        while not service.stopping.is_set():
            record = service.view.record
            for event in [event for event in record.events if event["event"] > last]:
                yield message("event", event, event["event"])
                last = event["event"]
            fresh = min(record.n_items - n_items, len(record.recent))
            if fresh > 0:
                yield message("items", {"n": record.n_items - n_items, "items": _newest(record, fresh)})
            n_items = record.n_items
            if next(ticks) % 2 == 0:
                yield message("stats", service.stats())
            await asyncio.sleep(SECONDS)
    finally:
        streams.discard(me)


def _newest(record: Any, n: int) -> list[dict[str, Any]]:
    newest = itertools.islice(reversed(record.recent), min(n, ITEMS_AT_ONCE))
    return [item._asdict() | {"features": list(item.features[:8])} for item in newest]


def message(name: str, value: Any, number: int | None = None) -> bytes:
    """One server-sent event.

    >>> message("stats", {"items": 3})
    b'event: stats\\ndata: {"items":3}\\n\\n'
    """
    id_ = f"id: {number}\n" if number is not None else ""
    return f"event: {name}\n{id_}data: {json_text(value)}\n\n".encode("utf-8", "replace")
