"""Every estimator, and every option that changes the path through the code, with data it can learn from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import shoal
from shoal import (
    BernoulliMixture,
    DensityKMeans,
    ExponentialFamilyMixture,
    SphericalKMeans,
    Suggester,
    TimeSensitiveMixture,
)
from shoal.base import Estimator
from shoal.data import Dataset, Vocabulary
from shoal.store.encode import Encoder

N_ROWS, N_FEATURES, N_CLUSTERS = 160, 24, 4


@dataclass(frozen=True)
class Case:
    """One estimator on one path."""

    name: str
    make: Callable[[], Estimator]
    kind: str  # what the values of its rows are, see `rows_of_kind`
    streams: bool = False  # whether learning takes times
    tables: bool = False  # whether values may be missing

    @property
    def package(self) -> str:
        return type(self.make()).__module__.split(".")[1]

    def rows(self, seed: int = 0) -> sp.csr_matrix:
        return rows_of_kind(self.kind, seed)

    def narrow_rows(self) -> sp.csr_matrix:
        """The same rows in fewer columns."""
        rows = self.rows()[:, NARROW.get(self.kind, [0, 1])]
        return sp.csr_matrix(rows / rows.sum(axis=1)) if self.kind == "shares" else rows

    def fitted(self, seed: int = 0) -> Any:
        return learn(self.make(), self.rows(seed), 0.0 if self.streams else None)


def learn(model: Any, X: Any, begin: float | None, *, more: bool = False, **options: Any) -> Any:
    """``fit`` or ``partial_fit``, with times from ``begin`` on where the model wants them."""
    if begin is not None:
        options["times"] = begin + np.arange(X.shape[0] if hasattr(X, "shape") else len(X), dtype=float)
    return (model.partial_fit if more else model.fit)(X, **options)


def planted_labels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, N_CLUSTERS, N_ROWS)


def rows_of_kind(kind: str, seed: int) -> sp.csr_matrix:
    """Rows of four planted clusters, each with six features of its own."""
    rng = np.random.default_rng(seed)
    labels = planted_labels(seed)
    if kind in ("counts", "sets"):
        rates = np.where(np.arange(N_FEATURES)[None, :] // 6 == labels[:, None], 2.0, 0.08)
        counts = rng.poisson(rates)
        counts[np.arange(N_ROWS), labels * 6] += 1  # no row is empty
        return sp.csr_matrix((counts > 0) if kind == "sets" else counts, dtype=np.float64)
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    values = 4.0 * corners[labels] + rng.normal(size=(N_ROWS, 3))
    if kind == "measurements":
        return sp.csr_matrix(values)
    if kind == "parameters":  # three means and three variances of Gaussians
        return sp.csr_matrix(np.hstack([values, rng.uniform(0.5, 2.0, (N_ROWS, 3))]))
    return sp.csr_matrix(MAKERS[kind](rng, labels))


def names(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Eight columns of names, here as numbers: most rows of a cluster have its own."""
    own = rng.random((N_ROWS, 8)) < 0.8
    return np.where(own, 1 + labels[:, None], rng.integers(1, 6, (N_ROWS, 8))).astype(float)


