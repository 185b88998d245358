"""The report: one HTML file with everything inside, readable by anyone, usable with thousands of clusters."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from shoal.base import Estimator
from shoal.errors import BadInput
from shoal.report.cards import ClusterCard, describe, named_model
from shoal.report.document import asset, figure, fill, write_document
from shoal.report.page_data import page_data
from shoal.report.plots import cohesion_plot, size_plot, typicality_plot


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    dataset: Any = None,
    *,
    title: str = "Clusters",
    n_features: int = 12,
    n_items: int = 8,
    timings: dict[str, float] | None = None,
    stability: np.ndarray | None = None,
    feature_names: Any = None,
) -> Path:
    """Write a self-contained HTML page about a fitted model.

    Parameters
    ----------
    path : path
        File to write.
    model : estimator
        A fitted model, or a pipeline that ends in one.
    dataset : Dataset, optional
        The data of the fit, for item names, life spans and the summary of the data.
    title : str
        Heading of the page.
    n_features, n_items : int
        Features and items per card.
    timings : dict of str to float, optional
        Seconds by name, shown next to the parameters.
    stability : array, optional
        Result of :func:`shoal.cluster_stability`.
    feature_names : sequence of str, optional
        Names of the columns of a bare matrix.

    Examples
    --------
    >>> import tempfile, shoal
    >>> model = shoal.SphericalKMeans(2, random_state=0).fit([["a", "b"], ["a"], ["c", "d"], ["c"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(f"{folder}/clusters.html", model).name
    'clusters.html'
    """
    model = named_model(model, feature_names)
    if not hasattr(model, "labels_"):
        raise BadInput(f"a {type(model).__name__} has no clusters to report.")
    description = describe(model, dataset, n_features=n_features, n_items=n_items, stability=stability)
    cards = description.cards
    parts = {
        "TITLE": html.escape(title),
        "LEAD": html.escape(_lead(model, cards)),
        "FIGURES": "\n".join(_figures(model, cards)),
        "SUMMARY": _table(_data_facts(model, dataset)),
        "PARAMETERS": _table(model.get_params(deep=False)),
        "TIMINGS": _table({name: f"{seconds:.2f} s" for name, seconds in (timings or {}).items()}),
        "DATA": _json_in_html(page_data(model, description)),
        "SCRIPTS": _scripts(),
    }
    return write_document(path, title, fill("clusters.html", parts))


def _lead(model: Estimator, cards: list[ClusterCard]) -> str:
    """The first sentence of the report."""
    used = [card for card in cards if card.size]
    unassigned = int(np.count_nonzero(np.asarray(model.labels_) < 0))  # type: ignore[attr-defined]
    items = sum(card.size for card in used) + unassigned
    sentence = f"{items:,} items in {_counted(len(used), 'cluster')} by {type(model).__name__}."
    if len(used) > 1:
        sentence += f" The largest holds {used[0].size:,} items ({used[0].share:.1%})."
    if unassigned:
        sentence += f" {_counted(unassigned, 'item')} {'is' if unassigned == 1 else 'are'} unassigned."
    return sentence


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _figures(model: Estimator, cards: list[ClusterCard]) -> list[str]:
    """Size and similarity of every model, then what the model itself has to show."""
    figures = [figure("How large the clusters are", "Items in each cluster, largest first.", size_plot(cards))]
    typicality, meaning = model.typicality(), model.typicality_meaning
    if typicality is not None and len(typicality):
        caption = f"All items by their {meaning}: the further right, the better the item fits."
        figures.append(figure("How well the items fit", caption, typicality_plot(np.asarray(typicality), meaning)))
        caption = "Each dot is a cluster: further right is larger, higher is more cohesive (its items are more alike)."
        figures.append(figure("Size and cohesion", caption, cohesion_plot(cards, meaning)))
    return figures + [figure(title, caption, draw()) for title, caption, draw in model.figures()]


def _data_facts(model: Estimator, dataset: Any) -> dict[str, Any]:
    """The data in numbers: from the data at hand, else from what was kept with the model."""
    if dataset is not None:
        return dict(dataset.summary)
    kept = getattr(model, "provenance_", None) or {}
    return dict(kept.get("data") or kept.get("summary") or {"features": getattr(model, "n_features_in_", "unknown")})


def _table(facts: dict[str, Any]) -> str:
    if not facts:
        return "<p>none kept</p>"
    rows = "".join(
        f"<tr><th>{html.escape(str(name).replace('_', ' '))}</th><td>{html.escape(_in_words(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table class=facts>{rows}</table>"


def _in_words(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not set"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, list | tuple):
        return "; ".join(_in_words(part) for part in value) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_in_words(part)}" for name, part in value.items()) or "none"
    text = str(value)
    return text if len(text) <= 200 else f"{type(value).__name__}, {text[:120]} ..."


def _scripts() -> str:
    """The modules of the page as one script, for a file cannot import another one."""
    parts = [asset(name) for name in ("dom.js", "cluster_map.js", "report.js")]
    return '"use strict";\n' + "\n".join(
        re.sub(r"^export ", "", re.sub(r"^import .*\n", "", part, flags=re.M), flags=re.M) for part in parts
    )


def _json_in_html(value: Any) -> str:
    """JSON that cannot end its script element early; numbers that JSON lacks become null."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
