"""One table over every labelled set: all models that fit the data, and rivals of today; defaults, three seeds.

The true number of classes is told to those that have to be told a number (marked k in ``KNOWS_K``); the others find it.
A row that a model leaves unassigned counts as a member of one more cluster, which is how scikit-learn reads -1.
Seconds are processor time, after a first run on a few rows that compiles.

    python benchmarks/all_labelled.py                      every set, one after another
    python benchmarks/all_labelled.py 'octis_m10' tweet    these
    python benchmarks/all_labelled.py --ours               our models only (or --rivals)
    python benchmarks/all_labelled.py --missing            what has no line yet for as many rows
    SHOAL_SEEDS=1 SHOAL_MOST_ROWS=2000 python benchmarks/all_labelled.py        less of everything
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, normalized_mutual_info_score

from common import RESULTS, peak_mb, record
from labelled_sets import SETS, Labelled
from shoal import BernoulliMixture, ExponentialFamilyMixture, SphericalKMeans, TimeSensitiveMixture
from shoal.metrics import b_cubed

SEEDS = int(os.environ.get("SHOAL_SEEDS", 3))
SLOW = 10.0  # processor seconds of one fit; the other seeds are then left out


def tfidf(X):
    return TfidfTransformer(sublinear_tf=True).fit_transform(X)


def gsdmm(data: Labelled, k: int, seed: int) -> np.ndarray:
    """Yin and Wang, KDD 2014: collapsed Gibbs with symmetric priors of 0.1, random labels, 30 sweeps.

    Their bound on the number of clusters is taken as twice the true number. The chain is our compiled one.
    """
    from shoal.families.options import Settings
    from shoal.families.samplers.count_problem import CountProblem

    settings = Settings(2 * k, "multinomial", "dirichlet", 0.1, 0.1, 0.0, 64, "ranked", "diagonal", 10)
    chain = CountProblem(data.X, settings).chain("gibbs", seed)
    chain.set_labels(np.random.default_rng(seed).integers(0, 2 * k, data.X.shape[0]))
    for _ in range(30):
        chain.sweep()
    return chain.labels


def lda(data: Labelled, k: int, seed: int) -> np.ndarray:
    """tomotopy; the most probable topic of each document after 300 passes."""
    import tomotopy

    model = tomotopy.LDAModel(k=max(k, 2), seed=seed + 1)
    X = data.X
    for row in range(X.shape[0]):
        at = slice(X.indptr[row], X.indptr[row + 1])
        model.add_doc([f"w{f}" for f, c in zip(X.indices[at], X.data[at].astype(int), strict=True) for _ in range(c)])
    model.train(300, workers=1)
    return np.array([document.get_topics(1)[0][0] for document in model.docs])


def svd(data: Labelled, seed: int) -> np.ndarray:
    n = min(100, data.X.shape[1] - 1, data.X.shape[0] - 1)
    return TruncatedSVD(n, random_state=seed).fit_transform(tfidf(data.X))


def svd_hdbscan(data: Labelled, k: int, seed: int) -> np.ndarray:
    reduced = svd(data, seed)
    reduced /= np.maximum(np.linalg.norm(reduced, axis=1, keepdims=True), 1e-12)
    return HDBSCAN(min_cluster_size=10, copy=False).fit(reduced).labels_


def umap_hdbscan(data: Labelled, k: int, seed: int) -> np.ndarray:
    """BERTopic's steps without its language model: SVD of tf-idf, UMAP with BERTopic's defaults, HDBSCAN."""
    from umap import UMAP

    reduced = UMAP(15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed, n_jobs=1).fit_transform(
        svd(data, seed)
    )
    return HDBSCAN(min_cluster_size=10, copy=False).fit(reduced.astype(np.float64)).labels_


def textclust(data: Labelled, k: int, seed: int) -> np.ndarray:
    """river's TextClust, told each row and then asked for it."""
    from river.cluster import TextClust

    model = TextClust(real_time_fading=False, fading_factor=0.0005, tgap=100)
    labels = []
    for row in range(data.X.shape[0]):
        at = slice(data.X.indptr[row], data.X.indptr[row + 1])
        terms = {f"w{f}": int(c) for f, c in zip(data.X.indices[at], data.X.data[at], strict=True)}
        model.learn_one(terms)
        labels.append(model.predict_one(terms, type="micro"))
    return np.array([-1 if label is None else label for label in labels])


def drain3(data: Labelled, k: int, seed: int) -> np.ndarray:
    """drain3 with its defaults: log lines to templates, one after another."""
    from drain3 import TemplateMiner
    from drain3.template_miner_config import TemplateMinerConfig

    assert data.lines is not None
    miner = TemplateMiner(config=TemplateMinerConfig())
    for line in data.lines:
        miner.add_log_message(line)
    return np.array([miner.match(line).cluster_id for line in data.lines])


def time_sensitive(data: Labelled, k: int, seed: int) -> np.ndarray:
    return TimeSensitiveMixture(random_state=seed).partial_fit(data.X, times=data.times).labels_


