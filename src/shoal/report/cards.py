"""One cluster card for every model."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator, TopFeatures
from shoal.errors import BadInput
from shoal.report.naming import N_CANDIDATES, distinctive_features, phrases, unique_names

LARGEST_SIZE = 2.0**53


@dataclass(frozen=True)
class FeatureFact:
    """A feature of a cluster and the number behind it, with its credible interval where the model has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    is_level: bool = False  # the level of a measurement, in its own unit, rather than a share or a weight


@dataclass(frozen=True)
class ClusterCard:
    """What a person wants to know about one cluster."""

    id: int
    name: str  # the user's name for it, else what distinguishes it from the other clusters
    named: bool  # whether the user gave the name
    size: int  # all rows it has learned
    share: float  # of the rows of all clusters, unassigned ones included
    features: tuple[FeatureFact, ...]
    meaning: str  # what the features' numbers are
    bounded: str  # what their intervals bound, when that is not the number itself
    distinctive: tuple[str, ...]  # the features that set it apart, most distinctive first
    items: tuple[tuple[str, float | None], ...]  # typical items, most typical first, with their typicality
    cohesion: float | None  # mean typicality of its items
    uncertainty: float | None  # 0 = sure who belongs, 1 = no idea
    born: float | None  # epoch seconds of its first and last item
    last_seen: float | None
    notes: tuple[str, ...] = ()  # what else the model knows of it, a sentence each
    stability: float | None = None  # how surely resamples find it again, 0 to 1, where that was measured


class Description(NamedTuple):
    """The cards of a model, largest cluster first, and what they were made from, in the same order."""

    cards: list[ClusterCard]
    tops: list[TopFeatures]
    members: list[np.ndarray]  # rows of each cluster
    times: np.ndarray | None  # of the rows


def cluster_cards(
    model: Any,
    dataset: Any = None,
    *,
    n_features: int = 10,
    n_items: int = 5,
    stability: np.ndarray | None = None,
    feature_names: Any = None,
) -> list[ClusterCard]:
    """Describe every cluster of a fitted model, largest first; a model without clusters has none.

    Parameters
    ----------
    model : Estimator or Pipeline
        A fitted model of any kind, or a scikit-learn pipeline that ends in one: its vectorizer names the features.
    dataset : Dataset, optional
        The rows the model learned last; it adds item names and times. A model that learned from a
        :class:`shoal.Dataset` remembers the item names by itself.
    n_features, n_items : int
        How many features and typical items a card holds.
    stability : (n_clusters,) array, optional
        What :func:`shoal.cluster_stability` found for this model; without it, what was measured when the model was
        fitted, if anything.
    feature_names : sequence of str, optional
        The name of each column, where the model saw a bare matrix: ``vectorizer.get_feature_names_out()``, say.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import SphericalKMeans
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 3], [0, 0, 1, 1.]])
    >>> cards = cluster_cards(SphericalKMeans(2, random_state=0).fit(X), n_features=2, n_items=1)
    >>> [(card.size, card.name, card.items[0][0]) for card in cards]
    [(3, 'feature 3, feature 2', '2'), (2, 'feature 0, feature 1', '0')]
    """
    model = named_model(model, feature_names)
    return describe(model, dataset, n_features=n_features, n_items=n_items, stability=stability).cards


def named_model(model: Any, feature_names: Any = None) -> Estimator:
    """The model, or the last step of a pipeline, with these names for its columns; what was given is not changed."""
    steps = getattr(model, "steps", None)
    if steps is not None:
        if feature_names is None and hasattr(model[:-1], "get_feature_names_out"):
            feature_names = model[:-1].get_feature_names_out()
        model = steps[-1][1]
    check_is_fitted(model)
    if feature_names is None:
        return model  # type: ignore[no-any-return]
    names = np.asarray(feature_names, dtype=object)
    if names.shape != (model.n_features_in_,):
        raise BadInput(f"feature_names has shape {names.shape}; the model has {model.n_features_in_:,} features.")
    named = copy.copy(model)
    vars(named).pop("vocabulary_", None)
    named.feature_names_in_ = names
    return named  # type: ignore[no-any-return]


