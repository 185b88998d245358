"""The clusters of a model as a small HTML table, for notebooks."""

from __future__ import annotations

from html import escape

from shoal.base import Estimator
from shoal.report.cards import cluster_cards

MOST_CLUSTERS = 10
MOST_CARDS = 5000  # a model with more is described by its numbers alone: a notebook should not wait


def clusters_table(model: Estimator) -> str:
    """Size, what each is about and how cohesive, of the largest clusters."""
    n_clusters = len(model.cluster_ids_)
    if n_clusters > MOST_CARDS:
        return f"<p>{n_clusters:,} clusters</p>"
    cards = cluster_cards(model, n_items=0)
    rows = "".join(
        f"<tr><td>{card.id}</td><td>{card.size:,}</td><td style='text-align:left'>{escape(card.name[:120])}</td>"
        f"<td>{'' if card.cohesion is None else f'{card.cohesion:.3f}'}</td></tr>"
        for card in cards[:MOST_CLUSTERS]
    )
    more = f"<p>... and {len(cards) - MOST_CLUSTERS:,} more clusters</p>" if len(cards) > MOST_CLUSTERS else ""
    head = "<tr><th>id</th><th>items</th><th style='text-align:left'>what it is about</th><th>cohesion</th></tr>"
    title = f"<p>cohesion: mean {escape(model.typicality_meaning)}</p>"
    return f"<table>{head}{rows}</table>{more}{title}"
