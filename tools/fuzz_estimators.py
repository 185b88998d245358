"""Random matrices, weights, times and options for every estimator: right is a ShoalError or an answer without NaN."""

from __future__ import annotations

import copy
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.warm_up import GROUPS as ALL_GROUPS
from shoal.warm_up import warm_up

OPTIONS: dict[str, tuple[Any, ...]] = {
    "n_clusters": (1, 2, 3, 0, -1, 2.5, "x", None, 10**5),
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
    "family": (
        "multinomial",
        "bernoulli",
        "poisson",
        "gaussian",
        "beta",
        "gamma",
        "dirichlet",
        "categorical",
        "mixed",
        "x",
    ),
    "covariance": ("diagonal", "spherical", "full", "tied", "x"),
    "weights": ("dirichlet", "dirichlet_process", "x"),
    "n_chains": (1, 2, 0, "x"),
    "parallel": (True, False),
    "n_bits": (64, 128, 0, 63, "x"),
    "background": ("auto", "feature", "flat", 0.1, -1.0, "x"),
    "n_partitions": (1, 2, 0, "x"),
    "adapt": (True, False),
    "direction": ("center", "pooled", "x"),
    "n_components": (1, 2, 0, "x"),
    "bisecting": (True, False),
    "min_cluster_size": (None, 1, 2, 0, 10**6, "x"),
    "max_cluster_size": (None, 1, 20, 0, "x"),
    "thresholds": ("safe", "x"),
    "kernel": (None, "exponential", "step", "power", "periodic:period=1 week", "periodic", "x", 5),
    "half_life": (None, 1.0, "2h", 0.0, -1.0, float("nan"), "x"),
    "granularity": ("threads", "stories", "topics", "x"),
    "base": ("background", "uniform", "x", 5),
    "evidence": ((), 5, "x"),
    "history_dir": (None, 5),
    "ridge": ("auto", "dense", "dual", "local", "x"),
    "n_sample": (1, 1500, 0, "x"),
    "n_candidates": (1, 50, 0, "x"),
    "hashes": ("ranked", "x"),
    "refresh": (1, 10, 0, "x"),
    "n_samples": (0, 1, 3, -1, "x"),
    "sampler": ("auto", "indexed", "fastex", "gibbs", "x"),
    "inference": ("adf", "em", "x"),
    "likelihood": ("multinomial", "bernoulli", "gaussian", "x"),
    "features_kept": ("auto", None, 3, 0, -1, "x"),
    "top": (1, 2, 0, "x"),
    "clutter": (True, False),
}
NAMES = (
    "SphericalKMeans",
    "BernoulliMixture",
    "ExponentialFamilyMixture",
    "TimeSensitiveMixture",
    "DensityKMeans",
    "Suggester",
    "tables",
)
GROUPS = {
    "SphericalKMeans": "kmeans",
    "BernoulliMixture": "bernoulli",
    "ExponentialFamilyMixture": "mixture",
    "TimeSensitiveMixture": "stream",
    "DensityKMeans": "densities",
    "Suggester": "suggestion",
    "tables": "mixture",
}
QUESTIONS = ("predict", "predict_proba", "score_samples", "transform")


def compile_kernels(names: list[str]) -> None:
    """Before the first trial, and before any process is forked."""
    for failure in warm_up({GROUPS[name] for name in names} & set(ALL_GROUPS)):
        print(f"warm-up failed: {failure}", flush=True)


class Wrong(Exception):
    """An answer that cannot be right."""


