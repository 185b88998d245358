"""The silhouette against scikit-learn's, which compares all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import silhouette_samples as all_pairs

from shoal.errors import BadInput
from shoal.metrics import evaluate, silhouette, silhouette_samples


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_silhouette_over_all_pairs(seed):
    rng = np.random.default_rng(seed)
    X = sp.random(80, 30, density=0.3, format="csr", random_state=seed) + sp.csr_matrix(np.full((80, 30), 1e-3))
    labels = rng.integers(0, 5, 80) * 3
    labels[labels == 12] = np.append(12, np.full((labels == 12).sum() - 1, 9))  # a cluster of one
    np.testing.assert_allclose(silhouette_samples(X, labels), all_pairs(X, labels, metric="cosine"), atol=1e-9)


def test_unassigned_rows_count_neither_as_members_nor_as_a_cluster():
    rng = np.random.default_rng(0)
    X, labels = rng.random((60, 8)), rng.integers(-1, 3, 60)
    values = silhouette_samples(X, labels)
    assert np.isnan(values[labels == -1]).all()
    np.testing.assert_allclose(values[labels >= 0], all_pairs(X[labels >= 0], labels[labels >= 0], metric="cosine"))
    assert silhouette(X, labels) == pytest.approx(np.nanmean(values))


def test_one_cluster_has_no_silhouette():
    with pytest.raises(BadInput, match="name 1 clusters"):
        silhouette(np.eye(3), [0, 0, -1])


def test_the_unassigned_are_no_cluster_in_the_count():
    scores = evaluate(["a", "a", "b", None], [0, 0, -1, -1])
    assert (scores["classes"], scores["clusters"], scores["unassigned"]) == (2, 1, 2)
