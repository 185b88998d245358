"""What a fitted mixture can say: of new rows, of its clusters, and of how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv, logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator, Roster, TopFeatures, as_rows
from shoal.errors import BadInput
from shoal.families.consensus import consensus
from shoal.families.hierarchy import Hierarchy, build
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 1024


class FittedMixture(Estimator):
    """Reading a fitted :class:`ExponentialFamilyMixture`."""

    typicality_meaning: ClassVar[str] = "gain over an empty cluster (nats a unit of length)"

    family: str
    n_clusters: int
    n_threads: int | None
    weights: str
    stats_: Any
    family_: Any
    hyperparameters_: dict[str, Any]
    roster_: Roster
    labels_: np.ndarray
    samples_: np.ndarray
    typicality_: np.ndarray
    agreement_: np.ndarray
    n_clusters_: int
    n_rows_: int
    _tree: Hierarchy | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.family != "gaussian"
        return tags

    # --- new rows -----------------------------------------------------------------------------------------------------

    def _log_weights(self) -> tuple[np.ndarray, float]:
        """(log weight of each live cluster, log weight of all empty ones together)."""
        size, concentration = self.stats_.size, self.hyperparameters_["concentration"]
        n_empty = max(self.n_clusters - len(size), 0)
        if self.weights == "dirichlet_process":
            grown, fresh = size.astype(float), concentration if n_empty else 0.0
        else:
            grown, fresh = size + concentration, n_empty * concentration
        total = grown.sum() + fresh
        return np.log(grown / total), float(np.log(fresh / total)) if fresh > 0 else -np.inf

    def _log_joint_of_rows(self, rows: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """((n, k) log weight + log predictive, (n,) the same for a cluster not seen yet)."""
        log_weights, log_fresh = self._log_weights()
        blocks = row_blocks(rows.shape[0], BLOCK_ROWS)

        def score(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            part = rows[block[0] : block[1]]
            known = self.family_.log_predictive(self.stats_, part) + log_weights
            fresh = self.family_.log_predictive_at(self.stats_, part, np.full(part.shape[0], -1)) + log_fresh
            return known, fresh

        scored = list(ordered_map(score, blocks, self.n_threads))
        if not scored:
            return np.zeros((0, len(log_weights))), np.zeros(0)
        return np.concatenate([known for known, _ in scored]), np.concatenate([fresh for _, fresh in scored])

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, n_clusters_) probability of each live cluster, given that the row belongs to one of them."""
        check_is_fitted(self)
        rows = as_rows(self, X, fitting=False, nonnegative=self.family != "gaussian")
        known, _ = self._log_joint_of_rows(rows)
        return np.exp(known - logsumexp(known, axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest cluster's id for each row."""
        check_is_fitted(self)
        rows = as_rows(self, X, fitting=False, nonnegative=self.family != "gaussian")
        return np.asarray(self.roster_.ids[self._log_joint_of_rows(rows)[0].argmax(axis=1)])

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(row) for each row, over known clusters and one not seen yet; for counts, without log x!."""
        check_is_fitted(self)
        rows = as_rows(self, X, fitting=False, nonnegative=self.family != "gaussian")
        known, fresh = self._log_joint_of_rows(rows)
        return np.asarray(np.logaddexp(logsumexp(known, axis=1), fresh))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log likelihood of a row."""
        return float(self.score_samples(X).mean())

    def sample(self, n: int = 1, *, length: int = 20, random_state: Any = None) -> tuple[Any, np.ndarray]:
        """(rows, their clusters' ids): new rows as the model imagines them; documents get ``length`` words."""
        check_is_fitted(self)
        rng = np.random.default_rng(check_random_state(random_state).randint(1 << 30))
        weights = np.exp(self._log_weights()[0])
        clusters = np.sort(rng.choice(len(weights), n, p=weights / weights.sum()))
        drawn = [
            self.family_.draw(self.stats_, int(cluster), int(count), np.full(count, length), rng)
            for cluster, count in zip(*np.unique(clusters, return_counts=True), strict=True)
        ]
        rows = sp.vstack(drawn, format="csr") if sp.issparse(drawn[0]) else np.concatenate(drawn)
        return rows, self.roster_.ids[clusters]

    # --- clusters -----------------------------------------------------------------------------------------------------

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The features that set the cluster apart: mean times log ratio to the mean over all rows, largest first."""
        check_is_fitted(self)
        row = self.roster_.row_of(cluster)
        return top_features_of(self.family_, self.stats_, row, n)

    def typicality(self) -> np.ndarray | None:
        """How much better its cluster explains a fitted row than an empty one does, in nats per unit of its length."""
        check_is_fitted(self)
        return np.asarray(self.typicality_)

    def cluster_uncertainty(self) -> np.ndarray | None:
        """For each cluster, the mean share of kept samples in which a member was elsewhere."""
        check_is_fitted(self)
        members = np.bincount(self.labels_, minlength=self.n_clusters_)
        agreed = np.bincount(self.labels_, self.agreement_, minlength=self.n_clusters_)
        return np.asarray(1 - agreed / np.maximum(members, 1))

    @property
    def hierarchy_(self) -> Hierarchy:
        """A tree over the live clusters, grown when first asked for."""
        check_is_fitted(self)
        if self._tree is None:
            self._tree = build(self.family_, self.stats_)
        return self._tree

    def cut(self, n_groups: int) -> np.ndarray:
        """(n_clusters_,) the group of each live cluster when the tree is cut at this many."""
        return self.hierarchy_.cut(n_groups)

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """The tree over the clusters, and the posterior of their number."""
        from shoal.families import plots

        if self.n_clusters_ > 2:
            says = "Clusters that join further left are more alike; the tree is cut where it would not fit."
            yield "How the clusters join", says, lambda: plots.tree_plot(self)
        yield "How many clusters", "In the kept samples.", lambda: plots.number_plot(self)

    # --- samples ------------------------------------------------------------------------------------------------------

    def same_cluster_probability(self, rows: Any, others: Any) -> np.ndarray:
        """For pairs of fitted rows (numbers or matching arrays), the share of kept samples that have them together."""
        check_is_fitted(self)
        rows, others = np.broadcast_arrays(np.asarray(rows), np.asarray(others))
        for name, numbers in (("rows", rows), ("others", others)):
            if numbers.size and (numbers.min() < 0 or numbers.max() >= self.samples_.shape[1]):
                raise BadInput(
                    f"{name} runs from {numbers.min()} to {numbers.max()}; the model was fitted to rows 0 to "
                    f"{self.samples_.shape[1] - 1}."
                )
        return np.asarray(np.mean(self.samples_[:, rows] == self.samples_[:, others], axis=0))

    @property
    def consensus_labels_(self) -> np.ndarray:
        """The kept sample nearest to all others in variation of information, numbered from the largest cluster."""
        check_is_fitted(self)
        _, labels, size = np.unique(consensus(self.samples_), return_inverse=True, return_counts=True)
        place = np.empty(len(size), np.int64)
        place[np.argsort(-size, kind="stable")] = np.arange(len(size))
        return np.asarray(place[labels])


def top_features_of(family: Any, stats: Any, row: int, n: int) -> TopFeatures:
    """Features of a cluster, with a central 90 % credible interval where there is one."""
    if family.name == "gaussian":
        mean = family.expected(stats, row)
        apart = np.abs(mean - family.center) / family.scale
        best = np.argsort(-apart, kind="stable")[:n]
        return TopFeatures(best, mean[best], "mean in the cluster, features furthest from the overall mean first")
    sums = stats.sums[[row]]
    candidates = sums.indices
    mean, overall = family.expected(stats, row), family.mean / max(family.mean.sum(), 1e-300)
    typical = family.mean if family.name != "multinomial" else overall
    salient = mean[candidates] * np.log(np.maximum(mean[candidates] / typical[candidates], 1e-300))
    best = candidates[np.argsort(-salient, kind="stable")[:n]]
    meaning = {
        "multinomial": "share of the cluster's words",
        "bernoulli": "share of the cluster's items",
        "poisson": "mean count in the cluster",
    }[family.name]
    low = high = None
    if family.name != "poisson":
        total = family.shape.sum() + sums.sum() if family.name == "multinomial" else family.rate + stats.size[row]
        a = mean[best] * total
        low, high = betaincinv(a, total - a, 0.05), betaincinv(a, total - a, 0.95)
    return TopFeatures(np.asarray(best), mean[best], meaning, low, high)
