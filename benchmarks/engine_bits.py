"""Every model that merges, from the same parts and seed: do 1, 2 and 4 worker processes find the bits of threads?

python benchmarks/engine_bits.py [rows]

Sets of keywords (k-means, Bernoulli, families, suggester), means and variances (densities) and an auction log, in eight
parts. What is compared: labels, centers or counts, and the course of the fit.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from sklearn.base import clone

import shoal
from common import record
from shoal.auction import Market, baseline_policy
from shoal.auction.statistics import replay_blocks
from shoal.datasets import make_zipf_ads
from shoal.engine import read_partitions, using

N_PARTS, WORKERS = 8, (1, 2, 4)
MODELS = {
    "k-means exact": shoal.SphericalKMeans(50, algorithm="exact", n_init=1, random_state=0),
    "k-means sparse": shoal.SphericalKMeans(50, algorithm="sparse", n_init=1, random_state=0),
    "k-means wand": shoal.SphericalKMeans(50, algorithm="wand", n_init=1, max_iter=10, random_state=0),
    "bernoulli adf": shoal.BernoulliMixture(50, random_state=0),
    "bernoulli adf, 3 passes": shoal.BernoulliMixture(50, n_passes=3, random_state=0),
    "bernoulli em": shoal.BernoulliMixture(50, inference="em", max_iter=20, random_state=0),
    "families multinomial": shoal.ExponentialFamilyMixture(80, n_sweeps=10, random_state=0),
    "families bernoulli": shoal.ExponentialFamilyMixture(80, family="bernoulli", n_sweeps=10, random_state=0),
    "families poisson": shoal.ExponentialFamilyMixture(80, family="poisson", n_sweeps=10, random_state=0),
    "densities": shoal.DensityKMeans(20, random_state=0),
    "suggester": shoal.Suggester(random_state=0),
}
warnings.filterwarnings("ignore", module="distributed")


def write(folder: Path, n_rows: int) -> None:
    """The parts of both kinds of rows."""
    ads = make_zipf_ads(n_rows, n_features=2000, n_clusters=50, random_state=0).X
    rng = np.random.default_rng(0)
    means = rng.normal(10.0 * rng.integers(0, 20, n_rows))
    variances = rng.gamma(5.0, 0.2, n_rows)
    for part, rows in enumerate(np.array_split(np.arange(n_rows), N_PARTS)):
        sp.save_npz(folder / f"ads-{part}.npz", ads[rows])
        pq.write_table(pa.table({"mean": means[rows], "variance": variances[rows]}), folder / f"curves-{part}.parquet")


def found(name: str, folder: str) -> list[np.ndarray]:
    """What a fit of the parts finds."""
    if name == "densities":
        parts = read_partitions(f"{folder}/curves-*.parquet", numeric=["mean", "variance"])
    else:
        parts = read_partitions(f"{folder}/ads-*.npz")
    model: Any = clone(MODELS[name]).fit(parts)
    if name == "suggester":
        return [model.model_.stats.pairs.data, *model.suggest_batch(model.model_.stats.rows()[:200])]
    centers = getattr(model, "cluster_centers_", np.zeros(0))
    return [model.labels_, np.asarray(model.objective_history_), getattr(centers, "data", np.asarray(centers))]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def main() -> None:
    from distributed import Client, LocalCluster

    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    market = Market(50, n_days=8, page_views_per_day=200, random_state=0)
    log = market.log(baseline_policy(market, tuning="coarse").policy)
    days = [log.on_days([day]) for day in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows)
        expected = {name: found(name, folder) for name in MODELS}
        table = list(replay_blocks(days).totals)
        agree: dict[str, dict[int, bool]] = {name: {} for name in (*MODELS, "auction replay")}
        for n_workers in WORKERS:
            cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
            with cluster, Client(cluster) as client, using(client):
                for name in MODELS:
                    agree[name][n_workers] = same(found(name, folder), expected[name])
                agree["auction replay"][n_workers] = same(list(replay_blocks(days).totals), table)
    for name, at in agree.items():
        record("engine", workload="bits", model=name, rows=n_rows, parts=N_PARTS, same=all(at.values()),
               workers=[n for n, equal in at.items() if equal])  # fmt: skip


if __name__ == "__main__":
    main()
