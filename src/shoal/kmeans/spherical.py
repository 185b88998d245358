"""SphericalKMeans: thousands of clusters of sparse rows, by cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.base import Assignment, Estimator, TopFeatures, as_rows, as_weights, storable
from shoal.errors import BadInput
from shoal.kmeans.centres import Centres, centres_from_csr, centres_from_rows, index_centres
from shoal.kmeans.exact import CentreIndexAssigner, assign, similarity_matrix
from shoal.kmeans.lloyd import Outcome, lloyd
from shoal.kmeans.rows import UnitRows, by_frequency, unit_rows
from shoal.kmeans.seeding import choose_seeds

ALGORITHMS = ("auto", "exact")
INITS = ("k-means++", "k-means||", "random")


@storable
class SphericalKMeans(TransformerMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """Cluster sparse rows by their direction: documents by terms, users by clicks, ads by keywords.

    Rows are brought to unit length; a centre is the unit mean of its rows; the objective is the mean cosine of the
    rows to their centres (psi). Nothing of size n_clusters x n_features is ever made: centres are sparse.

    Parameters
    ----------
    n_clusters : int
        How many clusters.
    algorithm : {"auto", "exact"}
        ``exact`` is Lloyd's algorithm. ``auto`` chooses.
    init : {"k-means++", "k-means||", "random"} or matrix (n_clusters, n_features)
        Where to start. A matrix, sparse or dense, gives the first centres.
    n_init : int
        How many starts; the one with the largest mean similarity is kept.
    max_iter, tol : int, float
        Stop after so many steps, or when the mean similarity changes by less than this share.
    random_state : int, RandomState or None
        Decides the answer. The number of threads and the order of the rows do not.
    n_threads : int or None
        Threads to use; None means all cores.

    Attributes
    ----------
    labels_ : (n_rows,) the cluster of each row; -1 for a row that belongs nowhere: it is empty, or shares no feature
        with any centre.
    similarities_ : (n_rows,) cosine of each row to its centre; 0 where the label is -1.
    outliers_ : (n_rows,) bool, True for rows that did not take part in any cluster.
    mean_similarity_ : the (weighted) mean of ``similarities_``.
    cluster_centers_ : CSR (n_clusters, n_features), rows of unit length.
    cluster_sizes_ : (n_clusters,) rows in each cluster.
    n_iter_, converged_, objective_history_ : how the fit went.

    Examples
    --------
    Two rows about fish, two about birds:

    >>> import numpy as np
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]])
    >>> model = SphericalKMeans(2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3])
    True
    >>> model.predict([[5, 0, 0, 0]]) == model.labels_[:1]
    array([ True])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        algorithm: str = "auto",
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SphericalKMeans:
        """Cluster the rows of ``X``."""
        self._check_options()
        X = as_rows(self, X, fitting=True)
        weights = as_weights(sample_weight, X.shape[0])
        rows = unit_rows(X, n_threads=self.n_threads)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        runs = [self._run(rows, weights, rng) for _ in range(self.n_init)]
        best = max(runs, key=lambda run: run.objective)
        self._remember(best, rows, weights)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row; -1 for a row that is empty or shares no feature with any centre."""
        return self.assign(X).labels

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row and the row's cosine to its centre."""
        rows = self._rows_for_centres(X)
        return Assignment(*assign(rows, self._index(rows), self.n_threads))

    def transform(self, X: Any) -> np.ndarray:
        """The cosine of each row to every centre (n_rows, n_clusters): larger is nearer, unlike a distance."""
        rows = self._rows_for_centres(X)
        return similarity_matrix(rows, self._index(rows), self.n_threads)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean cosine of the rows to their nearest centres (psi)."""
        rows = self._rows_for_centres(X)
        weights = as_weights(sample_weight, rows.n_rows)
        similarities = assign(rows, self._index(rows), self.n_threads)[1]
        return float(weights @ similarities / max(weights.sum(), 1e-300))

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The heaviest features of a centre."""
        check_is_fitted(self, "cluster_centers_")
        live = self.ids_of_clusters()
        if cluster not in live:
            raise BadInput(f"no cluster has id {cluster}; ids run from {live.min()} to {live.max()}.")
        centre = self.cluster_centers_[int(np.flatnonzero(live == cluster)[0])]
        heaviest = np.lexsort((centre.indices, -centre.data))[:n]
        return TopFeatures(centre.indices[heaviest], centre.data[heaviest], "weight in the centre")

    def typicality(self) -> np.ndarray:
        """Each fitted row's cosine to its centre."""
        check_is_fitted(self, "similarities_")
        return self.similarities_

    # --- the steps of fit ---------------------------------------------------------------------------------------------

    def _check_options(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise BadInput(f"{name} is {value!r}; it must be a whole number, 1 or more.")
        if self.algorithm not in ALGORITHMS:
            raise BadInput(f"algorithm is {self.algorithm!r}; choose one of {', '.join(ALGORITHMS)}.")
        if isinstance(self.init, str) and self.init not in INITS:
            raise BadInput(f"init is {self.init!r}; choose one of {', '.join(INITS)}, or give a matrix of centres.")
        if not self.tol >= 0:
            raise BadInput(f"tol is {self.tol!r}; it must be 0 or more.")

    def _run(self, rows: UnitRows, weights: np.ndarray, rng: np.random.Generator) -> Outcome:
        seeds = self._first_centres(rows, weights, rng)
        assigner = CentreIndexAssigner(rows, n_threads=self.n_threads)
        return lloyd(rows, weights, seeds, assigner, max_iter=self.max_iter, tol=self.tol, n_threads=self.n_threads)

    def _first_centres(self, rows: UnitRows, weights: np.ndarray, rng: np.random.Generator) -> Centres:
        if isinstance(self.init, str):
            return centres_from_rows(rows, choose_seeds(rows, weights, self.n_clusters, self.init, rng, self.n_threads))
        given = sp.csr_matrix(self.init, dtype=np.float64)
        if given.shape != (self.n_clusters, rows.n_features):
            raise BadInput(
                f"init has shape {given.shape}; n_clusters={self.n_clusters} centres of {rows.n_features} features "
                "are needed."
            )
        if not np.isfinite(given.data).all():
            raise BadInput("init holds NaN or infinity; give finite centres.")
        return centres_from_csr(given, rows)

    def _remember(self, run: Outcome, rows: UnitRows, weights: np.ndarray) -> None:
        self.cluster_centers_ = run.centres.csr(rows)
        self.labels_ = run.labels
        self.similarities_ = run.similarities
        self.outliers_ = run.labels < 0
        self.mean_similarity_ = float(weights @ run.similarities / max(weights.sum(), 1e-300))
        self.cluster_sizes_ = np.bincount(run.labels[run.labels >= 0], minlength=self.n_clusters)
        self.n_iter_ = len(run.history)
        self.converged_ = run.converged
        self.objective_history_ = np.array(run.history)
        self.iteration_seconds_ = np.array(run.seconds)
        self.algorithm_ = "exact"

    # --- the steps of predict -----------------------------------------------------------------------------------------

    def _rows_for_centres(self, X: Any) -> UnitRows:
        """Unit rows over the features that the centres have."""
        check_is_fitted(self, "cluster_centers_")
        X = as_rows(self, X, fitting=False)
        return unit_rows(X, by_frequency(self.cluster_centers_), self.n_threads)

    def _index(self, rows: UnitRows) -> Any:
        return index_centres(centres_from_csr(self.cluster_centers_, rows), rows.n_ranks)

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])


def memory_needed(n_rows: int, nnz: int, n_features: int, n_clusters: int) -> int:
    """Bytes that a fit will hold at most beside X itself: the unit rows, the centres and their index.

    >>> memory_needed(1_000_000, 95_000_000, 7_000_000, 1000) / 1e9 < 6
    True
    """
    rows = 12 * nnz + 60 * n_rows + 20 * n_features
    centres = 16 * nnz // 2 + 64 * 2**20
    return rows + centres
