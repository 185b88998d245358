"""Suggester: the best features to add to a set, with probabilities that hold and reasons that add up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.base import (
    Estimator,
    check_choice,
    check_int,
    check_random_state,
    storable,
    transaction,
    validate_rows,
)
from shoal.engine import Partitions, fold, learning
from shoal.errors import BadInput, CannotMerge
from shoal.hidden_entries import check_hidden, expected_hidden
from shoal.suggestion.learning import learn, update
from shoal.suggestion.model import Queries, Settings, SuggestionModel, empty_model, new_queries
from shoal.suggestion.names import columns_of
from shoal.suggestion.ranking import hidden_of_empty_sets, ranked
from shoal.suggestion.reasons import Explanation, RowGroups, explain, suggestions_of
from shoal.suggestion.state import check_model
from shoal.suggestion.statistics import SuggestionStats, accumulate, as_presence, merge, no_rows, widened
from shoal.suggestion_records import Suggestions
from shoal.threads import row_blocks

BLOCK_ROWS = 65_536
WAYS = ("auto", "dense", "dual", "local")


@storable
class Suggester(Estimator):
    """Suggest features that belong with those of a set: tags, ingredients, keywords, products in a basket.

    The scores of a feature are combined by a logistic regression, which is trained on leave-one-out scores: the
    frequency of the feature; ridge regression of each feature on all others (EASE); the most similar rows; and low-rank
    factors (iALS), if they improve the ranking by at least .005. A calibration curve converts the combined score into a
    probability, given the assumed share of hidden features.

    Parameters
    ----------
    clusters : fitted model, optional
        A fitted mixture or k-means over the same columns. Reasons are then grouped by its clusters.
    ridge : {"auto", "dense", "dual", "local"}
        How the ridge weights are kept. "dense": features x features, for up to 5000 features. "dual": rows x rows,
        for up to 5000 rows. "local": 64 weights for each feature. "auto" takes "dual" for at most 5000 rows that are
        fewer than the features, else "dense" for up to 5000 features, else "local".
    n_sample : int
        Most rows from which penalty, weights and calibration are learned.
    n_candidates : int
        Features of which the joint score is computed for each set; never fewer than the suggestions asked for.
    random_state : int, Generator or None
        Decides which rows are in the sample and which of their entries are hidden.
    n_threads : int or None
        Threads to use; None means all cores. It does not change the result.
    engine : str
        Where passes over the rows run: ``"threads"`` of this process (or what :func:`shoal.engine.using` chose),
        ``"dask"``, or the address of a Dask scheduler. It does not change the result.

    Attributes
    ----------
    model_ : SuggestionModel
        Counts, remembered rows, ridge weights, factors, weights of the joint score and calibration.
    penalty_ : float
        The ridge penalty that was chosen.
    uses_factors_ : bool
        Whether the combined score includes low-rank factors.
    n_rows_ : int
        Rows learned from.
    row_clusters_ : ndarray of shape (n_rows_,)
        The cluster of each remembered row, when ``clusters`` is given.

    Notes
    -----
    Values above 0 mean that a row has the feature. Rows are remembered: memory is in proportion to the entries of the
    rows plus the pairs of features that occur together, and no features x features array is made above 5000 features.

    ``partial_fit`` adds counts and solves for the ridge weights again; penalty, factors, weights and calibration are
    learned again whenever the rows have grown by a fifth, and by ``merge``.

    A probability is that of finding the feature among the hidden entries of the set, where ``hidden`` says how the
    given entries came about. It is checked for calibration in ``benchmarks/suggestion_rivals.py``.

    References
    ----------
    Harald Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.
    Yifan Hu, Yehuda Koren and Chris Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> recipes = [["flour", "egg", "milk"], ["flour", "egg", "sugar"], ["rice", "soy", "ginger"], ["rice", "soy"]] * 10
    >>> data = shoal.read(pa.table({"dish": range(40), "uses": recipes}))
    >>> model = shoal.Suggester(random_state=0).fit(data)
    >>> best = model.suggest(["rice"], n=1)[0]
    >>> best.name
    'soy'
    >>> abs(sum(reason.share for reason in best.reasons) - 1) < 1e-9
    True
    """

    model_: SuggestionModel

    def __init__(
        self,
        clusters: Estimator | None = None,
        *,
        ridge: str = "auto",
        n_sample: int = 1500,
        n_candidates: int = 50,
        random_state: int | np.random.Generator | None = None,
        n_threads: int | None = None,
        engine: str = "threads",
    ) -> None:
        self.clusters = clusters
        self.ridge = ridge
        self.n_sample = n_sample
        self.n_candidates = n_candidates
        self.random_state = random_state
        self.n_threads = n_threads
        self.engine = engine

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Suggester:
        """Learn from the rows of ``X``, a matrix, a table, a Dataset or :func:`shoal.engine.read_partitions`; what was
        learned before is forgotten."""
        with learning(self):
            in_parts = isinstance(X, Partitions)
            rows = X.columns_alone(X.item_ids()) if in_parts else validate_rows(self, X, mode="fit")
            seed = int(check_random_state(self.random_state).integers(2**31))
            model = empty_model(no_rows(rows.matrix.shape[1]), self._settings(seed))
            self._learn_rows(model, rows, "fit", X.matrices() if in_parts else None)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Suggester:
        """Learn from more rows. Named columns that are new become new features."""
        if not hasattr(self, "model_"):
            return self.fit(X)
        with learning(self):
            rows = validate_rows(self, X, mode="partial_fit")
            stats = widened(self.model_.stats, rows.matrix.shape[1])
            model = self.model_._replace(stats=stats, settings=self._settings(self.model_.settings.seed))
            self._learn_rows(model, rows, "partial_fit")
        return self

    def merge(self, other: Any) -> Suggester:
        """Take in what another suggester learned from other rows; columns are matched by name where both have names.

        Counts and rows add up; penalty, factors, weights and calibration are learned afresh.
        """
        check_is_fitted(self)
        if not isinstance(other, Suggester) or not hasattr(other, "model_"):
            raise CannotMerge(f"cannot merge a {type(other).__name__} into a Suggester; give a fitted Suggester.")
        with transaction(self):
            stats = self._in_my_columns(other)
            total = merge(widened(self.model_.stats, stats.n_features), stats)
            self.model_ = learn(self.model_._replace(stats=total))
            self._remember_origin(stats.rows(), getattr(other, "row_ids_", None), total.n_rows)
        return self

    def _learn_rows(self, model: SuggestionModel, rows: Any, mode: Any, parts: list[Any] | None = None) -> None:
        matrix = rows.matrix
        blocks = parts or [matrix[start:end] for start, end in row_blocks(matrix.shape[0], BLOCK_ROWS)]
        stats = fold(blocks, accumulate, merge, None, n_threads=self.n_threads).stats
        if mode == "fit":
            self.__dict__.pop("row_clusters_", None)
            self.__dict__.pop("row_ids_", None)
        self.model_ = update(model, stats)
        self._remember_rows(rows, mode=mode)
        self._remember_origin(stats.rows() if parts else matrix, rows.item_ids, self.model_.stats.n_rows)

    def _remember_origin(self, added: sp.csr_matrix, ids: np.ndarray | None, n_rows: int) -> None:
        """Item ids and clusters of the remembered rows, of which the last are ``added``."""
        n_before = n_rows - added.shape[0]
        known = getattr(self, "row_ids_", None)
        if ids is None or (known is None and n_before):
            self.__dict__.pop("row_ids_", None)
        else:
            self.row_ids_ = ids if known is None else np.concatenate([known, ids])
        if self.clusters is not None:
            labels = self._clusters_of(added)
            before = getattr(self, "row_clusters_", np.full(n_before, -1, np.int64))
            self.row_clusters_ = np.concatenate([before, labels])

    def _clusters_of(self, rows: sp.csr_matrix) -> np.ndarray:
        """The cluster of each row, by the fitted model; columns that it does not know are left out.

        Columns are matched by name where both have names.
        """
        clusters = self.clusters
        width = getattr(clusters, "n_features_in_", None)
        if not isinstance(clusters, Estimator) or width is None:
            raise BadInput("clusters is not a fitted shoal model; fit it first, or leave it out.")
        if getattr(self, "vocabulary_", None) is not None and getattr(clusters, "vocabulary_", None) is not None:
            from shoal.data import Dataset

            named = Dataset(rows, self.vocabulary_)
            return np.asarray(clusters.predict(named), dtype=np.int64)  # type: ignore[attr-defined]
        if width > rows.shape[1]:
            raise BadInput(
                f"clusters was fitted on {width:,} features and these rows have {rows.shape[1]:,}. "
                "Fit both on the same columns."
            )
        return np.asarray(clusters.predict(rows[:, :width]), dtype=np.int64)  # type: ignore[attr-defined]

    def _in_my_columns(self, other: Suggester) -> SuggestionStats:
        """What another suggester counted, in the columns of this one."""
        names, theirs = getattr(self, "vocabulary_", None), getattr(other, "vocabulary_", None)
        stats = other.model_.stats
        if names is not None and theirs is not None and names != theirs:
            from shoal.data import Dataset

            rows = validate_rows(self, Dataset(stats.rows(), theirs), mode="partial_fit")
            self.vocabulary_, self.n_features_in_ = rows.vocabulary, int(rows.matrix.shape[1])
            return accumulate(rows.matrix)[0]
        if stats.n_features != self.model_.stats.n_features:
            raise CannotMerge(
                f"one side has {self.model_.stats.n_features:,} features, the other {stats.n_features:,}, and not both "
                "have names. Fit both on the same columns, or on Datasets."
            )
        return stats

    def _settings(self, seed: int) -> Settings:
        return Settings(
            n_sample=check_int("n_sample", self.n_sample, minimum=0),
            n_candidates=check_int("n_candidates", self.n_candidates),
            ridge=check_choice("ridge", self.ridge, WAYS),
            seed=seed,
            n_threads=None if self.n_threads is None else check_int("n_threads", self.n_threads),
        )

    @property
    def penalty_(self) -> float:
        """The ridge penalty that was chosen."""
        return self.model_.penalty

    @property
    def uses_factors_(self) -> bool:
        """Whether the combined score includes low-rank factors."""
        return bool(self.model_.factors.gram.any())

    @property
    def n_rows_(self) -> int:
        """Rows learned from."""
        return self.model_.stats.n_rows

    # --- suggesting ---------------------------------------------------------------------------------------------------

    def suggest(
        self,
        observed: Iterable[Any],
        rejected: Iterable[Any] = (),
        n: int = 10,
        *,
        hidden: str | float = "third",
    ) -> Suggestions:
        """The ``n`` features that most probably belong with ``observed``, each with reasons that add up.

        Parameters
        ----------
        observed : list
            The features given, by name or by column number. Unknown names are left out; the result lists them in
            ``unknown``. With nothing given, the most common features are suggested.
        rejected : list
            Features that are not wanted: never suggested, and remembered rows that have them count less. To refine,
            call again with what was accepted in ``observed`` and what was refused in ``rejected``.
        n : int
            How many suggestions.
        hidden : {"third", "one"} or float
            How the given features came about, which decides how many are hidden: "third": a third of the whole set is
            hidden; "one": exactly one is; a number below 1: each feature is, with this probability; a number of 1 or
            more: so many are.
        """
        query, unknown = self._query(observed, rejected, hidden)
        features, _ = ranked(self.model_, query, check_int("n", n), n_threads=1)
        chosen = features[0][features[0] >= 0]
        explanation = explain(self.model_, query, chosen)
        names = self.name_features(query.given.indices)
        found = suggestions_of(chosen, self.name_features(chosen), names, explanation, self._row_groups())
        return Suggestions(found, unknown)

    def explain(
        self,
        observed: Iterable[Any],
        features: Iterable[Any],
        rejected: Iterable[Any] = (),
        *,
        hidden: str | float = "third",
    ) -> Explanation:
        """The probability of each feature, and its parts by given feature and by remembered row.

        For each feature, ``base + of_given.sum(axis=0) + of_rows.sum(axis=0)`` equals ``probability``.
        """
        query, _ = self._query(observed, rejected, hidden)
        asked = columns_of(self, features, "features")
        given = np.intersect1d(asked.columns, query.given.indices)
        if given.size:
            raise BadInput(f"{self.name_features(given[:1])[0]!r} is given; explain features that are not.")
        return explain(self.model_, query, asked.columns)

    def suggest_batch(
        self, X: Any, rejected: Any = None, n: int = 10, *, hidden: str | float = "third"
    ) -> tuple[np.ndarray, np.ndarray]:
        """For every row of ``X``, the ``n`` best features it does not have, and their probabilities.

        Both are (n_rows, n), padded with feature -1 and probability 0. ``rejected`` is a matrix like ``X``, above 0
        where refused. Runs on threads.
        """
        check_is_fitted(self)
        given = as_presence(validate_rows(self, X, mode="predict").matrix)
        no = sp.csr_matrix(given.shape) if rejected is None else self._rejected(rejected, given)
        return ranked(self.model_, self._queries(given, no, hidden), check_int("n", n), self.n_threads)

    def _rejected(self, rejected: Any, given: sp.csr_matrix) -> sp.csr_matrix:
        no = as_presence(validate_rows(self, rejected, mode="predict").matrix)
        if no.shape[0] != given.shape[0]:
            raise BadInput(f"rejected has {no.shape[0]} rows, X has {given.shape[0]}; give one row for each.")
        both = given.multiply(no).tocoo()
        if both.nnz:
            name = self.name_features(both.col[:1])[0]
            raise BadInput(f"{name!r} is both observed and rejected in row {both.row[0]}; keep it in one of them.")
        return no

    def _query(self, observed: Iterable[Any], rejected: Iterable[Any], hidden: Any) -> tuple[Queries, list[str]]:
        """One set as a query, and the names that are not known."""
        check_is_fitted(self)
        given, no = columns_of(self, observed, "observed"), columns_of(self, rejected, "rejected")
        both = np.intersect1d(given.columns, no.columns)
        if both.size:
            raise BadInput(
                f"{self.name_features(both[:1])[0]!r} is both observed and rejected; keep it in one of them."
            )
        sets = [_one_row(columns.columns, self.n_features_in_) for columns in (given, no)]
        return self._queries(sets[0], sets[1], hidden), given.unknown + no.unknown

    def _queries(self, given: sp.csr_matrix, refused: sp.csr_matrix, hidden: Any) -> Queries:
        n_rows, n_given, hidden = self.model_.stats.lengths(), np.diff(given.indptr), check_hidden(hidden)
        expected = expected_hidden(np.arange(n_rows.size), n_rows, n_given, hidden)
        if not isinstance(hidden, str) and hidden < 1 and self.n_rows_ and (n_given == 0).any():
            expected[n_given == 0] = max(hidden_of_empty_sets(self.model_, hidden), 1e-6)
        return new_queries(given, refused, np.log(expected))

    def _row_groups(self) -> RowGroups:
        """What remembered rows are called, and which cluster they belong to."""
        roster = getattr(self.clusters, "roster_", None)
        names = dict(roster.names) if roster is not None else {}
        return RowGroups(getattr(self, "row_ids_", None), getattr(self, "row_clusters_", None), names)

    # --- the contract -------------------------------------------------------------------------------------------------

    @property
    def cluster_ids_(self) -> np.ndarray:
        """Ids of the clusters that group the reasons."""
        if self.clusters is None:
            raise AttributeError("this Suggester was given no clusters")
        return self.clusters.cluster_ids_

    @property
    def fit_predict(self) -> Any:
        """A suggester gives no labels."""
        raise AttributeError("a Suggester has no labels; use fit and suggest")

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself."""
        check_model(self.model_, self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        return tags


def _one_row(columns: np.ndarray, width: int) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(columns.size), columns, np.array([0, columns.size])), shape=(1, width))
