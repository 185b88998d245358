"""What readers see: one whole state, and the questions it answers. It never changes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from shoal.errors import BadInput
from shoal.service.catalog import Catalog, Catalogs
from shoal.service.edits import UnknownCluster
from shoal.service.items import Item
from shoal.service.state import CannotDo, State, require, takes_times

NOT_YET = "this model has no clusters yet: it begins when {needed} items have come, and {got} are there."


class View:
    """A state and its answers.

    Examples
    --------
    >>> from shoal import SphericalKMeans
    >>> state = State(SphericalKMeans(2, random_state=0))
    >>> items = [{"id": str(n), "features": ["a", "b"] if n % 2 else ["c", "d"]} for n in range(4)]
    >>> state.learn(items, first=1, last=1)
    >>> view = View(state)
    >>> [round(answer["score"], 3) for answer in view.assign([{"features": ["a", "b"]}, {"features": ["zebra"]}])]
    [1.0, 0.0]
    """

    def __init__(self, state: State, catalogs: Catalogs | None = None) -> None:
        self.state = state
        self.model: Any = state.model
        self.record = state.record
        self.snapshot = state.record.position
        self.published_at = time.time()
        self.catalogs = Catalogs() if catalogs is None else catalogs
        # Until every model can be asked from many threads at once, those that cannot are asked one at a time.
        self._one_at_a_time = threading.Lock()

    @property
    def catalog(self) -> Catalog:
        """Names, sizes and features of all clusters."""
        self.require_fitted()
        return self.catalogs.of(self.state)

    def require_fitted(self) -> None:
        """Refuse questions to a model that has not begun."""
        if not self.state.is_fitted:
            needed, got = self.state.n_first(), self.record.n_items
            raise CannotDo(NOT_YET.format(needed=needed, got=got))

    def assign(self, items: Sequence[Item], top: int = 1) -> list[dict[str, Any]]:
        """The cluster of each item, how well it fits, and how many of its features are not known."""
        self.require_fitted()
        rows = self.state.rows.known(items)
        with self._asking:
            labels, scores = self.model.assign(rows.X)
        answers = [
            {"id": item.get("id"), "cluster": int(label), "score": _finite(score), "unknown_features": int(unknown)}
            for item, label, score, unknown in zip(items, labels, scores, rows.n_unknown, strict=True)
        ]
        if top > 1:
            for answer, others in zip(answers, self._memberships(rows.X, top), strict=True):
                answer["memberships"] = others
        return answers

    def _memberships(self, X: Any, top: int) -> list[list[dict[str, Any]]]:
        ids = self.state.cluster_ids()
        if hasattr(self.model, "memberships"):
            with self._asking:
                shares = self.model.memberships(X, top=top)
            shares = getattr(shares, "matrix", shares).tocsr()
            rows = [(shares[at].indices, shares[at].data) for at in range(shares.shape[0])]
        elif hasattr(self.model, "predict_proba"):
            with self._asking:
                dense = self.model.predict_proba(X)
            rows = [(np.argsort(-row, kind="stable")[:top], np.sort(row)[::-1][:top]) for row in dense]
        else:
            raise CannotDo(f"a {type(self.model).__name__} gives one cluster for each item; leave top out.")
        return [
            sorted(
                (
                    {"cluster": int(ids[at]) if at < ids.size else -1, "probability": float(share)}
                    for at, share in zip(columns, values, strict=True)
                ),
                key=lambda one: -one["probability"],  # type: ignore[operator]
            )[:top]
            for columns, values in rows
        ]

    def suggest(self, observed: Sequence[str], rejected: Sequence[str], n: int) -> list[dict[str, Any]]:
        """Features that go with those observed, with probabilities and reasons."""
        require(self.model, "suggest")
        self.require_fitted()
        if not len(self.state.rows.vocabulary):
            raise CannotDo("this model has no features yet.")
        found = self.model.suggest(list(observed), rejected=list(rejected), n=n)
        return [
            {
                "feature": one.name,
                "probability": float(one.probability),
                "reasons": [
                    {"cluster": reason.cluster, "name": self._name(reason), "share": reason.share,
                     "because": reason.because}
                    if hasattr(reason, "cluster")
                    else vars(reason)
                    for reason in one.reasons
                ],
            }
            for one in found
        ]  # fmt: skip

    def _name(self, reason: Any) -> str:
        """What the lists call the cluster of a reason; no catalog is made for this."""
        newest = self.catalogs.newest
        at = None if newest is None else newest.at.get(reason.cluster)
        return str(reason.name) if newest is None or at is None else newest.entries[at].name

    def complete(self, prefix: str, n: int = 10) -> list[str]:
        """Feature names that begin with, or contain, some letters; the shortest first."""
        self.require_fitted()
        return self._names.find(prefix, n)

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex(list(self.state.rows.vocabulary))

    def card(self, cluster: int) -> dict[str, Any]:
        """Everything there is to say about one cluster."""
        self.require_fitted()
        if cluster not in self.catalog.at:
            events = [event for event in self.record.events if event["cluster"] == cluster]
            gone = next((event for event in reversed(events) if event["kind"] in ("merge", "death")), None)
            hint = f" It was merged into {gone['into']}." if gone and gone["into"] is not None else ""
            raise UnknownCluster(f"there is no live cluster {cluster}.{hint}")
        return self.catalog.card(self.state, cluster)

    @property
    def _asking(self) -> Any:
        return self._one_at_a_time if takes_times(self.model) else _free


class NameIndex:
    """Finds names by some of their letters."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.text = "\n".join(name.replace("\n", " ") for name in names).lower()

    def find(self, letters: str, n: int) -> list[str]:
        """Names that begin with the letters, then names that contain them."""
        letters = letters.lower().replace("\n", " ").strip()
        if not letters:
            return []
        starts: list[str] = []
        inside: list[str] = []
        at = 0
        lines = self._lines
        while len(starts) < n and len(inside) < 50 * n:
            at = self.text.find(letters, at)
            if at < 0:
                break
            row = int(np.searchsorted(lines, at, side="right")) - 1
            (starts if at == lines[row] else inside).append(self.names[row])
            at = self.text.find("\n", at)
            if at < 0:
                break
        return (sorted(starts, key=len) + sorted(inside, key=len))[:n]

    @cached_property
    def _lines(self) -> np.ndarray:
        breaks = np.flatnonzero(np.frombuffer(self.text.encode("utf-32-le"), dtype=np.uint32) == 10)
        return np.concatenate([[0], breaks + 1])


class _Free:
    """Stands where a lock would, for models that need none."""

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None: ...


_free = _Free()


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def check_features(features: Any) -> None:
    """Refuse features that no model can hold."""
    if isinstance(features, dict):
        for name, weight in features.items():
            if not math.isfinite(weight) or weight < 0:
                raise BadInput(f"feature {name[:50]!r} has weight {weight}; weights must be finite and 0 or more.")
