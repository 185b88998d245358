"""50,000 Zipf documents, 100,000 words, 1000 clusters: an iteration against scikit-learn, soyclustering and faiss.

Everybody starts from the same seeds on the same matrix. Times are per iteration; psi is measured with the full centers
of the final labels. scikit-learn is timed over few iterations because one takes longer than our whole fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

from common import Timer, peak_mb, record
from kmeans_common import STEPS, compile_kernels, psi_of, seed_rows, zipf_documents
from shoal.kmeans import SphericalKMeans

N, D, K = 50_000, 100_000, 1000


def ours(X, seeds, workload) -> dict[str, float]:
    seconds = {}
    for name, options in [
        ("exact", {"algorithm": "exact"}),
        *((f"sparse p={p}", {"algorithm": "sparse", "features_kept": p}) for p in (200, 100, 50)),
        ("auto", {"algorithm": "auto"}),
        *((f"wand l={top} p=50", {"algorithm": "wand", "features_kept": 50, "top": top}) for top in (10, 1)),
    ]:
        if name.startswith("wand") and "counts" in workload:
            continue  # 5 to 8 s an iteration: on counts the commonest words bound nothing
        model = SphericalKMeans(K, init=seeds, max_iter=STEPS, tol=0, **options)
        with Timer() as timer:
            model.fit(X)
        seconds[name] = float(model.iteration_seconds_.mean())
        psi = psi_of(X, model.labels_)
        assert abs(psi - model.mean_similarity_) < 0.01
        record(
            "kmeans", workload=workload, model=f"SphericalKMeans {name}", seconds=seconds[name],
            fit_seconds=timer.seconds, peak_mb=peak_mb(), quality=psi, measure="psi", iterations=model.n_iter_,
            outliers=int(model.outliers_.sum()),
            per_iteration=model.iteration_seconds_.round(3).tolist(), took=model.algorithm_, kept=model.features_kept_,
            certificate=model.certificate_["relative_loss"],
        )  # fmt: skip
    return seconds


def scikit_learn(X, seeds, workload) -> float:
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.preprocessing import normalize

    unit = normalize(X)
    start = normalize(seeds).toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spent = {}
        for n_iter in (1, 3):
            with Timer() as timer:
                model = KMeans(K, init=start, n_init=1, max_iter=n_iter, tol=0, algorithm="lloyd").fit(unit)
            spent[n_iter] = timer.seconds
        each = (spent[3] - spent[1]) / 2
        record(
            "kmeans", workload=workload, model="scikit-learn KMeans", seconds=each, peak_mb=peak_mb(),
            quality=psi_of(X, model.labels_), measure="psi", iterations=3, note="psi after 3 iterations",
        )  # fmt: skip
        with Timer() as timer:
            mini = MiniBatchKMeans(K, init=start, n_init=1, max_iter=1, batch_size=4096, tol=0, random_state=0).fit(
                unit
            )
        record(
            "kmeans", workload=workload, model="scikit-learn MiniBatchKMeans", seconds=timer.seconds, peak_mb=peak_mb(),
            quality=psi_of(X, mini.labels_), measure="psi", note="one pass over the rows, batches of 4096",
        )  # fmt: skip
    return each


def faiss_on_svd(X, workload) -> None:
    import faiss
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    with Timer() as reducing:
        reduced = normalize(TruncatedSVD(100, n_iter=2, random_state=0).fit_transform(normalize(X))).astype(np.float32)
    with Timer() as timer:
        model = faiss.Kmeans(100, K, niter=STEPS, spherical=True, seed=0, min_points_per_centroid=1)
        model.train(reduced)
    labels = model.index.search(reduced, 1)[1].ravel()
    record(
        "kmeans", workload=workload, model="faiss Kmeans on SVD to 100", seconds=timer.seconds / STEPS,
        fit_seconds=timer.seconds + reducing.seconds, peak_mb=peak_mb(), quality=psi_of(X, labels), measure="psi",
        iterations=STEPS, note=f"the reduction took {reducing.seconds:.1f} s; own random seeds",
    )  # fmt: skip


SOY = """
import contextlib, io, json, sys, time
import numpy, scipy.sparse
from soyclustering import SphericalKMeans
X = scipy.sparse.load_npz(sys.argv[1]).astype(float)
spent = []
for n_iter in (1, 2):
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        model = SphericalKMeans(n_clusters=int(sys.argv[2]), max_iter=n_iter, init="similar_cut",
                                sparsity="minimum_df", minimum_df_factor=0.05)
        labels = model.fit_predict(X)
    spent.append(time.perf_counter() - began)
numpy.save(sys.argv[3], labels)
print(json.dumps(spent))
"""


def soy(X, workload) -> None:
    """soyclustering, which needs numpy 1.23 and scikit-learn 1.1: SOY_PYTHON names an interpreter that has them."""
    import scipy.sparse as sp

    with tempfile.TemporaryDirectory() as folder:
        matrix, labels = f"{folder}/X.npz", f"{folder}/labels.npy"
        sp.save_npz(matrix, sp.csr_matrix(X), compressed=False)
        call = [os.environ["SOY_PYTHON"], "-W", "ignore", "-c", SOY, matrix, str(K), labels]
        one, two = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        found = np.load(labels)
    record(
        "kmeans", workload=workload, model="soyclustering SphericalKMeans", seconds=two - one, fit_seconds=two,
        peak_mb=None, quality=psi_of(X, found), measure="psi", iterations=2,
        note="own seeding (similar_cut); psi after 2 iterations; numpy 1.23, scikit-learn 1.1",
    )  # fmt: skip


def main(parts: list[str]) -> None:
    compile_kernels()
    for weighting in ("tf-idf", "counts"):
        X = zipf_documents(N, D, K, 95, weighting)
        workload = f"zipf n=50,000 d=100,000 k=1000 {weighting}, {X.nnz / N:.0f} a row, {STEPS} iterations"
        seeds = seed_rows(X, K)
        if "ours" in parts:
            mine = ours(X, seeds, workload)
        if weighting == "counts":
            continue
        if "sklearn" in parts:
            theirs = scikit_learn(X, seeds, workload)
            for name, seconds in mine.items() if "ours" in parts else ():
                print(f"{name}: {theirs / seconds:.0f} times faster per iteration than scikit-learn KMeans")
        if "faiss" in parts:
            faiss_on_svd(X, workload)
        if "soy" in parts:
            soy(X, workload)


if __name__ == "__main__":
    main(sys.argv[1:] or ["ours", "sklearn", "faiss", "soy"])
