"""What the report draws: cards with places on the map, terms for the relevance slider, items over time."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from shoal.base import Estimator
from shoal.report.cards import Description
from shoal.report.cluster_map import cluster_map, feature_matrix
from shoal.report.naming import shares_and_lifts

N_BINS = 48  # of the pictures over time
MOST_TERMS = 20_000  # in a page, so that it stays small with thousands of clusters


def page_data(model: Estimator, description: Description) -> dict[str, Any]:
    """Everything a page shows, as JSON knows it; numbers have six digits, times their seconds."""
    cards, tops, members, times = description
    sizes = np.array([card.size for card in cards], dtype=float)
    places = _places(tops, sizes, int(model.n_features_in_))  # type: ignore[attr-defined]
    words, terms = _terms(model, description, sizes)
    time, counts = _over_time(members, times)
    shown = []
    for at, card in enumerate(cards):
        one = _finite(asdict(card)) | {"born": _rounded(card.born), "last_seen": _rounded(card.last_seen)}
        place = {"x": round(float(places[at, 0]), 4), "y": round(float(places[at, 1]), 4)}
        shown.append(one | place | {"terms": _finite(terms[at]), "over_time": counts[at]})
    return {"cards": shown, "words": words, "meaning": model.typicality_meaning, "time": time}


def _places(tops: list[Any], sizes: np.ndarray, n_features: int) -> np.ndarray:
    if not tops:
        return np.zeros((0, 2))
    width = max(n_features, 1 + max((int(np.max(top.features, initial=-1)) for top in tops), default=0))
    return cluster_map(feature_matrix([(np.asarray(t.features), np.asarray(t.values)) for t in tops], width), sizes)


def _terms(model: Estimator, description: Description, sizes: np.ndarray) -> tuple[list[str], list[list[list[float]]]]:
    """All words, and for each cluster [number of the word, value, lift] of its heaviest features."""
    tops = description.tops
    found = shares_and_lifts(tops, sizes)
    if found is None or not tops:
        return [], [[] for _ in tops]
    n_terms = max(8, min(40, MOST_TERMS // len(tops)))
    features = [np.asarray(top.features)[:n_terms] for top in tops]
    used = np.unique(np.concatenate(features))
    words = model.name_features(used)
    terms = [
        [[float(word), float(value), float(lift)] for word, value, lift in zip(*columns, strict=True)]
        for columns in (
            (np.searchsorted(used, mine), np.asarray(top.values)[:n_terms], lifts[:n_terms])
            for mine, top, (_, lifts) in zip(features, tops, found, strict=True)
        )
    ]
    return [str(word) for word in words], terms


def _over_time(members: list[np.ndarray], times: np.ndarray | None) -> tuple[dict[str, Any] | None, list[list[int]]]:
    """Items of each cluster in bins of equal length; nothing where no times are known."""
    nothing: list[list[int]] = [[] for _ in members]
    known = np.zeros(0) if times is None else times[np.isfinite(times)]
    if times is None or known.size < 2 or known.min() == known.max():
        return None, nothing
    start, end = float(known.min()), float(known.max())
    step = (end - start) / N_BINS
    bins = np.where(np.isfinite(times), np.clip((times - start) // step, 0, N_BINS - 1), -1).astype(np.int64)
    counts = [np.bincount(inside[inside >= 0], minlength=N_BINS).tolist() for inside in (bins[m] for m in members)]
    return {"start": start, "step": step, "n": N_BINS}, counts


def _rounded(time: float | None) -> float | None:
    return None if time is None else round(time, 3)


def _finite(value: Any) -> Any:
    """Numbers with six digits; those that JSON lacks become null."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