def time_sensitive_fit(data: Labelled, k: int, seed: int) -> np.ndarray:
    return TimeSensitiveMixture(random_state=seed).fit(data.X, times=data.times).labels_


def mixture(data: Labelled, k: int | str, seed: int) -> np.ndarray:
    family = "bernoulli" if data.kind == "sets" else "multinomial"
    return ExponentialFamilyMixture(k, family=family, random_state=seed).fit(data.X).labels_


Fit = Callable[[Labelled, int, int], np.ndarray]
OURS: dict[str, Fit] = {
    "SphericalKMeans": lambda data, k, seed: SphericalKMeans(k, random_state=seed).fit(tfidf(data.X)).labels_,
    "BernoulliMixture": lambda data, k, seed: BernoulliMixture(k, random_state=seed).fit(data.X).labels_,
    "ExponentialFamilyMixture": mixture,
    "ExponentialFamilyMixture auto": lambda data, k, seed: mixture(data, "auto", seed),
    "TimeSensitiveMixture stream": time_sensitive,
    "TimeSensitiveMixture fit": time_sensitive_fit,
}
RIVALS: dict[str, Fit] = {
    "scikit-learn KMeans": lambda data, k, seed: KMeans(k, random_state=seed).fit(tfidf(data.X)).labels_,
    "SVD + KMeans": lambda data, k, seed: KMeans(k, random_state=seed).fit(svd(data, seed)).labels_,
    "tomotopy LDA": lda,
    "GSDMM": gsdmm,
    "SVD + HDBSCAN": svd_hdbscan,
    "SVD + UMAP + HDBSCAN": umap_hdbscan,
    "river TextClust": textclust,
    "drain3": drain3,
}
KNOWS_K = {"SphericalKMeans", "BernoulliMixture", "ExponentialFamilyMixture", "scikit-learn KMeans", "SVD + KMeans",
           "tomotopy LDA", "GSDMM"}  # fmt: skip
ONLY_LOGS = {"drain3"}
ONLY_STREAMS = {"TimeSensitiveMixture stream", "TimeSensitiveMixture fit", "river TextClust"}
NO_SEED = {"river TextClust", "drain3"}


def recorded() -> set[tuple[str, str, int]]:
    """Set, model and rows of every line there is."""
    with open(RESULTS / "all_labelled.jsonl") as text:
        lines = [json.loads(line) for line in text]
    return {(line["workload"], line["model"], line["rows"]) for line in lines}


def measure(name: str, models: dict[str, Fit], done: set[tuple[str, str, int]]) -> None:
    data = SETS[name]()
    k = int(data.truth.max()) + 1
    some = slice(0, 300)
    few = Labelled(data.X[some], data.truth[some], None if data.times is None else data.times[some], data.kind, 300,
                   data.lines and data.lines[:300])  # fmt: skip
    for model, fit in models.items():
        if model in ONLY_STREAMS and data.kind not in ("stream", "log"):
            continue
        if (model in ONLY_LOGS and data.kind != "log") or (name, model, data.X.shape[0]) in done:
            continue
        fit(few, 3, 0)  # compiles
        runs = []
        for seed in range(1 if model in NO_SEED else SEEDS):
            began = time.process_time()
            labels = fit(data, k, seed)
            runs.append(scores(data.truth, labels) | {"seconds": time.process_time() - began})
            if runs[-1]["seconds"] > SLOW:
                break
        means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        record(
            "all_labelled", workload=name, model=model, clock="cpu", peak_mb=peak_mb(),
            quality=means["nmi"], nmi_sd=float(np.std([run["nmi"] for run in runs])), seeds=len(runs), kind=data.kind,
            knows_k=model in KNOWS_K, rows=data.X.shape[0], of_rows=data.all_rows, features=data.X.shape[1], classes=k,
            **means,
        )  # fmt: skip


def scores(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {
        "nmi": float(normalized_mutual_info_score(truth, labels)),
        "ami": float(adjusted_mutual_info_score(truth, labels)),
        "ari": float(adjusted_rand_score(truth, labels)),
        "b_cubed": float(b_cubed(truth, labels).f1),
        "found": float(np.unique(labels).size),
        "unassigned": float(np.mean(np.asarray(labels) < 0)),
    }


def main(arguments: list[str]) -> int:
    """One process for all, since UMAP compiles anew in each; a set that fails is named at the end."""
    names = [name for name in arguments if not name.startswith("--")]
    models = OURS if "--ours" in arguments else RIVALS if "--rivals" in arguments else OURS | RIVALS
    done = recorded() if "--missing" in arguments else set()
    warnings.simplefilter("ignore")
    failed = []
    for name in names or SETS:
        try:
            measure(name, models, done)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in SETS and name not in ("--ours", "--rivals", "--missing")]
    if unknown:
        sys.exit(f"no set {', '.join(unknown)}; there are: {', '.join(SETS)}")
    sys.exit(main(sys.argv[1:]))
