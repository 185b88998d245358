"""One assignment step of a million two-component mixtures to 2,000 centers, against the formula broadcast by numpy.

    python benchmarks/densities_assign.py [rows] [share of the rows given to numpy]

numpy computes the divergence as it is written, in blocks that fit the cache, on the given share of the rows; its time
is scaled up. Labels of single precision are compared with those of double precision on all rows.
"""

from __future__ import annotations

import sys

import numpy as np

from common import Timer, peak_mb, record
from shoal.densities import DensityKMeans
from shoal.densities.gaussian import GaussianMixture
from shoal.densities.statistics import center_side, nearest_centers, row_side

K = 2000


def mixtures(n: int, seed: int = 0) -> np.ndarray:
    """Landscapes as real keywords have them: two sections, each with its own level and spread."""
    rng = np.random.default_rng(seed)
    means = np.column_stack([rng.normal(0.8, 0.2, n), rng.normal(0.2, 0.05, n)])
    variances = np.column_stack([rng.gamma(3, 0.01, n) + 0.005, rng.gamma(3, 0.001, n) + 0.0005])
    return np.column_stack([rng.dirichlet([3, 5], n), means, variances])


def by_the_formula(X: np.ndarray, centers: np.ndarray, block: int = 256) -> np.ndarray:
    """argmin over centers of D(pi || omega) + sum_z pi_z D(p_z || q_z), with numpy broadcasting."""
    labels = np.empty(len(X), np.int64)
    pi, mp, vp = centers[:, :2], centers[:, 2:4], centers[:, 4:]
    for first in range(0, len(X), block):
        q = X[first : first + block, None]
        om, mq, vq = q[:, :, :2], q[:, :, 2:4], q[:, :, 4:]
        gauss = 0.5 * ((mp - mq) ** 2 / vq + vp / vq - np.log(vp / vq) - 1)
        labels[first : first + block] = (pi * (np.log(pi / om) + gauss)).sum(2).argmin(1)
    return labels


def main() -> None:
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.01
    X = mixtures(n)
    model = DensityKMeans(K, family="gaussian_mixture", n_init=1, max_iter=3, smoothing=0, random_state=0)
    centers = model.fit(X[:: max(1, n // 40_000)]).cluster_centers_
    family = GaussianMixture(2)
    origin = model.origin_
    rows = row_side(family, "center", X - origin)
    side = center_side(family, "center", centers - origin)
    times = []
    for _ in range(3):
        with Timer() as timer:
            labels, _ = nearest_centers(rows, side)
        times.append(timer.seconds)
    with Timer() as product:  # the same identity through BLAS and numpy's argmin, in double precision
        double = np.empty(n, np.int64)
        for first in range(0, n, 2000):
            double[first : first + 2000] = (side.constants - rows.stats[first : first + 2000] @ side.stats.T).argmin(1)
    part = X[: max(1000, int(n * share))]
    with Timer() as slow:
        direct = by_the_formula(part, centers)
    rival = slow.seconds * n / len(part)
    differ = int((labels != double).sum())
    assert (direct != labels[: len(part)]).mean() < 1e-4  # ties in the last digits only
    record(
        "densities",
        workload=f"assign {n:,} mixtures to {K:,} centers",
        model="DensityKMeans assignment step",
        seconds=min(times),
        rival="KL by numpy broadcasting in blocks (scaled from a share of the rows)",
        rival_seconds=rival,
        ratio=rival / min(times),
        blas_seconds=product.seconds,
        labels_unlike_double=differ,
        labels_unlike_formula=int((direct != labels[: len(part)]).sum()),
        nanoseconds_per_pair=1e9 * min(times) / n / K,
        quality=1.0 - differ / n,
        peak_mb=peak_mb(),
    )


if __name__ == "__main__":
    main()
