"""What reading gives: a sparse matrix, and what its rows and columns stand for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.recipe import Recipe
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput


@dataclass(eq=False)
class Dataset:
    """Items by features, ready for a model; every model's ``fit`` takes it in place of ``X``.

    Attributes
    ----------
    X : CSR matrix, one row an item, one column a feature
    vocabulary : the name of each column
    ids : the name of each row (None: rows are known by number)
    times : seconds since 1970 in UTC (NaN: none given), or None
    owners, labels : who each item belongs to and what it is known to be, as text, or None
    titles : what to call each item on a card, or None
    recipe : how the source was read; ``read(new, recipe=dataset)`` gives the same columns
    table : the columns of a table of mixed columns (Arrow), which ``X`` only marks as there or missing; or None
    summary : plain numbers about the reading (rows, features, empty_rows, ...) and what was guessed

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> pets = shoal.read(pa.table({"id": ["a", "b"], "tags": [["cat", "dog"], ["dog"]]}))
    >>> pets
    Dataset(2 items x 2 features, 3 non-zeros, binary; ids from 'id', features from 'tags')
    >>> pets.vocabulary[1], pets.X.toarray().tolist()
    ('dog', [[1.0, 1.0], [0.0, 1.0]])
    >>> pets.rows([1]).ids.tolist()
    ['b']
    """

    X: sp.csr_matrix
    vocabulary: Vocabulary
    ids: np.ndarray | None = None
    times: np.ndarray | None = None
    owners: np.ndarray | None = None
    labels: np.ndarray | None = None
    titles: np.ndarray | None = None
    recipe: Recipe = field(default_factory=Recipe)
    summary: dict[str, Any] = field(default_factory=dict)
    table: Any = None

    def __post_init__(self) -> None:
        self.X = _as_matrix(self.X)
        if not isinstance(self.vocabulary, Vocabulary):
            self.vocabulary = Vocabulary(self.vocabulary)
        for name in ("ids", "times", "owners", "labels", "titles"):
            values = getattr(self, name)
            if values is None:
                continue
            # A pandas Series would be looked up by its labels and not by row.
            values = np.asarray(values)
            if values.shape != (self.X.shape[0],):
                raise BadInput(
                    f"{name} has shape {values.shape}; it needs one value for each of the {len(self):,} rows."
                )
            setattr(self, name, values)
        if len(self.vocabulary) != self.X.shape[1]:
            raise BadInput(f"the vocabulary has {len(self.vocabulary):,} names for {self.X.shape[1]:,} columns of X.")

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def rows(self, which: Any) -> Dataset:
        """Some of the items (numbers, a mask or a slice) under the same vocabulary; ``dataset[which]`` is the same."""
        chosen = which if isinstance(which, slice) else np.atleast_1d(np.asarray(which))
        if isinstance(chosen, np.ndarray) and chosen.size == 0:
            chosen = chosen.astype(np.int64)

        def part(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else np.asarray(values)[chosen]

        X = self.X[chosen]
        ids = part(self.ids if self.ids is not None else np.arange(len(self)))
        facts = {"rows": X.shape[0], "non_zeros": int(X.nnz), "empty_rows": int((np.diff(X.indptr) == 0).sum())}
        columns: dict[str, Any] = {name: part(getattr(self, name)) for name in ("times", "owners", "labels", "titles")}
        if self.table is not None:
            columns["table"] = self.table.take(np.arange(len(self))[chosen])
        return replace(self, X=X, ids=ids, summary=self.summary | facts, **columns)

    __getitem__ = rows

    def __repr__(self) -> str:
        recipe = self.recipe
        named = {
            "ids": recipe.item,
            "features": recipe.features,
            "text": recipe.text,
            "weights": recipe.weight,
            "times": recipe.time,
            "owners": recipe.owner,
            "labels": recipe.label,
            "titles": recipe.title,
        }
        n_items, n_features = self.X.shape
        what = f"{n_items:,} items x {n_features:,} features, {self.X.nnz:,} non-zeros, {recipe.weighting}"
        columns = ", ".join(f"{role} from {column!r}" for role, column in named.items() if column)
        return f"Dataset({what}{'; ' + columns if columns else ''})"

    def _repr_html_(self) -> str:
        """For notebooks: the facts, and the first rows with their heaviest features."""
        from html import escape

        rows = []
        for row in range(min(len(self), 5)):
            cells = self.X[row]
            heaviest = cells.indices[np.argsort(-np.abs(cells.data), kind="stable")[:8]]
            name = str(row if self.ids is None else self.ids[row])
            words = ", ".join(self.vocabulary[int(feature)] for feature in heaviest)
            rows.append(f"<tr><td>{escape(name[:60])}</td><td>{escape(words[:200])}</td><td>{cells.nnz}</td></tr>")
        head = "<tr><th>item</th><th>heaviest features</th><th>features</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{''.join(rows)}</table>"


def _as_matrix(X: Any) -> sp.csr_matrix:
    """What was given for ``X`` as CSR; it is left alone if it is."""
    if sp.issparse(X) and X.format == "csr":
        return X
    if not sp.issparse(X) and not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        raise BadInput(f"X is a {type(X).__name__}; a Dataset holds a matrix. shoal.read makes one of other things.")
    return sp.csr_matrix(X)
