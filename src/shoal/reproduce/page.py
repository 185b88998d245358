"""One page with every table and picture, the same as JSON, and the pictures as files."""

from __future__ import annotations

import html
import json
import os
import platform
import re
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import shoal
from shoal.atomic import atomic_write
from shoal.errors import BadSource
from shoal.report.plots import as_svg
from shoal.reproduce.result import Paper, Picture, Table


def write(papers: list[Paper], folder: str | os.PathLike[str]) -> Path:
    """Write ``index.html``, ``results.json`` and ``pictures/``; the page's path."""
    folder = Path(folder)
    try:
        (folder / "pictures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSource(f"cannot make the folder {folder / 'pictures'}: {error.strerror}.") from None
    facts = {"shoal": shoal.__version__, "python": platform.python_version(), "cores": os.cpu_count()}
    with atomic_write(folder / "results.json", "w") as out:
        out.write(json.dumps(facts | {"papers": [paper.as_json() for paper in papers]}, indent=1) + "\n")
    for paper in papers:
        for picture in paper.pictures:
            if not isinstance(picture.drawn, str):
                name = re.sub(r"[^a-z0-9]+", "-", f"{paper.name} {picture.title}".lower()).strip("-")
                picture.drawn.savefig(folder / "pictures" / f"{name}.png", dpi=130)
    template = resources.files("shoal.reproduce").joinpath("template.html").read_text(encoding="utf-8")
    parts = {
        "CONTENTS": "".join(f"<a href='#{paper.name}'>{html.escape(paper.title)}</a>" for paper in papers),
        "PAPERS": "".join(_section(paper) for paper in papers),
        "MADE": f"shoal {shoal.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }
    page = folder / "index.html"
    with atomic_write(page, "w") as out:
        out.write(re.sub("@@([A-Z]+)@@", lambda place: parts[place[1]], template))
    return page


def _section(paper: Paper) -> str:
    inside = "".join(_table(table) for table in paper.tables) + "".join(_picture(one) for one in paper.pictures)
    return (
        f"<section id={paper.name}><h2>{html.escape(paper.title)}</h2><p>{html.escape(paper.data)}</p>{inside}"
        f"<p class=made>{paper.seconds:.0f} seconds</p></section>"
    )


def _table(table: Table) -> str:
    """The paper's own figures stand in a colored column of their own."""
    theirs = [column.endswith("(paper)") for column in table.columns]
    head = "".join(_cell("th", column, paper) for column, paper in zip(table.columns, theirs, strict=True))
    rows = "".join(
        "<tr>" + "".join(_cell("td", shown(value), paper) for value, paper in zip(row, theirs, strict=True)) + "</tr>"
        for row in table.rows
    )
    note = f"<p class=note>{html.escape(table.note)}</p>" if table.note else ""
    return f"<h3>{html.escape(table.title)}</h3><div class=scroll><table><tr>{head}</tr>{rows}</table></div>{note}"


def _cell(tag: str, text: str, paper: bool) -> str:
    kind = " class=paper" if paper else ""
    return f"<{tag}{kind}>{html.escape(text)}</{tag}>"


def shown(value: Any) -> str:
    """A value as a person reads it.

    >>> [shown(value) for value in (None, 3, 1234, 0.28561, 45.123, 12345.6, "l=1")]
    ['', '3', '1,234', '0.286', '45.1', '12,346', 'l=1']
    """
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return value
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(float(value))
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"


def _picture(picture: Picture) -> str:
    inside = picture.drawn if isinstance(picture.drawn, str) else as_svg(picture.drawn, html.escape(picture.title))
    caption = f"<b>{html.escape(picture.title)}.</b> {html.escape(picture.caption)}"
    return f"<figure><figcaption>{caption}</figcaption><div class=scroll>{inside}</div></figure>"