def describe(
    model: Estimator, dataset: Any = None, *, n_features: int, n_items: int, stability: np.ndarray | None = None
) -> Description:
    """The cards, with the features and rows that a report draws."""
    check_is_fitted(model)
    if not hasattr(model, "labels_"):
        return Description([], [], [], None)
    ids = np.asarray(model.reported_cluster_ids())
    rows = LearnedRows.of(model, dataset)
    sizes = _sizes(model, ids, rows.labels)
    n_total = max(int(sizes.sum()) + int(np.count_nonzero(rows.labels < 0)), 1)
    members = members_by_cluster(rows.labels, ids, rows.typicality)
    tops = [model.top_features(id_, n=max(n_features, N_CANDIDATES)) for id_ in ids.tolist()]
    words = distinctive_words(model, ids, tops, sizes)
    uncertainty = model.cluster_uncertainty()
    roster = getattr(model, "roster_", None)
    given = roster.names if roster is not None else {}
    unnamed = [at for at, id_ in enumerate(ids.tolist()) if not given.get(id_)]
    found = unique_names([words[at] for at in unnamed], [int(ids[at]) for at in unnamed])
    names = dict(zip(unnamed, found, strict=True))
    stable = _stability_by_id(model, stability)
    cards = [
        ClusterCard(
            id=id_,
            name=names.get(at) or given[id_],
            named=at not in names,
            size=int(sizes[at]),
            share=int(sizes[at]) / n_total,
            features=_facts(model, tops[at], n_features),
            meaning=tops[at].meaning,
            bounded=tops[at].bounded,
            distinctive=tuple(words[at]),
            items=rows.named(members[at][:n_items]),
            cohesion=rows.cohesion(members[at]),
            uncertainty=_at(uncertainty, at) if uncertainty is not None and at < len(uncertainty) else None,
            born=rows.first_time(members[at]),
            last_seen=rows.last_time(members[at]),
            notes=tuple(model.cluster_notes(id_)),
            stability=stable.get(id_),
        )
        for at, id_ in enumerate(ids.tolist())
    ]
    order = sorted(range(len(cards)), key=lambda at: (-cards[at].size, cards[at].id))
    return Description(
        [cards[at] for at in order], [tops[at] for at in order], [members[at] for at in order], rows.times
    )


def _stability_by_id(model: Any, stability: np.ndarray | None) -> dict[int, float]:
    """By cluster, what was given, or measured when the model was fitted."""
    ids = np.asarray(model.cluster_ids_)
    if stability is None:
        kept = getattr(model, "stability_", None)
        return {} if kept is None else dict(zip(kept[0].astype(int).tolist(), kept[1].tolist(), strict=True))
    stability = np.asarray(stability, dtype=float)
    if stability.shape != ids.shape:
        raise BadInput(f"stability has shape {stability.shape}; the model has {ids.size} clusters, and each needs one.")
    return dict(zip(ids.tolist(), stability.tolist(), strict=True))


