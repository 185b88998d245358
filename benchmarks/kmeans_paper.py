"""The paper's Tables 2 and 3 regenerated: 1,000,000 documents, 7,000,000 words, ~95 a row, k = 1000 and 6000.

Time per iteration is given as a ratio to plain Lloyd (every row against every center through the same index, no bounds,
no thinning), psi with the full centers of the final labels, and how many rows no center retrieved.

    kmeans_paper.py auto 1000       the full fit, seeding included
    kmeans_paper.py plain 1000      plain Lloyd, timed on a part of the rows and scaled
    kmeans_paper.py sparse 1000     points pick thinned centers, p = 500, 200, 100, 50
    kmeans_paper.py wand 1000       centers pick points, l = 100, 10, 1 and p = none, 500, 200, 100, 50
    kmeans_paper.py wand_fit 1000   five iterations of centers that pick points, p = 50
    kmeans_paper.py grid            every l and p on 20,000 documents: psi, unassigned, processor time
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import Timer, peak_mb, record
from kmeans_common import STEPS, compile_kernels, psi_of, zipf_documents
from shoal.jit import kernel
from shoal.kmeans import SphericalKMeans
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import Centers, index_centers, thinned
from shoal.kmeans.exact import assign
from shoal.kmeans.exact_kernels import add_lines, add_lists, largest
from shoal.kmeans.inverted_index import InvertedIndex, postings_of
from shoal.kmeans.rows import UnitRows, take_rows, unit_rows
from shoal.kmeans.seeding import first_centers
from shoal.kmeans.statistics import Memory, Model, accumulate, update
from shoal.kmeans.wand import retrieve
from shoal.threads import ordered_map

N, D = 1_000_000, 7_000_000
# Dataset 2 of the paper (974,738 queries x 7,126,669), minutes per iteration and psi at iteration 13, k = 1000.
PAPER = {
    "k-means": (705.21, 0.2856), "l=100 p=none": (324.78, 0.2858), "l=10 p=none": (243.9, 0.2856),
    "l=1 p=none": (100.84, 0.2709), "l=10 p=500": (4.00, 0.2704), "l=10 p=200": (2.97, 0.2855),
    "l=10 p=100": (1.94, 0.2853), "l=10 p=50": (1.39, 0.2844),
}  # fmt: skip


def theirs(name: str, k: int) -> dict[str, float]:
    """The paper's ratio to its own k-means and its psi, where it has them."""
    if k != 1000 or name not in PAPER:
        return {}
    minutes, psi = PAPER[name]
    return {"paper_ratio": PAPER["k-means"][0] / minutes, "paper_psi": psi}


def line(k: int, name: str, seconds: float, **facts) -> None:
    record(
        "kmeans", workload=f"paper tables: zipf n=1,000,000 d=7,000,000 tf-idf k={k}", model=name, seconds=seconds,
        peak_mb=peak_mb(), measure="psi", **facts, **theirs(name.removeprefix("wand ").removeprefix("plain "), k),
    )  # fmt: skip


def settled_centers(rows: UnitRows, k: int) -> Centers:
    """Centers like those in the middle of a fit: three thinned steps from random rows, then full."""
    centers = random_centers(rows, k)
    for _ in range(3):
        labels, _ = assign(rows, index_centers(thinned(centers, 50), rows.n_ranks))
        centers = means_of(rows, labels, centers)
    return centers


def random_centers(rows: UnitRows, k: int) -> Centers:
    return first_centers([Block(rows, np.ones(rows.n_rows))], k, "random", np.random.default_rng(0))


def means_of(rows: UnitRows, labels: np.ndarray, old: Centers) -> Centers:
    """The update step of Lloyd's algorithm."""
    model, zeros = Model(old, rows.n_ranks), np.zeros(rows.n_rows)
    block = Block(rows, np.ones(rows.n_rows))
    stats, _ = accumulate(block, model, Memory(labels, zeros, zeros), n_threads=None)
    return update(model, stats, n_threads=None).centers


def full_auto(X, k: int) -> None:
    model = SphericalKMeans(k, max_iter=100, random_state=0)
    with Timer() as timer:
        model.fit(X)
    peak = peak_mb()
    line(
        k, "auto, whole fit with seeding", float(model.iteration_seconds_.mean()), fit_seconds=timer.seconds,
        quality=psi_of(X, model.labels_), iterations=model.n_iter_, converged=model.converged_, took=model.algorithm_,
        kept=model.features_kept_, outliers=int(model.outliers_.sum()), peak_mb_of_fit=peak,
        per_iteration=model.iteration_seconds_.round(1).tolist(), certificate=model.certificate_["relative_loss"],
    )  # fmt: skip


@kernel
def score_all(indptr, ranks, values, start, stop, hot, lengths, ptr, firsts, places, weights, k):
    """Every row against every center, no bounds: plain Lloyd through the same index."""
    sums, lines, line_values = np.empty(k, np.float32), np.empty(4096, np.int64), np.empty(4096, np.float32)
    total = 0
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        n_lines, _ = add_lists(ranks, values, first, last, ptr, firsts, places, weights, k, sums, lines, line_values)
        add_lines(lines, line_values, 0, n_lines, hot, k, sums)
        total += largest(sums, k)
    return total