def trial(name: str, seed: int) -> tuple[str, str]:
    """One estimator with a few odd options on one odd matrix: learn, ask, learn more, edit, save, ask again."""
    from shoal.errors import ShoalError

    rng = np.random.default_rng(seed)
    what = ""
    try:
        model, options = estimator(name, rng)
        X, said = table(rng) if name == "tables" else matrix(rng, options.get("family"))
        arguments, more = extras(rng, X, name)
        what = f"{options} {said} {more}"
        model.fit(X, **arguments)
        answers(model, X)
        steps = rng.permutation(["learn", "learn", "edit", "store"])[: rng.choice([0, 0, 1, 2])]
        for step in steps:
            what += f", {step}: {STEPS[step](model, X, name, rng)}"
    except (ShoalError, NotImplementedError, MemoryError) as error:
        return "refused", f"{what}: {error}"
    except Wrong as error:
        return "wrong", f"{what}: {error}"
    except Exception:
        lines = [line.strip() for line in traceback.format_exc().strip().splitlines()]
        places = [line for line in lines if line.startswith("File") and "shoal" in line]
        return "error", f"{what}: {lines[-1][:200]} ({places[-1] if places else ''})"
    return "used", what


def estimator(name: str, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """The estimator with up to two odd options."""
    import shoal

    cls = shoal.ExponentialFamilyMixture if name == "tables" else getattr(shoal, name)
    known = cls().get_params(deep=False)
    options = {"n_clusters": 3, "n_sweeps": 3, "random_state": 0}
    for option in rng.permutation([one for one in OPTIONS if one in known])[: rng.choice([0, 0, 1, 2])]:
        options[str(option)] = OPTIONS[str(option)][rng.integers(len(OPTIONS[str(option)]))]
    if name == "tables":
        options["family"] = "mixed"
    options = {one: value for one, value in options.items() if one in known}
    return cls(**options), options


# --- what is done with it ---------------------------------------------------------------------------------------------


def answers(model: Any, X: Any) -> list[np.ndarray]:
    """Every answer about these rows and every card; none may be NaN, and a probability is one."""
    import shoal

    if not hasattr(model, "predict"):
        features, probabilities = model.suggest_batch(X)
        check_probabilities(probabilities[features >= 0], "suggested")
        return [features, probabilities]
    found = {ask: np.asarray(getattr(model, ask)(X), float) for ask in QUESTIONS if hasattr(model, ask)}
    for ask, answer in found.items():
        if np.isnan(answer).any():
            raise Wrong(f"NaN in {ask}")
    if "predict_proba" in found:
        check_probabilities(found["predict_proba"], "predict_proba")
        if found["predict_proba"].size and np.abs(found["predict_proba"].sum(axis=1) - 1).max() > 1e-6:
            raise Wrong("probabilities of a row do not add up to 1")
        check_probabilities(model.memberships(X, top=2).data, "memberships")
    labels = found["predict"]
    if not np.isin(labels, np.append(model.cluster_ids_, -1)).all():
        raise Wrong("predict gives a cluster that there is not")
    if len(model.labels_) and not np.isin(model.labels_, np.append(model.cluster_ids_, -1)).all():
        raise Wrong("labels_ names a cluster that there is not")
    shoal.cluster_cards(model)
    return list(found.values())


def check_probabilities(values: np.ndarray, name: str) -> None:
    if values.size and not ((values >= 0) & (values <= 1 + 1e-9)).all():
        raise Wrong(f"{name} is {values[~((values >= 0) & (values <= 1 + 1e-9))][0]}")


def learn_more(model: Any, X: Any, name: str, rng: np.random.Generator) -> str:
    """``partial_fit`` with other rows; where it is refused, the answers are those of before."""
    from shoal.errors import ShoalError

    if not hasattr(model, "partial_fit"):
        return "cannot"
    before = answers(model, X)
    Y, said = table(rng) if name == "tables" else matrix(rng, None, X.shape[1] if rng.random() < 0.8 else None)
    arguments, _ = extras(rng, Y, name)
    try:
        model.partial_fit(Y, **arguments)
    except (ShoalError, NotImplementedError):
        for one, other in zip(before, answers(model, X), strict=True):
            if not np.array_equal(one, other, equal_nan=True):
                raise Wrong(f"refused to learn {said}, and answers otherwise now") from None
        return f"{said} refused"
    answers(model, X)
    return said


def edit(model: Any, X: Any, name: str, rng: np.random.Generator) -> str:
    """Merge, split, draw; each may be refused."""
    from shoal.errors import ShoalError

    refused = 0
    ids = [int(one) for one in model.cluster_ids_[:3]] if hasattr(model, "predict") else []
    calls = [lambda: model.merge(copy.deepcopy(model))]
    if hasattr(model, "sample"):
        calls.append(lambda: np.asarray(model.sample(3, random_state=0)[0]))
    if ids:
        calls += [lambda: model.split_cluster(ids[0], X), lambda: model.merge_clusters(ids[:1], into=ids[-1])]
        calls += [lambda: model.top_features(ids[0], 3), lambda: model.pin_cluster(ids[0])]
    for at in rng.permutation(len(calls)):
        try:
            calls[at]()
        except (ShoalError, NotImplementedError):
            refused += 1
    answers(model, X)
    return f"{refused} of {len(calls)} refused"


def store(model: Any, X: Any, name: str, rng: np.random.Generator) -> str:
    """Save and load; the answers are the same."""
    import shoal

    before = answers(model, X)
    with tempfile.TemporaryDirectory() as folder:
        shoal.save(f"{folder}/m.shoal", model)
        loaded = shoal.load(f"{folder}/m.shoal")
        for one, other in zip(before, answers(loaded, X), strict=True):
            if not np.array_equal(one, other, equal_nan=True):
                raise Wrong("the loaded model answers otherwise")
    return "same"


STEPS: dict[str, Callable[[Any, Any, str, np.random.Generator], str]] = {
    "learn": learn_more,
    "edit": edit,
    "store": store,
}

# --- rows -------------------------------------------------------------------------------------------------------------


def table(rng: np.random.Generator) -> tuple[Any, str]:
    """A pandas table of columns of every type, with missing values and some odd ones."""
    import pandas as pd

    n = int(rng.integers(1, 40))
    makers: dict[str, Callable[[], Any]] = {
        "real": lambda: rng.normal(size=n) * 10.0 ** rng.choice([0, 0, 0, -200, 200]),
        "count": lambda: rng.poisson(3, n),
        "truth": lambda: rng.random(n) < 0.5,
        "text": lambda: rng.choice(["a", "b", "c"], n),
        "missing": lambda: np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)),
        "nothing": lambda: np.full(n, np.nan),
        "constant": lambda: np.full(n, 7.5),
        "categories": lambda: pd.Categorical(rng.choice(["x", "y"], n)),
        "infinite": lambda: np.where(rng.random(n) < 0.1, np.inf, 1.0),
        "huge": lambda: rng.normal(size=n) * 1e308,
        "far": lambda: rng.normal(size=n) + 1e9,
        "dates": lambda: pd.to_datetime(rng.integers(0, 10**9, n), unit="s"),
        "mixed": lambda: pd.Series([1, "a", None, 2.5] * n, dtype=object)[:n],
        "proportion": lambda: rng.random(n),
    }
    kinds = [str(kind) for kind in rng.choice(sorted(makers), rng.integers(1, 5))]
    return pd.DataFrame({f"{at} {kind}": makers[kind]() for at, kind in enumerate(kinds)}), f"{n} x {kinds}"


def matrix(rng: np.random.Generator, family: Any = None, width: int | None = None) -> tuple[Any, str]:
    """A small matrix with at most one or two things wrong with it."""
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 20)) if width is None else width
    kind = str(rng.choice(["counts", "counts", "binary", "positive", "real", "equal", "empty", "shares"]))
    kind = "shares" if family == "dirichlet" and rng.random() < 0.5 else kind
    values = {
        "counts": rng.poisson(0.5, (n, d)),
        "binary": rng.random((n, d)) < 0.3,
        "positive": rng.random((n, d)) + 0.1,
        "real": rng.normal(size=(n, d)),
        "equal": np.ones((n, d)),
        "empty": np.zeros((n, d)),
        "shares": rng.dirichlet(np.ones(d), n),
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
