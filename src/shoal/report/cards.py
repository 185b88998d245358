"""One cluster card for every model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator


@dataclass(frozen=True)
class FeatureFact:
    """A feature of a cluster and the number behind it, with its credible interval where the model has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ClusterCard:
    """What a person wants to know about one cluster."""

    id: int
    name: str  # the user's name for it, else its first features
    size: int
    share: float  # of all items
    features: tuple[FeatureFact, ...]
    meaning: str  # what the features' numbers are
    bounded: str  # what their intervals bound, when that is not the number itself
    items: tuple[tuple[str, float | None], ...]  # typical items, most typical first, with their typicality
    cohesion: float | None  # mean typicality of its items
    uncertainty: float | None  # 0 = sure who belongs, 1 = no idea
    born: float | None  # epoch seconds of its first and last item
    last_seen: float | None

    @property
    def telling(self) -> tuple[FeatureFact, ...]:
        """The features that matter: those with at least a tenth of the largest value."""
        most = max((fact.value for fact in self.features), default=0.0)
        return tuple(fact for fact in self.features if fact.value >= 0.1 * most)


def cluster_cards(
    model: Estimator, dataset: Any = None, *, n_features: int = 10, n_items: int = 5
) -> list[ClusterCard]:
    """Describe every cluster of a fitted model, largest first.

    ``dataset`` is the data the model was fitted on; it adds item names and life spans. A model fitted
    on a :class:`shoal.Dataset` remembers the item names by itself.

    >>> import numpy as np
    >>> from shoal import SphericalKMeans
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 3], [0, 0, 1, 1.]])
    >>> cards = cluster_cards(SphericalKMeans(2, random_state=0).fit(X), n_features=2, n_items=1)
    >>> [(card.size, card.name, card.items[0][0]) for card in cards]
    [(3, 'feature 3, feature 2', '2'), (2, 'feature 0, feature 1', '0')]
    """
    check_is_fitted(model)
    ids = np.asarray(model.reported_cluster_ids())
    labels = np.asarray(model.labels_)  # type: ignore[attr-defined]
    typicality = model.typicality()
    members = _members_by_cluster(labels, ids, typicality)
    item_names = dataset.ids if dataset is not None else getattr(model, "item_ids_", None)
    times = dataset.times if dataset is not None else None
    uncertainty = model.cluster_uncertainty()
    given_names = model.roster_.names if hasattr(model, "roster_") else {}

    cards = []
    for row, id_ in enumerate(ids.tolist()):
        rows = members[row]
        top = model.top_features(id_, n=n_features)
        names = model.name_features(top.features)
        facts = tuple(
            FeatureFact(name, float(top.values[at]), _at(top.low, at), _at(top.high, at))
            for at, name in enumerate(names)
        )
        telling = [fact.name for fact in facts if fact.value >= 0.1 * facts[0].value]
        lived = times[rows] if times is not None and rows.size else None
        cards.append(
            ClusterCard(
                id=id_,
                name=given_names.get(id_, ", ".join(telling[:3]) or "no features"),
                size=int(rows.size),
                share=rows.size / max(labels.size, 1),
                features=facts,
                meaning=top.meaning,
                bounded=top.bounded,
                items=tuple((_item_name(item_names, item), _at(typicality, item)) for item in rows[:n_items].tolist()),
                cohesion=float(np.mean(typicality[rows])) if typicality is not None and rows.size else None,
                uncertainty=_at(uncertainty, row) if uncertainty is not None and row < len(uncertainty) else None,
                born=float(np.nanmin(lived)) if lived is not None else None,
                last_seen=float(np.nanmax(lived)) if lived is not None else None,
            )
        )
    return sorted(cards, key=lambda card: (-card.size, card.id))


def _members_by_cluster(labels: np.ndarray, ids: np.ndarray, typicality: np.ndarray | None) -> list[np.ndarray]:
    """For each cluster the rows it holds, most typical first."""
    order = np.arange(labels.size) if typicality is None else np.argsort(-typicality, kind="stable")
    order = order[np.argsort(labels[order], kind="stable")]
    grouped = labels[order]
    starts = np.searchsorted(grouped, ids, side="left")
    ends = np.searchsorted(grouped, ids, side="right")
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _item_name(names: Any, item: int) -> str:
    return str(item) if names is None else str(names[item])


def _at(values: np.ndarray | None, at: int) -> float | None:
    return None if values is None else float(values[at])