def plain(X, k: int) -> None:
    rows = unit_rows(X)
    centers = settled_centers(rows, k)
    some = take_rows(rows, np.arange(0, N, 50))
    with Timer() as indexing:
        index = index_centers(centers, rows.n_ranks)
    score_all(some.indptr, some.ranks, some.values, 0, 1, *index.arrays, k)  # compiles
    halves = [(0, some.n_rows // 2), (some.n_rows // 2, some.n_rows)]
    with Timer() as scoring:
        list(ordered_map(lambda half: score_all(some.indptr, some.ranks, some.values, *half, *index.arrays, k), halves))
    labels, _ = assign(rows, index_centers(thinned(centers, 50), rows.n_ranks))
    with Timer() as updating:
        means_of(rows, labels, centers)
    seconds = indexing.seconds + 50 * scoring.seconds + updating.seconds
    line(k, "plain k-means", seconds, note="scoring timed on 20,000 rows and scaled to 1,000,000", quality=None)


def sparse(X, k: int) -> None:
    rows = unit_rows(X)
    seeds = random_centers(rows, k).csr(rows)
    for p in (500, 200, 100, 50):
        model = SphericalKMeans(k, algorithm="sparse", features_kept=p, init=seeds, max_iter=STEPS, tol=0).fit(X)
        line(
            k, f"sparse p={p}", float(model.iteration_seconds_.mean()), quality=psi_of(X, model.labels_),
            iterations=STEPS, outliers=int(model.outliers_.sum()), certificate=model.certificate_["relative_loss"],
            per_iteration=model.iteration_seconds_.round(1).tolist(),
        )  # fmt: skip


def wand(X, k: int) -> None:
    """Timed on 16 centers from a cold start, and scaled."""
    rows = unit_rows(X)
    centers = settled_centers(rows, k)
    with Timer() as building:
        postings = postings_of(rows)
    for top, p in [(100, None), (10, None), (1, None), (10, 500), (10, 200), (10, 100), (10, 50), (1, 50)]:
        few = np.linspace(0, k - 1, 16).astype(np.int64)
        asked = (centers if p is None else thinned(centers, p)).take(few)
        block, model = Block(rows, np.ones(rows.n_rows), postings=postings), Model(asked, rows.n_ranks, p)
        with Timer() as timer:
            retrieve(block, model, top=top, thresholds="safe", n_threads=None)
        line(
            k, f"wand l={top} p={p or 'none'}", timer.seconds * k / few.size, quality=None,
            note=f"{few.size} centers, cold thresholds, scaled to k", index_seconds=building.seconds,
        )  # fmt: skip


def wand_fit(X, k: int) -> None:
    index = InvertedIndex(X)
    seeds = random_centers(index.rows, k).csr(index.rows)
    for top in (10, 1):
        model = SphericalKMeans(k, algorithm="wand", top=top, features_kept=50, init=seeds, max_iter=5, tol=0).fit(
            index
        )
        line(
            k, f"wand l={top} p=50, 5 iterations", float(model.iteration_seconds_.mean()),
            quality=psi_of(X, model.labels_), outliers=int(model.outliers_.sum()),
            per_iteration=model.iteration_seconds_.round(1).tolist(),
        )  # fmt: skip


def grid() -> None:
    """All cells on 20,000 documents in 400 clusters, one thread, processor time: for psi and unassigned."""
    n, k = 20_000, 400
    X = zipf_documents(n, 100_000, k, 95, "tf-idf")
    index = InvertedIndex(X)
    seeds = random_centers(index.rows, k).csr(index.rows)
    cells = [(top, p) for p in (50, 100, 200, 500, None) for top in (1, 10, 100)]
    for algorithm, top, p in [("exact", 1, None), *(("wand", *cell) for cell in cells)]:
        model = SphericalKMeans(
            k, algorithm=algorithm, top=top, features_kept=p, init=seeds, max_iter=STEPS, tol=0, n_threads=1
        )
        began = time.process_time()
        model.fit(index)
        record(
            "kmeans", workload=f"paper tables: zipf n=20,000 d=100,000 tf-idf k={k}, {STEPS} iterations",
            model="exact" if algorithm == "exact" else f"wand l={top} p={p or 'none'}", clock="cpu, one thread",
            seconds=(time.process_time() - began) / STEPS, peak_mb=peak_mb(), quality=psi_of(X, model.labels_),
            measure="psi", outliers=int(model.outliers_.sum()), certificate=model.certificate_["relative_loss"],
        )  # fmt: skip


PARTS = {"auto": full_auto, "plain": plain, "sparse": sparse, "wand": wand, "wand_fit": wand_fit}

if __name__ == "__main__":
    compile_kernels()
    if sys.argv[1:] == ["grid"]:
        grid()
        sys.exit()
    documents = zipf_documents(N, D, 1000, 112, "tf-idf")
    print(f"{documents.nnz / N:.1f} a row", flush=True)
    for n_clusters in [int(word) for word in sys.argv[1:] if word.isdigit()] or [1000, 6000]:
        for part in [word for word in sys.argv[1:] if word in PARTS] or PARTS:
            PARTS[part](documents, n_clusters)
