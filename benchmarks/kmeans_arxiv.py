"""721,181 arXiv titles, k = 1000 and 10,000: time per iteration, psi, NMI against the categories, outliers."""

from __future__ import annotations

import sys
import warnings

from sklearn.metrics import normalized_mutual_info_score

from common import Timer, peak_mb, record
from kmeans_common import STEPS, arxiv_titles, compile_kernels, psi_of, seed_rows
from shoal.kmeans import SphericalKMeans

WAYS = {
    "exact": {"algorithm": "exact"},
    "sparse p=100": {"algorithm": "sparse", "features_kept": 100},
    "sparse p=50": {"algorithm": "sparse", "features_kept": 50},
    "wand l=10 p=50": {"algorithm": "wand", "features_kept": 50, "top": 10},
    "auto": {"algorithm": "auto"},
}


def scikit_learn(X, seeds, categories, k: int) -> None:
    """Two iterations tell the time of one; its centers are dense: k x d numbers, several times over."""
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import normalize

    unit, start, spent = normalize(X), normalize(seeds).toarray(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_iter in (1, 2):
            with Timer() as timer:
                model = KMeans(k, init=start, n_init=1, max_iter=n_iter, tol=0, algorithm="lloyd").fit(unit)
            spent[n_iter] = timer.seconds
    record(
        "kmeans", workload=f"arXiv titles n={X.shape[0]} d={X.shape[1]} k={k}, 2 iterations",
        model="scikit-learn KMeans", seconds=spent[2] - spent[1], peak_mb=peak_mb(), quality=psi_of(X, model.labels_),
        measure="psi", nmi=float(normalized_mutual_info_score(categories, model.labels_)),
    )  # fmt: skip


def main(ks: list[int], ways: list[str]) -> None:
    compile_kernels()
    X, categories = arxiv_titles()
    for k in ks:
        with Timer() as seeding:
            seeds = seed_rows(X, k)
        for way in ways:
            if way == "sklearn":
                scikit_learn(X, seeds, categories, k)
                continue
            steps = 3 if way.startswith("wand") and k > 1000 else STEPS
            model = SphericalKMeans(k, init=seeds, max_iter=steps, tol=0, **WAYS[way])
            with Timer() as timer:
                model.fit(X)
            psi = psi_of(X, model.labels_)
            assert abs(psi - model.mean_similarity_) < 0.02
            record(
                "kmeans", workload=f"arXiv titles n={X.shape[0]} d={X.shape[1]} k={k}, {steps} iterations",
                model=f"SphericalKMeans {way}", seconds=float(model.iteration_seconds_.mean()),
                fit_seconds=timer.seconds, seeding_seconds=seeding.seconds, peak_mb=peak_mb(), quality=psi,
                measure="psi",
                nmi=float(normalized_mutual_info_score(categories, model.labels_)), outliers=int(model.outliers_.sum()),
                per_iteration=model.iteration_seconds_.round(2).tolist(),
                certificate=model.certificate_["relative_loss"],
                took=model.algorithm_, kept=model.features_kept_,
            )  # fmt: skip


if __name__ == "__main__":
    # `kmeans_arxiv.py 1000 exact "sparse p=50"` measures part of it; `kmeans_arxiv.py 1000 sklearn` the rival, which at
    # k = 10,000 would need 8 GB for each copy of its centers.
    given = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(given or [1000, 10_000], [word for word in sys.argv[1:] if not word.isdigit()] or list(WAYS))
