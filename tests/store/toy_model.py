"""A model small enough to see through, for tests of the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import Estimator, storable


@storable
@dataclass
class ToyKernel:
    """A part that is a dataclass."""

    rate: float
    table: np.ndarray
    cache: Any = field(default=None, init=False)


@storable
class ToyPair(NamedTuple):
    """A part that is a named tuple."""

    left: Any
    right: Any


@storable
class ToyModel(Estimator):
    """Remembers whatever it is told."""

    _private_state: ClassVar[tuple[str, ...]] = ("_hidden",)

    def __init__(self, n_clusters: int = 2, *, kernel: Any = None, inner: Any = None, random_state: Any = None) -> None:
        self.n_clusters, self.kernel, self.inner, self.random_state = n_clusters, kernel, inner, random_state

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X @ self.centers_.T).argmax(axis=1)


def fitted(seed: int = 0, n_rows: int = 50, **params: Any) -> ToyModel:
    """A toy with one of everything a model is made of."""
    rng = np.random.default_rng(seed)
    model = ToyModel(3, **params)
    model.centers_ = rng.normal(size=(3, 4)).astype(np.float32)
    model.labels_ = rng.integers(3, size=n_rows)
    model.sparse_centers_ = sp.random(20, 30, density=0.2, format="csr", dtype=np.float32, random_state=seed)
    model.names_ = np.array(["ä", "", "日本", "plain"])
    model.when_ = np.array(["2012-03-04T05:06:07.008", "NaT"], dtype="datetime64[ms]")
    model.history_ = [1.0, float("nan"), float("inf"), -0.0]
    model.roster_ = {1: "one", (2, 3): None, "x": [True, 2**80]}
    model.converged_ = np.bool_(True)
    model._hidden = ToyPair(ToyKernel(0.5, np.arange(3.0)), seed)
    return model
