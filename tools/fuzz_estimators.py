"""Random matrices, weights, times and options for every estimator: right is a ShoalError or an answer without NaN."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.warm_up import warm_up

OPTIONS: dict[str, tuple[Any, ...]] = {
    "n_clusters": (1, 2, 3, 0, -1, 2.5, "x", None, 10**7),
    "max_iter": (1, 5, 0, -3, "x"),
    "tol": (0.0, 1e-3, -1.0, float("nan"), "x"),
    "n_init": (1, 2, 0, "auto", "x"),
    "n_sweeps": (1, 4, 0, -1, "x"),
    "n_passes": (1, 2, 0, "x"),
    "strength": (None, 1.0, 0.0, -1.0, float("nan"), "x"),
    "concentration": (None, 0.1, 0.0, -1.0, float("inf"), "learn", "x"),
    "smoothing": ("auto", 0.1, 0.0, -1.0, float("nan")),
    "drift": (0.0, 1e-6, -1.0, float("nan")),
    "random_state": (0, None, -1, "x", 2**40),
    "n_threads": (None, 1, 2, 0, -1, "x"),
    "init": ("random", "x", 3),
    "algorithm": ("auto", "exact", "sparse", "wand", "x"),
    "family": ("multinomial", "bernoulli", "poisson", "gaussian", "beta", "x"),
    "sampler": ("auto", "indexed", "fastex", "gibbs", "x"),
    "inference": ("adf", "em", "x"),
    "likelihood": ("multinomial", "bernoulli", "gaussian", "x"),
    "features_kept": ("auto", None, 3, 0, -1, "x"),
    "top": (1, 2, 0, "x"),
    "clutter": (True, False),
}
NAMES = ("SphericalKMeans", "BernoulliMixture", "ExponentialFamilyMixture", "TimeSensitiveMixture", "DensityKMeans")


def compile_kernels(names: list[str]) -> None:
    """Before the first trial, and before any process is forked."""
    groups = {
        "SphericalKMeans": "kmeans",
        "BernoulliMixture": "bernoulli",
        "ExponentialFamilyMixture": "mixture",
        "TimeSensitiveMixture": "stream",
        "DensityKMeans": "densities",
    }
    for failure in warm_up([groups[name] for name in names]):
        print(f"warm-up failed: {failure}", flush=True)


def trial(name: str, seed: int) -> tuple[str, str]:
    """One estimator with a few odd options on one odd matrix."""
    import shoal
    from shoal.errors import ShoalError

    rng = np.random.default_rng(seed)
    cls = getattr(shoal, name)
    known = cls().get_params(deep=False)
    options = {"n_clusters": 3, "n_sweeps": 3, "random_state": 0}
    for option in rng.permutation([one for one in OPTIONS if one in known])[: rng.choice([0, 0, 1, 2])]:
        options[str(option)] = OPTIONS[str(option)][rng.integers(len(OPTIONS[str(option)]))]
    options = {one: value for one, value in options.items() if one in known}
    X, said = matrix(rng)
    arguments, more = extras(rng, X, name)
    what = f"{options} {said} {more}"
    try:
        model = cls(**options).fit(X, **arguments)
        answers = [np.asarray(model.predict(X), float)]
        answers += [
            np.asarray(getattr(model, ask)(X)) for ask in ("predict_proba", "score_samples") if hasattr(model, ask)
        ]
        cards = shoal.cluster_cards(model)
    except (ShoalError, NotImplementedError) as error:
        return "refused", f"{what}: {error}"
    except Exception:
        lines = [line.strip() for line in traceback.format_exc().strip().splitlines()]
        places = [line for line in lines if line.startswith("File") and "shoal" in line]
        return "error", f"{what}: {lines[-1][:200]} ({places[-1] if places else ''})"
    if any(np.isnan(answer).any() for answer in answers):
        return "NaN", what
    return "used", f"{what}: {len(cards)} clusters"


def matrix(rng: np.random.Generator) -> tuple[Any, str]:
    """A small matrix with at most one or two things wrong with it."""
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 20))
    kind = str(rng.choice(["counts", "counts", "binary", "positive", "real", "equal", "empty"]))
    values = {
        "counts": rng.poisson(0.5, (n, d)),
        "binary": rng.random((n, d)) < 0.3,
        "positive": rng.random((n, d)) + 0.1,
        "real": rng.normal(size=(n, d)),
        "equal": np.ones((n, d)),
        "empty": np.zeros((n, d)),
    }[kind].astype(float)
    said = [f"{n} x {d} {kind}"]
    for change in rng.permutation(["scale", "shift", "odd", "rows"])[: rng.choice([0, 0, 1, 2])]:
        if change == "scale":
            factor = float(rng.choice([1e-300, 1e-200, 1e-30, 1e30, 1e200, 1e300]))
            values, said = values * factor, [*said, f"x {factor:g}"]
        elif change == "shift":
            values, said = values + 1e6, [*said, "+ 1e6"]
        elif change == "rows":
            values[rng.random(n) < 0.5] = 0
            said.append("empty rows")
        else:
            odd = float(rng.choice([np.nan, np.inf, -1.0, 1e308, 5e-324]))
            values[rng.integers(n), rng.integers(d)] = odd
            said.append(f"one {odd:g}")
    return _as_type(values, said, rng)


FORMS = ("csr", "csr", "dense", "csc", "float32", "int", "wide index", "broken index", "stored zero")


def _as_type(values: np.ndarray, said: list[str], rng: np.random.Generator) -> tuple[Any, str]:
    form = str(rng.choice(FORMS))
    X: Any = sp.csr_matrix(values)
    if form == "dense":
        X = values
    elif form == "csc":
        X = sp.csc_matrix(values)
    elif form == "float32":
        with np.errstate(all="ignore"):
            X = X.astype(np.float32)
    elif form == "int" and np.isfinite(values).all() and np.abs(values).max(initial=0) < 2**60:
        X = X.astype(np.int64)
    elif form == "wide index":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    elif form == "broken index" and X.nnz:
        X.indices[rng.integers(X.nnz)] = rng.choice([-5, X.shape[1], 10**8])
    elif form == "stored zero" and X.nnz:
        X.data[rng.integers(X.nnz)] = 0
    return X, ", ".join([*said, form])


def extras(rng: np.random.Generator, X: Any, name: str) -> tuple[dict[str, Any], str]:
    """Times for a stream, and sometimes weights."""
    n = X.shape[0]
    if name == "TimeSensitiveMixture":
        times = np.sort(rng.random(n)) * float(rng.choice([1.0, 1e6, 1e-6, 1e300])) + float(
            rng.choice([0.0, 1.7e9, -1e9])
        )
        if rng.random() < 0.1:
            times[rng.integers(n)] = float(rng.choice([np.nan, np.inf]))
        return {"times": times}, f"times to {times.max():g}"
    if name in ("SphericalKMeans", "BernoulliMixture", "DensityKMeans") and rng.random() < 0.3:
        weights = rng.random(n) * float(rng.choice([1.0, 1e-300, 1e300, 0.0, -1.0]))
        return {"sample_weight": weights}, f"weights to {weights.max():g}"
    return {}, ""
