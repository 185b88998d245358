"""Suggestions as a table for the report."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shoal.bernoulli.mixture import BernoulliMixture


def suggestions_table(model: BernoulliMixture, n_examples: int = 8, n: int = 5) -> str:
    """For the largest clusters, what their first two features most probably come with, as an HTML table."""
    largest = model.cluster_ids_[np.argsort(-model.cluster_sizes_, kind="stable")[:n_examples]]
    rows = []
    for cluster in largest.tolist():
        given = model.top_features(cluster, n=2).features
        found = model.suggest(given.tolist(), n=n)
        chips = " ".join(f"<span class=chip>{escape(one.name)} {one.probability:.0%}</span>" for one in found)
        rows.append(f"<tr><th>{escape(', '.join(model.name_features(given)))}</th><td>{chips}</td></tr>")
    return f"<table class=facts>{''.join(rows)}</table>"
