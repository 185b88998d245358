"""The pictures every report has. matplotlib draws them; they are kept as SVG text inside the page."""

from __future__ import annotations

import io
import re
import textwrap
from typing import Any

import numpy as np

from shoal.plotting import BLUE, GREY, figure, plain_text
from shoal.report.cards import ClusterCard

WIDTH, HEIGHT = 4.6, 2.9  # inches; drawn for a phone, so that its text is as large as the page's


def size_plot(cards: list[ClusterCard]) -> Any:
    """Items per cluster, largest first: bars from zero, or points on a logarithmic axis when sizes differ widely."""
    sizes = np.array([card.size for card in cards if card.size])
    drawn, axes = figure(WIDTH, HEIGHT)
    ranks = np.arange(1, sizes.size + 1)
    if sizes.size and sizes[0] > 30 * sizes[-1]:
        axes.plot(ranks, sizes, color=BLUE, linewidth=1.2, marker="o", markersize=3 if sizes.size <= 200 else 0)
        axes.set_yscale("log")
    elif sizes.size <= 100:
        axes.bar(ranks, sizes, color=BLUE, width=0.85)
    else:
        axes.fill_between(ranks, sizes, color=BLUE, alpha=0.6)
        axes.set_ylim(bottom=0)
    _count_in_wholes(axes.xaxis)
    _count_in_wholes(axes.yaxis)
    axes.set_xlabel("clusters, largest first")
    axes.set_ylabel("items")
    return drawn


def typicality_plot(typicality: np.ndarray, meaning: str) -> Any:
    """How typical the items are of their clusters: a histogram over all items."""
    drawn, axes = figure(WIDTH, HEIGHT)
    axes.hist(typicality[np.isfinite(typicality)], bins=50, color=BLUE)
    middle = float(np.nanmedian(typicality))
    axes.axvline(middle, color=GREY, linestyle="--", linewidth=1.2)
    right_half = middle > np.mean(axes.get_xlim())
    caption = f"median {middle:.3g} " if right_half else f" median {middle:.3g}"
    top = axes.get_ylim()[1] * 0.96
    axes.annotate(caption, (middle, top), fontsize=9, va="top", ha="right" if right_half else "left")
    _count_in_wholes(axes.yaxis)
    axes.set_xlabel(meaning)
    axes.set_ylabel("items")
    return drawn


def _count_in_wholes(axis: Any) -> None:
    """No half items on a linear axis."""
    if axis.get_scale() == "linear":
        axis.get_major_locator().set_params(integer=True)


def cohesion_plot(cards: list[ClusterCard], meaning: str) -> Any:
    """Each cluster as a dot: how large, and how cohesive: the mean typicality of its items."""
    shown = [card for card in cards if card.cohesion is not None and card.size]
    drawn, axes = figure(WIDTH, HEIGHT)
    sizes = [card.size for card in shown]
    axes.scatter(sizes, [card.cohesion for card in shown], s=14, color=BLUE, alpha=0.5, rasterized=True)
    if sizes and max(sizes) > 10 * min(sizes):
        axes.set_xscale("log")
    _count_in_wholes(axes.xaxis)
    axes.set_xlabel("items in the cluster")
    axes.set_ylabel(textwrap.fill(f"mean {meaning}", 30))
    return drawn


def as_svg(drawn: Any, title: str) -> str:
    """The figure as SVG to be put into a page: its text is text, and it takes the page's colors, light or dark."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none"}):
        plain_text(drawn).savefig(
            out, format="svg", dpi=150, transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"(fill|stroke): ?(#000000|black)\b", r"\1: currentColor", text)
    # Without a fixed size the picture fills its frame; the viewBox keeps the proportions.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
