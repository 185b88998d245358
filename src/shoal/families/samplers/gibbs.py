"""sampler="gibbs": collapsed Gibbs, every cluster evaluated at every visit."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from shoal.families.kernels.counts_kernels import Items
from shoal.families.kernels.gibbs_kernels import fill_dense, gibbs_rows
from shoal.families.kernels.scores_kernels import Prior
from shoal.families.samplers.count_chain import CountChain

LARGEST_TABLE = 20_000_000
TABLED_CLUSTER = 16  # times the mean: larger clusters are rare, and pay for a logarithm at each visit


class GibbsChain(CountChain):
    """Exact draws from the collapsed conditional. Needs n_clusters x n_features dense, in single precision."""

    def __init__(self, items: Items, indexed: np.ndarray, prior: Prior, n_clusters: int, *, seed: int) -> None:
        k = n_clusters
        self.dense = np.zeros((len(prior.shape), k), np.float32)
        product = np.ones(k, np.float32)
        self.dense_work = (
            product, product.view(np.int32), np.zeros(k, np.int32), np.zeros(k), np.zeros(k, np.float32), np.zeros(k),
        )  # fmt: skip
        super().__init__(items, np.zeros_like(indexed), prior, n_clusters, seed=seed)
        self.set_prior(prior)

    def set_labels(self, labels: np.ndarray) -> None:
        super().set_labels(labels)
        self.filled = False

    def after_split_merge(self, moved: np.ndarray) -> None:
        self.filled = False

    def set_prior(self, prior: Prior) -> None:
        super().set_prior(prior)
        self.filled = False
        length = self.items.length
        tabled = int(length.sum() * min(1.0, TABLED_CLUSTER / self.n_clusters) + length.max(initial=0)) + 1
        tabled = min(tabled, LARGEST_TABLE) if prior.length_given else 0
        self.log_gamma = gammaln(prior.shape_total + prior.unit * np.arange(tabled))
        largest = float(np.bincount(self.items.features, self.items.counts * prior.unit).max(initial=1.0)) + 1000.0
        smallest = float(prior.shape.min())
        if prior.sets:
            least_absent = float((prior.rate - prior.shape).min())
            largest, smallest = largest / min(least_absent, 1.0), smallest / (prior.rate + len(self.labels))
        bits_per_factor = max(np.log2(largest + prior.shape.max() + 1), -np.log2(min(smallest, 0.5)))
        self.per_split = max(1, int(118 / bits_per_factor))

    def visit(self, first: int, last: int) -> int:
        if not self.filled:
            fill_dense(self.prior, self.clusters, self.dense)
            self.filled = True
        return int(
            gibbs_rows(
                self.items,
                self.prior,
                self.clusters,
                self.postings,
                (self.dense, self.log_gamma, self.per_split),
                first,
                last,
                self.random,
                self.tally,
                self.work,
                self.dense_work,
            )
        )
