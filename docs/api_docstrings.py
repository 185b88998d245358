"""What Sphinx needs to know of our docstrings."""

from __future__ import annotations

import re
from typing import Any

# Trailing underscores mark learned attributes; reStructuredText would take them for links.
LEARNED = re.compile(r"(?<![\w`\\.:*{])([A-Za-z]\w*(?:\.\w+)*_)(?![\w`])")
FIELD = re.compile(r"^\s*:(?:param|type|ivar|vartype|returns?|rtype|raises)[^:]*:")


def without_sklearn(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn's base classes bring: their own documentation has it."""
    module = getattr(member, "__module__", None) or getattr(getattr(member, "fget", None), "__module__", None) or ""
    if module.startswith("sklearn.") or re.fullmatch(r"set_\w+_request", name):
        return True
    return None


def quote_learned(app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    """``labels_`` for labels_, but in examples and in what is already quoted."""
    for at, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", "..", "array(")):
            continue
        field = FIELD.match(line)
        start = field.end() if field else 0
        parts = re.split(r"(`+[^`]*`+)", line[start:])
        lines[at] = line[:start] + "".join(LEARNED.sub(r"``\1``", p) if not p.startswith("`") else p for p in parts)
