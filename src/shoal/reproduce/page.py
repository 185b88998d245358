"""One page with every table and picture, the same as JSON, and the pictures as files."""

from __future__ import annotations

import html
import json
import os
import platform
import re
from pathlib import Path
from typing import Any

import shoal
from shoal.atomic import atomic_write
from shoal.errors import BadSource
from shoal.report.document import figure, numbers_table, section, write_document
from shoal.reproduce.result import Paper, Table

LEAD = (
    "<h1>Five papers, reproduced</h1><p class=lead>Figures of the papers stand in <span style='background: "
    "var(--tint)'>colored columns</span>, ours next to them.</p>"
)


def write(papers: list[Paper], folder: str | os.PathLike[str]) -> Path:
    """Write ``index.html``, ``results.json`` and ``pictures/``; the page's path.

    Parameters
    ----------
    papers : list of Paper
        Results of :func:`run`.
    folder : path
        Output folder.
    """
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
    contents = "".join(f"<a href='#{paper.name}'>{html.escape(paper.title)}</a>" for paper in papers)
    body = f"{LEAD}<nav>{contents}</nav>" + "".join(_section(paper) for paper in papers)
    made = f" with <code>shoal reproduce</code>, Python {platform.python_version()}, {os.cpu_count()} cores"
    return write_document(folder / "index.html", "Five papers, reproduced", body, made=made)


def _section(paper: Paper) -> str:
    inside = "".join(_table(table) for table in paper.tables)
    inside += "".join(figure(one.title, one.caption, one.drawn) for one in paper.pictures)
    facts = f"<p>{html.escape(paper.data)}</p>", inside, f"<p class=soft>{paper.seconds:.0f} seconds</p>"
    return section(paper.title, *facts, name=paper.name)


def _table(table: Table) -> str:
    """The paper's own figures stand in colored columns."""
    theirs = [column.endswith("(paper)") for column in table.columns]
    rows = [[html.escape(shown(value)) for value in row] for row in table.rows]
    note = f"<p class=soft>{html.escape(table.note)}</p>" if table.note else ""
    return f"<h3>{html.escape(table.title)}</h3>{numbers_table(table.columns, rows, theirs=theirs)}{note}"


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
