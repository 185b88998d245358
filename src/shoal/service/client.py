"""A client for a running service, with the verbs of an estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx
import numpy as np

from shoal.base import Assignment
from shoal.errors import BadInput, BadSource


class ServiceError(BadSource):
    """The service refused a request; ``status`` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Talks to a service as if it were a model.

    Items are lists of features, mappings from features to weights, texts, or dictionaries as ``POST /learn`` takes.

    Parameters
    ----------
    url : str
        Where the service is.
    token : str or None
        Its token, if it asks for one.
    timeout : float
        Seconds to wait for an answer.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000")  # doctest: +SKIP
    >>> client.partial_fit([["window", "cleaner"], ["window", "cleaning"]])  # doctest: +SKIP
    >>> client.predict([["window"]])  # doctest: +SKIP
    array([3])
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        timeout: float = 60.0,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # --- the verbs of an estimator ------------------------------------------------------------------------------------

    def partial_fit(
        self, items: Iterable[Any], y: Any = None, *, times: Sequence[float] | None = None, wait: float = 60.0
    ) -> Client:
        """Learn items; returns when readers see them, or after ``wait`` seconds."""
        listed = [as_item(item) for item in items]
        if times is not None:
            if len(times) != len(listed):
                raise BadInput(f"times has {len(times)} numbers for {len(listed)} items; give one for each.")
            listed = [{**item, "time": float(time)} for item, time in zip(listed, times, strict=True)]
        self._post("/learn", {"items": listed}, wait=wait)
        return self

    def assign(self, items: Iterable[Any]) -> Assignment:
        """The cluster of each item, and how well it fits there."""
        found = self._post("/assign", {"items": [as_item(item) for item in items]})["items"]
        scores = [np.nan if one["score"] is None else one["score"] for one in found]
        return Assignment(np.array([one["cluster"] for one in found]), np.array(scores))

    def predict(self, items: Iterable[Any]) -> np.ndarray:
        """The cluster of each item; -1: unassigned."""
        return self.assign(items).labels

    def suggest(self, observed: Iterable[str], rejected: Iterable[str] = (), n: int = 10) -> list[dict[str, Any]]:
        """Features that go with those observed, each with its probability and reasons."""
        body = {"observed": list(observed), "rejected": list(rejected), "n": n}
        return self._post("/suggest", body)["suggestions"]  # type: ignore[no-any-return]

    @property
    def cluster_ids_(self) -> np.ndarray:
        """Ids of the live clusters."""
        return np.array([one["id"] for one in self.clusters()], dtype=np.int64)

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """Rows in each of them."""
        return np.array([one["size"] for one in self.clusters()])

    # --- edits --------------------------------------------------------------------------------------------------------

    def name_cluster(self, cluster: int, name: str) -> dict[str, Any]:
        """Give a cluster a name."""
        return self._post(f"/clusters/{cluster}/name", {"name": name})

    def pin_cluster(self, cluster: int, pinned: bool = True) -> dict[str, Any]:
        """Keep a cluster whatever is learned."""
        return self._post(f"/clusters/{cluster}/pin", {"pinned": pinned})

    def merge_clusters(self, clusters: Iterable[int], into: int) -> dict[str, Any]:
        """Merge clusters into one of them, or into another."""
        return self._post(f"/clusters/{into}/merge", {"clusters": [one for one in clusters if one != into]})

    def split_cluster(self, cluster: int) -> dict[str, Any]:
        """Divide a cluster in two."""
        return self._post(f"/clusters/{cluster}/split", {})

    def undo(self, edit: int) -> dict[str, Any]:
        """Undo the newest edit."""
        return self._post("/undo", {"edit": edit})

    # --- views --------------------------------------------------------------------------------------------------------

    def clusters(self, search: str = "", sort: str = "id", order: str = "ascending") -> list[dict[str, Any]]:
        """All clusters that match, in one list."""
        found: list[dict[str, Any]] = []
        while True:
            page = len(found) // 1000 + 1
            query = {"search": search, "sort": sort, "order": order, "page": page, "page_size": 1000}
            answer = self._get("/clusters", **query)
            found += answer["clusters"]
            if not answer["clusters"] or len(found) >= answer["total"]:
                return found

    def cluster_card(self, cluster: int) -> dict[str, Any]:
        """Everything there is to say about one cluster."""
        return self._get(f"/clusters/{cluster}")

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """What happened to clusters after an event."""
        return self._get("/events", after=after)["events"]  # type: ignore[no-any-return]

    def stats(self) -> dict[str, Any]:
        """What the service is doing, in numbers."""
        return self._get("/stats")

    # --- requests -----------------------------------------------------------------------------------------------------

    def _post(self, path: str, body: Any, **query: Any) -> dict[str, Any]:
        return self._answer("POST", path, json=body, params=query)

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._answer("GET", path, params=query)

    def _answer(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, **request)
        except httpx.HTTPError as error:
            raise BadSource(f"no answer from {self._http.base_url}: {error}. Is the service running?") from None
        try:
            body = answer.json()
        except ValueError:
            raise ServiceError(answer.status_code, f"{self._http.base_url} is not a shoal service.") from None
        if answer.is_error:
            raise ServiceError(answer.status_code, body.get("error", {}).get("message", "refused"))
        return body  # type: ignore[no-any-return]


def as_item(item: Any) -> dict[str, Any]:
    """What a caller gives, as an item of the API.

    >>> as_item(["a", "b"]), as_item("some words"), as_item({"a": 2.0})
    ({'features': ['a', 'b']}, {'text': 'some words'}, {'features': {'a': 2.0}})
    """
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, np.ndarray):
        return {"values": item.tolist()}
    if isinstance(item, Mapping):
        given = {"features", "text", "values"} & set(item)
        return dict(item) if given else {"features": {str(name): float(weight) for name, weight in item.items()}}
    return {"features": [str(name) for name in item]}
