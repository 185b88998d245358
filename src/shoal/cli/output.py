"""What commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.report import ClusterCard


def console() -> Console:
    """Standard output; into a file or pipe, lines are wide rather than wrapped."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 150, highlight=False)


def print_json(value: Any) -> None:
    print(json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=True))


def print_facts(facts: dict[str, Any]) -> None:
    """Names and values, one a line."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {as_text(value)}")


def print_cards(cards: list[ClusterCard], rows: int, *, says: str = "") -> None:
    """The largest clusters as a table."""
    from rich.table import Table

    table = Table(title=says or None, title_justify="left", box=None, header_style="bold", pad_edge=False, expand=True)
    for heading, width in (("id", 5), ("items", 9), ("cohesion", 8)):
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    table.add_column("what it is about", overflow="ellipsis", no_wrap=True, ratio=3)
    table.add_column("typical items", overflow="ellipsis", no_wrap=True, ratio=2)
    for card in cards[:rows]:
        table.add_row(
            str(card.id),
            f"{card.size:,}",
            "" if card.cohesion is None else f"{card.cohesion:.3f}",
            ", ".join(card.distinctive[:6]),
            ", ".join(name for name, _ in card.items[:3]),
        )
    console().print(table)
    if len(cards) > rows:
        print(f"... and {len(cards) - rows:,} more clusters")


def cards_as_json(cards: Iterable[ClusterCard]) -> list[dict[str, Any]]:
    return [asdict(card) for card in cards]


def as_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _plain(value: Any) -> Any:
    """numpy numbers and arrays as JSON knows them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
