"""The limits of a service, each an option with a number that can be seen at the start."""

from __future__ import annotations

from dataclasses import dataclass, fields

from shoal.errors import BadInput


@dataclass(frozen=True)
class Limits:
    """How much is accepted before a request is refused: 413 too large, 408 too slow, 429 too many.

    Parameters
    ----------
    max_body_mb : largest body of a request, in megabytes (413)
    max_bulk_mb : largest body of newline-delimited JSON, which is read line by line (413)
    max_items : most items in one JSON request (413); bulk requests may have more
    body_seconds : longest time that a client may take to send a body (408)
    max_requests : most requests under way at once (429)
    max_streams : most listeners to live events at once (429)
    queue_requests : most requests that wait to be written to the journal (429)
    queue_items : most items that are written but not learned yet (429)
    """

    max_body_mb: float = 16.0
    max_bulk_mb: float = 1024.0
    max_items: int = 10_000
    body_seconds: float = 30.0
    max_requests: int = 200
    max_streams: int = 100
    queue_requests: int = 2000
    queue_items: int = 200_000

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise BadInput(f"{field.name} is {getattr(self, field.name)}; a limit must be more than 0.")

    def __str__(self) -> str:
        return ", ".join(f"{field.name}={getattr(self, field.name):g}" for field in fields(self))
