"""The frame and the style of every page that shoal writes: one HTML file with everything inside."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import shoal
from shoal.atomic import atomic_write
from shoal.errors import BadSource
from shoal.report.plots import as_svg

WIDE_INCHES = 7.0
PIXELS_PER_INCH = 96


def write_document(path: str | os.PathLike[str], title: str, body: str, *, made: str = "") -> Path:
    """Write a page of this body, whole or not at all; ``body`` and ``made`` are finished HTML."""
    parts = {
        "TITLE": html.escape(title),
        "STYLE": asset("style.css"),
        "BODY": body,
        "MADE": f"shoal {shoal.__version__}{made}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSource(f"cannot make the folder {path.parent}: {error.strerror}.") from None
    with atomic_write(path, "w") as out:
        out.write(fill("base.html", parts))
    return path


def fill(template: str, parts: Mapping[str, str]) -> str:
    """A template of this package with each @@NAME@@ replaced, all at once: what is filled in may look like a name."""
    text = resources.files("shoal.report").joinpath(template).read_text(encoding="utf-8")
    return re.sub("@@([A-Z]+)@@", lambda place: parts[place[1]], text)


def asset(name: str) -> str:
    """The text of a style or script that pages bring along."""
    return resources.files("shoal.report").joinpath("assets", name).read_text(encoding="utf-8")


def section(heading: str, *parts: str, kind: str = "", name: str = "") -> str:
    """A part of a page under a heading; ``name`` is where links point."""
    attributes = (f' class="{kind}"' if kind else "") + (f' id="{html.escape(name)}"' if name else "")
    return f"<section{attributes}><h2>{html.escape(heading)}</h2>{''.join(parts)}</section>"


def figure(title: str, caption: str, drawn: Any) -> str:
    """A picture with its heading; what comes as text is taken as finished HTML."""
    inside = drawn if isinstance(drawn, str) else as_svg(drawn, html.escape(title))
    inches = WIDE_INCHES + 4 if isinstance(drawn, str) else drawn.get_figwidth()
    return (
        f"<figure{' class=wide' if inches > WIDE_INCHES else ''} style='--natural:{inches * PIXELS_PER_INCH:.0f}px'>"
        f"<figcaption><b>{html.escape(title)}</b> {html.escape(caption)}</figcaption>"
        f"<div class=scroll>{inside}</div></figure>"
    )


def numbers_table(head: list[str], rows: list[list[str]], *, theirs: list[bool] | None = None, ours: str = "") -> str:
    """A table of cells (finished HTML): a name, then numbers; the last cell of a short row spans the rest.

    The columns ``theirs`` and the row that begins with ``ours`` are colored.
    """
    kinds = [" class=theirs" if each else "" for each in theirs or [False] * len(head)]
    heads = "".join(f"<th{kind}>{html.escape(text)}</th>" for text, kind in zip(head, kinds, strict=True))
    lines = "".join(f"<tr{' class=ours' if ours and row[0] == ours else ''}>{_cells(row, kinds)}</tr>" for row in rows)
    return f"<div class=scroll><table class=numbers><tr>{heads}</tr>{lines}</table></div>"


def _cells(row: list[str], kinds: list[str]) -> str:
    spans = [""] * (len(row) - 1) + [f" colspan={len(kinds) - len(row) + 1}" if len(row) < len(kinds) else ""]
    return "".join(f"<td{kind}{span}>{cell}</td>" for cell, kind, span in zip(row, kinds, spans, strict=False))
