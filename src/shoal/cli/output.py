"""What commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.report import ClusterCard

# What a terminal would act on instead of showing it.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console() -> Console:
    """Standard output; into a file or pipe, lines are wide rather than wrapped."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 150, highlight=False, markup=False, emoji=False)


def print_json(value: Any) -> None:
    """One line of JSON; what is not a finite number is null, as JSON knows no other."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(_plain(value), default=str, ensure_ascii=not encoding.startswith("utf"), allow_nan=False)
    print(text)


def print_facts(facts: dict[str, Any]) -> None:
    """Names and values, one per line."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {shown(as_text(value))}")


def print_cards(cards: list[ClusterCard], rows: int, *, caption: str = "", cohesion: str = "") -> None:
    """The largest clusters as a table; below it what ``cohesion`` means, and stability."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=caption or None, title_justify="left", box=None, header_style="bold", pad_edge=False, expand=True
    )
    stable = any(card.stability is not None for card in cards)
    for heading, width in (("id", 5), ("items", 9), ("cohesion", 8), *([("stability", 9)] if stable else [])):
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    table.add_column("what it is about", overflow="ellipsis", no_wrap=True, ratio=3)
    table.add_column("typical items", overflow="ellipsis", no_wrap=True, ratio=2)
    for card in cards[:rows]:
        table.add_row(
            str(card.id),
            f"{card.size:,}",
            "" if card.cohesion is None else f"{card.cohesion:.3f}",
            *(["" if card.stability is None else f"{card.stability:.2f}"] if stable else []),
            Text(shown(about(card))),
            Text(shown(", ".join(str(name) for name, _ in card.items[:3]))),
        )
    console().print(table)
    if len(cards) > rows:
        print(f"... and {len(cards) - rows:,} more clusters")
    if cohesion and any(card.cohesion is not None for card in cards):
        print(f"cohesion: mean {cohesion} of its items")
    if stable:
        print("stability: how surely fits to halves of the rows find it again; above 0.75 trust it, below 0.5 do not")


def about(card: ClusterCard) -> str:
    """What sets the cluster apart, after its name where a person gave it one."""
    words = ", ".join(card.distinctive[:6])
    return f"{card.name}: {words}" if card.named else words


def cards_as_json(cards: Iterable[ClusterCard]) -> list[dict[str, Any]]:
    return [asdict(card) for card in cards]


def shown(text: str) -> str:
    """Text with its control characters as escapes, so that a name cannot steer the terminal.

    >>> shown("red\\x1b[2Jfox")
    'red\\\\x1b[2Jfox'
    """
    return CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def number(value: float, digits: int = 4) -> str:
    """A number as people write it: no powers of ten that nobody reads.

    >>> number(0.1234567), number(1234567.8), number(1.35e-7)
    ('0.1235', '1,234,568', '< 0.0001')
    """
    if 0 < abs(value) < 1e-4:
        return "< 0.0001" if value > 0 else "> -0.0001"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def as_text(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _plain(value: Any) -> Any:
    """numpy numbers and arrays as JSON knows them."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
