"""The clusters of a model as a small HTML table, for notebooks."""

from __future__ import annotations

from html import escape
from textwrap import shorten

from shoal.base import Estimator
from shoal.report.cards import cluster_cards

MOST_CLUSTERS = 10
LONGEST_NAME = 120
MOST_CARDS = 5000  # a model with more is described by its numbers alone: a notebook should not wait


def clusters_table(model: Estimator) -> str:
    """Size, what each is about and how cohesive, of the largest clusters."""
    n_clusters = len(model.cluster_ids_)
    if n_clusters > MOST_CARDS:
        return f"<p>{n_clusters:,} clusters</p>"
    cards = cluster_cards(model, n_items=0)
    number, text = "style='text-align:right;padding:2px 8px'", "style='text-align:left;padding:2px 8px'"
    rows = "".join(
        f"<tr><td {number}>{card.id}</td><td {number}>{card.size:,}</td>"
        f"<td {text}>{escape(shorten(card.name, LONGEST_NAME, placeholder=' …'))}</td>"
        f"<td {number}>{'' if card.cohesion is None else f'{card.cohesion:.3g}'}</td></tr>"
        for card in cards[:MOST_CLUSTERS]
    )
    more = f"<p>... and {len(cards) - MOST_CLUSTERS:,} more clusters</p>" if len(cards) > MOST_CLUSTERS else ""
    heads = ((number, "id"), (number, "items"), (text, "what it is about"), (number, "cohesion"))
    head = "<tr>" + "".join(f"<th {style}>{name}</th>" for style, name in heads) + "</tr>"
    title = f"<p>cohesion: mean {escape(model.typicality_meaning)}</p>"
    return f"<table>{head}{rows}</table>{more}{title}"
