"""Notebooks of the guides: text as text, code as cells, commands with ``!``.

python docs/make_notebooks.py        # writes docs/notebooks
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GUIDES = ("ads_and_keywords", "documents", "streams", "tables", "auctions")
FENCE = re.compile(r"^```(\S*)\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)


def notebook(page: str) -> dict[str, Any]:
    """A page as nbformat 4.5."""
    cells, end = [], 0
    for fence in FENCE.finditer(page):
        source = code_of(fence[1], fence[2])
        if source is None:
            continue
        cells += [cell("markdown", page[end : fence.start()]), cell("code", source)]
        end = fence.end()
    cells.append(cell("markdown", page[end:]))
    cells = [one for one in cells if one["source"]]
    for number, one in enumerate(cells):
        one["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def code_of(language: str, block: str) -> str | None:
    """What a cell runs: the code of a doctest without prompts and outputs, the commands of a console."""
    if language == "python":
        lines = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
        return re.sub(r"\s+# doctest:.*", "", "\n".join(lines)) if lines else block.strip()
    if language == "console":
        commands = re.sub(r"\\\n\s*", "", block)
        return "\n".join("!" + line[2:] for line in commands.splitlines() if line.startswith("$ "))
    return None


def cell(kind: str, text: str) -> dict[str, Any]:
    """Links lead from docs/notebooks to the pages."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*_pictures/[^)]*\)\n*", "", text.strip("\n"))  # the build's
    if kind == "markdown":
        text = re.sub(r"\]\((?![a-z]+:|#|\.\./)([^)]+)\)", r"](../guides/\1)", text)
    lines = text.splitlines(keepends=True)
    one: dict[str, Any] = {"cell_type": kind, "id": "", "metadata": {}, "source": lines}
    return one | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def text_of(guide: str) -> str:
    page = (HERE / "guides" / f"{guide}.md").read_text(encoding="utf-8")
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (HERE / "notebooks").mkdir(exist_ok=True)
    for name in GUIDES:
        (HERE / "notebooks" / f"{name}.ipynb").write_text(text_of(name), encoding="utf-8")
