"""What sets a cluster apart from a neighbor: the features that it has clearly more of, and those it has less of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.base import TopFeatures
from shoal.report.naming import three_digits

N_LISTED = 5
LEAST = 0.1  # of the largest difference: what differs less is not listed


def compared(
    model: Any, here: TopFeatures, there: TopFeatures, ranges: Mapping[int, tuple[float, float]]
) -> dict[str, list[str]]:
    """Names of the features that are heavier here and heavier there, what differs most first.

    Weights are compared as shares of their cluster's largest, so that a large cluster does not have more of everything.
    Measurements are compared in parts of their range over all clusters, and named with both values.

    >>> from shoal import SphericalKMeans
    >>> model = SphericalKMeans(2, random_state=0).fit([["tea", "cup"], ["tea", "cup"], ["rum"], ["rum"]])
    >>> here, there = (model.top_features(id_) for id_ in model.cluster_ids_)
    >>> found = compared(model, here, there, {})
    >>> sorted([found["more_here"], found["more_there"]])
    [['rum'], ['tea', 'cup']]
    """
    features = np.union1d(here.features, there.features)
    unknown = np.setxor1d(here.features, there.features)  # of a measurement, no value is not a low one
    features = features[~(np.isin(features, unknown) & np.isin(features, [*ranges]))]
    mine, theirs = _values(here, features), _values(there, features)
    level = np.isin(features, [*ranges])
    width = np.array([_width(ranges.get(int(feature))) for feature in features])
    scale = [1.0 if level.any() else max(float(np.abs(each).max(initial=0.0)), 1e-300) for each in (mine, theirs)]
    difference = np.where(level, (mine - theirs) / width, mine / scale[0] - theirs / scale[1])
    names = [str(name) for name in model.name_features(features)]
    said = [
        f"{name} {three_digits(a)} against {three_digits(b)}" if is_level else name
        for name, a, b, is_level in zip(names, mine, theirs, level, strict=True)
    ]
    order = np.argsort(-np.abs(difference), kind="stable")
    order = order[np.abs(difference[order]) > LEAST * np.abs(difference).max(initial=0.0)]
    return {
        "more_here": [said[at] for at in order if difference[at] > 0][:N_LISTED],
        "more_there": [said[at] for at in order if difference[at] < 0][:N_LISTED],
    }


def _values(top: TopFeatures, features: np.ndarray) -> np.ndarray:
    """The value of each feature; 0 where it is not among those that describe the cluster."""
    found = dict(zip(np.asarray(top.features).tolist(), np.asarray(top.values, dtype=float).tolist(), strict=True))
    return np.array([found.get(feature, 0.0) for feature in features.tolist()])


def _width(ends: tuple[float, float] | None) -> float:
    return 1.0 if ends is None or ends[1] <= ends[0] else ends[1] - ends[0]