@dataclass(frozen=True)
class LearnedRows:
    """The rows of the last call that learned."""

    labels: np.ndarray
    typicality: np.ndarray | None
    names: Any
    times: np.ndarray | None

    @classmethod
    def of(cls, model: Estimator, dataset: Any) -> LearnedRows:
        """What a fitted model remembers of its rows, and what the rows themselves add to it."""
        labels = np.asarray(model.labels_)  # type: ignore[attr-defined]
        typicality = model.typicality()
        if typicality is not None and len(typicality) != labels.size:
            typicality = None
        names = getattr(model, "item_titles_", None)
        names = getattr(model, "item_ids_", None) if names is None else names
        if names is not None and len(names) != labels.size:
            names = None
        times = getattr(model, "all_times_", None)  # a stream knows when its rows came
        if times is not None and len(times) != labels.size:
            times = None
        if dataset is not None:
            given = getattr(dataset, "titles", None)
            given = dataset.ids if given is None else given
            names = names if given is None else np.asarray(given)
            times = times if dataset.times is None else np.asarray(dataset.times, dtype=float)
            for what in (names, times):
                if what is not None and len(what) != labels.size:
                    raise BadInput(
                        f"dataset has {len(what):,} items, but the model learned {labels.size:,} in its last call. "
                        "Give the dataset that it learned from, or none."
                    )
        return cls(labels, typicality, names, times)

    def named(self, rows: np.ndarray) -> tuple[tuple[str, float | None], ...]:
        name = (lambda row: str(row)) if self.names is None else (lambda row: str(self.names[row]))
        return tuple((name(row), _at(self.typicality, row)) for row in rows.tolist())

    def cohesion(self, rows: np.ndarray) -> float | None:
        return float(np.mean(self.typicality[rows])) if self.typicality is not None and rows.size else None

    def first_time(self, rows: np.ndarray) -> float | None:
        return self._time(rows, np.fmin)

    def last_time(self, rows: np.ndarray) -> float | None:
        return self._time(rows, np.fmax)

    def _time(self, rows: np.ndarray, extreme: np.ufunc) -> float | None:
        if self.times is None or not rows.size:
            return None
        time = float(extreme.reduce(self.times[rows]))
        return time if np.isfinite(time) else None


def _sizes(model: Estimator, ids: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows of each cluster over all that was learned; of clusters that are gone, the rows of the last call."""
    known, counts = np.unique(labels, return_counts=True)
    counted = dict(zip(known.tolist(), counts.tolist(), strict=True))
    sizes = np.array([counted.get(id_, 0) for id_ in ids.tolist()], dtype=np.int64)
    learned = getattr(model, "cluster_sizes_", None)
    if learned is not None:
        place = {id_: at for at, id_ in enumerate(np.asarray(model.cluster_ids_).tolist())}
        for at, id_ in enumerate(ids.tolist()):
            if id_ in place:
                sizes[at] = round(min(float(learned[place[id_]]), LARGEST_SIZE))  # weights may be of any size
    return sizes


def _facts(model: Estimator, top: TopFeatures, n: int) -> tuple[FeatureFact, ...]:
    names = model.name_features(np.asarray(top.features)[:n])
    return tuple(
        FeatureFact(
            name,
            float(top.values[at]),
            _at(top.low, at),
            _at(top.high, at),
            top.levels is not None and bool(top.levels[at]),
        )
        for at, name in enumerate(names)
    )


def distinctive_words(
    model: Estimator, ids: np.ndarray, tops: list[TopFeatures], sizes: np.ndarray, most: int = 8
) -> list[list[str]]:
    """What sets each cluster apart: its title, where the model has one, else levels of measurements or features."""
    said = phrases(tops, sizes, [model.name_features(np.asarray(top.features)) for top in tops], most)
    if said is None:
        said = [model.name_features(features) for features in distinctive_features(tops, sizes, most)]
    titles = [model.cluster_title(id_) for id_ in ids.tolist()]
    return [words if title is None else [title] for words, title in zip(said, titles, strict=True)]


def members_by_cluster(labels: np.ndarray, ids: np.ndarray, typicality: np.ndarray | None) -> list[np.ndarray]:
    """For each cluster the rows it holds, most typical first."""
    order = np.arange(labels.size) if typicality is None else np.argsort(-typicality, kind="stable")
    order = order[np.argsort(labels[order], kind="stable")]
    grouped = labels[order]
    starts = np.searchsorted(grouped, ids, side="left")
    ends = np.searchsorted(grouped, ids, side="right")
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _at(values: np.ndarray | None, at: int) -> float | None:
    """One end of an interval; None where the model has none for this feature."""
    return None if values is None or np.isnan(values[at]) else float(values[at])