def concentrations(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Six numbers above 0, of which each cluster has some large."""
    large = np.arange(6)[None, :] % N_CLUSTERS == labels[:, None]
    return np.where(large, 40.0, 3.0) * rng.uniform(0.8, 1.25, (N_ROWS, 6))


def shares(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Six proportions of each row."""
    drawn = rng.gamma(concentrations(rng, labels))
    return drawn / drawn.sum(axis=1, keepdims=True)


def mixtures(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Gaussian mixtures of two components in two dimensions: weights, means, variances."""
    means = 6.0 * np.eye(N_CLUSTERS)[labels] + rng.normal(size=(N_ROWS, 4))
    weights = rng.dirichlet([20.0, 20.0], N_ROWS)
    return np.hstack([weights, means, rng.uniform(0.5, 2.0, (N_ROWS, 4))])


def columns(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Two measurements, two counts of events and two columns of names."""
    values = np.array([[5, 5], [5, -5], [-5, 5], [-5, -5]])[labels] + rng.normal(size=(N_ROWS, 2))
    counts = rng.poisson(np.array([[1, 9], [9, 1], [4, 4], [1, 1]])[labels])
    own = rng.random((N_ROWS, 2)) < 0.9
    return np.hstack([values, counts, np.where(own, labels[:, None] % 2, rng.integers(0, 2, (N_ROWS, 2)))])


MAKERS = {
    "names": names, "concentrations": concentrations, "shares": shares, "mixtures": mixtures, "columns": columns,
}  # fmt: skip
NARROW = {"parameters": [0, 1, 3, 4], "mixtures": [0, 1, 2, 3, 6, 7]}


def kmeans(**options: Any) -> Callable[[], Estimator]:
    return lambda: SphericalKMeans(N_CLUSTERS, random_state=0, **options)


def bernoulli(**options: Any) -> Callable[[], Estimator]:
    return lambda: BernoulliMixture(N_CLUSTERS, random_state=0, **options)


def families(family: str, sampler: str = "auto", **options: Any) -> Callable[[], Estimator]:
    options = {"n_sweeps": 8, "random_state": 0, **options}
    return lambda: ExponentialFamilyMixture(6, family=family, sampler=sampler, **options)


def densities(family: str = "gaussian", **options: Any) -> Callable[[], Estimator]:
    return lambda: DensityKMeans(N_CLUSTERS, family=family, random_state=0, **options)


def streams(**options: Any) -> Callable[[], Estimator]:
    quick = {"n_sweeps": 20, "burn_in": 10}
    return lambda: TimeSensitiveMixture(inference=quick, random_state=0, **options)


CASES = [
    Case("kmeans-exact", kmeans(algorithm="exact"), "counts"),
    Case("kmeans-sparse", kmeans(algorithm="sparse"), "counts"),
    Case("kmeans-wand", kmeans(algorithm="wand"), "counts"),
    Case("bernoulli-adf", bernoulli(), "sets"),
    Case("bernoulli-em", bernoulli(inference="em"), "sets"),
    Case("families-multinomial", families("multinomial"), "counts"),
    Case("families-multinomial-gibbs", families("multinomial", "gibbs"), "counts"),
    Case("families-multinomial-fastex", families("multinomial", "fastex"), "counts"),
    Case("families-bernoulli", families("bernoulli"), "sets"),
    Case("families-poisson", families("poisson"), "counts"),
    Case("families-gaussian", families("gaussian"), "measurements"),
    Case("families-gaussian-full", families("gaussian", covariance="full"), "measurements", tables=True),
    Case("families-gaussian-tied", families("gaussian", covariance="tied"), "measurements", tables=True),
    Case("families-categorical", families("categorical"), "names", tables=True),
    Case("families-dirichlet", families("dirichlet"), "shares", tables=True),
    Case("families-mixed", families("mixed"), "columns", tables=True),
    Case("families-process", families("multinomial", weights="dirichlet_process"), "counts"),
    Case("streams-multinomial", streams(), "counts", streams=True),
    Case("streams-gaussian", streams(likelihood="gaussian"), "measurements", streams=True),
    Case("suggestion-dense", lambda: Suggester(ridge="dense", random_state=0), "sets"),
    Case("suggestion-dual", lambda: Suggester(ridge="dual", random_state=0), "sets"),
    Case("suggestion-local", lambda: Suggester(ridge="local", random_state=0), "sets"),
    Case("densities-center", densities(), "parameters"),
    Case("densities-pooled", densities(direction="pooled"), "parameters"),
    Case("densities-gaussian-mixture", densities("gaussian_mixture", n_components=2), "mixtures"),
    Case("densities-beta", densities("beta"), "concentrations"),
    Case("densities-gamma", densities("gamma"), "concentrations"),
    Case("densities-dirichlet", densities("dirichlet"), "concentrations"),
    Case("densities-categorical", densities("categorical"), "shares"),
    Case("densities-poisson", densities("poisson"), "concentrations"),
]

# Laws that a model is excused from, with the reason. (law, case name or package) -> reason
EXCUSED: dict[tuple[str, str], str] = {
    ("merging", "streams"): "a stream is sequential in time; independent streams run by key",
    ("probabilities", "kmeans"): "k-means gives cosines, not probabilities",
    ("probabilities", "densities"): "divergences are no probabilities",
    ("unknown columns", "densities"): "each column is a named parameter of a family; their number is fixed",
    ("empty rows", "densities"): "a row of zeros is no distribution",
    ("iterations", "streams"): "a stream is learned row by row; there is no objective that iterations improve",
    ("sampling", "streams"): "not offered: a message comes at a time, from the clusters that are alive then",
    ("identity across fits", "streams"): "a stream learns on and keeps its ids; it is not fitted anew each day",
    ("empty rows", "families-dirichlet"): "a row of zeros is no proportion",
    (
        "merging",
        "families-gaussian-tied",
    ): "the covariance that all clusters share is estimated from a model's own rows",
    ("a loaded model learns", "bernoulli-em"): "EM passes over all rows again and again: it has no partial_fit",
}
# A suggester completes sets: it has no clusters of its own, no labels, and its probabilities are not of clusters.
EXCUSED |= {
    (law, "suggestion"): "a suggester has no clusters"
    for law in (
        "predict agrees with fit", "labels name clusters", "sizes", "names reach cards", "merging clusters",
        "one vocabulary of asking", "learning keeps ids", "identity across fits", "a loaded model is edited",
        "probabilities", "planted clusters", "empty rows", "merging",
    )
}  # fmt: skip


def is_excused(law: str, case: Case) -> str | None:
    """The reason why a case need not keep a law; None if it must."""
    return EXCUSED.get((law, case.name)) or EXCUSED.get((law, case.package))


def cases(law: str) -> Any:
    """Parametrize a test over all cases, but those excused from the law."""
    chosen = [pytest.param(case, id=case.name) for case in CASES if is_excused(law, case) is None]
    return pytest.mark.parametrize("case", chosen)


def fingerprint(model: Estimator) -> str:
    """A digest of all that a model file would hold of the model."""
    encoder = Encoder()
    state = {name: value for name, value in model.fitted_state().items() if name != "provenance_"}
    encoded = json.dumps(encoder.model(model, state), sort_keys=True)
    digest = hashlib.sha256(encoded.encode())
    for name in sorted(encoder.arrays):
        array = np.ascontiguousarray(encoder.arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def asked(model: Any, X: Any) -> dict[str, np.ndarray]:
    """What the model answers to every question that it takes."""
    if not hasattr(model, "predict"):
        features, probabilities = model.suggest_batch(X)
        return {"suggested": features, "probabilities": probabilities}
    answers: dict[str, Any] = {"predict": model.predict(X)}
    for name in ("predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            answers[name] = getattr(model, name)(X)
    labels, scores = model.assign(X)
    answers |= {"assign labels": labels, "assign scores": scores}
    if hasattr(model, "predict_proba"):
        answers["memberships"] = model.memberships(X, top=2).toarray()
    return {name: np.asarray(value) for name, value in answers.items()}


def same_answers(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def named(X: sp.csr_matrix, order: np.ndarray | None = None, prefix: str = "w") -> Dataset:
    """The matrix as a Dataset with named columns, its columns in another order if asked."""
    names = [f"{prefix}{column}" for column in range(X.shape[1])]
    order = np.arange(X.shape[1]) if order is None else order
    rows = sp.csr_matrix(X[:, order])
    rows.sort_indices()
    ids = np.array([f"item {row}" for row in range(X.shape[0])])
    return Dataset(rows, Vocabulary([names[column] for column in order]), ids=ids)


def saved_and_loaded(model: Any, folder: Any) -> Any:
    shoal.save(folder / "model.shoal", model)
    return shoal.load(folder / "model.shoal")
