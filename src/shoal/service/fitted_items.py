"""What a fitted model brings along: typical and borderline items of its clusters, and when its rows came."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.report.cards import LearnedRows, members_by_cluster
from shoal.service.record import N_BINS, LearnedItem, Record

N_KEPT = 8  # typical items of a cluster, and as many borderline ones
LONGEST_NAME = 200


def record_of(model: Any) -> Record:
    """A record that begins with what the model remembers of its fit; empty for a model that has not been fitted.

    Examples
    --------
    >>> from shoal import SphericalKMeans, read
    >>> table = read({"id": ["a", "b", "c"], "tags": [["tea"], ["rum"], ["tea", "cup"]]})
    >>> record = record_of(SphericalKMeans(2, random_state=0).fit(table))
    >>> sorted(item.id for items in record.fitted.values() for item in items)
    ['a', 'b', 'c']
    """
    record = Record()
    if not hasattr(model, "labels_") or not hasattr(model, "cluster_ids_"):
        return record
    rows, ids = LearnedRows.of(model, None), np.asarray(model.cluster_ids_)
    members = members_by_cluster(rows.labels, ids, rows.typicality)
    if rows.names is not None:
        n_kept = max(1, min(N_KEPT, record.n_recent // max(1, 2 * ids.size)))
        record.fitted = {
            int(id_): [_item(rows, int(row), int(id_)) for row in _ends(mine, n_kept)]
            for id_, mine in zip(ids, members, strict=True)
            if mine.size
        }
    if rows.times is not None:
        _fill_timeline(record, rows.labels, rows.times, ids)
    return record


def _ends(rows: np.ndarray, n: int) -> np.ndarray:
    """The first and the last of some rows."""
    return rows if rows.size <= 2 * n else np.concatenate([rows[:n], rows[-n:]])


def _item(rows: LearnedRows, row: int, cluster: int) -> LearnedItem:
    score = np.nan if rows.typicality is None else float(rows.typicality[row])
    time = np.nan if rows.times is None else float(rows.times[row])
    return LearnedItem(str(rows.names[row])[:LONGEST_NAME], cluster, score, time, ())


def _fill_timeline(record: Record, labels: np.ndarray, times: np.ndarray, ids: np.ndarray) -> None:
    """Count the rows of each cluster in bins, as short as the number of bins allows."""
    known = np.isfinite(times) & np.isin(labels, ids)
    if not known.any():
        return
    labels, times = labels[known], times[known]
    while (bins := np.floor_divide(times, record.bin_seconds).astype(np.int64)).max() - bins.min() >= N_BINS:
        record.bin_seconds *= 2
    record.first_bin, record.last_bin = int(bins.min()), int(bins.max())
    pairs, counts = np.unique(np.stack([labels, bins]), axis=1, return_counts=True)
    for cluster, at, n in zip(*pairs.tolist(), counts.tolist(), strict=True):
        record.timeline.setdefault(cluster, {})[at] = n
