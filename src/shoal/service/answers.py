"""Answers: JSON, CSV and newline-delimited JSON of any view, and one shape for every error."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import HTTPException
from starlette.responses import Response

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would take such a cell for a formula
KINDS = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    406: "not_acceptable", 408: "too_slow", 409: "conflict", 413: "too_large", 415: "unsupported_type",
    422: "invalid", 429: "too_many_requests", 500: "internal", 503: "not_ready", 507: "disk_full",
}  # fmt: skip


class Refused(HTTPException):
    """A request that is refused, with the status and what to do."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None, **facts: Any) -> None:
        super().__init__(status, message, headers)
        self.message, self.facts = message, facts


def error_body(status: int, message: str, **facts: Any) -> dict[str, Any]:
    """The one shape of every error.

    >>> error_body(404, "there is no live cluster 7.")
    {'error': {'status': 404, 'kind': 'not_found', 'message': 'there is no live cluster 7.'}}
    """
    return {"error": {"status": status, "kind": KINDS.get(status, "error"), "message": message, **facts}}


def error_response(status: int, message: str, headers: dict[str, str] | None = None, **facts: Any) -> Response:
    return json_response(error_body(status, message, **facts), status, headers)


def json_text(value: Any) -> str:
    """JSON; numbers that JSON lacks become null."""
    return json.dumps(finite(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json_text(value).encode("utf-8", "replace"), status, headers, "application/json")


def finite(value: Any) -> Any:
    """NaN and infinity as None, wherever they are."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value


def table_response(
    rows: Sequence[dict[str, Any]], format: str, snapshot: int, name: str, columns: Sequence[str] = ()
) -> Response:
    """Rows as CSV or newline-delimited JSON; ``columns`` come first, and are there without a row, too."""
    headers = {"X-Shoal-Snapshot": str(snapshot)}
    if format == "ndjson":
        text = "".join(json_text(row) + "\n" for row in rows)
        return Response(text.encode("utf-8", "replace"), 200, headers, "application/x-ndjson")
    headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return Response(csv_text(rows, columns).encode("utf-8", "replace"), 200, headers, "text/csv; charset=utf-8")


def csv_text(rows: Sequence[dict[str, Any]], first: Sequence[str] = ()) -> str:
    """CSV with a head; text that a spreadsheet would run as a formula gets an apostrophe in front.

    >>> csv_text([{"id": 1, "name": "=1+1"}])
    "id,name\\r\\n1,'=1+1\\r\\n"
    """
    out = io.StringIO()
    columns = list(dict.fromkeys([*first, *(name for row in rows for name in row)]))
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = "; ".join(_plain(part) for part in value)
    if isinstance(value, dict):
        value = json_text(value)
    if isinstance(value, str):
        value = value.replace("\0", "\ufffd")
        return f"'{value}" if value.startswith(FORMULA) else value
    return "" if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


def _plain(value: Any) -> str:
    return json_text(value) if isinstance(value, dict | list) else str(value)


def lines(rows: Iterable[dict[str, Any]]) -> Iterable[bytes]:
    """Newline-delimited JSON, one row at a time."""
    return ((json_text(row) + "\n").encode("utf-8", "replace") for row in rows)
